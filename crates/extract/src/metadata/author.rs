//! Finds the author of the article.

use super::json_ld::JsonLd;
use super::metas::Metas;
use super::texts;
use crate::fold::one_line;
use crate::page::{Element, Page};

/// Keys of `meta` elements, best first.
const AUTHOR_KEYS: &str = "
    author article:author og:article:author parsely-author sailthru.author dc.creator
    dcterms.creator citation_author twitter:creator";

/// Classes of elements that contain only names.
const BYLINE_CLASSES: [&str; 6] =
    ["author", "author-name", "byline", "byline-name", "entry-author", "post-author"];

/// Words that may precede a name.
const LEADS: [&str; 5] = ["by ", "written by ", "von ", "par ", "por "];

/// A longer text is not a name.
const MAX_NAME_CHARS: usize = 100;

/// The names, as the page writes them.
pub(super) fn author(page: &Page<'_>, metas: &Metas, json_ld: &JsonLd<'_>) -> Option<String> {
    let in_body = |element: &Element<'_>| {
        element.mentions("author")
            && (element.attribute_has("rel", "author")
                || element.attribute_has("itemprop", "author"))
    };
    linked(json_ld)
        .or_else(|| metas.all(AUTHOR_KEYS).find_map(name))
        .or_else(|| texts(page, in_body).find_map(|text| name(&text)))
        .or_else(|| texts(page, is_byline).find_map(|text| name(&text)))
}

/// All authors in the linked data.
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
    let is_known = |word: &str| BYLINE_CLASSES.iter().any(|known| known.eq_ignore_ascii_case(word));
    (element.mentions("author") || element.mentions("byline"))
        && element.attribute("class").is_some_and(|class| class.split_whitespace().any(is_known))
}

/// The name in a value. `None` for the URL of a profile and for anything that is not a name.
fn name(value: &str) -> Option<String> {
    let value = one_line(value);
    let without = |lead: &str| {
        let begins = value.get(..lead.len())?.eq_ignore_ascii_case(lead);
        value.get(lead.len()..).filter(|_| begins)
    };
    let name = LEADS.iter().find_map(|lead| without(lead)).unwrap_or(&value);
    let name = name.trim_start_matches('@').trim_matches([' ', ',', '|', '·', ':']);
    let is_name =
        !name.is_empty() && !name.contains("://") && name.chars().count() <= MAX_NAME_CHARS;
    is_name.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_what_is_none() {
        for (value, want) in [
            ("By Ada Keeper", Some("Ada Keeper")),
            (" @ada ", Some("ada")),
            ("Bypass Editors", Some("Bypass Editors")),
            ("https://a.test/ada", None),
            ("", None),
        ] {
            assert_eq!(name(value).as_deref(), want, "{value}");
        }
        assert_eq!(name(&"x".repeat(200)), None);
    }
}
