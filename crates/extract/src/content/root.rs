//! Finds the element that is the article.

use std::ops::Range;

use super::prune::Pruned;
use crate::page::{Element, NodeKind, Page, Tag};
use crate::text_stats::TextStats;

/// A tier with less prose than this has only teasers.
const MIN_TIER_PROSE_BYTES: usize = 250;

/// A tier with less than this share of the page's prose is not the main content.
const MIN_TIER_PERCENT: usize = 20;

/// A `main` with less than this share of the page's text is not the main content.
const MIN_MAIN_TEXT_PERCENT: usize = 10;

/// The smallest element with this share of a tier's prose is the article.
const ROOT_PROSE_PERCENT: usize = 80;

/// One of several `article` elements is the article if it is this many times as long as any other.
const MIN_LEAD: usize = 3;

/// The maximum number of parts: each is examined for each element around them.
const MAX_PARTS: usize = 200;

/// Finds the article in the first tier that has enough prose; else, if the page is an article, the smallest element
/// with most of its prose; else the whole page.
pub(super) fn find(
    page: &Page<'_>,
    kept: &TextStats,
    pruned: &Pruned,
    is_article: bool,
) -> Range<usize> {
    let whole = 0..page.nodes.len();
    let page_prose = kept.prose_bytes(&whole);
    let tiers: &[Tier] =
        if is_article { &[Tier::Body, Tier::Article, Tier::Main] } else { &[Tier::Main] };
    for tier in tiers {
        let parts = Parts::of(page, kept, pruned, *tier);
        let has_enough = if is_article {
            parts.prose >= MIN_TIER_PROSE_BYTES
                && parts.prose * 100 >= page_prose * MIN_TIER_PERCENT
        } else {
            // The content of other kinds of pages is not always prose.
            parts.text * 100 >= kept.text_bytes(&whole) * MIN_MAIN_TEXT_PERCENT
        };
        if has_enough {
            return parts.root();
        }
    }
    if is_article { Parts::whole(page, kept).smallest_around() } else { whole }
}

/// How an element declares that it is the article, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tier {
    Body,
    Article,
    Main,
}

/// The outermost elements of a tier that are not empty.
struct Parts<'p, 'a> {
    page: &'p Page<'a>,
    kept: &'p TextStats,
    parts: Vec<Range<usize>>,
    text: usize,
    prose: usize,
}

impl<'p, 'a> Parts<'p, 'a> {
    fn of(page: &'p Page<'a>, kept: &'p TextStats, pruned: &Pruned, tier: Tier) -> Self {
        let mut found = Parts { page, kept, parts: Vec::new(), text: 0, prose: 0 };
        let mut index = 0;
        while let Some(node) = page.nodes.get(index).filter(|_| found.parts.len() < MAX_PARTS) {
            let nodes = index..node.end;
            let is_part = |element: &Element<'_>| match tier {
                Tier::Body => pruned.hints(index).is_body && element.tag.is_block(),
                Tier::Article => element.tag == Tag::Article,
                Tier::Main => element.tag == Tag::Main || pruned.hints(index).is_main,
            };
            let is_dropped = pruned.dropped.get(index) == Some(&true);
            let is_part = matches!(&node.kind, NodeKind::Element(element) if is_part(element));
            let text = kept.text_bytes(&nodes);
            let prose = kept.prose_bytes(&nodes);
            // A page may consist of lists and tables only; an article has prose.
            let is_filled = prose > 0 || (tier == Tier::Main && text > 0);
            if is_part && !is_dropped && is_filled {
                found.text += text;
                found.prose += prose;
                found.parts.push(nodes);
            }
            index = if is_part || is_dropped { node.end } else { index + 1 };
        }
        found
    }

    fn whole(page: &'p Page<'a>, kept: &'p TextStats) -> Self {
        let whole = 0..page.nodes.len();
        let text = kept.text_bytes(&whole);
        let prose = kept.prose_bytes(&whole);
        Parts { page, kept, parts: vec![whole], text, prose }
    }

    /// The part that is the article, or the smallest element around all parts.
    fn root(&self) -> Range<usize> {
        if let [only] = self.parts.as_slice() {
            return only.clone();
        }
        let is_most = |part: &&Range<usize>| {
            self.kept.prose_bytes(part) * 100 >= self.prose.max(1) * ROOT_PROSE_PERCENT
        };
        let is_article = |nodes: &Range<usize>| {
            let node = self.page.nodes.get(nodes.start).map(|node| &node.kind);
            matches!(node, Some(NodeKind::Element(element)) if element.tag == Tag::Article)
        };
        let most = || self.parts.iter().find(is_most);
        // Of several `article` elements, most are teasers; the parts of a body belong together.
        let best = if self.parts.iter().all(is_article) {
            self.headed().or_else(most).or_else(|| self.leader())
        } else {
            most()
        };
        best.cloned().unwrap_or_else(|| self.smallest_around())
    }

    /// The first part with a headline.
    fn headed(&self) -> Option<&Range<usize>> {
        let has_headline = |part: &&Range<usize>| {
            let nodes = self.page.nodes.get((*part).clone()).unwrap_or_default();
            nodes.iter().any(
                |node| matches!(&node.kind, NodeKind::Element(element) if element.tag == Tag::H1),
            )
        };
        let first = self.parts.iter().find(has_headline);
        first.filter(|part| self.kept.prose_bytes(part) >= MIN_TIER_PROSE_BYTES)
    }

    /// The part that is much longer than all others.
    fn leader(&self) -> Option<&Range<usize>> {
        let longest = self.parts.iter().max_by_key(|part| self.kept.prose_bytes(part))?;
        let longest_prose = self.kept.prose_bytes(longest);
        let leads = |other: &Range<usize>| {
            other == longest || longest_prose >= self.kept.prose_bytes(other) * MIN_LEAD
        };
        let is_half = longest_prose * 2 > self.prose;
        (is_half && self.parts.iter().all(leads)).then_some(longest)
    }

    /// The smallest element that has most of the prose of the parts.
    fn smallest_around(&self) -> Range<usize> {
        let mut best = 0..self.page.nodes.len();
        let mut index = 0;
        while let Some(node) = self.page.nodes.get(index).filter(|_| index < best.end) {
            let nodes = index..node.end;
            let may_be_root =
                matches!(&node.kind, NodeKind::Element(element) if may_hold_blocks(element.tag));
            if may_be_root
                && self.prose_within(&nodes) * 100 >= self.prose.max(1) * ROOT_PROSE_PERCENT
            {
                best = nodes;
                index += 1;
            } else {
                index = node.end;
            }
        }
        best
    }

    fn prose_within(&self, nodes: &Range<usize>) -> usize {
        let common = |part: &Range<usize>| part.start.max(nodes.start)..part.end.min(nodes.end);
        self.parts.iter().map(|part| self.kept.prose_bytes(&common(part))).sum()
    }
}

/// A long paragraph is not an article by itself: it has siblings.
fn may_hold_blocks(tag: Tag) -> bool {
    tag == Tag::Other || (tag.is_block() && tag != Tag::P)
}
