//! `pages add`, `events`, `show` and `unpark`.

use std::time::Duration;

use fetchwell_doors::pages::cache_key;
use fetchwell_engine::ports::event_log::LogEvent;
use fetchwell_engine::ports::url_queue::Unparked;
use fetchwell_policy::units::quantity;
use fetchwell_policy::url::{UrlFault, WebUrl};
use fetchwell_settings::Settings;
use serde_json::{Value, json};
use tracing::{error, warn};

use crate::console::exit::Exit;
use crate::console::output::{json_line, print, print_either};
use crate::console::signals::stop_on_signal;
use crate::console::terminal::printable;
use crate::console::url_lists;
use crate::wiring::{open_embedded_events, open_list, open_page_cache};

/// Events read at once.
const EVENTS_AT_ONCE: usize = 500;
/// How often the log is checked for new events.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

/// The number of rejected URLs that are named.
const REJECTED_NAMED: usize = 5;

/// Adds URLs to the list: all of them, or none if one is invalid and would become a dead letter.
pub(super) async fn add(
    settings: &Settings,
    given: &[String],
    as_json: bool,
) -> Result<Exit, Exit> {
    let urls = url_lists::read(given)?;
    reject_unusable(&urls)?;
    open_list(settings, true).await?.push(&urls).await?;
    let added = urls.len();
    let list = &settings.values.pages_input_queue;
    let text = format!("added {added} to {list}\n");
    print_either(as_json, json!({"added": added, "list": list}), text)
}

fn reject_unusable(urls: &[String]) -> Result<(), Exit> {
    let fault = |url: &String| Some((url.clone(), WebUrl::parse(url).err()?));
    let faults: Vec<(String, UrlFault)> = urls.iter().filter_map(fault).collect();
    if faults.is_empty() {
        return Ok(());
    }
    let mut why =
        format!("nothing was added: {} of {} cannot be fetched", faults.len(), urls.len());
    for (url, fault) in faults.iter().take(REJECTED_NAMED) {
        let shown = match (fault, url.rsplit_once('@')) {
            (UrlFault::UserInfo, Some((_, rest))) => format!("…@{rest}"),
            _ => url.clone(),
        };
        why.push_str(&format!("\n  {}: {fault}", printable(&shown)));
    }
    if faults.len() > REJECTED_NAMED {
        why.push_str(&format!("\n  and {} more", faults.len() - REJECTED_NAMED));
    }
    Err(Exit::Usage(why))
}

pub(super) async fn events(
    settings: &Settings,
    mut after: i64,
    limit: Option<usize>,
    follow: bool,
) -> Result<Exit, Exit> {
    if let Some(servers) = &settings.values.pages_kafka_bootstrap_servers {
        return Err(Exit::Usage(format!(
            "events go to Kafka's topic {} at {servers}: read them there",
            settings.values.pages_webpage_log_topic
        )));
    }
    let log = open_embedded_events(settings).await?;
    let stop = stop_on_signal();
    let mut left = limit.unwrap_or(usize::MAX);
    loop {
        let most = u32::try_from(left.min(EVENTS_AT_ONCE)).unwrap_or(u32::MAX);
        let reading = log.read(after, most).await?;
        print(reading.events.iter().map(line).collect::<String>())?;
        left -= reading.events.len();
        after = reading.next;
        let is_over = reading.events.is_empty() && !follow;
        if is_over || left == 0 || stop.is_cancelled() {
            return Ok(Exit::Ok);
        }
        if reading.events.is_empty() {
            tokio::time::timeout(FOLLOW_INTERVAL, stop.cancelled()).await.ok();
        }
    }
}

fn line((cursor, event): &(i64, LogEvent)) -> String {
    let value: Value = serde_json::from_str(&event.value).unwrap_or_default();
    json_line(json!({"cursor": cursor, "id": event.id, "event": value}))
}

pub(super) async fn show(settings: &Settings, url: &str) -> Result<Exit, Exit> {
    match open_page_cache(settings).await?.get(&cache_key(url)).await? {
        Some(page) => print(page),
        None => {
            error!(
                "{url} is not in the cache: it has not been fetched yet, or has expired \
                 (pages.cache_ttl)"
            );
            Ok(Exit::SomeFailed)
        }
    }
}

/// Puts all waiting URLs back on the list, including those held by dead processes.
pub(super) async fn unpark(settings: &Settings, as_json: bool) -> Result<Exit, Exit> {
    let unparked = open_list(settings, true).await?.unpark(false).await?;
    let Some(Unparked { urls, at_work, held }) = unparked else {
        return Err(Exit::Usage(format!(
            "the store {} has no list for other programs; unpark needs redis://…",
            settings.values.store
        )));
    };
    if held > 0 {
        warn!(
            "{} still held by {}; a process that is stopped with SIGTERM hands its URLs back",
            quantity(held, "URL", "URLs"),
            quantity(at_work, "running process", "running processes")
        );
    }
    let list = &settings.values.pages_input_queue;
    print_either(
        as_json,
        json!({"unparked": urls, "list": list, "instances_at_work": at_work, "held": held}),
        format!("put {urls} back on {list}\n"),
    )
}
