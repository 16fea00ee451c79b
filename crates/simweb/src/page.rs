use crate::chance::Chance;

/// A page of about `size_bytes`, the same each time for the same host and path.
///
/// Title, heading and every paragraph name host and path, so that a client which mixes up two
/// pages, or two halves of them, is found out.
pub(crate) fn page(host: &str, path_and_query: &str, size_bytes: usize) -> String {
    let here = escape(&format!("{host}{path_and_query}"));
    let mut chance = Chance::of_text(&here);
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
    for number in 1_u32.. {
        html.push_str(&format!("<p>Paragraph {number} of {here}:"));
        push_words(&mut html, full_at_bytes, &mut chance);
        html.push_str(".</p>\n");
        if html.len() >= full_at_bytes {
            break;
        }
    }
    html.push_str(END);
    html
}

/// Bytes that no text detection takes for text: they begin with NUL and go on as noise.
pub(crate) fn noise(host: &str, path_and_query: &str, size_bytes: usize) -> Vec<u8> {
    let mut chance = Chance::of_text(&format!("{host}{path_and_query}"));
    let mut bytes = vec![0; 8];
    while bytes.len() < size_bytes {
        bytes.extend_from_slice(&chance.next().to_le_bytes());
    }
    bytes.truncate(size_bytes);
    bytes
}

const LINKS: usize = 5;
const LINKED_PAGES: u64 = 10_000;
const WORDS_IN_A_PARAGRAPH: usize = 80;
const END: &str = "</body>\n</html>\n";
const WORDS: [&str; 32] = [
    "amber", "basin", "cedar", "delta", "ember", "fable", "grove", "harbour", "island", "jacket",
    "kettle", "lantern", "meadow", "needle", "orchard", "pepper", "quarry", "ribbon", "saddle",
    "timber", "umbrella", "valley", "willow", "yonder", "zephyr", "anchor", "bridge", "candle",
    "dapple", "engine", "feather", "glacier",
];

fn push_words(html: &mut String, full_at_bytes: usize, chance: &mut Chance) {
    for _ in 0..WORDS_IN_A_PARAGRAPH {
        html.push(' ');
        html.push_str(WORDS[chance.below(WORDS.len() as u64) as usize]);
        if html.len() >= full_at_bytes {
            break;
        }
    }
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
    fn a_page_has_about_the_size_that_was_asked_for() {
        for size_bytes in [1_024, 10 * 1_024, 1_024 * 1_024] {
            let len = page("shop.test", "/p?q=1&r=2", size_bytes).len();
            assert!((size_bytes..size_bytes + 64).contains(&len), "{len} for {size_bytes}");
        }
        assert_eq!(noise("shop.test", "/x.png", 1_001).len(), 1_001);
    }

    #[test]
    fn a_path_cannot_write_markup() {
        assert!(!page("a.test", "/<script>\"", 500).contains("<script>"));
    }
}
