//! Prints feeds, as tables or JSON lines.

use std::collections::BTreeMap;
use std::time::Duration;

use fetchwell_doors::feeds::{Ingested, Subscribed};
use fetchwell_engine::ports::feeds::FeedMemory;
use fetchwell_feed::{Feed, clean};
use fetchwell_policy::rfc3339::rfc3339;
use fetchwell_policy::time::Time;
use fetchwell_policy::units::{format_duration, quantity};
use fetchwell_policy::url::WebUrl;
use serde_json::json;

use crate::console::output::json_line;
use crate::console::table::{plain, table};
use crate::console::terminal::printable;

/// The counters of a round.
pub(super) fn ingested(ingested: &Ingested, as_json: bool) -> String {
    let Ingested { read, unchanged, disallowed, failed, not_reached, not_due, new_links } =
        ingested;
    if as_json {
        return json_line(json!({
            "read": read, "unchanged": unchanged, "disallowed": disallowed, "failed": failed,
            "not_reached": not_reached, "not_due": not_due, "new_links": new_links,
        }));
    }
    let links = quantity(*new_links, "new link", "new links");
    let feeds = quantity(*read, "feed", "feeds");
    let mut said = format!("{links}; {feeds} read, {unchanged} unchanged");
    for (feeds, what) in [
        (disallowed, "disallowed by robots.txt"),
        (failed, "failed"),
        (not_reached, "not reached"),
        (not_due, "not due"),
    ] {
        if *feeds > 0 {
            said.push_str(&format!(", {feeds} {what}"));
        }
    }
    said + "\n"
}

/// All feeds, with the stored state of each.
pub(super) fn list(feeds: &[(Subscribed, Option<FeedMemory>)], now: Time, as_json: bool) -> String {
    if as_json {
        return feeds.iter().map(|(feed, memory)| line(feed, memory.as_ref())).collect();
    }
    if feeds.is_empty() {
        return "there are no feeds; `fetchwell feeds add URL` subscribes to one\n".to_owned();
    }
    let rows: Vec<_> = feeds.iter().map(|(feed, memory)| row(feed, memory.as_ref(), now)).collect();
    table(["category", "feed", "every", "last read", "next", "state"], &rows)
}

fn row(feed: &Subscribed, memory: Option<&FeedMemory>, now: Time) -> [String; 6] {
    let categories: Vec<&str> = feed.categories.iter().map(String::as_str).collect();
    let read_at = memory.and_then(|memory| memory.read_at);
    let next = match memory {
        Some(FeedMemory { paused: Some(_), .. }) => "never".to_owned(),
        Some(memory) if memory.due > now => in_seconds(memory.due),
        Some(_) | None => "now".to_owned(),
    };
    [
        plain(&categories.join(", ")),
        plain(&feed.url),
        every(feed.interval),
        read_at.map_or_else(|| "never".to_owned(), in_seconds),
        next,
        plain(&memory.map_or_else(|| "new".to_owned(), state)),
    ]
}

fn every(interval: Duration) -> String {
    if interval.is_zero() { "ingest".to_owned() } else { format_duration(interval) }
}

fn in_seconds(time: Time) -> String {
    rfc3339(Time::from_secs(time.as_micros() / 1_000_000))
}

fn state(memory: &FeedMemory) -> String {
    match memory {
        FeedMemory { paused: Some(why), .. } => format!("paused: {why}"),
        FeedMemory { problem: Some(problem), failures, .. } if *failures > 0 => {
            format!("failed {}: {problem}", quantity(*failures, "time", "times"))
        }
        FeedMemory { problem: Some(problem), .. } => problem.clone(),
        FeedMemory { moved_to: Some(place), .. } => format!("moved to {place}"),
        _ => "ok".to_owned(),
    }
}

