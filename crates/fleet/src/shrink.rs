//! Makes a failing scenario smaller, as long as the same check fails.

use std::time::Duration;

use crate::run::run;
use crate::scenario::Scenario;
use crate::trace::Tracing;

/// The smallest scenario found by leaving out features, machines, sites and URLs, and by ending faults earlier. Returns
/// the scenario itself if it does not fail.
pub fn shrink(scenario: &Scenario) -> anyhow::Result<Scenario> {
    let check = |scenario: &Scenario| -> anyhow::Result<Option<&'static str>> {
        Ok(run(scenario, Tracing::Off)?.failure.map(|failure| failure.check))
    };
    let Some(expected) = check(scenario)? else { return Ok(scenario.clone()) };
    let mut smallest = scenario.clone();
    loop {
        let mut is_smaller = false;
        for candidate in smaller(&smallest) {
            if check(&candidate)? == Some(expected) {
                smallest = candidate;
                is_smaller = true;
                break;
            }
        }
        if !is_smaller {
            return Ok(smallest);
        }
    }
}

/// Scenarios that are one step smaller, largest step first.
fn smaller(scenario: &Scenario) -> Vec<Scenario> {
    let mut candidates = Vec::new();
    for urls in [scenario.urls / 4, scenario.urls / 2, scenario.urls.saturating_sub(1)] {
        if urls > 0 && urls < scenario.urls {
            candidates.push(Scenario { urls, ..scenario.clone() });
        }
    }
    let troubled_for = scenario.troubled_for / 2;
    if troubled_for >= Duration::from_secs(1) {
        let troubled_for = Duration::from_secs(troubled_for.as_secs());
        candidates.push(Scenario { troubled_for, ..scenario.clone() });
    }
    for feature in &scenario.features {
        let mut features = scenario.features.clone();
        features.remove(feature);
        candidates.push(Scenario { features, ..scenario.clone() });
    }
    let has_others = scenario.machines() > 1;
    if has_others && scenario.fetchers > 0 {
        candidates.push(Scenario { fetchers: scenario.fetchers - 1, ..scenario.clone() });
    }
    if has_others && scenario.pagers > 0 {
        candidates.push(Scenario { pagers: scenario.pagers - 1, ..scenario.clone() });
    }
    if has_others && scenario.retrievers > 0 {
        candidates.push(Scenario { retrievers: scenario.retrievers - 1, ..scenario.clone() });
    }
    if scenario.sites > 1 {
        candidates.push(Scenario { sites: scenario.sites - 1, ..scenario.clone() });
    }
    candidates
}
