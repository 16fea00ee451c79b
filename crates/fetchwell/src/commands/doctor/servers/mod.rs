//! Asks each store and server that the settings name, and says what the answers mean. One file per kind of
//! server: `examine` asks, `judge` is pure, so that every case can be shown.

#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod skew;
mod sqlite;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::store_url::StoreUrl;

use super::Doors;
use super::finding::Finding;
use crate::wiring::politeness_store;

/// Asks all of them.
pub(super) async fn examine(doors: &Doors) -> Vec<Finding> {
    let mut asked: Vec<(String, StoreUrl)> = Vec::new();
    let mut findings = Vec::new();
    for (check, place) in places(doors) {
        if asked.iter().any(|(_, known)| *known == place) {
            continue;
        }
        findings.extend(store(&check, &place).await);
        asked.push((check, place));
    }
    match &doors.pages.values.pages_cache {
        #[cfg(feature = "redis")]
        Some(StoreUrl::Redis(url)) => {
            findings.extend(redis::examine("page cache", url, redis::RedisUse::Cache).await);
        }
        Some(cache) => findings.extend(store("page cache", cache).await),
        None => {}
    }
    #[cfg(feature = "kafka")]
    findings.extend(kafka::examine(&doors.pages).await);
    #[cfg(feature = "rabbitmq")]
    findings.extend(rabbitmq::examine(&doors.commoncrawl).await);
    findings
}

/// Where URLs, results and the pace of sites are kept, with what each place is called.
fn places(doors: &Doors) -> Vec<(String, StoreUrl)> {
    let mut places = vec![("store", &doors.settings.values.store)];
    places.push(("politeness", politeness_store(&doors.settings)));
    places.push(("store of \"pages\"", &doors.pages.values.store));
    places.push(("politeness of \"pages\"", politeness_store(&doors.pages)));
    places.into_iter().map(|(check, place)| (check.to_owned(), place.clone())).collect()
}

async fn store(check: &str, place: &StoreUrl) -> Vec<Finding> {
    match place {
        StoreUrl::Sqlite(path) => sqlite::examine(check, path),
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(url) => postgres::examine(check, url).await,
        #[cfg(feature = "redis")]
        StoreUrl::Redis(url) => redis::examine(check, url, redis::RedisUse::Store).await,
    }
}

fn unreachable(check: &str, fault: &StoreError) -> Finding {
    Finding::fail(
        check,
        fault.to_string(),
        "data there cannot be read or written",
        "start the server, or correct its address, user and password in the settings",
    )
}
