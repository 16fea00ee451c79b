//! Who wrote the article.

use super::json_ld::JsonLd;
use super::metas::Metas;
use super::texts;
use crate::fold::one_line;
use crate::page::{Element, Page};

/// Keys of `meta` elements, best first.
const AUTHOR_KEYS: &[&str] = &[
    "author",
    "article:author",
    "og:article:author",
    "parsely-author",
    "sailthru.author",
    "dc.creator",
    "dcterms.creator",
    "citation_author",
    "twitter:creator",
];

/// A name is not longer.
const MAX_NAME_CHARS: usize = 100;

/// The names, as the page writes them.
pub(super) fn author(page: &Page<'_>, metas: &Metas, json_ld: &JsonLd<'_>) -> Option<String> {
    let in_body = |element: &Element<'_>| {
        element.attribute_has("rel", "author") || element.attribute_has("itemprop", "author")
    };
    linked(json_ld)
        .or_else(|| metas.all(AUTHOR_KEYS).find_map(name))
        .or_else(|| texts(page, in_body).find_map(|text| name(&text)))
        .or_else(|| texts(page, is_byline).find_map(|text| name(&text)))
}

/// All authors that the linked data names.
fn linked(json_ld: &JsonLd<'_>) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for value in json_ld.values_in("author", "name").filter_map(|value| name(&value)) {
        if !names.contains(&value) {
            names.push(value);
        }
    }
    let joined = (!names.is_empty()).then(|| names.join(", "));
    joined.or_else(|| json_ld.values("author").find_map(|value| name(&value)))
}

fn is_byline(element: &Element<'_>) -> bool {
    element.attribute("class").is_some_and(|class| {
        class.split_whitespace().any(|word| {
            ["author", "byline", "author-name", "byline-name", "post-author", "entry-author"]
                .iter()
                .any(|known| word.eq_ignore_ascii_case(known))
        })
    })
}

/// The name in a statement. None for the address of a profile, and for what is no name.
fn name(value: &str) -> Option<String> {
    let value = one_line(value);
    let value = ["by ", "written by ", "von ", "par ", "por "]
        .iter()
        .find_map(|lead| {
            value
                .get(..lead.len())
                .filter(|start| start.eq_ignore_ascii_case(lead))
                .and_then(|_| value.get(lead.len()..))
        })
        .unwrap_or(&value);
    let value = value.trim_start_matches('@').trim_matches([' ', ',', '|', '·', ':']);
    let is_name =
        !value.is_empty() && !value.contains("://") && value.chars().count() <= MAX_NAME_CHARS;
    is_name.then(|| value.to_owned())
}
