//! Resolves URLs in a page.

use std::collections::HashSet;
use std::ops::Range;

use url::Url;

use crate::limits::{TookTooLong, Watch};
use crate::page::{Element, NodeKind, Page, Tag};

/// Further links of a page are left out.
const MAX_LINKS: usize = 10_000;

/// Resolves a reference. `None` for other schemes than http and https: `javascript:`, `data:`, `mailto:`.
pub(crate) fn absolute(base_url: &Url, reference: &str) -> Option<Url> {
    let reference = reference.trim();
    if reference.is_empty() {
        return None;
    }
    base_url.join(reference).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}

/// The URL of an `img`. Pages that load images lazily put a placeholder into `src`.
pub(crate) fn image_address(base_url: &Url, image: &Element<'_>) -> Option<Url> {
    ["data-src", "data-original", "src"]
        .iter()
        .find_map(|name| absolute(base_url, &image.attribute(name)?))
}

/// The URLs that these elements link to, each once and without its fragment, in their order.
#[derive(Default)]
pub(crate) struct Linked {
    pub(crate) urls: Vec<Url>,
    /// Whether there are more.
    pub(crate) is_cut: bool,
}

/// What these elements link to: at most [`MAX_LINKS`], and as many as fit into `max_bytes`.
pub(crate) fn all<'p, 'a: 'p>(
    elements: impl Iterator<Item = &'p Element<'a>>,
    base_url: &Url,
    max_bytes: usize,
    watch: &Watch<'_>,
) -> Result<Linked, TookTooLong> {
    let mut seen = HashSet::new();
    let mut linked = Linked::default();
    let mut bytes_left = max_bytes;
    for link in elements {
        watch.step()?;
        let Some(href) = link.attribute("href") else { continue };
        let Some(mut url) = absolute(base_url, &href) else { continue };
        url.set_fragment(None);
        if seen.contains(&url) {
            continue;
        }
        let left = bytes_left.checked_sub(url.as_str().len());
        let Some(left) = left.filter(|_| linked.urls.len() < MAX_LINKS) else {
            linked.is_cut = true;
            break;
        };
        bytes_left = left;
        seen.insert(url.clone());
        linked.urls.push(url);
    }
    Ok(linked)
}

/// Whether it is a link that readers follow.
pub(crate) fn is_anchor(element: &Element<'_>) -> bool {
    element.tag == Tag::A
}

/// Whether it leads to another page: a link that readers follow, the area of an image, or a relation of the page to its
/// neighbours, its translations and its canonical form.
pub(crate) fn leads_on(element: &Element<'_>) -> bool {
    match element.tag {
        Tag::A => true,
        Tag::Link => {
            let is = |relation| element.attribute_has("rel", relation);
            let is_translation = || is("alternate") && element.attribute("hreflang").is_some();
            is("next") || is("prev") || is("canonical") || is_translation()
        }
        Tag::Other => element.name().eq_ignore_ascii_case("area"),
        _ => false,
    }
}

/// Whether the page asks crawlers not to follow a link.
pub(crate) fn is_nofollow(element: &Element<'_>) -> bool {
    element.attribute_has("rel", "nofollow")
}

/// The first image of the article, else of the page.
pub(crate) fn first_image(
    page: &Page<'_>,
    article: Range<usize>,
    base_url: &Url,
) -> Option<String> {
    let first_in = |range: Range<usize>| {
        page.nodes.get(range)?.iter().find_map(|node| match &node.kind {
            NodeKind::Element(element) if element.tag == Tag::Img => {
                image_address(base_url, element)
            }
            _ => None,
        })
    };
    first_in(article).or_else(|| first_in(0..page.nodes.len())).map(String::from)
}
