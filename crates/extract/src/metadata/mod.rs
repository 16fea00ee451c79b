//! The metadata of a page.

mod author;
mod date;
mod frame;
mod json_ld;
mod metas;
mod published;
mod site_name;
mod sources;
mod title;

use std::borrow::Cow;

use url::Url;

use crate::fold::one_line;
use crate::links::absolute;
use crate::page::{Element, Page, Tag};

pub(crate) use author::{stated_authors, stated_name};
pub(crate) use frame::without_frame;
pub(crate) use json_ld::{JsonLd, StatedKind};
pub(crate) use metas::Metas;
use sources::Sources;
use title::Titles;

/// The page's metadata, each field from its best source.
pub(crate) struct Metadata {
    pub(crate) title: String,
    pub(crate) image: Option<String>,
    pub(crate) lang: Option<String>,
    pub(crate) canonical: Option<String>,
    pub(crate) authors: Vec<String>,
    pub(crate) site_name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) published: Option<String>,
}

/// Keys of `meta` elements, best first.
const IMAGE_KEYS: &str =
    "og:image og:image:url og:image:secure_url twitter:image twitter:image:src";
const LANG_KEYS: &str = "content-language language dc.language og:locale";
const DESCRIPTION_KEYS: &str = "og:description description twitter:description";
const SITE_KEYS: &str = "og:site_name application-name twitter:app:name:iphone";

/// Reads the head of the page and the few elements of its body that describe the whole page.
pub(crate) fn read(
    page: &Page<'_>,
    metas: &Metas,
    json_ld: &JsonLd<'_>,
    found_at: &Url,
    base_url: &Url,
) -> Metadata {
    let lang = lang(page, metas);
    let site_name = site_name(metas, json_ld);
    let title = title(page, metas, json_ld, site_name.clone(), found_at);
    let sources = Sources {
        page,
        metas,
        json_ld,
        url: found_at,
        title: &title,
        lang: lang.as_deref(),
        site_name: site_name.as_deref(),
    };
    Metadata {
        image: image(metas, json_ld, base_url),
        canonical: canonical(page, base_url),
        authors: author::authors(&sources),
        published: published::published(&sources),
        title,
        description: description(metas, json_ld),
        site_name,
        lang,
    }
}

/// The page's title alone.
pub(crate) fn read_title(
    page: &Page<'_>,
    metas: &Metas,
    json_ld: &JsonLd<'_>,
    found_at: &Url,
) -> String {
    let site_name = site_name(metas, json_ld);
    title(page, metas, json_ld, site_name, found_at)
}

fn site_name(metas: &Metas, json_ld: &JsonLd<'_>) -> Option<String> {
    let published_by = || json_ld.values_in("publisher", "name").next();
    metas.best(SITE_KEYS).or_else(|| published_by().map(|name| one_line(&name)))
}

fn description(metas: &Metas, json_ld: &JsonLd<'_>) -> Option<String> {
    let is_short = |text: &String| !text.is_empty() && text.len() <= MAX_DESCRIPTION_BYTES;
    let stated = metas.all(DESCRIPTION_KEYS).map(str::to_owned).find(is_short);
    let linked = || {
        let of_article = json_ld.values_of_article("description");
        of_article.map(|text| one_line(&text)).find(is_short)
    };
    stated.or_else(linked)
}

fn title(
    page: &Page<'_>,
    metas: &Metas,
    json_ld: &JsonLd<'_>,
    site_name: Option<String>,
    url: &Url,
) -> String {
    let is_short = |title: &String| title.len() <= MAX_TITLE_BYTES;
    let headings = texts(page, |element| element.tag == Tag::H1).filter(is_short);
    let heading_elements = page.elements().filter(|(_, element)| element.tag == Tag::H1);
    let heading_pieces =
        heading_elements.take(MAX_HEADINGS).flat_map(|(index, _)| page.pieces(index));
    let titles = Titles {
        shared: metas.best("og:title twitter:title").filter(is_short),
        document: texts(page, |element| element.tag == Tag::Title).find(is_short),
        headings: headings.take(MAX_HEADINGS).collect(),
        heading_pieces: heading_pieces.filter(is_short).collect(),
        linked: json_ld.values("headline").map(|text| one_line(&text)).find(is_short),
        site_name,
        url,
    };
    titles.best()
}

/// A longer text is not a title.
const MAX_TITLE_BYTES: usize = 1_000;

/// The same for a description.
const MAX_DESCRIPTION_BYTES: usize = 5_000;

/// Further `h1` elements are not examined.
const MAX_HEADINGS: usize = 10;

/// A longer base is ignored: each relative URL would be as long.
const MAX_BASE_BYTES: usize = 8_192;

/// The base of the page's relative URLs.
pub(crate) fn base_url(page: &Page<'_>, found_at: &Url) -> Url {
    page.elements()
        .filter(|(_, element)| element.tag == Tag::Base)
        .filter_map(|(_, element)| element.attribute("href"))
        .filter(|address| address.len() <= MAX_BASE_BYTES)
        .find_map(|address| absolute(found_at, &address))
        .unwrap_or_else(|| found_at.clone())
}

fn image(metas: &Metas, json_ld: &JsonLd<'_>, base_url: &Url) -> Option<String> {
    let address = |value: &str| absolute_string(base_url, value);
    metas
        .all(IMAGE_KEYS)
        .find_map(address)
        .or_else(|| json_ld.values("image").find_map(|value| address(&value)))
        .or_else(|| json_ld.values_in("image", "url").find_map(|value| address(&value)))
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
    canonical_links(page).find_map(|reference| absolute_string(base_url, &reference))
}

fn canonical_links<'p>(page: &'p Page<'_>) -> impl Iterator<Item = Cow<'p, str>> {
    page.elements()
        .filter(|(_, link)| link.tag == Tag::Link && link.attribute_has("rel", "canonical"))
        .filter_map(|(_, link)| link.attribute("href"))
}

/// The absolute URL that the page declares as its own.
pub(crate) fn declared_url(page: &Page<'_>) -> Option<Url> {
    let metas = Metas::of(page);
    let shared = metas.all("og:url").map(Cow::Borrowed);
    canonical_links(page)
        .chain(shared)
        .filter_map(|reference| Url::parse(reference.trim()).ok())
        .find(|url| matches!(url.scheme(), "http" | "https"))
}

/// The texts of the matching elements that are not empty. Elements nested in a match are skipped.
fn texts<'p>(
    page: &'p Page<'_>,
    fits: impl Fn(&Element<'_>) -> bool + 'p,
) -> impl Iterator<Item = String> + 'p {
    let mut looked_at = 0;
    page.elements().filter(move |(_, element)| fits(element)).filter_map(move |(index, _)| {
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
