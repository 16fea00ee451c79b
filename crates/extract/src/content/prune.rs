//! Selects the subtrees that are navigation, teasers, forms and the like.

use std::ops::Range;

use super::hints::Hints;
use super::kind::Kind;
use crate::page::{Element, NodeKind, Page, Tag};
use crate::text_stats::TextStats;

/// A box about the author is shorter than this: a longer one may be an article about an author.
const MAX_AUTHOR_BYTES: usize = 1_500;

/// A block with a `time` element is a line with the date if it is shorter than this.
const MAX_DATE_BYTES: usize = 60;

/// A detail line about the article is shorter than this.
const MAX_DETAIL_BYTES: usize = 300;

/// An element with more than this share of the page's prose is not noise, whatever its name. Only elements that frame
/// every page are exempt, as long as enough is left.
const MAX_NOISE_PROSE_PERCENT: usize = 40;

/// The same for a request for consent, which may be longer than the page itself.
const MAX_CONSENT_PROSE_PERCENT: usize = 95;

/// If comments have at least this share of the page's prose, they are its content.
const MAX_COMMENT_PROSE_PERCENT: usize = 95;

/// Navigation consists of links. An element with this much prose is something else, whatever its name…
const MIN_NOT_NAVIGATION_PROSE_BYTES: usize = 150;
const MIN_NOT_NAVIGATION_PROSE_PERCENT: usize = 50;

/// …and so is one with more than this share of the page's text: the products of a shop, for example.
const MAX_NAVIGATION_TEXT_PERCENT: usize = 20;

/// A header with at least this share of its text in links is a menu. The menu of a large site may be longer than an article.
const MIN_MENU_LINKED_PERCENT: usize = 70;

/// A hidden element with this much prose is collapsed, for the reader to open.
const FOLDED_PROSE_BYTES: usize = 200;

/// Slides and the answers in an accordion are `aria-hidden` though readers see them or may open them. They have at
/// least this much text; icons and copies of labels have less.
const MIN_SLIDE_BYTES: usize = 80;

/// How far the names of elements are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// Frames, comments and hidden elements may be left out even if they contain most of the prose.
    Full,
    /// An element that contains most of the prose is kept, unless it asks for consent.
    Guarded,
    /// Names are ignored, except for bodies, comments, reviews and consent requests.
    Ignored,
}

/// What is left out of the page, and the hints of its elements.
pub(super) struct Pruned {
    /// For each node, whether its subtree is left out.
    pub(super) dropped: Vec<bool>,
    hints: Vec<Hints>,
    /// The indexes of the elements that state that they are the article's body.
    stated_bodies: Vec<usize>,
    /// The indexes of the `article` elements.
    articles: Vec<usize>,
    /// The indexes of the `time` elements.
    times: Vec<usize>,
    /// The outermost comment elements; empty if they hold nearly all of the page's prose.
    comments: Vec<Range<usize>>,
    /// How many elements describe a product.
    products: usize,
}

impl Pruned {
    /// Reads the hints of the elements; nothing is left out yet.
    pub(super) fn new(page: &Page<'_>, stats: &TextStats) -> Self {
        let may_be_named = |tag: Tag| tag.is_block() || matches!(tag, Tag::Other | Tag::Span);
        let hints = page.nodes.iter().map(|node| match &node.kind {
            NodeKind::Element(element) if may_be_named(element.tag) => Hints::of(element),
            _ => Hints::default(),
        });
        let hints: Vec<Hints> = hints.collect();
        let bodies = hints.iter().enumerate().filter(|(_, hints)| hints.is_stated_body);
        let stated_bodies: Vec<usize> = bodies.map(|(index, _)| index).collect();
        let comments = find_comments(page, stats, &hints, &stated_bodies);
        let products = hints.iter().filter(|hints| hints.is_product).count();
        let indexes_of = |tag: Tag| {
            let found = page.elements().filter(move |(_, element)| element.tag == tag);
            found.map(|(index, _)| index).collect()
        };
        let articles = indexes_of(Tag::Article);
        let times = indexes_of(Tag::Time);
        let dropped = Vec::new();
        Pruned { dropped, hints, stated_bodies, articles, times, comments, products }
    }

    pub(super) fn comments(&self) -> &[Range<usize>] {
        &self.comments
    }

    /// Whether one of these nodes states that it is the article's body.
    pub(super) fn holds_body(&self, nodes: &Range<usize>) -> bool {
        has_one_within(&self.stated_bodies, nodes)
    }

    fn holds_article(&self, nodes: &Range<usize>) -> bool {
        has_one_within(&self.articles, nodes)
    }

