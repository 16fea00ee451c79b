//! Pages that mean harm: they end, and nothing overflows or grows. Broken pages by the thousand are
//! in `broken`, which also measures how long the worst takes.

use std::cell::Cell;

use fetchwell_extract::{
    Article, Limits, TookTooLong, count_nodes, decode, extract, extract_text_within,
    extract_within, is_html, is_text, links_within,
};
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

/// Each of these would take minutes if the search for names were quadratic.
#[test]
fn authors_without_end() {
    let metas: String =
        (0..100_000).map(|number| format!("<meta name=author content=a{number}>")).collect();
    assert_eq!(check("metas", &metas).authors.len(), 100);
    let names = |count: usize| {
        let name = |number: usize| format!("A{}", "b".repeat(number % 40)) + &number.to_string();
        (0..count).map(name).collect::<Vec<_>>().join(", ")
    };
    check("one line", &format!("<h1>x</h1><a rel=author>{}</a>", names(100_000)));
    let nested = "<div class=author>".repeat(399);
    check("nested lines", &format!("{nested}{}", "lower case ".repeat(100_000)));
    check("nested elements", &format!("{nested}{}", "<b></b>".repeat(100_000)));
    check("words of a class", &format!("<div class=author{}>x", "-".repeat(5_000_000)));
    check("known words of a class", &format!("<div class={}>x", "ad-".repeat(1_000_000)));
    let id = "x".repeat(2_000);
    let persons = format!(r#"{{"@type": "Person", "@id": "{id}"}},"#).repeat(100);
    let article = format!(r#"{{"@type": "Article", "author": [{persons}]}},"#).repeat(20);
    let objects = format!(r#"{{"@id": "{id}"}},"#).repeat(3_000);
    check(
        "linked data",
        &format!("<script type=application/ld+json>[{article}{objects}]</script>"),
    );
}

#[test]
fn a_long_base_is_ignored() {
    let links = "<a href=y>y</a>".repeat(20_000);
    let html = format!("<base href=/{}/><p>{links}", "x".repeat(1_000_000));
    assert!(check("base", &html).markdown.contains("(https://site.test/a/y)"));
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
        "<table><tr><td colspan=99>a<td>",
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
    let html: String = (0..20_000).map(|number| format!("<a href={number}>a</a> ")).collect();
    let links = links_within(&html, &base, &Limits::NONE).unwrap();
    let bytes: usize = links.iter().map(|link| link.as_str().len()).sum();
    assert!(!links.is_empty() && bytes < html.len() + 100_000, "{bytes}");
}

#[test]
fn cells_that_span_much_are_bounded() {
    let covered = "<td rowspan=65534 colspan=7>".repeat(9);
    check("rows", &format!("<table><tr>{covered}{}", "<tr><td>a<td>".repeat(20_000)));
    check("cells", &format!("<table><tr>{}", "<td rowspan=9 colspan=65534>a".repeat(20_000)));
    check("columns", &format!("<table>{}", "<tr><td colspan=9>a<td rowspan=9>".repeat(20_000)));
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

/// Whenever the time is up: in the parser, between two steps, or while text is written out.
#[test]
fn when_the_time_is_up_reading_ends() {
    let html = "<p>Some words of a page that is long.".repeat(20_000);
    let url = Url::parse("https://site.test/").unwrap();
    let looks = Cell::new(0);
    let read = |most: u32| {
        looks.set(0);
        let is_over = || {
            looks.set(looks.get() + 1);
            looks.get() > most
        };
        let limits = Limits { is_over: &is_over, ..Limits::NONE };
        let text = extract_text_within(&html, &url, &limits).map(|_| ());
        (extract_within(&html, &url, &limits).map(|_| ()), text)
    };
    assert_eq!(read(u32::MAX), (Ok(()), Ok(())));
    let all = looks.get();
    assert!(all > 100, "it was looked at {all} times only");
    for most in [0, 1, all / 4] {
        assert_eq!(read(most), (Err(TookTooLong), Err(TookTooLong)), "{most} of {all}");
    }
}

#[test]
fn text_and_markdown_stay_within_the_bound() {
    let url = Url::parse("https://site.test/").unwrap();
    let max_text_bytes = 64 << 10;
    let limits = Limits { max_text_bytes, ..Limits::NONE };
    let link = "<a href=x>word</a> ";
    for part in ["<", "word ", "<pre>`", "<code>`` </code>", link, "<li>a", "&amp;"] {
        let html = format!("<article><p>{}", part.repeat((1 << 20) / part.len()));
        let got = extract_within(&html, &url, &limits).unwrap();
        // A blank line may follow each character.
        assert!(got.text.len() <= 3 * max_text_bytes, "{part}: {}", got.text.len());
        assert!(got.abstract_text.len() <= max_text_bytes, "{part}");
        // Marks may double the text; addresses and indentation may each add as much, and 64 KiB.
        assert!(
            got.markdown.len() <= 6 * max_text_bytes + (128 << 10),
            "{part}: {}",
            got.markdown.len()
        );
        assert!(got.is_cut || !matches!(part, "<" | "word "), "{part}");
    }
    let short = extract_within("<p>A short page.", &url, &limits).unwrap();
    assert_eq!((short.text.as_str(), short.is_cut), ("A short page.", false));
}
