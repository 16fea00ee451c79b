//! What is removed by a sweep, and what never is.

use std::time::Duration;

use fetchwell_engine::ports::politeness::SiteAsk;
use fetchwell_policy::orders::Order;
use fetchwell_policy::outcome::Mark;
use fetchwell_policy::site::{Because, Permit};

use super::PolitenessStore;
use super::keeping::{full_record, origin};
use super::trial::{Trial, ask, report, secs};

const HOUR: Duration = Duration::from_secs(3_600);

/// An hour after its last slot, a site has no state worth keeping.
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

/// Neither a resting site, nor one that is down, nor one that failed recently.
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

/// Neither a paused site nor one with an ordered pace, until the order is revoked.
pub async fn a_sweep_keeps_sites_with_orders(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    trial.order("paused.test", Order::Pause).await;
    trial.order("rated.test", Order::SetInterval(secs(2))).await;
    trial.order("forgot.test", Order::ForgetRobots).await;
    trial.clock.advance(HOUR * 1_000);
    assert_eq!(trial.sweep().await, 1, "only the one without an order that stands");
    assert_eq!(trial.wait("paused.test").await.1, Because::Paused);
    assert_eq!(trial.go("rated.test").await.rate.interval, secs(2));
    trial.order("paused.test", Order::Resume).await;
    trial.clock.advance(HOUR * 2);
    assert_eq!(trial.sweep().await, 1);
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
