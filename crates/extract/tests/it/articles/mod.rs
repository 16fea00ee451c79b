//! Small pages of our own making, through the public door.

mod content;
mod markdown;
mod metadata;

use fetchwell_extract::{Article, extract, extract_text};
use url::Url;

fn article(html: &str) -> Article {
    extract(html, &Url::parse("https://site.test/news/one").unwrap())
}

fn check_markdown(html: &str, want: &str) {
    assert_eq!(article(html).markdown, want, "{html}");
}

const LEAD: &str =
    "The bees came back on the first warm day of March, as they have for sixty years.";

fn page() -> String {
    let story = "The keeper counted them twice and was content with what she saw. ".repeat(6);
    format!(
        r#"<!DOCTYPE html><html lang="en-GB"><head>
        <meta charset="utf-8"><title>Bees are back &amp; well | The Hive</title>
        <meta property="og:site_name" content="The Hive">
        <meta property="og:image" content="/img/bee.jpg">
        <meta name="author" content="Ada Keeper">
        <meta property="article:published_time" content="2024-03-02T08:00:00Z">
        <link rel="canonical" href="../news/bees">
        <script>var text = "<p>not this</p>";</script><style>p {{ color: red }}</style>
        </head><body>
        <header><h2>The Hive</h2><a href="/">Home</a></header>
        <nav><ul><li><a href="/a">Honey</a><li><a href="/b">Wax</a></ul></nav>
        <article><h1>Bees are back &amp; well</h1>
        <p>By the river</p><p>{LEAD}</p><p>{story}</p>
        <div class="social-share"><a href="/share">Share this</a></div>
        <noscript>Turn it on</noscript>
        <ul class="related-links"><li><a href="/c">Wasps</a></ul>
        </article><aside>Buy our honey</aside><footer>Copyright</footer></body></html>"#
    )
}

/// Paragraphs that are long enough to count, each with a word of its own.
fn paragraphs(word: &str, count: usize) -> String {
    let paragraph = |number: usize| format!("<p>{LEAD} This is {word} number {number}.</p>");
    (0..count).map(paragraph).collect()
}

#[test]
fn a_whole_article() {
    let got = article(&page());
    assert_eq!(got.title, "Bees are back & well");
    assert_eq!(got.abstract_text, LEAD);
    assert_eq!(got.image.as_deref(), Some("https://site.test/img/bee.jpg"));
    assert_eq!(got.lang.as_deref(), Some("en-GB"));
    assert_eq!(got.canonical.as_deref(), Some("https://site.test/news/bees"));
    assert_eq!(got.author.as_deref(), Some("Ada Keeper"));
    assert_eq!(got.published.as_deref(), Some("2024-03-02T08:00:00Z"));
    assert!(got.text.starts_with("By the river\n\nThe bees came"), "{}", got.text);
    assert!(got.text.ends_with("content with what she saw."), "{}", got.text);
    assert!(got.markdown.starts_with("# Bees are back & well\n\nBy the river\n\nThe bees"));
}

#[test]
fn a_page_without_structure_is_all_content() {
    let got = article("<title>Note</title>One line<br>and another<br><br>A new block");
    assert_eq!(got.text, "One line\nand another\n\nA new block");
    assert_eq!(got.title, "Note");
    assert_eq!(got.lang, None);
    assert_eq!(article("").text, "");
}

#[test]
fn a_page_that_stands_in_a_form_is_kept() {
    let story = paragraphs("story", 2);
    let html = format!("<form><div id=sidebar>{story}</div></form><footer>x</footer>");
    let got = article(&html).text;
    assert!(got.starts_with(LEAD) && got.ends_with("story number 1."), "{got}");
}

#[test]
fn title_and_text_alone_are_the_same() {
    let url = Url::parse("https://site.test/news/one").unwrap();
    let whole = extract(&page(), &url);
    let part = extract_text(&page(), &url);
    assert_eq!((part.title, part.text), (whole.title, whole.text));
}
