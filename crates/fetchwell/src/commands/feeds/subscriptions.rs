//! The subscriptions in the settings, in an OPML file and in the store.

use std::fmt::Display;
use std::path::Path;

use fetchwell_doors::feeds::{FeedPorts, Subscribed};
use fetchwell_engine::ports::feeds::Subscription;
use fetchwell_engine::ports::links::category_name;
use fetchwell_feed::opml::{self, Opml, Outline};
use fetchwell_policy::url::WebUrl;
use fetchwell_settings::Settings;
use tracing::warn;

use crate::console::exit::Exit;

/// The category of feeds that name none.
pub(super) const DEFAULT_CATEGORY: &str = "general";

/// A larger file is refused.
const MAX_LIST_BYTES: u64 = 64 * 1024 * 1024;

/// All feeds, sorted by URL.
pub(super) async fn subscribed(
    settings: &Settings,
    ports: &FeedPorts,
) -> Result<Vec<Subscribed>, Exit> {
    let subscriptions = everything(settings, ports).await?;
    Ok(Subscribed::all(subscriptions, settings.values.feeds_interval))
}

/// Every subscription, with where it comes from.
pub(super) async fn everything(
    settings: &Settings,
    ports: &FeedPorts,
) -> Result<Vec<(&'static str, Subscription)>, Exit> {
    let mut all: Vec<_> = of_settings(settings).map(|some| ("settings", some)).collect();
    if let Some(path) = &settings.values.feeds_opml {
        all.extend(of_list(path)?.into_iter().map(|some| ("opml", some)));
    }
    let stored = ports.feeds.subscriptions().await?;
    all.extend(stored.into_iter().map(|some| ("store", some)));
    Ok(all)
}

fn of_settings(settings: &Settings) -> impl Iterator<Item = Subscription> {
    settings.categories.iter().flat_map(|(category, table)| {
        table.feeds.iter().map(|url| Subscription {
            category: category.clone(),
            url: url.clone(),
            interval: table.interval,
            title: String::new(),
        })
    })
}

/// The feeds of an OPML file. Invalid entries are logged and skipped.
pub(super) fn of_list(path: &Path) -> Result<Vec<Subscription>, Exit> {
    let shown = path.display();
    let usage = |why: String| Exit::Usage(format!("cannot read the list {shown}: {why}"));
    let bytes = read_file(path).map_err(|error| usage(error.to_string()))?;
    let text = fetchwell_extract::decode(&bytes, None).text;
    let Some(Opml { outlines, ends_early }) = opml::read(&text) else {
        return Err(usage(
            "it is not OPML; export one from a feed reader, or with `fetchwell feeds export`"
                .into(),
        ));
    };
    if ends_early {
        warn!("the list {shown} is truncated: only complete entries are used");
    }
    Ok(outlines.into_iter().filter_map(subscription).collect())
}

fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.len() > MAX_LIST_BYTES {
        let most = format!("it is larger than {MAX_LIST_BYTES} bytes");
        return Err(std::io::Error::other(most));
    }
    std::fs::read(path)
}

fn subscription(outline: Outline) -> Option<Subscription> {
    let Outline { url, title, category, interval } = outline;
    let skipped = |why: &dyn Display| warn!("skipped {url}: {why}");
    WebUrl::parse(&url).inspect_err(|fault| skipped(fault)).ok()?;
    let category = category_name(category.as_deref().unwrap_or(DEFAULT_CATEGORY));
    let category = category.inspect_err(|error| skipped(error)).ok()?;
    Some(Subscription { category, url, interval: interval.filter(|every| !every.is_zero()), title })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_far_as_it_makes_sense() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("feeds.opml");
        let list = "<opml><body><outline text='News'><outline xmlUrl='http://a.test/'/>\
                    <outline xmlUrl='ftp://b.test/'/></outline><outline xmlUrl='http://c.test/'/></body></opml>";
        std::fs::write(&path, list).unwrap();
        let read = of_list(&path).unwrap();
        let shown: Vec<_> = read.iter().map(|s| (s.category.as_str(), s.url.as_str())).collect();
        assert_eq!(shown, [("News", "http://a.test/"), (DEFAULT_CATEGORY, "http://c.test/")]);
        std::fs::write(&path, "hello").unwrap();
        let refused = of_list(&path).unwrap_err().to_string();
        assert!(refused.contains("feeds.opml") && refused.contains("not OPML"), "{refused}");
    }
}
