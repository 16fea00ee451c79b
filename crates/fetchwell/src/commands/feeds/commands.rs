//! `feeds add`, `remove`, `list`, `import` and `export`.

use std::path::Path;
use std::time::Duration;

use fetchwell_doors::feeds::FeedPorts;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::feeds::Subscription;
use fetchwell_engine::ports::links::category_name;
use fetchwell_feed::opml::{self, Outline};
use fetchwell_policy::units::{parse_duration, with_unit};
use fetchwell_policy::url::WebUrl;
use fetchwell_settings::Settings;
use serde_json::json;

use super::print;
use super::subscriptions::{everything, of_list, subscribed};
use crate::console::exit::Exit;
use crate::console::output::{print, print_either};
use crate::console::terminal::printable;
use crate::console::url_lists;
use crate::wiring::open_feeds;

pub(super) async fn add(
    settings: &Settings,
    given: &[String],
    category: &str,
    interval: Option<&str>,
    as_json: bool,
) -> Result<Exit, Exit> {
    let category =
        category_name(category).map_err(|error| Exit::Usage(format!("--category: {error}")))?;
    let interval = interval.map(read_interval).transpose()?;
    let mut subscriptions = Vec::new();
    for url in url_lists::read(given)? {
        if let Err(fault) = WebUrl::parse(&url) {
            return Err(Exit::Usage(format!("{url}: {fault}; nothing was added")));
        }
        let category = category.clone();
        let title = String::new();
        subscriptions.push(Subscription { category, url, interval, title });
    }
    let ports = open_feeds(settings).await?;
    subscribe(&ports, &subscriptions, as_json).await
}

fn read_interval(text: &str) -> Result<Duration, Exit> {
    match parse_duration(&with_unit(text, "s")) {
        Ok(interval) if interval.as_secs() > 0 => Ok(interval),
        Ok(_) => Err(Exit::Usage(format!(
            "--interval: {text} is less than a second; use a longer interval, such as 30m"
        ))),
        Err(error) => Err(Exit::Usage(format!("--interval: {error}"))),
    }
}

async fn subscribe(
    ports: &FeedPorts,
    subscriptions: &[Subscription],
    as_json: bool,
) -> Result<Exit, Exit> {
    let new = ports.feeds.subscribe(subscriptions).await?;
    resume(ports, subscriptions).await?;
    let known = subscriptions.len() as u64 - new;
    print_either(
        as_json,
        json!({"added": new, "already_there": known}),
        format!("feeds added: {new}, already subscribed: {known}\n"),
    )
}

/// Adding a paused feed resumes it.
async fn resume(ports: &FeedPorts, subscriptions: &[Subscription]) -> Result<(), Exit> {
    let urls: Vec<&str> = subscriptions.iter().map(|some| some.url.as_str()).collect();
    let memories = ports.feeds.memories(&urls).await?;
    let both = urls.into_iter().zip(memories);
    let paused: Vec<&str> =
        both.filter_map(|(url, memory)| memory?.paused.is_some().then_some(url)).collect();
    Ok(ports.feeds.forget(&paused).await?)
}

/// Removes a feed from the store.
pub(super) async fn remove(
    settings: &Settings,
    url: &str,
    category: Option<&str>,
    as_json: bool,
) -> Result<Exit, Exit> {
    let ports = open_feeds(settings).await?;
    let is_meant = |some: &Subscription| {
        some.url == url && category.is_none_or(|category| some.category == category.trim())
    };
    let stored = ports.feeds.subscriptions().await?;
    let meant: Vec<Subscription> = stored.into_iter().filter(|some| is_meant(some)).collect();
    let removed = ports.feeds.unsubscribe(&meant).await?;
    let left = everything(settings, &ports).await?;
    if !left.iter().any(|(_, some)| some.url == url) {
        ports.feeds.forget(&[url]).await?;
    }
    if removed == 0 {
        return Err(Exit::Usage(match left.iter().find(|(_, some)| some.url == url) {
            Some((by, some)) => {
                format!("{url} is in {} through the {by}: remove it there", some.category)
            }
            None => {
                format!("{url} is not a feed in the store; run `fetchwell feeds list` to see all")
            }
        }));
    }
    let text = format!("removed {} from {removed} categories\n", printable(url));
    print_either(as_json, json!({"removed": removed}), text)
}

pub(super) async fn list(settings: &Settings, as_json: bool) -> Result<Exit, Exit> {
    let ports = open_feeds(settings).await?;
    let feeds = subscribed(settings, &ports).await?;
    let urls: Vec<&str> = feeds.iter().map(|feed| feed.url.as_str()).collect();
    let memories = ports.feeds.memories(&urls).await?;
    let mut both: Vec<_> = feeds.into_iter().zip(memories).collect();
    both.sort_by(|(a, _), (b, _)| (&a.categories, &a.url).cmp(&(&b.categories, &b.url)));
    print(print::list(&both, Clock::system().wall(), as_json))
}

/// Subscribes to the feeds of an OPML file.
pub(super) async fn import(settings: &Settings, file: &Path, as_json: bool) -> Result<Exit, Exit> {
    let subscriptions = distinct(of_list(file)?);
    let ports = open_feeds(settings).await?;
    subscribe(&ports, &subscriptions, as_json).await
}

/// Prints all feeds as OPML.
pub(super) async fn export(settings: &Settings) -> Result<Exit, Exit> {
    let ports = open_feeds(settings).await?;
    let all = everything(settings, &ports).await?.into_iter().map(|(_, some)| some);
    let outlines: Vec<Outline> = distinct(all.collect())
        .into_iter()
        .map(|Subscription { category, url, interval, title }| Outline {
            url,
            title,
            category: Some(category),
            interval,
        })
        .collect();
    print(opml::write("Feeds of Fetchwell", &outlines))
}

/// Sorts subscriptions, and keeps one per category and URL.
fn distinct(mut subscriptions: Vec<Subscription>) -> Vec<Subscription> {
    subscriptions.sort_unstable();
    subscriptions.dedup_by(|a, b| (&a.url, &a.category) == (&b.url, &b.category));
    subscriptions
}
