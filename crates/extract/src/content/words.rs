//! What the words in a `class` or `id` say about an element.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind};

/// What an element is for, by one of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It frames every page of the site.
    Frame,
    /// It stands around articles.
    Noise,
    /// It stands beside articles; on other pages it is a part of them.
    Aside,
    /// What readers wrote; in a forum it is the content.
    Comment,
    /// A line about the article: who, when, a caption. It is never long.
    Detail,
    /// The article itself.
    Body,
}

/// These mean the same wherever they stand in a name.
const ANYWHERE: &[(Meaning, &[&str])] = &[
    (
        Meaning::Frame,
        &[
            "breadcrumb",
            "consent",
            "cookie",
            "copyright",
            "footer",
            "gdpr",
            "navbar",
            "navigation",
            "onetrust",
            "rodape",
        ],
    ),
    (
        Meaning::Noise,
        &[
            "advert",
            "adslot",
            "dropdown",
            "lightbox",
            "login",
            "masthead",
            "modal",
            "newsletter",
            "outbrain",
            "overlay",
            "pager",
            "paginat",
            "popup",
            "screen-reader",
            "sharebar",
            "sharedaddy",
            "sharing",
            "sidebar",
            "signin",
            "signup",
            "sign-up",
            "skip-link",
            "skiplink",
            "social",
            "sponsor",
            "taboola",
            "toolbar",
            "tooltip",
            "visually-hidden",
            "visuallyhidden",
            "addtoany",
            "addthis",
            "sr-only",
        ],
    ),
    (
        Meaning::Aside,
        &[
            "also-like",
            "banner",
            "follow-us",
            "more-from",
            "more-stories",
            "mostpopular",
            "popular",
            "promo",
            "readmore",
            "read-more",
            "read-next",
            "recommend",
            "related",
            "teaser",
            "trending",
            "widget-area",
            "slideshow",
            "subscri",
            "gallery",
            "disclaimer",
            "paywall",
            "headlines",
            "author-bio",
            "authorbio",
            "about-author",
            "breaking-news",
            "see-also",
        ],
    ),
    (Meaning::Comment, &["comment", "disqus", "livefyre"]),
    (
        Meaning::Detail,
        &[
            "byline",
            "caption",
            "credit",
            "dateline",
            "entry-meta",
            "entrymeta",
            "post-meta",
            "postmeta",
            "article-meta",
            "articlemeta",
            "posted-on",
            "pubdate",
            "publish-date",
            "published-date",
            "read-time",
            "reading-time",
            "taglist",
            "tag-list",
            "timestamp",
            "attribution",
            "author-info",
            "author-name",
        ],
    ),
    (
        Meaning::Body,
        &[
            "articlebody",
            "article-body",
            "article_body",
            "article__body",
            "article-content",
            "article_content",
            "article__content",
            "article-text",
            "articletext",
            "body-copy",
            "bodycopy",
            "content-body",
            "entry-content",
            "entry_content",
            "entrycontent",
            "field-name-body",
            "post-body",
            "post_body",
            "postbody",
            "post-content",
            "post_content",
            "postcontent",
            "post__content",
            "story-body",
            "storybody",
            "story-content",
            "story-text",
            "story_body",
            "storycontent",
            "single-content",
        ],
    ),
];

/// These are parts of other words, and mean something on their own only.
const ALONE: &[(Meaning, &[&str])] = &[
    (
        Meaning::Noise,
        &["ad", "ads", "crumbs", "menu", "nav", "share", "dialog", "notice", "signature"],
    ),
    (Meaning::Aside, &["cta", "latest", "print", "rail", "respond", "tags", "toc"]),
    (Meaning::Comment, &["replies"]),
    (Meaning::Detail, &["author", "bio", "date", "meta", "time", "tag", "views"]),
];

struct Words {
    automaton: AhoCorasick,
    /// For each pattern what it means, and whether it must stand alone.
    entries: Vec<(Meaning, bool)>,
}

static WORDS: LazyLock<Option<Words>> = LazyLock::new(|| {
    let lists =
        ANYWHERE.iter().map(|list| (list, false)).chain(ALONE.iter().map(|list| (list, true)));
    let mut patterns = Vec::new();
    let mut entries = Vec::new();
    for ((meaning, words), is_alone) in lists {
        patterns.extend_from_slice(words);
        entries.extend(words.iter().map(|_| (*meaning, is_alone)));
    }
    let automaton = AhoCorasickBuilder::new()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(patterns)
        .ok()?;
    Some(Words { automaton, entries })
});

/// Calls back with each meaning that a name has.
pub(super) fn meanings(name: &str, mut found: impl FnMut(Meaning)) {
    let Some(words) = WORDS.as_ref() else { return };
    for hit in words.automaton.find_overlapping_iter(name) {
        if let Some((meaning, is_alone)) = words.entries.get(hit.pattern().as_usize())
            && (!is_alone || stands_alone(name.as_bytes(), hit.start(), hit.end()))
            && !is_condition(name, hit.start(), hit.end())
        {
            found(*meaning);
        }
    }
}

/// Whether the word stands in a name like `sidebar-open:mt-4`: some frameworks write there when to
/// apply a style, not what the element is.
fn is_condition(names: &str, start: usize, end: usize) -> bool {
    let before = names.get(..start).and_then(|part| {
        part.split_ascii_whitespace().next_back().filter(|_| !part.ends_with(' '))
    });
    let after = names.get(end..).and_then(|part| part.split(' ').next());
    let is_mark = |c: char| matches!(c, ':' | '[');
    before.is_some_and(|part| part.contains(is_mark))
        || after.is_some_and(|part| part.contains(is_mark))
}

/// Whether no letter or digit goes on with the word on either side; `topAd` has two words, `jXK9ad` is one that a
/// machine made.
fn stands_alone(name: &[u8], start: usize, end: usize) -> bool {
    let byte = |at: usize| name.get(at).copied().unwrap_or(b' ');
    let before = start.checked_sub(1).map_or(b' ', byte);
    let begins = !before.is_ascii_alphanumeric()
        || (before.is_ascii_lowercase() && byte(start).is_ascii_uppercase());
    let ends = !byte(end).is_ascii_alphanumeric()
        || (byte(end - 1).is_ascii_lowercase() && byte(end).is_ascii_uppercase());
    begins && ends
}
