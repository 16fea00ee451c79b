use std::io::Read;

use flate2::Compression;
use flate2::read::GzEncoder;

use crate::chance::SimRng;

/// A page of `size_bytes`, or slightly more if its frame needs it; it is the same each time for the same host and path.
///
/// The title, the heading and every paragraph contain the host and the path, so that a client that mixes up pages is
/// noticed.
pub(crate) fn page(host: &str, path_and_query: &str, size_bytes: usize) -> String {
    let here = escape(&format!("{host}{path_and_query}"));
    let mut chance = SimRng::of_text(&here);
    let mut html = String::with_capacity(size_bytes + 512);
    html.push_str(&format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\
         <title>The page {here}</title></head>\n<body>\n<h1>Welcome to {here}</h1>\n<ul>\n"
    ));
    for _ in 0..LINKS {
        let number = chance.below(LINKED_PAGES);
        html.push_str(&format!("<li><a href=\"/page/{number}\">Page {number}</a></li>\n"));
    }
    html.push_str("</ul>\n");
    let full_at_bytes = size_bytes.saturating_sub(END.len());
    let words_end_at_bytes = full_at_bytes.saturating_sub(PARAGRAPH_END.len());
    for number in 1_u32.. {
        let begin = format!("<p>Paragraph {number} of {here}:");
        if number > 1 && html.len() + begin.len() > words_end_at_bytes {
            break;
        }
        html.push_str(&begin);
        push_words(&mut html, words_end_at_bytes, &mut chance);
        html.push_str(PARAGRAPH_END);
    }
    // The rest is too short for a paragraph.
    html.extend(std::iter::repeat_n('\n', full_at_bytes.saturating_sub(html.len())));
    html.push_str(END);
    html
}

/// Bytes that no detection takes for text: a NUL, followed by noise.
pub(crate) fn noise(host: &str, path_and_query: &str, size_bytes: usize) -> Vec<u8> {
    let mut chance = SimRng::of_text(&format!("{host}{path_and_query}"));
    let mut bytes = vec![0; 8];
    while bytes.len() < size_bytes {
        bytes.extend_from_slice(&chance.next().to_le_bytes());
    }
    bytes.truncate(size_bytes);
    bytes
}

/// The text as a gzip file.
pub(crate) fn gzip(text: &str) -> Vec<u8> {
    let mut compressed = Vec::new();
    // Reading from memory cannot fail.
    drop(GzEncoder::new(text.as_bytes(), Compression::fast()).read_to_end(&mut compressed));
    compressed
}

const LINKS: usize = 5;
const LINKED_PAGES: u64 = 10_000;
const WORDS_IN_A_PARAGRAPH: usize = 80;
const PARAGRAPH_END: &str = ".</p>\n";
const END: &str = "</body>\n</html>\n";
const WORDS: [&str; 32] = [
    "amber", "basin", "cedar", "delta", "ember", "fable", "grove", "harbour", "island", "jacket",
    "kettle", "lantern", "meadow", "needle", "orchard", "pepper", "quarry", "ribbon", "saddle",
    "timber", "umbrella", "valley", "willow", "yonder", "zephyr", "anchor", "bridge", "candle",
    "dapple", "engine", "feather", "glacier",
];

/// Adds a paragraph of words, the last of which is cut where the page is full.
fn push_words(html: &mut String, full_at_bytes: usize, chance: &mut SimRng) {
    let begins_at_bytes = html.len();
    for _ in 0..WORDS_IN_A_PARAGRAPH {
        if html.len() >= full_at_bytes {
            break;
        }
        html.push(' ');
        html.push_str(WORDS[chance.below(WORDS.len() as u64) as usize]);
    }
    html.truncate(full_at_bytes.max(begins_at_bytes));
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::{noise, page};

    #[test]
    fn a_page_is_the_same_each_time_and_differs_from_every_other() {
        assert_eq!(page("a.test", "/1", 2_000), page("a.test", "/1", 2_000));
        assert_ne!(page("a.test", "/1", 2_000), page("a.test", "/2", 2_000));
        assert_ne!(page("a.test", "/1", 2_000), page("b.test", "/1", 2_000));
        assert_eq!(noise("a.test", "/1", 99), noise("a.test", "/1", 99));
        assert_ne!(noise("a.test", "/1", 99), noise("a.test", "/2", 99));
    }

    #[test]
    fn a_page_has_the_size_that_was_asked_for() {
        for size_bytes in (600..2_600).chain([10 * 1_024, 1_024 * 1_024]) {
            let page = page("shop.test", "/p?q=1&r=2", size_bytes);
            assert_eq!(page.len(), size_bytes);
            assert_eq!(page.matches("<p>").count(), page.matches(".</p>\n").count());
            assert!(page.ends_with("</body>\n</html>\n"));
        }
        assert_eq!(noise("shop.test", "/x.png", 1_001).len(), 1_001);
    }

    #[test]
    fn a_path_cannot_write_markup() {
        assert!(!page("a.test", "/<script>\"", 500).contains("<script>"));
    }
}
