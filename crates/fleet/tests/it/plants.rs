//! Each check finds the bug that is planted for it.

use std::collections::BTreeSet;
use std::time::Duration;

use fetchwell_fleet::{Feature, Plant, Scenario, Tracing, run};

/// The check that finds a bug, within a few seeds.
fn found_by(plant: Plant, features: &[Feature]) -> &'static str {
    for seed in 0..20 {
        let scenario = Scenario {
            fetchers: 2,
            pagers: 1,
            retrievers: 0,
            sites: 3,
            urls: 40,
            troubled_for: Duration::from_secs(300),
            features: BTreeSet::from_iter(features.iter().copied()),
            plant: Some(plant),
            ..Scenario::of_seed(seed)
        };
        if let Some(failure) = run(&scenario, Tracing::Off).unwrap().failure {
            return failure.check;
        }
    }
    panic!("{plant:?} was not found")
}

#[test]
fn every_planted_bug_is_found() {
    for (plant, features, check) in [
        (Plant::NoPermission, &[Feature::RetryAfter, Feature::SlowNetwork][..], "requests"),
        (Plant::StaleRows, &[Feature::LostAnswers, Feature::Partitions], "jobs"),
        (Plant::LostRows, &[Feature::SeparateSink], "jobs"),
        (Plant::LostPages, &[], "pages"),
        (Plant::TooManyLeases, &[], "memory"),
        (Plant::EndlessRequest, &[], "waits"),
        (Plant::BrokenStore, &[], "processes"),
        (Plant::LossNotTold, &[Feature::Partitions, Feature::SlowSites], "leases"),
        (Plant::EmptyTakes, &[], "calls"),
        (Plant::ClosedSite, &[], "waits"),
    ] {
        assert_eq!(found_by(plant, features), check, "{plant:?}");
    }
}
