//! Which subtrees are navigation, teasers, forms and the like.

use std::ops::Range;

use crate::measures::Measures;
use crate::page::{Element, NodeKind, Page, Tag};

/// Words in a `class` or `id` that name what stands around articles.
const WORDS: [&str; 46] = [
    "ad",
    "ads",
    "advert",
    "advertisement",
    "banner",
    "breadcrumb",
    "breadcrumbs",
    "byline",
    "comment",
    "comments",
    "cookie",
    "cookies",
    "copyright",
    "disqus",
    "dropdown",
    "footer",
    "gdpr",
    "login",
    "menu",
    "modal",
    "nav",
    "navbar",
    "navigation",
    "newsletter",
    "outbrain",
    "overlay",
    "pager",
    "pagination",
    "popup",
    "popular",
    "promo",
    "promotion",
    "recommended",
    "related",
    "respond",
    "share",
    "sharing",
    "sidebar",
    "signup",
    "social",
    "sponsored",
    "subscribe",
    "taboola",
    "tags",
    "toolbar",
    "trending",
];

const ROLES: [&str; 6] =
    ["banner", "complementary", "contentinfo", "dialog", "navigation", "search"];

/// A block is a list of links when more than this part of its text is linked.
const MAX_LINKED_PERCENT: usize = 60;

/// With more text of its own than this it is a part of the page that has links among others.
const MAX_UNLINKED_BYTES: usize = 300;

/// Marks the topmost node of each subtree to leave out. Nodes within one are not marked again.
pub(super) fn find(page: &Page<'_>, measures: &Measures, root: &Range<usize>) -> Vec<bool> {
    let judge = Judge::new(measures, root);
    let mut dropped = vec![false; page.nodes.len()];
    let mut index = root.start;
    while let Some(node) = page.nodes.get(index).filter(|_| index < root.end) {
        let is_dropped = match &node.kind {
            NodeKind::Element(element) => {
                judge.drops(element, &(index..node.end), index == root.start)
            }
            NodeKind::Text(_) => false,
        };
        if let Some(mark) = dropped.get_mut(index) {
            *mark = is_dropped;
        }
        index = if is_dropped { node.end } else { index + 1 };
    }
    dropped
}

struct Judge<'m> {
    measures: &'m Measures,
    root_bytes: usize,
    /// A page that is mostly links is a listing: there they are the content.
    is_listing: bool,
}

impl<'m> Judge<'m> {
    fn new(measures: &'m Measures, root: &Range<usize>) -> Self {
        let root_bytes = measures.text_bytes(root);
        let is_listing = measures.linked_bytes(root) * 2 > root_bytes;
        Judge { measures, root_bytes, is_listing }
    }

    fn drops(&self, element: &Element<'_>, nodes: &Range<usize>, is_root: bool) -> bool {
        if is_never_content(element.tag) {
            return true;
        }
        // Some pages stand wholly in a form or in something called a sidebar.
        let is_most_of_it = self.measures.text_bytes(nodes) * 2 > self.root_bytes;
        let is_frame = matches!(element.tag, Tag::Html | Tag::Body | Tag::Article | Tag::Main);
        if is_root || is_most_of_it || is_frame {
            return false;
        }
        is_by_tag(element.tag)
            || (element.tag.is_block()
                && (is_by_attribute(element) || self.is_link_list(element, nodes)))
    }

    fn is_link_list(&self, element: &Element<'_>, nodes: &Range<usize>) -> bool {
        let may_be = matches!(
            element.tag,
            Tag::Div | Tag::Dl | Tag::Li | Tag::Ol | Tag::P | Tag::Section | Tag::Table | Tag::Ul
        );
        let (all, linked) = (self.measures.text_bytes(nodes), self.measures.linked_bytes(nodes));
        may_be
            && !self.is_listing
            && linked * 100 > all * MAX_LINKED_PERCENT
            && all - linked <= MAX_UNLINKED_BYTES
    }
}

fn is_never_content(tag: Tag) -> bool {
    use Tag::*;
    matches!(tag, Button | Head | Select | SelectOption | Title)
}

fn is_by_tag(tag: Tag) -> bool {
    use Tag::*;
    matches!(tag, Aside | Dialog | Footer | Form | Header | Menu | Nav | Search)
}

fn is_by_attribute(element: &Element<'_>) -> bool {
    let is_word = |word: &str| WORDS.iter().any(|known| known.eq_ignore_ascii_case(word));
    let names_boilerplate = |name| {
        element
            .attribute(name)
            .is_some_and(|value| value.split(|c: char| !c.is_alphanumeric()).any(is_word))
    };
    names_boilerplate("class")
        || names_boilerplate("id")
        || element.attribute("hidden").is_some()
        || element.attribute_has("aria-hidden", "true")
        || element
            .attribute("style")
            .is_some_and(|style| style.replace(' ', "").contains("display:none"))
        || element.attribute("role").is_some_and(|role| ROLES.contains(&role.trim()))
}
