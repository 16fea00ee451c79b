//! Text that a page carries as data in an attribute, for its scripts to display.
//!
//! Such a page has hardly any visible text. The content is HTML within JSON in a `data-…` attribute; on some pages the
//! JSON is itself a string in JSON.

use memchr::memchr;

use crate::entities;
use crate::json_strings::{string_end, unescaped};
use crate::page::Page;

/// Shorter values are settings.
const MIN_DATA_BYTES: usize = 1_000;

/// Further data is not read.
const MAX_DATA_BYTES: usize = 8 << 20;

/// A string with this tag is HTML meant for readers.
const PARAGRAPH_END: &str = "</p>";

/// The HTML fragments in the page's data, in document order; `None` if there are none.
pub(crate) fn html(page: &Page<'_>) -> Option<String> {
    let attributes = page.elements().flat_map(|(_, element)| element.attributes());
    let is_data = |(name, value): &(&str, &str)| {
        name.starts_with("data-") && (MIN_DATA_BYTES..=MAX_DATA_BYTES).contains(&value.len())
    };
    let mut html = String::new();
    for (_, data) in attributes.filter(is_data) {
        let json = entities::decode(data);
        if json.starts_with(['{', '[']) && html.len() <= MAX_DATA_BYTES {
            add_html(&json, &mut html);
        }
    }
    (!html.is_empty()).then_some(html)
}

fn add_html(json: &str, html: &mut String) {
    for text in strings(json) {
        if text.starts_with(['{', '[']) {
            let inner = strings(&text).filter(|text| text.contains(PARAGRAPH_END));
            inner.for_each(|text| html.push_str(&text));
        } else if text.contains(PARAGRAPH_END) {
            html.push_str(&text);
        }
    }
}

/// All strings in JSON, both keys and values.
fn strings(json: &str) -> impl Iterator<Item = String> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + memchr(b'"', json.as_bytes().get(at..)?)? + 1;
        let end = string_end(json.as_bytes(), start);
        at = end + 1;
        Some(unescaped(json.get(start..end)?))
    })
}
