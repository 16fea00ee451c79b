//! A web page where a feed was expected: it may link to feeds.

use fetchwell_policy::url::WebUrl;

use crate::feed::NoFeed;
use crate::xml::{Tokens, XmlToken, local};

/// Further feeds are not reported.
const MAX_FEEDS_NAMED: usize = 10;

const TYPES: [&str; 3] = ["application/rss+xml", "application/atom+xml", "application/feed+json"];

/// Tells what a document is that is not a feed.
pub(crate) fn judge(text: &str, found_at: &WebUrl) -> NoFeed {
    let mut is_page = false;
    let mut feeds = Vec::new();
    for token in Tokens::new(text) {
        let XmlToken::Open { name, attributes, .. } = token else { continue };
        let has = |name, wanted: &[&str]| {
            let value = attributes.get(name).unwrap_or_default();
            value.split_whitespace().any(|word| wanted.iter().any(|w| w.eq_ignore_ascii_case(word)))
        };
        match local(name).to_ascii_lowercase().as_str() {
            "html" | "head" => is_page = true,
            "body" => break,
            "link" if has("rel", &["alternate"]) && has("type", &TYPES) => {
                let href = attributes.get("href").unwrap_or_default();
                feeds.extend(found_at.join(href.trim()));
            }
            _ => {}
        }
        if feeds.len() == MAX_FEEDS_NAMED {
            break;
        }
    }
    if is_page { NoFeed::Page { feeds } } else { NoFeed::Else }
}
