//! Thousands of broken pages of our own making: each is a page, in bounded work. `FETCHWELL_TEST_BROKEN_PAGES=10000`
//! makes as many as that, with those that are large beyond reason, and holds each to a second and 256 MB: for
//! `cargo test --release -p fetchwell-extract --test it broken:: -- --nocapture`.

mod chance;
mod costs;
mod monsters;
mod mutations;
mod pages;

use fetchwell_extract::{count_nodes, decode, extract, extract_text};
use url::Url;

use chance::Chance;
use costs::Costs;

/// A page has no more nodes than this: every step takes a bounded time for each.
const MAX_NODES: usize = 400_000;

/// How many pages are broken if nobody asks for more.
const FEW_PAGES: usize = 300;

const CONTENT_TYPES: [Option<&str>; 6] = [
    None,
    Some("text/html; charset=utf-8"),
    Some("text/html; charset=utf-16"),
    Some("text/html; charset=shift_jis"),
    Some("text/html; charset=iso-2022-jp"),
    Some("text/html; charset=koi8-r"),
];

const SEED: u64 = 20_261_115;

/// `None` if only the work is to be checked, not what it costs.
fn wanted_pages() -> Option<usize> {
    std::env::var("FETCHWELL_TEST_BROKEN_PAGES").ok().map(|count| count.parse().unwrap())
}

/// Extracts, and checks that the page was read in bounds and that nothing grew out of proportion.
fn extract_all(name: &str, body: &[u8], content_type: Option<&str>) {
    let html = decode(body, content_type).text;
    let url = Url::parse("https://site.test/a/b").unwrap();
    let article = extract(&html, &url);
    // Escaping may double the text; addresses and indentation may each add a page's length.
    let markdown_bytes = article.markdown.len();
    assert!(markdown_bytes < 5 * html.len() + 200_000, "{name}: {markdown_bytes} of Markdown");
    assert!(article.text.len() <= 3 * html.len(), "{name}: {} of text", article.text.len());
}

#[test]
fn broken_pages_are_pages() {
    let wanted = wanted_pages();
    let mut chance = Chance::new(SEED);
    let mut costs = Costs::default();
    let pages = pages::all();
    for number in 0..wanted.unwrap_or(FEW_PAGES) {
        let (page_name, page) = chance.of(&pages);
        let (what, body) = mutations::mutated(page.as_bytes(), &pages, &mut chance);
        let content_type = *chance.of(&CONTENT_TYPES);
        let name = format!("page {number} of seed {SEED} ({page_name}, {what}, {content_type:?})");
        costs.measure(&name, || extract_all(&name, &body, content_type));
        if wanted.is_none() {
            let html = decode(&body, content_type).text;
            let url = Url::parse("https://site.test/a/b").unwrap();
            assert!(count_nodes(&html) <= MAX_NODES, "{name}");
            assert_eq!(extract_text(&html, &url).text, extract(&html, &url).text, "{name}");
        }
    }
    if wanted.is_some() {
        println!("{}", costs.worst());
    }
}

#[test]
fn pages_beyond_reason_are_pages() {
    let wanted = wanted_pages();
    let bytes = if wanted.is_some() { monsters::LARGE_BYTES } else { monsters::SMALL_BYTES };
    let mut costs = Costs::default();
    for (name, body) in monsters::all(bytes) {
        costs.measure(&name, || extract_all(&name, &body, None));
    }
    if wanted.is_some() {
        println!("{}", costs.worst());
    }
}
