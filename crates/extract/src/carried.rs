//! Text that a page carries for its scripts to display, or for readers without scripts.
//!
//! Such a page has hardly any visible text. The content is in `noscript`, or it is HTML within JSON in a `data-…`
//! attribute; on some pages the JSON is itself a string in JSON.

use memchr::memchr;

use crate::entities;
use crate::json_strings::{string_end, unescaped};
use crate::metadata::stated_name;
use crate::page::Page;

/// A shorter `noscript` asks to turn scripts on.
const MIN_NOSCRIPT_BYTES: usize = 500;

/// Shorter values are settings.
const MIN_DATA_BYTES: usize = 1_000;

/// A longer value is ignored, and so is all data after this much HTML.
const MAX_DATA_BYTES: usize = 8 << 20;

/// A string with this tag is HTML meant for readers.
const PARAGRAPH_END: &str = "</p>";

/// The JSON key of a post's author.
const AUTHOR_KEY: &str = "username";

/// What a page carries.
#[derive(Default)]
pub(crate) struct Carried {
    /// The HTML fragments, in document order.
    pub(crate) html: String,
    /// The first user name in the data.
    pub(crate) author: Option<String>,
    /// Whether the string before was the key of a user name.
    is_author_next: bool,
}

/// The content of `noscript` if it is requested and long enough, else the posts in the page's data; `None` if there is
/// neither.
pub(crate) fn read(page: &Page<'_>, with_noscript: bool) -> Option<Carried> {
    let mut carried = in_data(page);
    if let Some(html) = with_noscript.then(|| noscript(page)).flatten() {
        carried.html = html;
    }
    (!carried.html.is_empty()).then_some(carried)
}

/// The content of `noscript`; `None` if it only asks to turn scripts on.
fn noscript(page: &Page<'_>) -> Option<String> {
    let html = page.noscript.concat();
    let outside_tags =
        |part: &str| part.split_once('>').map_or(part, |(_, after)| after).trim().len();
    let text_bytes: usize = html.split('<').map(outside_tags).sum();
    (text_bytes >= MIN_NOSCRIPT_BYTES).then_some(html)
}

fn in_data(page: &Page<'_>) -> Carried {
    let attributes = page.elements().flat_map(|(_, element)| element.attributes());
    let is_data = |(name, value): &(&str, &str)| {
        name.starts_with("data-") && (MIN_DATA_BYTES..=MAX_DATA_BYTES).contains(&value.len())
    };
    let mut carried = Carried::default();
    for (_, data) in attributes.filter(is_data) {
        let json = entities::decode(data);
        if json.starts_with(['{', '[']) && carried.html.len() <= MAX_DATA_BYTES {
            for (text, is_key) in strings(&json) {
                if text.starts_with(['{', '[']) {
                    strings(&text).for_each(|(text, is_key)| carried.add(&text, is_key));
                } else {
                    carried.add(&text, is_key);
                }
            }
        }
    }
    carried
}

impl Carried {
    fn add(&mut self, text: &str, is_key: bool) {
        if text.contains(PARAGRAPH_END) {
            self.html.push_str(text);
        } else if self.is_author_next && !is_key && self.author.is_none() {
            self.author = stated_name(text);
        }
        self.is_author_next = is_key && text == AUTHOR_KEY;
    }
}

/// All strings in JSON, each with whether it is a key.
fn strings(json: &str) -> impl Iterator<Item = (String, bool)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + memchr(b'"', json.as_bytes().get(at..)?)? + 1;
        let end = string_end(json.as_bytes(), start);
        at = end + 1;
        let after = json.as_bytes().get(at..).unwrap_or_default().trim_ascii_start();
        Some((unescaped(json.get(start..end)?), after.starts_with(b":")))
    })
}
