//! What outlives the process: all obligations to a site.

use std::time::Duration;

use fetchwell_policy::health::FailedProbes;
use fetchwell_policy::orders::Order;
use fetchwell_policy::outcome::Mark;
use fetchwell_policy::site::{Because, Spend};

use super::PolitenessStore;
use super::keeping::{full_record, origin};
use super::trial::{Trial, report, secs};
use crate::conformance::HandClock;

/// A Retry-After, an open breaker and a probe in flight.
pub async fn a_penalty_outlives_the_process(store: &dyn PolitenessStore) {
    let clock = HandClock::new();
    let (until, probe_at, reserved) = {
        let trial = Trial::open(store, &clock);
        let reserved = trial.go("limited.test").await;
        let limited = report("limited.test", Mark::Limited, Some(secs(600)), 0);
        trial.report(limited).await;
        let probe_at = trial.fail_until_open("down.test").await;
        (trial.now() + secs(600), probe_at, reserved)
    };
    let failing_since = clock.now();
    clock.advance(secs(5));

    let probe = {
        let trial = Trial::open(store, &clock);
        assert_eq!(trial.wait("limited.test").await, (until, Because::Penalty));
        assert_eq!(trial.spend("limited.test", &reserved).await, Spend::Void);
        let failed_probes = FailedProbes::default();
        let open = Because::BreakerOpen { failing_since, failed_probes };
        assert_eq!(trial.wait("down.test").await, (probe_at, open));
        clock.set(probe_at);
        trial.probe("down.test").await
    };

    let trial = Trial::open(store, &clock);
    trial.wait("down.test").await;
    let answered = report("down.test", Mark::ProbeAnswered, None, probe.generation);
    trial.report(answered).await;
    trial.go("down.test").await;
    clock.set(until - Duration::from_micros(1));
    assert!(trial.go("limited.test").await.slot.at >= until);
}

/// A pause and a pace, with the names of those who ordered them.
pub async fn an_order_outlives_the_process(store: &dyn PolitenessStore) {
    let clock = HandClock::new();
    let before = {
        let trial = Trial::open(store, &clock);
        trial.order("a.test", Order::Pause).await;
        trial.order("a.test", Order::SetInterval(secs(7))).await;
        trial.look("a.test").await
    };
    let trial = Trial::open(store, &clock);
    assert_eq!(trial.look("a.test").await, before);
    assert_eq!(trial.wait("a.test").await.1, Because::Paused);
    trial.order("a.test", Order::Resume).await;
    assert_eq!(trial.go("a.test").await.rate.interval, secs(7));
}

/// Slots, permits, robots.txt records, and the time at which a site last served a page.
pub async fn all_else_outlives_the_process(store: &dyn PolitenessStore) {
    let clock = HandClock::new();
    let origin = origin("https://a.test");
    let record = full_record(clock.now());
    let (first, second, state) = {
        let trial = Trial::open(store, &clock);
        let first = trial.go("a.test").await;
        let second = trial.go("a.test").await;
        trial.report(report("a.test", Mark::Served, None, 0)).await;
        trial.store.keep_robots(&origin, &record).await.expect("it is kept");
        (first, second, trial.look("a.test").await)
    };

    let trial = Trial::open(store, &clock);
    assert_eq!(trial.look("a.test").await, state);
    let third = trial.go("a.test").await;
    assert!(third.slot.at > second.slot.at && second.slot.at > first.slot.at);
    assert_eq!(third.last_served, Some(clock.now()));
    assert_eq!(trial.spend("a.test", &first).await, Spend::Go);
    assert_eq!(trial.spend("a.test", &second).await, Spend::Wait(second));
    assert_eq!(trial.store.robots(&origin).await.expect("it can be read"), Some(record));
}
