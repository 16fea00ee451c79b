//! Checks each store and server in the settings. There is one file per kind of server; its `judge` is pure, so that
//! every case can be tested.

#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(feature = "redis")]
mod redis;
mod skew;
mod sqlite;

use std::fmt;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::store_url::StoreUrl;
use fetchwell_policy::time::Time;
use fetchwell_stores::open::{Facts, Opened, Store};

use super::Doors;
use super::finding::Finding;
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

/// What a store is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreUse {
    /// URLs, results or the pace of sites: none of it may be lost.
    Store,
    /// Pages, which can be fetched again.
    Cache,
}

async fn store(check: &str, place: &StoreUrl, used_as: StoreUse) -> Vec<Finding> {
    if place.file().is_some_and(|path| !path.exists()) {
        let what = format!("{place} does not exist yet; it is created on first use");
        return vec![Finding::ok(check, what)];
    }
    let clock = Clock::system();
    let before = clock.now();
    let mut findings = match facts_of(place).await {
        Ok((facts, now)) => {
            let mut findings = judge(check, place, &facts, used_as);
            findings.extend(now.map(|now| skew(check, now, before, clock.now())));
            findings
        }
        Err(error) => vec![unreachable(check, &error)],
    };
    findings.extend(place.file().and_then(|path| sqlite::judge_modes(check, &sqlite::modes(path))));
    findings
}

async fn facts_of(place: &StoreUrl) -> Opened<(Facts, Option<Time>)> {
    Store::new(place, None)?.examine().await
}

#[cfg_attr(
    not(feature = "redis"),
    expect(unused_variables, reason = "only Redis is judged differently as a cache")
)]
fn judge(check: &str, place: &StoreUrl, facts: &Facts, used_as: StoreUse) -> Vec<Finding> {
    match facts {
        Facts::Sqlite(facts) => {
            let path = place.file().map(|path| path.display().to_string()).unwrap_or_default();
            vec![sqlite::judge(check, &path, facts)]
        }
        #[cfg(feature = "postgres")]
        Facts::Postgres(facts) => postgres::judge(check, facts),
        #[cfg(feature = "redis")]
        Facts::Redis(facts) => redis::judge(check, facts, used_as),
    }
}

fn unreachable(check: &str, fault: &impl fmt::Display) -> Finding {
    Finding::fail(
        check,
        fault.to_string(),
        "data there cannot be read or written",
        "start the server, or correct its address, user and password in the settings",
    )
}
