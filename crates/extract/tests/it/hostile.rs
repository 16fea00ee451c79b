//! Pages that mean harm: they end, and nothing overflows or grows. Broken pages by the thousand are
//! in `broken`, which also measures how long the worst takes.

use fetchwell_extract::{Article, count_nodes, decode, extract, is_html, is_text};
use proptest::prelude::*;
use url::Url;

/// A page has no more nodes than this: every step takes a bounded time for each.
const MAX_NODES: usize = 400_000;

fn article(html: &str) -> Article {
    extract(html, &Url::parse("https://site.test/a/b").unwrap())
}

fn check(name: &str, html: &str) -> Article {
    let got = article(html);
    assert!(count_nodes(html) <= MAX_NODES, "{name}");
    // Escaping may double the text; addresses and indentation may each add a page's length.
    assert!(got.markdown.len() < 5 * html.len() + 200_000, "{name}: {}", got.markdown.len());
    assert!(got.text.len() <= 3 * html.len(), "{name}: {}", got.text.len());
    got
}

#[test]
fn deep_nesting() {
    for tag in
        ["div", "b", "blockquote", "ul><li", "table><tr><td", "a href=x", "h1", "x-y", "svg", "p"]
    {
        let times = if tag == "div" { 100_000 } else { 30_000 };
        let html = format!("{}text", format!("<{tag}>").repeat(times));
        check(tag, &html);
        let name = tag.split([' ', '>']).next().unwrap();
        check(tag, &format!("{html}{}", format!("</{name}>").repeat(times)));
    }
}

#[test]
fn endless_repetition() {
    for part in [
        "<",
        "&",
        "&#",
        "</",
        "<!",
        "<!--",
        "<a b=\"",
        "<a b='\"",
        "<script>",
        "</b>",
        "<p>",
        "<p>a",
        "<td>",
        "<li>a",
        "*",
        "_",
        "`",
        "!",
        "<br>",
        "<br>a",
        "\u{1F41D}",
        "<title>",
        "<a href=x>a</a>",
        "<img src=x>",
        "</x>",
        "<code>`</code>",
        "<a =\"><b\" b=",
        "&amp",
        "<h1></h1>",
        "[",
        "\n",
        "> ",
    ] {
        let bytes = if matches!(part, "<" | "&") { 1_000_000 } else { 200_000 };
        check(part, &part.repeat(bytes / part.len()));
    }
}

#[test]
fn a_deep_page_does_not_make_every_tag_slow() {
    let deep = "<li><ul>".to_owned() + &"<div>".repeat(390);
    check("li under divs", &format!("{deep}{}", "<li></li>".repeat(100_000)));
    let deep = "<x-y>".repeat(399);
    check("stray ends", &format!("{deep}{}", "</z>".repeat(100_000)));
    let quotes = "<blockquote>".repeat(300);
    check("paragraphs in quotes", &format!("{quotes}{}", "<p>a".repeat(50_000)));
    let lists = "<ol start=4294967290><li>a".repeat(100);
    check("code in lists", &format!("{lists}<pre>{}", "a\n".repeat(100_000)));
    let marks = "<b><i><s><a href=x>".repeat(90);
    check("paragraphs in marks", &format!("{marks}{}", "<div>a</div>".repeat(20_000)));
}

#[test]
fn a_long_base_address_is_not_multiplied() {
    let base = Url::parse(&format!("https://site.test/{}/", "x".repeat(2_000))).unwrap();
    let html = "<a href=y>a</a> ".repeat(20_000);
    let got = extract(&html, &base);
    assert!(got.markdown.len() < 3 * html.len() + 100_000, "{}", got.markdown.len());
}

#[test]
fn what_never_ends_keeps_what_stood_before() {
    for tail in ["<!-- x", "<script>x", "<style>", "<a href=\"x", "<p class='", "<svg>", "&", "<"] {
        let got = check(tail, &format!("<p>kept</p>{tail}{}", " y".repeat(100_000)));
        assert!(got.text.starts_with("kept"), "{tail}");
    }
}

/// Text that is likelier than chance to be markup.
fn tag_soup() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "</?(p|div|a|b|i|ul|ol|li|table|tr|td|th|pre|code|h1|blockquote|br|img|title|head|x-y)",
        "( |>|/>|=|\"|'|\\|`|\\*|&|#|;|!|\\n|<!--|-->)",
        "( href=/x| src=y| class=nav| start=9)>",
        "\\PC{0,4}",
    ];
    prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_string_is_a_page(html in "\\PC*") {
        article(&html);
    }

    #[test]
    fn any_soup_is_a_page(html in tag_soup()) {
        let got = article(&html);
        prop_assert!(!got.text.contains("\n\n\n") || html.contains("<pre"));
    }

    #[test]
    fn any_bytes_are_decoded(body in prop::collection::vec(any::<u8>(), 0..2_000), kind in "\\PC{0,40}") {
        for content_type in [None, Some(kind.as_str())] {
            let decoded = decode(&body, content_type);
            prop_assert!(!decoded.text.contains('\0'));
            prop_assert!(is_text(content_type, &body) || !is_html(content_type, &body));
            article(&decoded.text);
        }
    }
}
