//! The flow that fetches messages: for `serve`, and for the demo.

use std::collections::HashMap;
use std::sync::Arc;

use fetchwell_engine::gate::{Gate, GroupPace};
use fetchwell_engine::pipeline::{self, Door, Plant, Watcher};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::FetchResult;
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_engine::web::Timeouts;
use fetchwell_policy::pace::Rate;
use fetchwell_settings::Settings;
use fetchwell_telemetry::metrics::DoorName;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::counted::{Counted, OnResult};
use super::{obituary, plan, retry_rule};
use crate::doors::read_limits::ReadLimits;
use crate::wiring::{Parts, fitting_in_flight, gate_rules};

/// What it takes to fetch the messages of a store.
pub(crate) fn messages(
    settings: &Settings,
    parts: &Parts,
    store: &RetrieverStore,
    on_result: OnResult,
    watcher: Watcher,
) -> (Door<FetchResult>, Plant) {
    let values = &settings.values;
    let rule = retry_rule(values.retriever_max_retries);
    let timeouts = timeouts(settings);
    let max_redirects = values.http_max_redirects;
    let limits = ReadLimits::of(values);
    let door = Door {
        source: store.messages.source.clone(),
        planner: Arc::new(move |lease| {
            let retailer = lease.job.lane.group.as_deref().unwrap_or_default();
            plan(lease, rule, timeouts(retailer), max_redirects, limits)
        }),
        finish: Arc::new(Counted { inner: store.messages.finish.clone(), on_result }),
        obituary: Arc::new(|lease, reason| vec![obituary(lease, reason)]),
    };
    let mut rules = gate_rules(settings, None);
    rules.pace.groups = retailers_pace(settings);
    rules.robots.pages_fail_with_it = true;
    rules.site_attempts = Some(values.retriever_max_retries);
    let gate = Gate::new(parts.politeness.clone(), rules, parts.clock.clone());
    let mut plant = parts.plant(settings, gate, DoorName::Serve, watcher);
    let workers = values.retriever_worker_count.unwrap_or(values.max_in_flight);
    plant.limits.max_in_flight = fitting_in_flight(workers);
    (door, plant)
}

/// Runs a door until it is told to stop, and then leaves what it still holds to others.
pub(crate) async fn flow<R: Send + Sync + 'static>(
    door: Door<R>,
    plant: Plant,
    stop: CancellationToken,
) -> Result<(), StoreError> {
    let source = door.source.clone();
    let ended = pipeline::run(door, plant, stop).await;
    if let Err(fault) = source.leave().await {
        warn!(
            "could not hand back leases; other instances take over when the leases expire: {fault}"
        );
    }
    ended.map(|_| ())
}

/// The pace of each retailer, besides that of each site. A rate that somebody wrote down for a retailer is the
/// pace of its sites, too; of a burst only one that was written down beside it.
pub(crate) fn retailers_pace(settings: &Settings) -> GroupPace {
    let values = &settings.values;
    let per_second = values.retriever_default_rate_limit;
    let burst = values.retriever_default_burst_size;
    let named = settings.retailers().iter().map(|(name, own)| {
        let rate = Rate::per_second(
            own.requests_per_second.unwrap_or(per_second),
            own.burst_size.unwrap_or(burst),
        );
        (name.clone(), rate)
    });
    let at_sites = settings.retailers().iter().filter_map(|(name, own)| {
        let rate = Rate::per_second(own.requests_per_second?, own.burst_size.unwrap_or(1));
        Some((name.clone(), rate))
    });
    GroupPace {
        default: Some(Rate::per_second(per_second, burst)),
        named: named.collect(),
        at_sites: at_sites.collect(),
    }
}

/// The time limits of each retailer.
fn timeouts(settings: &Settings) -> impl Fn(&str) -> Timeouts + Send + Sync + use<> {
    let values = &settings.values;
    let connect = values.retriever_connection_timeout;
    let request = values.retriever_request_timeout;
    let named: HashMap<String, Timeouts> = settings
        .retailers()
        .iter()
        .map(|(name, own)| {
            let connect = own.connection_timeout.or(connect);
            let request = own.request_timeout.or(request);
            (name.clone(), Timeouts { connect, request })
        })
        .collect();
    move |retailer| named.get(retailer).copied().unwrap_or(Timeouts { connect, request })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use fetchwell_settings::Sources;

    use super::*;

    #[test]
    fn a_rate_that_was_written_down_is_the_pace_of_sites_and_a_default_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let toml = "[retailers.both]\nrequests_per_second = 4\nburst_size = 3\n\
                    [retailers.rate]\nrequests_per_second = 5\n[retailers.burst]\nburst_size = 7\n";
        std::fs::write(folder.path().join("fetchwell.toml"), toml).unwrap();
        let settings = Settings::load(&Sources {
            flags: &[],
            config_file: None,
            environment: &BTreeMap::new(),
            working_directory: folder.path(),
            own_names_of: &[],
        });
        let pace = retailers_pace(&settings.unwrap());
        let ms = |rate: &Rate| (rate.interval.as_millis(), rate.burst);
        assert_eq!(pace.at_sites.get("both").map(ms), Some((250, 3)));
        assert_eq!(pace.at_sites.get("rate").map(ms), Some((200, 1)));
        assert_eq!(pace.at_sites.get("burst"), None);
        assert_eq!(pace.named.get("both").map(ms), Some((250, 3)));
        assert_eq!(pace.named.get("rate").map(ms), Some((200, 20)));
        assert_eq!(pace.named.get("burst").map(ms), Some((100, 7)));
        assert_eq!(pace.default.map(|rate| rate.interval), Some(Duration::from_millis(100)));
    }
}
