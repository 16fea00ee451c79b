//! The meaning of words in a `class` or `id`.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind};

/// The purpose of an element, by one of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A frame around every page of the site.
    Frame,
    /// Asks for consent to cookies.
    Consent,
    /// Links to other pages.
    Navigation,
    /// Surrounds articles.
    Noise,
    /// Noise beside an article; on other pages it is part of the content.
    Aside,
    /// Other pages of the site, beside any content.
    Related,
    /// Written by readers; in a forum it is the content.
    Comment,
    /// Written by buyers; beside a product it is noise.
    Review,
    /// Other products, and how to buy this one; beside a product it is noise.
    Shop,
    /// About the author of a post in a forum.
    Profile,
    /// A line about the article: author, date, caption. It is never long.
    Detail,
    /// About the author of the article: a byline, or a box with a portrait and a biography.
    Author,
    /// The article itself.
    Body,
}

/// These words, separated by spaces, have the same meaning anywhere in a name: site generators join words, as in
/// `sphinxsidebar`.
const ANYWHERE: &[(Meaning, &str)] = &[
    (Meaning::Frame, "copyright footer rodape"),
    (Meaning::Consent, "consent cookie gdpr onetrust"),
    (Meaning::Navigation, "breadcrumb dropdown navbar navigation paginat toolbar"),
    (
        Meaning::Noise,
        "advert adslot lightbox masthead newsletter outbrain overlay popup screen-reader sharebar
         sharedaddy sharing sidebar sign-up skip-link skiplink taboola tooltip visually-hidden
         visuallyhidden addtoany addthis sr-only condition-invisible",
    ),
    (
        Meaning::Aside,
        "also-like banner follow-us more-from more-stories mostpopular recommend teaser trending
         widget-area slideshow subscri gallery disclaimer paywall headlines author-bio authorbio
         about-author breaking-news see-also blog-listing swiper next-prev prev-next next-post
         prev-post previous-post",
    ),
    (Meaning::Comment, "comment disqus livefyre"),
    (Meaning::Review, "bazaarvoice judgeme okendo trustpilot yotpo"),
    (
        Meaning::Shop,
        "also-like also-view cross-sell crosssell recently-viewed recommend shipping-detail
         shipping-info shipping-polic shipping-return similar-product similarproduct upsell you-may",
    ),
    (
        Meaning::Profile,
        "cell--user postprofile user-details user-info user-profile user-title userbanner userdetails
         userextras userinfo userprofile usertitle",
    ),
    (
        Meaning::Detail,
        "byline caption dateline entry-meta entrymeta post-meta postmeta article-meta
         articlemeta posted-on pubdate publish-date published-date reading-time taglist tag-list
         timestamp attribution author-info author-name",
    ),
    (
        Meaning::Body,
        "articlebody article-body article_body article__body article-content article_content
         article__content article-text articletext body-copy bodycopy content-body entry-content
         entry_content entrycontent field-name-body post-body post_body postbody post-content
         post_content postcontent post__content story-body storybody story-content story-text
         story_body storycontent single-content",
    ),
];

/// These also occur inside other words (`multimodal`, `blogInner`), so they count only at the start of a word.
const STARTING: &[(Meaning, &str)] = &[
    (Meaning::Noise, "login modal signin signup social sponsor"),
    (Meaning::Aside, "popular promot readmore read-more read-next"),
    (Meaning::Related, "related"),
    (Meaning::Detail, "credit read-time"),
];

/// These are also parts of other words, such as `promontory` or `pageRow`, so they count only as whole words.
const ALONE: &[(Meaning, &str)] = &[
    (Meaning::Navigation, "crumbs menu nav pager"),
    (Meaning::Noise, "ad ads share dialog notice signature"),
    (
        Meaning::Aside,
        "btn button buttons cta latest posts print promo promos rail respond tags toc",
    ),
    (Meaning::Comment, "replies"),
    (Meaning::Review, "rating ratings review reviews"),
    (Meaning::Shop, "cart checkout financing payment payments wishlist"),
    (Meaning::Author, "author authors bio"),
    (Meaning::Detail, "date meta time tag views"),
];

/// How far from a word the mark of a condition may be. Without a limit, a long name with many words would take
/// quadratic time.
const MAX_CONDITION_BYTES: usize = 200;

/// Where in a name a word counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MatchPosition {
    Anywhere,
    /// At the start of a word.
    Start,
    /// As a whole word.
    Alone,
}

struct Words {
    automaton: AhoCorasick,
    /// The meaning of each pattern, and where it counts.
    entries: Vec<(Meaning, MatchPosition)>,
}

static WORDS: LazyLock<Option<Words>> = LazyLock::new(|| {
    let lists = [
        (ANYWHERE, MatchPosition::Anywhere),
        (STARTING, MatchPosition::Start),
        (ALONE, MatchPosition::Alone),
    ];
    let mut patterns = Vec::new();
    let mut entries = Vec::new();
    for (list, position) in lists {
        for (meaning, words) in list {
            for word in words.split_whitespace() {
                patterns.push(word);
                entries.push((*meaning, position));
            }
        }
    }
    let automaton = AhoCorasickBuilder::new()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(patterns)
        .ok()?;
    Some(Words { automaton, entries })
});

