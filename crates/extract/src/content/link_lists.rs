//! Blocks that consist mostly of links, such as lists of related articles.

use std::ops::Range;

use crate::page::{Node, NodeKind, Page, Tag};
use crate::text_stats::TextStats;

/// A block is a list of links if more than this share of its text is linked.
const MAX_LINKED_PERCENT: usize = 80;

/// A block with more text of its own is content that happens to contain many links.
const MAX_OWN_BYTES: usize = 80;

/// A list within an article is followed by at least this much prose. At the end, lists lead to other articles.
const MIN_PROSE_AFTER_BYTES: usize = 100;

/// How many preceding nodes are searched for the item that a block begins.
const MAX_WRAPPERS: usize = 8;

/// Drops link lists, except for blocks that begin an item or a cell. In articles, also keeps lists that the text
/// announces.
pub(super) fn drop(
    page: &Page<'_>,
    kept: &TextStats,
    root: &Range<usize>,
    is_article: bool,
    dropped: &mut [bool],
) {
    // A page that is mostly links is a listing, so the links are its content.
    if kept.linked_bytes(root) > kept.own_bytes(root) {
        return;
    }
    let mut last_text = "";
    let mut index = root.start;
    while let Some(node) = page.nodes.get(index).filter(|_| index < root.end) {
        let nodes = index..node.end;
        let is_list = match &node.kind {
            NodeKind::Element(element) => holds_links(element.tag) && is_link_list(kept, &nodes),
            NodeKind::Text(text) => {
                last_text = if kept.text_bytes(&nodes) > 0 { text } else { last_text };
                false
            }
        };
        let is_item = is_list && begins_item(page, kept, index);
        let is_within = is_list && is_article && !is_item && {
            let prose_after = kept.prose_bytes(&(node.end..root.end));
            prose_after >= MIN_PROSE_AFTER_BYTES && announces(last_text) && is_set(page, &nodes)
        };
        let is_dropped = is_list && !is_within && !is_item;
        if let Some(mark) = dropped.get_mut(index) {
            *mark |= is_dropped;
        }
        let is_done = is_within || dropped.get(index) == Some(&true);
        index = if is_done { node.end } else { index + 1 };
    }
}

fn is_link_list(kept: &TextStats, nodes: &Range<usize>) -> bool {
    let linked_bytes = kept.linked_bytes(nodes);
    linked_bytes * 100 > kept.text_bytes(nodes) * MAX_LINKED_PERCENT
        && kept.own_bytes(nodes) <= MAX_OWN_BYTES
}

/// Whether the next block belongs to the sentence that ends here.
fn announces(text: &str) -> bool {
    text.trim_end().ends_with([':', '\u{FF1A}'])
}

/// Whether this is several items with links to other pages. Links to sections of this page are a table of contents.
fn is_set(page: &Page<'_>, nodes: &Range<usize>) -> bool {
    let nodes = page.nodes.get(nodes.clone()).unwrap_or_default();
    let elements = nodes.iter().filter_map(|node| match &node.kind {
        NodeKind::Element(element) => Some(element),
        NodeKind::Text(_) => None,
    });
    let is_second_item = elements.clone().filter(|element| element.tag == Tag::Li).nth(1).is_some();
    let first_link = elements.clone().find(|element| element.tag == Tag::A);
    let address = first_link.and_then(|link| link.attribute("href"));
    is_second_item && !address.is_some_and(|address| address.starts_with('#'))
}

/// Whether this is the first block of an item or a cell; it is kept with its neighbors. A block with several links is a
/// menu; links without text, such as portraits and icons, do not count.
fn begins_item(page: &Page<'_>, kept: &TextStats, index: usize) -> bool {
    let tag_of = |node: &Node<'_>| match &node.kind {
        NodeKind::Element(element) => Some(element.tag),
        NodeKind::Text(_) => None,
    };
    let is_around = |node: &Node<'_>, tags: &[Tag]| {
        node.end > index && tag_of(node).is_some_and(|tag| tags.contains(&tag))
    };
    let is_block = |node: &Node<'_>| is_around(node, &[Tag::Div, Tag::P]);
    let before = page.nodes.get(..index).unwrap_or_default().iter().rev().take(MAX_WRAPPERS);
    // White space may separate them.
    let mut around = before.skip_while(|node| tag_of(node).is_none() || is_block(node));
    let has_text = |at: &usize| kept.text_bytes(&page.subtree(*at)) > 0;
    let is_link = |at: &usize| page.nodes.get(*at).and_then(tag_of) == Some(Tag::A);
    let mut links = page.subtree(index).filter(|at| is_link(at) && has_text(at));
    page.nodes.get(index).is_some_and(is_block)
        && around.next().is_some_and(|node| is_around(node, &[Tag::Dd, Tag::Li, Tag::Td, Tag::Th]))
        && links.nth(1).is_none()
}

fn holds_links(tag: Tag) -> bool {
    use Tag::*;
    matches!(tag, Div | Dl | Ol | P | Section | Table | Ul)
}
