//! Blocks that consist mostly of links, such as lists of related articles.

use std::ops::Range;

use crate::page::{NodeKind, Page, Tag};
use crate::text_stats::TextStats;

/// A block is a list of links if more than this share of its text is linked.
const MAX_LINKED_PERCENT: usize = 70;

/// A block with more text of its own is content that happens to contain many links.
const MAX_OWN_BYTES: usize = 150;

/// Drops the link lists in the content.
pub(super) fn drop(page: &Page<'_>, kept: &TextStats, root: &Range<usize>, dropped: &mut [bool]) {
    // A page that is mostly links is a listing, so the links are its content.
    if kept.linked_bytes(root) > kept.own_bytes(root) {
        return;
    }
    let mut index = root.start;
    while let Some(node) = page.nodes.get(index).filter(|_| index < root.end) {
        let may_be_list =
            matches!(&node.kind, NodeKind::Element(element) if holds_links(element.tag));
        let is_list = may_be_list && is_link_list(kept, &(index..node.end));
        if let Some(mark) = dropped.get_mut(index) {
            *mark |= is_list;
        }
        index = if dropped.get(index) == Some(&true) { node.end } else { index + 1 };
    }
}

fn is_link_list(kept: &TextStats, nodes: &Range<usize>) -> bool {
    let linked_bytes = kept.linked_bytes(nodes);
    linked_bytes * 100 > kept.text_bytes(nodes) * MAX_LINKED_PERCENT
        && kept.own_bytes(nodes) <= MAX_OWN_BYTES
}

fn holds_links(tag: Tag) -> bool {
    use Tag::*;
    matches!(tag, Div | Dl | Ol | P | Section | Table | Ul)
}
