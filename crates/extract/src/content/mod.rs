//! Selects the part of the page that is the article, and the subtrees in it to leave out.
//!
//! The page is pruned by the names of its elements, and the article is searched for in the rest. Names can mislead, so
//! each step has a guard: it is undone if it would leave too little.

mod hints;
mod kind;
mod labels;
mod link_lists;
mod other_pages;
mod prune;
mod repeated;
mod root;
mod words;

use std::ops::Range;

use url::Url;

use crate::fold::one_line;
use crate::metadata::{StatedKind, without_frame};
use crate::page::{Page, Tag};
use crate::text_stats::TextStats;
use kind::{Kind, is_like_article};
use prune::{Pruned, Trust};

/// A result below both limits is suspect: the article may be outside of the element that looked like it. The whole page
/// is used instead if that gives half as much again.
const SHORT_BYTES: usize = 3_000;
const SHORT_PERCENT: usize = 10;

/// Pruning by name must leave at least this much, else the names are not trusted.
const MIN_KEPT_PROSE_BYTES: usize = 150;
const MIN_KEPT_PROSE_PERCENT: usize = 5;

/// With less than this share of the prose left, the names of several elements together may have erased the page…
const LITTLE_PROSE_PERCENT: usize = 25;

/// …and they have if ignoring names adds this share of the page's prose and leaves more than this many times as much
/// text.
const MIN_GAIN_PERCENT: usize = 15;
const MIN_GAIN_FACTOR: usize = 5;

/// The part of a page that is written.
pub(crate) struct Content {
    /// A range of the page's nodes.
    pub(crate) root: Range<usize>,
    /// Further ranges after it, if the caller chose several elements.
    pub(crate) more: Vec<Range<usize>>,
    /// For each node of the page, whether the writers skip its subtree.
    pub(crate) dropped: Vec<bool>,
    /// Bytes of text in it.
    pub(crate) text_bytes: usize,
}

/// Selects the article's element, else the whole page, and drops the boilerplate in it. `authors` are the names that the
/// page states.
pub(crate) fn choose(
    page: &Page<'_>,
    found_at: &Url,
    stated: Option<StatedKind>,
    authors: &[String],
) -> Content {
    let stats = TextStats::of(page);
    let mut pruned = Pruned::new(page, &stats);
    let mut kept = prune(&mut pruned, page, &stats, Kind::Other);
    let kind = Kind::of(page, &kept, &pruned, found_at, stated);
    if kind != Kind::Other {
        kept = prune(&mut pruned, page, &stats, kind);
    }
    let is_article = match kind {
        Kind::Article => true,
        Kind::Product => is_like_article(page, &kept, &pruned),
        Kind::Questions | Kind::Forum | Kind::Other => false,
    };
    let root = widened(root::find(page, &kept, &pruned, is_article), page, &stats, &kept);
    let mut dropped = pruned.dropped;
    other_pages::drop(page, &kept, &root, kind, &mut dropped);
    link_lists::drop(page, &kept, &root, kind == Kind::Article, &mut dropped);
    if kind == Kind::Article {
        labels::drop(page, &stats, &kept, &root, authors, &mut dropped);
    } else {
        repeated::drop(page, &root, &mut dropped);
    }
    Content { text_bytes: kept.text_bytes(&root), root, more: Vec::new(), dropped }
}

