//! The page's `meta` elements.

use crate::fold::one_line;
use crate::page::{Element, Page, Tag};

/// The keys (in lower case) and values of the page's `meta` elements.
pub(crate) struct Metas(Vec<(String, String)>);

impl Metas {
    pub(crate) fn of(page: &Page<'_>) -> Self {
        let metas = page.elements().filter(|(_, element)| element.tag == Tag::Meta);
        Metas(metas.filter_map(|(_, element)| pair(element)).collect())
    }

    /// The values under these keys, which are separated by white space, in the order of the keys.
    pub(super) fn all<'m>(&'m self, keys: &'m str) -> impl Iterator<Item = &'m str> {
        keys.split_whitespace().flat_map(|key| self.all_of(key))
    }

    /// The values under a key.
    pub(super) fn all_of<'m>(&'m self, key: &'m str) -> impl Iterator<Item = &'m str> {
        self.0.iter().filter(move |(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// The values for all robots, and for the bot with this name.
    pub(crate) fn for_robots(&self, bot: &str) -> Vec<String> {
        let is_for_us = |key: &str| key == "robots" || key.eq_ignore_ascii_case(bot);
        self.matching(is_for_us).map(str::to_owned).collect()
    }

    pub(super) fn best(&self, keys: &str) -> Option<String> {
        self.all(keys).next().map(str::to_owned)
    }

    /// The values whose key matches, in document order.
    pub(super) fn matching<'m>(
        &'m self,
        fits: impl Fn(&str) -> bool + 'm,
    ) -> impl Iterator<Item = &'m str> {
        self.0.iter().filter(move |(key, _)| fits(key)).map(|(_, value)| value.as_str())
    }
}

fn pair(element: &Element<'_>) -> Option<(String, String)> {
    let key = ["property", "name", "itemprop", "http-equiv"]
        .iter()
        .find_map(|name| element.attribute(name).filter(|key| !key.is_empty()))?;
    let value = one_line(&element.attribute("content")?);
    (!value.is_empty()).then(|| (key.trim().to_ascii_lowercase(), value))
}