fn line(feed: &Subscribed, memory: Option<&FeedMemory>) -> String {
    let known = |get: fn(&FeedMemory) -> Option<String>| memory.and_then(get);
    json_line(json!({
        "url": feed.url,
        "title": feed.title,
        "categories": feed.categories,
        "subscribed_by": feed.by,
        "interval_seconds": feed.interval.as_secs(),
        "last_read": known(|memory| memory.read_at.map(rfc3339)),
        "next_due": known(|memory| memory.paused.is_none().then(|| rfc3339(memory.due))),
        "failures": memory.map_or(0, |memory| memory.failures),
        "problem": known(|memory| memory.problem.clone()),
        "paused": known(|memory| memory.paused.clone()),
        "moved_to": known(|memory| memory.moved_to.clone()),
    }))
}

/// The entries of a feed, as they would be added.
pub(super) fn trial(
    url: &str,
    feed: &Feed,
    moved_to: Option<&WebUrl>,
    resolved: &BTreeMap<String, String>,
    as_json: bool,
) -> String {
    let page = |link: &WebUrl| {
        let link = clean(link).to_string();
        resolved.get(&link).cloned().unwrap_or(link)
    };
    if as_json {
        let entries: Vec<_> = feed
            .entries
            .iter()
            .map(|entry| {
                let published = entry.published.map(rfc3339);
                json!({"url": page(&entry.link), "title": entry.title, "published": published})
            })
            .collect();
        return json_line(json!({
            "url": url, "format": feed.format.to_string(), "title": feed.title,
            "moved_to": moved_to.map(WebUrl::as_str), "problem": feed.gaps.to_string(), "entries": entries,
        }));
    }
    let mut text = format!(
        "{}: {}, {:?}, {}\n",
        printable(url),
        feed.format,
        feed.title,
        quantity(feed.entries.len(), "entry", "entries")
    );
    let gaps = feed.gaps.to_string();
    if !gaps.is_empty() {
        text.push_str(&format!("but {gaps}\n"));
    }
    if let Some(place) = moved_to {
        text.push_str(&format!("it has moved permanently to {place}\n"));
    }
    for entry in &feed.entries {
        let line = format!("  {}  {}", page(&entry.link), plain(&entry.title));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_list_says_how_each_feed_is() {
        let feed = Subscribed {
            url: "http://a.test/\u{1b}".into(),
            title: String::new(),
            categories: ["news".to_owned()].into(),
            interval: Duration::from_secs(3_600),
            by: ["store"].into(),
        };
        let now = Time::from_secs(1_700_000_000);
        let read = FeedMemory { read_at: Some(now), due: now, ..FeedMemory::default() };
        for (memory, next, state) in [
            (None, "now", "new"),
            (Some(read.clone()), "now", "ok"),
            (
                Some(FeedMemory { due: now + feed.interval, ..read.clone() }),
                "2023-11-14T23:13:20Z",
                "ok",
            ),
            (
                Some(FeedMemory { paused: Some("gone".into()), ..read.clone() }),
                "never",
                "paused: gone",
            ),
            (
                Some(FeedMemory { problem: Some("broken".into()), failures: 2, ..read.clone() }),
                "now",
                "failed 2 times: broken",
            ),
            (
                Some(FeedMemory { problem: Some("broken".into()), failures: 1, ..read }),
                "now",
                "failed 1 time: broken",
            ),
        ] {
            let text = list(&[(feed.clone(), memory)], now, false);
            assert!(text.contains(next) && text.trim_end().ends_with(state), "{text}");
            assert!(!text.contains('\u{1b}'));
        }
    }

    #[test]
    fn a_summary_leaves_out_what_did_not_happen() {
        let some = Ingested { read: 2, new_links: 9, failed: 1, ..Ingested::default() };
        let text = ingested(&some, false);
        assert_eq!(text, "9 new links; 2 feeds read, 0 unchanged, 1 failed\n");
        let one = Ingested { read: 1, new_links: 1, ..Ingested::default() };
        assert_eq!(ingested(&one, false), "1 new link; 1 feed read, 0 unchanged\n");
    }
}