/// Prunes the page: more cautiously if too little is left, and ignoring names if they erase the page.
fn prune(pruned: &mut Pruned, page: &Page<'_>, stats: &TextStats, kind: Kind) -> TextStats {
    let mut trust = Trust::Full;
    let mut kept = pruned.prune(page, stats, kind, trust);
    if !is_enough(page, stats, &kept) {
        trust = Trust::Guarded;
        kept = pruned.prune(page, stats, kind, trust);
    }
    let kept_size = ContentSize::of(page, &kept, pruned, kind);
    let page_size = ContentSize::of(page, stats, pruned, kind);
    if kept_size.prose * 100 >= page_size.prose * LITTLE_PROSE_PERCENT {
        return kept;
    }
    let kept_ignoring_names = pruned.prune(page, stats, kind, Trust::Ignored);
    let size_ignoring_names = ContentSize::of(page, &kept_ignoring_names, pruned, kind);
    let gained = size_ignoring_names.prose.saturating_sub(kept_size.prose);
    let page_prose = stats.prose_bytes(&(0..page.nodes.len()));
    let is_much = gained >= MIN_KEPT_PROSE_BYTES && gained * 100 >= page_prose * MIN_GAIN_PERCENT;
    if is_much && size_ignoring_names.text > kept_size.text * MIN_GAIN_FACTOR {
        return kept_ignoring_names;
    }
    // Restores the marks of the earlier pass.
    pruned.prune(page, stats, kind, trust)
}

/// The bytes outside of comments, except in a forum, whose content they are.
struct ContentSize {
    text: usize,
    prose: usize,
}

impl ContentSize {
    fn of(page: &Page<'_>, stats: &TextStats, pruned: &Pruned, kind: Kind) -> ContentSize {
        let whole = 0..page.nodes.len();
        let comments: &[_] = if kind == Kind::Forum { &[] } else { pruned.comments() };
        let outside = |bytes: fn(&TextStats, &Range<usize>) -> usize| {
            let in_comments: usize = comments.iter().map(|nodes| bytes(stats, nodes)).sum();
            bytes(stats, &whole) - in_comments
        };
        ContentSize { text: outside(TextStats::text_bytes), prose: outside(TextStats::prose_bytes) }
    }
}

fn is_enough(page: &Page<'_>, all: &TextStats, kept: &TextStats) -> bool {
    let whole = 0..page.nodes.len();
    let prose = kept.prose_bytes(&whole);
    prose >= MIN_KEPT_PROSE_BYTES && prose * 100 >= all.prose_bytes(&whole) * MIN_KEPT_PROSE_PERCENT
}

fn widened(root: Range<usize>, page: &Page<'_>, all: &TextStats, kept: &TextStats) -> Range<usize> {
    let whole = 0..page.nodes.len();
    let bytes = kept.text_bytes(&root);
    let is_short = bytes < SHORT_BYTES && bytes * 100 < all.text_bytes(&whole) * SHORT_PERCENT;
    if is_short && kept.own_bytes(&whole) * 2 > kept.own_bytes(&root) * 3 { whole } else { root }
}

impl Content {
    /// The ranges of the page's nodes, in document order.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Range<usize>> {
        std::iter::once(&self.root).chain(&self.more)
    }

    /// The heading that matches the title, else the `h1` with an element that does.
    pub(crate) fn headline(&self, page: &Page<'_>, title: &str) -> Option<usize> {
        let headings = || {
            page.elements()
                .skip_while(|(index, _)| *index < self.root.start)
                .take_while(|(index, _)| *index < self.root.end)
                .filter(|(_, element)| matches!(element.tag, Tag::H1 | Tag::H2))
                .take(MAX_HEADINGS)
        };
        let whole = headings().map(|(index, _)| index).find(|index| says(page, *index, title));
        whole.or_else(|| {
            let main = headings().filter(|(_, element)| element.tag == Tag::H1);
            main.map(|(index, _)| index)
                .find(|index| page.pieces(*index).any(|piece| piece == title))
        })
    }
}

fn says(page: &Page<'_>, index: usize, title: &str) -> bool {
    page.short_text(index, MAX_HEADING_BYTES).is_some_and(|text| {
        let heading = one_line(&text);
        heading == title || without_frame(&heading) == title
    })
}

/// The headline is one of the first headings, and its source is no longer than this.
const MAX_HEADINGS: usize = 50;
const MAX_HEADING_BYTES: usize = 5_000;
