//! Checks each store and server in the settings. A store judges itself; a server that is no store has a file here,
//! whose `judge` is pure, so that every case can be tested.

mod file_modes;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
mod skew;

use std::fmt;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::store_url::StoreUrl;
use fetchwell_stores::finding::{Finding, StoreUse};
use fetchwell_stores::open::Store;

use super::Doors;
use crate::wiring::politeness_store;
use skew::skew;

pub(super) async fn examine(doors: &Doors) -> Vec<Finding> {
    let places = places(doors);
    let mut findings = Vec::new();
    for (at, (check, place)) in places.into_iter().enumerate() {
        if !places[..at].iter().any(|(_, known)| *known == place) {
            findings.extend(store(check, place, StoreUse::Store).await);
        }
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
fn places(doors: &Doors) -> [(&'static str, &StoreUrl); 4] {
    [
        ("store", &doors.settings.values.store),
        ("politeness", politeness_store(&doors.settings)),
        ("store of \"pages\"", &doors.pages.values.store),
        ("politeness of \"pages\"", politeness_store(&doors.pages)),
    ]
}

async fn store(check: &str, place: &StoreUrl, used_as: StoreUse) -> Vec<Finding> {
    if place.file().is_some_and(|path| !path.exists()) {
        let what = format!("{place} does not exist yet; it is created on first use");
        return vec![Finding::ok(check, what)];
    }
    let clock = Clock::system();
    let before = clock.now();
    let examined = match Store::new(place, None) {
        Ok(store) => store.examine(check, used_as).await,
        Err(error) => Err(error),
    };
    let mut findings = match examined {
        Ok((mut findings, now)) => {
            findings.extend(now.map(|now| skew(check, now, before, clock.now())));
            findings
        }
        Err(error) => vec![unreachable(check, &error)],
    };
    let modes = place.file().map(file_modes::read);
    findings.extend(modes.and_then(|modes| file_modes::judge(check, &modes)));
    findings
}

fn unreachable(check: &str, fault: &impl fmt::Display) -> Finding {
    Finding::fail(
        check,
        fault.to_string(),
        "data there cannot be read or written",
        "start the server, or correct its address, user and password in the settings",
    )
}
