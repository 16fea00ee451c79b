//! Sorts the links of a feed: pages, and links that must be resolved first.

use std::collections::{BTreeMap, BTreeSet};

use fetchwell_feed::{Feed, clean, must_be_asked};

/// Links of one feed that are resolved per reading. Links beyond that are added unresolved.
const MAX_ASKED: usize = 500;

/// The distinct links of a feed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sorted {
    /// Links that are pages.
    pub(super) pages: Vec<String>,
    /// Links to resolve.
    pub(super) asked: Vec<String>,
    /// Links that were resolved before, with their pages.
    pub(super) resolved: BTreeMap<String, String>,
}

/// Cleans and sorts the links of a feed. `known` holds the links that were resolved before.
pub(super) fn sort(feed: &Feed, known: &BTreeMap<String, String>) -> Sorted {
    let mut sorted = Sorted::default();
    let mut seen = BTreeSet::new();
    for entry in &feed.entries {
        let link = clean(&entry.link);
        if !seen.insert(link.to_string()) {
            continue;
        }
        match known.get(link.as_str()) {
            Some(page) => {
                sorted.pages.push(page.clone());
                sorted.resolved.insert(link.to_string(), page.clone());
            }
            None if must_be_asked(&link, &feed.home) && sorted.asked.len() < MAX_ASKED => {
                sorted.asked.push(link.to_string());
            }
            None => sorted.pages.push(link.to_string()),
        }
    }
    sorted
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::url::WebUrl;

    use super::*;

    #[test]
    fn each_link_is_there_once_and_nobody_is_asked_twice_nor_at_home() {
        let items = [
            "http://a.test/1?utm_source=rss",
            "http://a.test/1",
            "https://t.co/old",
            "https://t.co/new",
            "https://t.co/new#x",
            "http://tracker.test/?to=a",
            "http://tracker.test/?to=b",
            "http://www.home.test/2",
        ]
        .map(|link| format!("<item><link>{link}</link></item>"));
        let home = "<link>http://home.test/</link>";
        let body = format!("<rss><channel>{home}{}</channel></rss>", items.concat());
        let feed =
            fetchwell_feed::read(body.as_bytes(), None, &WebUrl::parse("http://a.test/").unwrap());
        let pair = |link: &str, page: &str| (link.to_owned(), page.to_owned());
        let known = BTreeMap::from([
            pair("https://t.co/old", "http://b.test/"),
            pair("https://t.co/older", "http://c.test/"),
            pair("http://tracker.test/?to=b", "http://tracker.test/?to=b"),
        ]);
        let sorted = sort(&feed.unwrap(), &known);
        let pages = [
            "http://a.test/1",
            "http://b.test/",
            "http://tracker.test/?to=b",
            "http://www.home.test/2",
        ];
        assert_eq!(sorted.pages, pages);
        assert_eq!(sorted.asked, ["https://t.co/new", "http://tracker.test/?to=a"]);
        let resolved = [
            pair("https://t.co/old", "http://b.test/"),
            pair("http://tracker.test/?to=b", "http://tracker.test/?to=b"),
        ];
        assert_eq!(sorted.resolved, resolved.into());
    }
}
