//! The kind of a page. What is noise beside an article may be the content of another kind of page.

use url::Url;

use super::prune::Pruned;
use crate::metadata::StatedKind;
use crate::page::{Page, Tag};
use crate::text_stats::TextStats;

/// Words in the URLs of forums.
const FORUM_WORDS: &str = "
    board boards community discuss discussion discussions forum forums showthread thread threads
    viewtopic";

/// Words in the URLs of questions and their answers.
const QUESTION_WORDS: &str = "questions";

/// A body or an `article` element with this share of the page's prose makes the page an article.
const ARTICLE_PROSE_PERCENT: usize = 40;

/// The same for a page that declares itself an article. Many do so wrongly, hence there is still a minimum.
const SHARED_PROSE_PERCENT: usize = 15;

/// An element whose own paragraphs have this share of the page's prose makes the page an article.
const COLUMN_PROSE_PERCENT: usize = 50;

/// It also needs this share of the page's text: a shop with one paragraph about itself is not an article.
const COLUMN_TEXT_PERCENT: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One text; everything around it is noise.
    Article,
    /// One product; reviews, other products and how to buy it are noise.
    Product,
    /// Questions and answers; what readers wrote about them is noise.
    Questions,
    /// Posts by many authors; what readers wrote is the content.
    Forum,
    /// A listing, the home page of a service: many small parts.
    Other,
}

impl Kind {
    /// Decides by the URL, by what the page declares, and by how its prose is distributed.
    pub(super) fn of(
        page: &Page<'_>,
        kept: &TextStats,
        pruned: &Pruned,
        found_at: &Url,
        stated: Option<StatedKind>,
    ) -> Kind {
        if has_address_word(found_at, QUESTION_WORDS) {
            return Kind::Questions;
        }
        if has_address_word(found_at, FORUM_WORDS) || is_forum_address(found_at) {
            return Kind::Forum;
        }
        match stated {
            Some(StatedKind::Product) => Kind::Product,
            None if is_shared_as(page, "product") || pruned.marks_one_product() => Kind::Product,
            Some(StatedKind::Article) => Kind::Article,
            _ if is_like_article(page, kept, pruned) => Kind::Article,
            _ => Kind::Other,
        }
    }
}

/// Whether most of the page's prose is one text.
pub(super) fn is_like_article(page: &Page<'_>, kept: &TextStats, pruned: &Pruned) -> bool {
    is_column(page, kept) || has_article(page, kept, pruned)
}

fn is_column(page: &Page<'_>, kept: &TextStats) -> bool {
    let whole = 0..page.nodes.len();
    let column_times_100 = kept.widest_column_bytes * 100;
    column_times_100 >= kept.prose_bytes(&whole) * COLUMN_PROSE_PERCENT
        && column_times_100 >= kept.text_bytes(&whole) * COLUMN_TEXT_PERCENT
}

/// Comments are ignored: however many there are, the page is about what they comment on.
fn has_article(page: &Page<'_>, kept: &TextStats, pruned: &Pruned) -> bool {
    let min_percent =
        if is_shared_as(page, "article") { SHARED_PROSE_PERCENT } else { ARTICLE_PROSE_PERCENT };
    let all_prose = kept.prose_bytes(&(0..page.nodes.len()));
    let comment_prose: usize = pruned.comments().iter().map(|nodes| kept.prose_bytes(nodes)).sum();
    let page_prose = all_prose - comment_prose;
    // A page without any prose is a list of links.
    let has_prose = all_prose > 0;
    has_prose
        && page.elements().any(|(index, element)| {
            (element.tag == Tag::Article || pruned.hints(index).is_body)
                && kept.prose_bytes(&page.subtree(index)) * 100 >= page_prose * min_percent
        })
}

/// Whether this is the page's type for sharing (`og:type`).
fn is_shared_as(page: &Page<'_>, kind: &str) -> bool {
    page.elements().filter(|(_, element)| element.tag == Tag::Meta).any(|(_, meta)| {
        meta.attribute_has("property", "og:type") && meta.attribute_has("content", kind)
    })
}

/// Whether the site's name ends with *forum*, or the URL is of a numbered topic: `/topic/17-hives`. News sites have
/// topics, too, with names: `/topic/hives`.
fn is_forum_address(url: &Url) -> bool {
    if url.scheme() == "file" {
        return false;
    }
    let ends_with_forum = |label: &str| {
        let is_end = |word: &str| {
            let start = label.len().checked_sub(word.len());
            start.and_then(|at| label.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case(word))
        };
        is_end("forum") || is_end("forums")
    };
    let mut parts = url.path().split(['/', '.', '_']);
    let is_numbered = |part: &str| part.starts_with(|first: char| first.is_ascii_digit());
    url.host_str().unwrap_or_default().split('.').any(ends_with_forum)
        || (parts.any(|part| part.eq_ignore_ascii_case("topic"))
            && parts.next().is_some_and(is_numbered))
}

/// Whether one of these words is in the URL. The name of a local folder says nothing.
fn has_address_word(url: &Url, words: &str) -> bool {
    if url.scheme() == "file" {
        return false;
    }
    let is_word =
        |word: &str| words.split_whitespace().any(|known| known.eq_ignore_ascii_case(word));
    // Hyphens join the words of a headline: `/2018/09/open-thread` is not a forum.
    url.host_str().unwrap_or_default().split('.').any(is_word)
        || url.path().split(['/', '.', '_']).any(is_word)
}
