//! Checks each store and server in the settings. A store judges itself; a server that is no store has a file here, whose
//! `judge` is pure, so that every case can be tested.

mod file_modes;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
mod skew;

use std::fmt;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::store_url::StoreUrl;
use fetchwell_policy::time::Time;
use fetchwell_stores::finding::{Finding, StoreUse};
use fetchwell_stores::open::{Opened, Store};

use super::Doors;
use crate::wiring::politeness_store;
use skew::skew;

pub(super) async fn examine(doors: &Doors) -> Vec<Finding> {
    let mut asked: Vec<(String, StoreUrl)> = Vec::new();
    let mut findings = Vec::new();
    for (check, place) in places(doors) {
        if asked.iter().any(|(_, known)| *known == place) {
            continue;
        }
        findings.extend(store(&check, &place, StoreUse::Store).await);
        asked.push((check, place));
    }
    if let Some(cache) = &doors.pages.values.pages_cache {
        findings.extend(store("page cache", cache, StoreUse::Cache).await);
    }
    #[cfg(feature = "kafka")]
    findings.extend(kafka::examine(&doors.pages).await);
    #[cfg(feature = "rabbitmq")]
    findings.extend(rabbitmq::examine(&doors.commoncrawl).await);
    findings
}

/// The stores for URLs, results and the pace of sites, each with its name in the report.
fn places(doors: &Doors) -> Vec<(String, StoreUrl)> {
    let mut places = vec![("store", &doors.settings.values.store)];
    places.push(("politeness", politeness_store(&doors.settings)));
    places.push(("store of \"pages\"", &doors.pages.values.store));
    places.push(("politeness of \"pages\"", politeness_store(&doors.pages)));
    places.into_iter().map(|(check, place)| (check.to_owned(), place.clone())).collect()
}

async fn store(check: &str, place: &StoreUrl, used_as: StoreUse) -> Vec<Finding> {
    if place.file().is_some_and(|path| !path.exists()) {
        let what = format!("{place} does not exist yet; it is created on first use");
        return vec![Finding::ok(check, what)];
    }
    let clock = Clock::system();
    let before = clock.now();
    let mut findings = match examine_store(check, place, used_as).await {
        Ok((mut findings, now)) => {
            findings.extend(now.map(|now| skew(check, now, before, clock.now())));
            findings
        }
        Err(error) => vec![unreachable(check, &error)],
    };
    findings
        .extend(place.file().and_then(|path| file_modes::judge(check, &file_modes::read(path))));
    findings
}

async fn examine_store(
    check: &str,
    place: &StoreUrl,
    used_as: StoreUse,
) -> Opened<(Vec<Finding>, Option<Time>)> {
    Store::new(place, None)?.examine(check, used_as).await
}

fn unreachable(check: &str, fault: &impl fmt::Display) -> Finding {
    Finding::fail(
        check,
        fault.to_string(),
        "data there cannot be read or written",
        "start the server, or correct its address, user and password in the settings",
    )
}
