//! The feeds to read, merged from all subscriptions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fetchwell_engine::ports::feeds::Subscription;

/// A feed, merged from all subscriptions to it. It is read once for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscribed {
    pub url: String,
    pub title: String,
    pub categories: BTreeSet<String>,
    /// The shortest interval of its subscriptions.
    pub interval: Duration,
    /// Where the subscriptions come from.
    pub by: BTreeSet<&'static str>,
}

impl Subscribed {
    /// Merges subscriptions, each given with where it comes from, into feeds sorted by URL. A subscription without an
    /// interval gets the default.
    pub fn all(
        subscriptions: Vec<(&'static str, Subscription)>,
        by_default: Duration,
    ) -> Vec<Subscribed> {
        let mut feeds: BTreeMap<String, Subscribed> = BTreeMap::new();
        for (by, subscription) in subscriptions {
            merge(&mut feeds, by, subscription, by_default);
        }
        feeds.into_values().collect()
    }
}

fn merge(
    feeds: &mut BTreeMap<String, Subscribed>,
    by: &'static str,
    subscription: Subscription,
    by_default: Duration,
) {
    let Subscription { category, url, interval, title } = subscription;
    let interval = interval.unwrap_or(by_default);
    let feed = feeds.entry(url.clone()).or_insert_with(|| Subscribed {
        url,
        title: String::new(),
        categories: BTreeSet::new(),
        interval,
        by: BTreeSet::new(),
    });
    feed.categories.insert(category);
    feed.by.insert(by);
    feed.interval = feed.interval.min(interval);
    if feed.title.is_empty() {
        feed.title = title;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_is_one_whoever_subscribed_to_it() {
        let mut feeds = BTreeMap::new();
        let hour = Duration::from_secs(3_600);
        for (by, category, interval, title) in [
            ("settings", "news", None, ""),
            ("store", "world", Some(hour / 2), "T"),
            ("store", "news", Some(hour * 9), "U"),
        ] {
            let category = category.to_owned();
            let url = "http://a.test/".to_owned();
            let some = Subscription { category, url, interval, title: title.to_owned() };
            merge(&mut feeds, by, some, hour);
        }
        let feed = &feeds["http://a.test/"];
        assert_eq!(feed.categories, ["news".to_owned(), "world".to_owned()].into());
        assert_eq!((feed.interval, feed.title.as_str()), (hour / 2, "T"));
        assert_eq!(feed.by, ["settings", "store"].into());
    }
}
