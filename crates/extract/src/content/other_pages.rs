//! Sections of a product page that show other products, and of an article that show other articles.

use std::ops::Range;

use super::kind::Kind;
use crate::fold::one_line;
use crate::page::{NodeKind, Page};
use crate::text_stats::TextStats;

/// In an article, their headings begin with these words, in lower case.
const OF_ARTICLES: &[&str] = &[
    "continue reading",
    "keep reading",
    "latest articles",
    "latest news",
    "latest posts",
    "more articles",
    "more from",
    "more like this",
    "more posts",
    "more stories",
    "most popular",
    "most read",
    "other articles",
    "other posts",
    "popular articles",
    "popular posts",
    "read next",
    "recent articles",
    "recent posts",
    "recommended",
    "related articles",
    "related posts",
    "related products",
    "related reading",
    "related stories",
    "related topics",
    "up next",
    "what to read next",
    "you may also",
    "you might also",
];

/// The same beside a product. Names of classes say it rarely: large shops generate them.
const OF_PRODUCTS: &[&str] = &[
    "compare with",
    "customers also",
    "customers who",
    "explore related",
    "explore similar",
    "frequently bought",
    "more from",
    "more like",
    "others also",
    "people who",
    "recently viewed",
    "recommended",
    "related items",
    "related products",
    "similar items",
    "similar products",
    "similar sponsored",
    "sponsored",
    "you may also",
    "you might also",
];

/// The source of such a heading is no longer than this.
const MAX_HEADING_BYTES: usize = 200;

/// A section with more than this share of the content is the content.
const MAX_TEXT_PERCENT: usize = 50;

/// Further sections are kept: for each, the elements around it are examined.
const MAX_SECTIONS: usize = 100;

/// Drops each section that begins with such a heading: the largest element in which no text comes before it.
pub(super) fn drop(
    page: &Page<'_>,
    kept: &TextStats,
    root: &Range<usize>,
    kind: Kind,
    dropped: &mut [bool],
) {
    let beginnings = match kind {
        Kind::Article => OF_ARTICLES,
        Kind::Product => OF_PRODUCTS,
        Kind::Questions | Kind::Forum | Kind::Other => return,
    };
    let max_bytes = kept.text_bytes(root) * MAX_TEXT_PERCENT / 100;
    let mut open: Vec<Range<usize>> = Vec::new();
    let mut sections = 0;
    let mut index = root.start;
    while let Some(node) = page.nodes.get(index).filter(|_| index < root.end) {
        while open.pop_if(|around| around.end <= index).is_some() {}
        if dropped.get(index) == Some(&true) || sections >= MAX_SECTIONS {
            index = node.end;
            continue;
        }
        let nodes = index..node.end;
        index += 1;
        let NodeKind::Element(element) = &node.kind else { continue };
        if element.tag.is_heading() && introduces_others(page, nodes.start, beginnings) {
            sections += 1;
            let is_section = |around: &&Range<usize>| {
                let bytes = kept.text_bytes(around);
                around.start > root.start
                    && kept.text_bytes(&(around.start..nodes.start)) == 0
                    && bytes > kept.text_bytes(&nodes)
                    && bytes <= max_bytes
            };
            if let Some(section) = open.iter().find(is_section)
                && let Some(mark) = dropped.get_mut(section.start)
            {
                *mark = true;
                index = section.end;
            }
        } else if element.tag.is_block() {
            open.push(nodes);
        }
    }
}

fn introduces_others(page: &Page<'_>, heading: usize, beginnings: &[&str]) -> bool {
    page.short_text(heading, MAX_HEADING_BYTES).is_some_and(|text| {
        let text = one_line(&text).to_lowercase();
        beginnings.iter().any(|words| text.starts_with(words))
    })
}