/// Calls `found` with each meaning of a name.
pub(super) fn meanings(name: &str, mut found: impl FnMut(Meaning)) {
    let Some(words) = WORDS.as_ref() else { return };
    for hit in words.automaton.find_overlapping_iter(name) {
        if let Some((meaning, position)) = words.entries.get(hit.pattern().as_usize())
            && position.accepts(name.as_bytes(), hit.start(), hit.end())
            && !is_condition(name.as_bytes(), hit.start(), hit.end())
            && !is_modifier(name.as_bytes(), hit.start())
        {
            found(*meaning);
        }
    }
}

/// Whether the word is in the condition of a name such as `sidebar-open:mt-4`: some frameworks write there when a style
/// applies, not what the element is.
fn is_condition(names: &[u8], start: usize, end: usize) -> bool {
    let has_mark = |part: &mut dyn Iterator<Item = &u8>| {
        part.take(MAX_CONDITION_BYTES)
            .take_while(|byte| !byte.is_ascii_whitespace())
            .any(|byte| matches!(byte, b':' | b'['))
    };
    has_mark(&mut names.get(..start).unwrap_or_default().iter().rev())
        || has_mark(&mut names.get(end..).unwrap_or_default().iter())
}

/// Names that begin with these words say what an element has or shows, not what it is: `has-sidebar`, `hide-promo-ad`.
const MODIFIERS: &[&[u8]] = &[b"has", b"hide", b"no", b"show", b"with", b"without"];

/// Whether the word that starts here is in such a name.
fn is_modifier(names: &[u8], start: usize) -> bool {
    let before = names.get(..start).unwrap_or_default();
    let near = before.get(before.len().saturating_sub(MAX_CONDITION_BYTES)..).unwrap_or_default();
    let begin = near.iter().rposition(u8::is_ascii_whitespace).map_or(0, |space| space + 1);
    let first = near.get(begin..).unwrap_or_default().split(|byte| matches!(byte, b'-' | b'_'));
    let has_separator =
        near.get(begin..).is_some_and(|name| name.contains(&b'-') || name.contains(&b'_'));
    has_separator && first.take(1).any(|word| MODIFIERS.contains(&word))
}

impl MatchPosition {
    /// Whether the part of a name from `start` to `end` is bounded as required. `topAd`, `UIModal` and `col2Modal`
    /// consist of two words; `jXK9ad` is one generated word.
    fn accepts(self, name: &[u8], start: usize, end: usize) -> bool {
        let byte = |at: usize| name.get(at).copied().unwrap_or(b' ');
        let is_bound = |at: usize| {
            let before = at.checked_sub(1).map_or(b' ', byte);
            let after = byte(at);
            let is_within = before.is_ascii_alphanumeric() && after.is_ascii_alphanumeric();
            let is_camel = after.is_ascii_uppercase()
                && (!before.is_ascii_uppercase() || byte(at + 1).is_ascii_lowercase());
            !is_within || is_camel
        };
        let begins = || is_bound(start);
        let ends = || is_bound(end);
        match self {
            MatchPosition::Anywhere => true,
            MatchPosition::Start => begins(),
            MatchPosition::Alone => begins() && ends(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(name: &str) -> Vec<Meaning> {
        let mut found = Vec::new();
        meanings(name, |meaning| found.push(meaning));
        found
    }

    #[test]
    fn words_of_the_start_and_alone_lists_do_not_match_inside_a_word() {
        for name in [
            "multimodal",
            "BIMODAL",
            "correlated",
            "Unrelated",
            "promontory",
            "antisocial",
            "unpopular",
            "accreditation",
            "unsponsored",
            "blogInner",
            "homepageRow",
            "designing",
            "designInner",
            "designUpload",
            "thread-next",
            "thread-timer",
            "MULTIMODAL2",
        ] {
            assert_eq!(all(name), [], "{name}");
        }
        for (name, meaning) in [
            ("modal", Meaning::Noise),
            ("page-modal", Meaning::Noise),
            ("pageModal", Meaning::Noise),
            ("PAGE_MODAL", Meaning::Noise),
            ("modalWindow", Meaning::Noise),
            ("UIModal", Meaning::Noise),
            ("col2Modal", Meaning::Noise),
            ("page-signin", Meaning::Noise),
            ("userSignup", Meaning::Noise),
            ("post-read-times", Meaning::Detail),
            ("linkReadMore", Meaning::Aside),
            ("modals", Meaning::Noise),
            ("promo-box", Meaning::Aside),
            ("promoBlock", Meaning::Aside),
            ("promoted", Meaning::Aside),
            ("pager-items", Meaning::Navigation),
            ("sphinxsidebar", Meaning::Noise),
            ("related2", Meaning::Related),
            ("block relatedItems", Meaning::Related),
        ] {
            assert_eq!(all(name), [meaning], "{name}");
        }
    }
}
