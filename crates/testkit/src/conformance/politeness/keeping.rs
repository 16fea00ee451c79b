//! What is remembered, and what is forgotten.

use std::time::Duration;

use fetchwell_engine::ports::{RobotsRecord, SiteAsk, Unreachable};
use fetchwell_policy::site::{Mark, Permit};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Origin;

use super::PolitenessStore;
use super::trial::{Trial, ask, report, secs};

const HOUR: Duration = Duration::from_secs(3_600);

pub(super) fn origin(url: &str) -> Origin {
    Origin::parse(url).expect("an origin")
}

/// A record with all that a record can hold.
pub(super) fn full_record(now: Time) -> RobotsRecord {
    RobotsRecord {
        body: Some((0..=255).collect()),
        status: Some(200),
        fetched_at: now,
        unreachable: Some(Unreachable {
            since: now + secs(1),
            tries: 3,
            retry_at: now + secs(60),
            reason: "503 \"quoted\" é".to_owned(),
        }),
    }
}

/// By scheme, host and port, and byte by byte.
pub async fn robots_records_are_kept_and_replaced(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let other_process = trial.beside(store);
    let origins =
        ["http://a.test", "https://a.test", "https://a.test:8443", "https://b.test"].map(origin);
    for (n, origin) in origins.iter().enumerate().take(3) {
        let body = Some(vec![u8::try_from(n).unwrap_or(0)]);
        let record = RobotsRecord { body, unreachable: None, ..full_record(trial.now()) };
        trial.store.keep_robots(origin, &record).await.expect("it is kept");
    }
    let full = full_record(trial.now());
    trial.store.keep_robots(&origins[1], &full).await.expect("it is replaced");
    let mut bodies = Vec::new();
    for origin in &origins {
        let record = other_process.store.robots(origin).await.expect("it can be read");
        bodies.push(record.and_then(|record| record.body));
    }
    assert_eq!(bodies, [Some(vec![0]), full.body.clone(), Some(vec![2]), None]);
    let read = trial.store.robots(&origins[1]).await.expect("it can be read");
    assert_eq!(read, Some(full));
    let nothing =
        RobotsRecord { body: None, status: None, fetched_at: Time::EPOCH, unreachable: None };
    trial.store.keep_robots(&origins[1], &nothing).await.expect("it is replaced");
    let read = trial.store.robots(&origins[1]).await.expect("it can be read");
    assert_eq!(read, Some(nothing));
}

/// Nor does it make a site known.
pub async fn a_look_changes_nothing(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    assert_eq!(trial.look("a.test").await, None);
    assert_eq!(trial.look("a.test").await, None);
    trial.go("a.test").await;
    let state = trial.look("a.test").await.expect("it was asked for");
    trial.clock.advance(secs(5));
    assert_eq!(trial.look("a.test").await, Some(state));
    assert_eq!(trial.look("b.test").await, None);
}

/// An hour after its last slot a site is as good as new.
pub async fn a_sweep_forgets_sites_at_rest(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let permit: Permit = trial.go("a.test").await;
    trial.go("b.test").await;
    let robots = full_record(trial.now());
    let origin = origin("http://a.test");
    trial.store.keep_robots(&origin, &robots).await.expect("it is kept");
    trial.clock.set(permit.slot.use_by + HOUR);
    trial.go("b.test").await;
    assert_eq!(trial.sweep().await, 0, "the last slot ends an interval later");
    trial.clock.advance(secs(1));
    assert_eq!(trial.sweep().await, 1);
    assert_eq!(trial.look("a.test").await, None);
    assert!(trial.look("b.test").await.is_some());
    assert_eq!(trial.sweep().await, 0);
    assert_eq!(trial.go("a.test").await.slot.at, trial.now());
    let kept = trial.store.robots(&origin).await.expect("it can be read");
    assert_eq!(kept, Some(robots), "a robots.txt has a time of its own");
}

/// Neither one that asked for a rest, nor one that is down, nor one that lately failed.
pub async fn a_sweep_keeps_sites_in_penalty(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    trial.report(report("limited.test", Mark::Limited, Some(HOUR * 20), 0)).await;
    trial.report(report("resting.test", Mark::Neutral, Some(HOUR * 20), 0)).await;
    trial.report(report("failed.test", Mark::Failed, None, 0)).await;
    trial.fail_until_open("down.test").await;
    trial.report(report("served.test", Mark::Served, None, 0)).await;
    trial.clock.advance(HOUR * 19);
    let names = ["limited.test", "resting.test", "failed.test", "down.test"];
    let mut before = Vec::new();
    for name in names {
        before.push(trial.look(name).await);
    }
    assert_eq!(trial.sweep().await, 1, "only what was served may go");
    for (name, before) in names.into_iter().zip(before) {
        assert!(before.is_some());
        assert_eq!(trial.look(name).await, before, "{name}");
    }
    trial.clock.advance(HOUR);
    assert_eq!(trial.sweep().await, 1, "the one that rested has done so");
    assert_eq!(trial.look("resting.test").await, None);
}

/// However many there are.
pub async fn a_sweep_goes_through_all_sites(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let asks: Vec<SiteAsk> = (0..3_500).map(|n| ask(&format!("site{n}.test"))).collect();
    trial.turn(&[], &asks).await;
    let limited: Vec<_> = (0..3_500)
        .step_by(7)
        .map(|n| report(&format!("site{n}.test"), Mark::Limited, Some(HOUR * 20), 0))
        .collect();
    trial.turn(&limited, &[]).await;
    trial.clock.advance(HOUR * 2);
    assert_eq!(trial.sweep().await, 3_000);
    assert!(trial.look("site3493.test").await.is_some());
    assert_eq!(trial.look("site3494.test").await, None);
}
