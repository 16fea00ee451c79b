//! Which part of the page is the article, and which subtrees in it are not.

mod boilerplate;

use std::ops::Range;

use crate::measures::Measures;
use crate::page::{Element, Page, Tag};

/// An element with less text of its own than this is a teaser, not the article.
const MIN_ROOT_BYTES: usize = 250;

/// A result below both bounds is suspect: the article may stand outside the element that looked
/// like it.
const SHORT_BYTES: usize = 3_000;
const SHORT_PERCENT: usize = 20;

/// The part of a page that is written out.
pub(crate) struct Content {
    /// A range of the page's nodes.
    pub(crate) root: Range<usize>,
    /// For each node of the page: the writers pass over its subtree.
    pub(crate) dropped: Vec<bool>,
    kept_bytes: usize,
}

/// Chooses the article's element, else the whole page, and drops the boilerplate in it.
pub(crate) fn choose(page: &Page<'_>) -> Content {
    let measures = Measures::of(page);
    let whole = 0..page.nodes.len();
    let Some(root) = article_root(page, &measures) else {
        return pruned(page, &measures, whole);
    };
    let article = pruned(page, &measures, root);
    let is_short = article.kept_bytes < SHORT_BYTES
        && article.kept_bytes * 100 < measures.text_bytes(&whole) * SHORT_PERCENT;
    if is_short {
        let page_content = pruned(page, &measures, whole);
        if page_content.kept_bytes * 2 > article.kept_bytes * 3 {
            return page_content;
        }
    }
    article
}

/// The best element of the first tier that has one with enough text.
fn article_root(page: &Page<'_>, measures: &Measures) -> Option<Range<usize>> {
    let tiers: [fn(&Element<'_>) -> bool; 3] = [
        |element| element.attribute_has("itemprop", "articleBody"),
        |element| element.tag == Tag::Article,
        |element| element.tag == Tag::Main || element.attribute_has("role", "main"),
    ];
    let own_bytes =
        |nodes: &Range<usize>| measures.text_bytes(nodes) - measures.linked_bytes(nodes);
    tiers.iter().find_map(|is_candidate| {
        page.elements()
            .filter(|(_, element)| is_candidate(element))
            .map(|(index, _)| page.subtree(index))
            .max_by_key(own_bytes)
            .filter(|nodes| own_bytes(nodes) >= MIN_ROOT_BYTES)
    })
}

fn pruned(page: &Page<'_>, measures: &Measures, root: Range<usize>) -> Content {
    let dropped = boilerplate::find(page, measures, &root);
    let mut kept_bytes = measures.text_bytes(&root);
    for index in root.clone().filter(|index| dropped.get(*index) == Some(&true)) {
        kept_bytes -= measures.text_bytes(&page.subtree(index)).min(kept_bytes);
    }
    Content { root, dropped, kept_bytes }
}