    /// Whether exactly one element describes a product: more are a list.
    pub(super) fn marks_one_product(&self) -> bool {
        self.products == 1
    }

    pub(super) fn hints(&self, index: usize) -> Hints {
        self.hints.get(index).copied().unwrap_or_default()
    }

    /// Marks the topmost node of each subtree to leave out, from scratch; nodes inside one are not examined. Returns
    /// the measures of the rest.
    pub(super) fn prune(
        &mut self,
        page: &Page<'_>,
        stats: &TextStats,
        kind: Kind,
        trust: Trust,
    ) -> TextStats {
        let is_guarded = trust == Trust::Guarded;
        let judge = Judge { pruned: self, stats, whole: 0..page.nodes.len(), kind, is_guarded };
        let mut dropped = vec![false; page.nodes.len()];
        let mut index = 0;
        let mut main_end = 0;
        let mut article_end = 0;
        while let Some((node, mark)) = page.nodes.get(index).zip(dropped.get_mut(index)) {
            if let NodeKind::Element(element) = &node.kind {
                let nodes = index..node.end;
                let mut hints = self.hints(index);
                if trust == Trust::Ignored {
                    hints = hints.without_names();
                    hints.is_comment &= !self.comments.is_empty();
                }
                hints.is_frame &= !(index < main_end && judge.is_prose(&nodes));
                *mark = judge.drops(element, hints, &nodes, index < article_end);
                if element.tag == Tag::Article {
                    article_end = article_end.max(node.end);
                }
                if element.tag == Tag::Main || hints.is_main {
                    main_end = main_end.max(node.end);
                }
            }
            index = if *mark { node.end } else { index + 1 };
        }
        self.dropped = dropped;
        stats.without(page, &self.dropped)
    }
}

/// The outermost elements named as comments, except those that contain the article's body. Empty if they hold nearly
/// all prose, because then the name is misleading.
fn find_comments(
    page: &Page<'_>,
    stats: &TextStats,
    hints: &[Hints],
    stated_bodies: &[usize],
) -> Vec<Range<usize>> {
    let mut comments: Vec<Range<usize>> = Vec::new();
    for (index, _) in hints.iter().enumerate().filter(|(_, hints)| hints.is_comment) {
        let nodes = page.subtree(index);
        let is_inner = comments.last().is_some_and(|last| index < last.end);
        if !is_inner && !has_one_within(stated_bodies, &nodes) {
            comments.push(nodes);
        }
    }
    let prose: usize = comments.iter().map(|nodes| stats.prose_bytes(nodes)).sum();
    let page_prose = stats.prose_bytes(&(0..page.nodes.len()));
    if prose * 100 >= page_prose * MAX_COMMENT_PROSE_PERCENT { Vec::new() } else { comments }
}

/// Whether one of the sorted indexes is in the range.
fn has_one_within(indexes: &[usize], nodes: &Range<usize>) -> bool {
    let first = indexes.partition_point(|index| *index < nodes.start);
    indexes.get(first).is_some_and(|index| *index < nodes.end)
}

struct Judge<'m> {
    pruned: &'m Pruned,
    stats: &'m TextStats,
    whole: Range<usize>,
    kind: Kind,
    is_guarded: bool,
}

