//! What the page says about itself.

use url::Url;

use crate::fold::one_line;
use crate::links::absolute;
use crate::page::{Element, Page, Tag};
use crate::title::Titles;

/// A page's own statements, each the best of its places.
pub(crate) struct Metadata {
    pub(crate) title: String,
    pub(crate) base_url: Url,
    pub(crate) image: Option<String>,
    pub(crate) lang: Option<String>,
    pub(crate) canonical: Option<String>,
    pub(crate) author: Option<String>,
    pub(crate) published: Option<String>,
}

/// Keys of `meta` elements, best first.
const IMAGE_KEYS: &[&str] = &["og:image", "og:image:url", "og:image:secure_url", "twitter:image"];
const LANG_KEYS: &[&str] = &["content-language", "language", "dc.language", "og:locale"];
const AUTHOR_KEYS: &[&str] = &["author", "article:author", "dc.creator", "parsely-author"];
const PUBLISHED_KEYS: &[&str] = &[
    "article:published_time",
    "datepublished",
    "date",
    "pubdate",
    "publishdate",
    "dc.date",
    "dc.date.issued",
    "parsely-pub-date",
];

/// Reads the page's head and the few elements of its body that speak of the whole.
pub(crate) fn read(page: &Page<'_>, found_at: &Url) -> Metadata {
    let metas = Metas::of(page);
    let base_url = base_url(page, found_at);
    let titles = Titles {
        shared: metas.best(&["og:title", "twitter:title"]),
        document: first_text(page, |element| element.tag == Tag::Title),
        heading: first_text(page, |element| element.tag == Tag::H1),
        site_name: metas.best(&["og:site_name", "application-name"]),
    };
    Metadata {
        title: titles.best(),
        image: metas.best(IMAGE_KEYS).and_then(|value| absolute_string(&base_url, &value)),
        lang: lang(page, &metas),
        canonical: canonical(page, &base_url),
        author: author(page, &metas),
        published: published(page, &metas),
        base_url,
    }
}

/// The keys (in lower case) and values of the page's `meta` elements.
struct Metas(Vec<(String, String)>);

impl Metas {
    fn of(page: &Page<'_>) -> Self {
        let pair = |element: &Element<'_>| {
            let key = ["property", "name", "itemprop", "http-equiv"]
                .iter()
                .find_map(|name| element.attribute(name).filter(|key| !key.is_empty()))?;
            let value = one_line(&element.attribute("content")?);
            (!value.is_empty()).then(|| (key.trim().to_ascii_lowercase(), value))
        };
        let metas = page.elements().filter(|(_, element)| element.tag == Tag::Meta);
        Metas(metas.filter_map(|(_, element)| pair(element)).collect())
    }

    fn all<'m>(&'m self, keys: &'m [&str]) -> impl Iterator<Item = &'m str> {
        keys.iter().flat_map(|key| {
            self.0.iter().filter(move |(known, _)| known == key).map(|(_, value)| value.as_str())
        })
    }

    fn best(&self, keys: &[&str]) -> Option<String> {
        self.all(keys).next().map(str::to_owned)
    }
}

fn base_url(page: &Page<'_>, found_at: &Url) -> Url {
    page.elements()
        .filter(|(_, element)| element.tag == Tag::Base)
        .find_map(|(_, element)| absolute(found_at, &element.attribute("href")?))
        .unwrap_or_else(|| found_at.clone())
}

fn lang(page: &Page<'_>, metas: &Metas) -> Option<String> {
    let is_code = |value: &str| {
        (2..=35).contains(&value.len())
            && value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    };
    let declared = page
        .elements()
        .filter(|(_, element)| element.tag == Tag::Html)
        .find_map(|(_, element)| {
            element.attribute("lang").or_else(|| element.attribute("xml:lang"))
        })
        .map(|value| value.trim().to_owned());
    declared
        .filter(|value| is_code(value))
        .or_else(|| metas.all(LANG_KEYS).find(|value| is_code(value)).map(str::to_owned))
        .map(|value| value.replace('_', "-"))
}

fn canonical(page: &Page<'_>, base_url: &Url) -> Option<String> {
    page.elements()
        .filter(|(_, link)| link.tag == Tag::Link && link.attribute_has("rel", "canonical"))
        .find_map(|(_, link)| absolute_string(base_url, &link.attribute("href")?))
}

fn author(page: &Page<'_>, metas: &Metas) -> Option<String> {
    // Some give the address of a profile instead of a name.
    let is_name = |value: &str| !value.contains("://") && value.chars().count() <= 100;
    let in_body = |element: &Element<'_>| {
        element.attribute_has("rel", "author") || element.attribute_has("itemprop", "author")
    };
    metas
        .all(AUTHOR_KEYS)
        .find(|value| is_name(value))
        .map(str::to_owned)
        .or_else(|| first_text(page, in_body).filter(|value| is_name(value)))
}

fn published(page: &Page<'_>, metas: &Metas) -> Option<String> {
    let in_body = || {
        page.elements()
            .filter(|(_, element)| element.tag == Tag::Time)
            .filter_map(|(_, element)| element.attribute("datetime"))
            .map(|value| one_line(&value))
            .find(|value| begins_with_date(value))
    };
    metas
        .all(PUBLISHED_KEYS)
        .find(|value| begins_with_date(value))
        .map(str::to_owned)
        .or_else(in_body)
}

/// `YYYY-MM-DD`, and not much behind it.
fn begins_with_date(value: &str) -> bool {
    let is_shaped = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    (10..=40).contains(&value.len()) && value.bytes().take(10).enumerate().all(is_shaped)
}

/// The text of the first element that fits and has any. What stands within an empty one is empty
/// as well, and is not looked at again.
fn first_text(page: &Page<'_>, fits: impl Fn(&Element<'_>) -> bool) -> Option<String> {
    let mut looked_at = 0;
    page.elements().filter(|(_, element)| fits(element)).find_map(|(index, _)| {
        let nodes = page.subtree(index);
        if nodes.start < looked_at {
            return None;
        }
        looked_at = nodes.end;
        let text = one_line(&page.raw_text(index));
        (!text.is_empty()).then_some(text)
    })
}

fn absolute_string(base_url: &Url, reference: &str) -> Option<String> {
    absolute(base_url, reference).map(String::from)
}