impl Judge<'_> {
    fn drops(
        &self,
        element: &Element<'_>,
        hints: Hints,
        nodes: &Range<usize>,
        is_in_article: bool,
    ) -> bool {
        use Tag::*;
        match element.tag {
            Button | Head | Input | Select | SelectOption | Title => return true,
            Html | Body | Main => return false,
            _ => {}
        }
        let is_frame = hints.is_frame || matches!(element.tag, Footer | Nav);
        let text = self.stats.text_bytes(nodes);
        let is_slide = self.kind == Kind::Other && text >= MIN_SLIDE_BYTES;
        let is_hidden = hints.is_hidden || (hints.is_aria_hidden && !is_slide);
        // Comments on an article, hidden copies of it and reviews of a product may be longer than the content.
        let is_beside = match self.kind {
            Kind::Article => hints.is_comment || (is_hidden && !hints.is_tab_panel),
            Kind::Product => hints.is_comment || hints.is_review,
            Kind::Questions | Kind::Forum | Kind::Other => false,
        };
        let prose = self.stats.prose_bytes(nodes);
        if hints.is_consent && self.may_be_consent(nodes) && !self.pruned.holds_body(nodes) {
            return true;
        }
        let may_be_most = is_frame || is_beside || (element.tag == Header && self.is_menu(nodes));
        if text == 0 || (self.is_most(nodes) && (self.is_guarded || !may_be_most)) {
            return false;
        }
        if self.drops_tag(element.tag, nodes, is_in_article)
            || (is_hidden && !self.is_folded(hints, prose))
        {
            return true;
        }
        let is_article = element.tag == Article && !hints.is_noise;
        if hints.is_body || is_article || self.pruned.holds_body(nodes) {
            return false;
        }
        let is_navigation = hints.is_navigation && self.may_be_navigation(nodes);
        is_frame || is_navigation || hints.is_noise || self.drops_name(element.tag, hints, nodes)
    }

    /// Whether hidden content is there for the reader to open. In an article, hidden content is usually a copy, unless
    /// it is a tab panel or little else is left.
    fn is_folded(&self, hints: Hints, prose: usize) -> bool {
        let may_be_copy = self.kind == Kind::Article && !hints.is_tab_panel && !self.is_guarded;
        prose >= FOLDED_PROSE_BYTES && !may_be_copy
    }

    fn may_be_navigation(&self, nodes: &Range<usize>) -> bool {
        let text = self.stats.text_bytes(nodes);
        let page_text = self.stats.text_bytes(&self.whole);
        !self.is_prose(nodes) && text * 100 <= page_text * MAX_NAVIGATION_TEXT_PERCENT
    }

    fn is_menu(&self, nodes: &Range<usize>) -> bool {
        let linked = self.stats.linked_bytes(nodes);
        linked * 100 >= self.stats.text_bytes(nodes) * MIN_MENU_LINKED_PERCENT
    }

    fn is_prose(&self, nodes: &Range<usize>) -> bool {
        let prose = self.stats.prose_bytes(nodes);
        prose >= MIN_NOT_NAVIGATION_PROSE_BYTES
            && prose * 100 >= self.stats.text_bytes(nodes) * MIN_NOT_NAVIGATION_PROSE_PERCENT
    }

    fn may_be_consent(&self, nodes: &Range<usize>) -> bool {
        let prose = self.stats.prose_bytes(nodes);
        let page_prose = self.stats.prose_bytes(&self.whole);
        !self.is_most(nodes) || prose * 100 < page_prose * MAX_CONSENT_PROSE_PERCENT
    }

    fn is_most(&self, nodes: &Range<usize>) -> bool {
        let Judge { stats, whole, .. } = self;
        stats.prose_bytes(nodes) * 100 > stats.prose_bytes(whole) * MAX_NOISE_PROSE_PERCENT
            || stats.text_bytes(nodes) * 2 > stats.text_bytes(whole)
    }

    fn drops_tag(&self, tag: Tag, nodes: &Range<usize>, is_in_article: bool) -> bool {
        use Tag::*;
        match tag {
            // Some forums put all posts into a form, for moderators to select them.
            Form => self.kind != Kind::Forum || !self.pruned.holds_article(nodes),
            Aside | Dialog | Footer | Menu | Nav | Search => true,
            // The home page of a service describes the service in its header, and the entries of a listing have their
            // titles in theirs.
            Header => {
                let has_prose = self.stats.prose_bytes(nodes) > 0;
                let may_be_content = is_in_article || (has_prose && !self.is_menu(nodes));
                self.kind != Kind::Other || !may_be_content
            }
            Figcaption => self.kind == Kind::Article,
            _ => false,
        }
    }

    /// Noise on some kinds of pages only.
    fn drops_name(&self, tag: Tag, hints: Hints, nodes: &Range<usize>) -> bool {
        let text = self.stats.text_bytes(nodes);
        let is_author = match self.kind {
            Kind::Article => hints.is_author && text < MAX_AUTHOR_BYTES,
            _ => hints.is_author && text < MAX_DETAIL_BYTES,
        };
        let is_detail = !tag.is_heading()
            && (hints.is_detail && text < MAX_DETAIL_BYTES
                || is_author
                || self.is_date(tag, nodes, text));
        match self.kind {
            Kind::Article => hints.is_aside || hints.is_related || hints.is_comment || is_detail,
            Kind::Product => {
                hints.is_comment || hints.is_review || hints.is_shop || hints.is_related
            }
            Kind::Questions => hints.is_comment || is_detail,
            Kind::Forum => hints.is_profile || is_detail,
            Kind::Other => hints.is_related,
        }
    }

    /// Whether this is a line with a date and little else.
    fn is_date(&self, tag: Tag, nodes: &Range<usize>, text: usize) -> bool {
        text < MAX_DATE_BYTES
            && matches!(tag, Tag::Div | Tag::P)
            && has_one_within(&self.pruned.times, nodes)
    }
}
