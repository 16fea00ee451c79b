//! Orders of operators: they are in the store, and every process obeys them.

use std::time::Duration;

use fetchwell_engine::ports::politeness::{ORDERS_TOLD_FOR, SiteAsk};
use fetchwell_policy::orders::Order;
use fetchwell_policy::outcome::Mark;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::{Because, Spend, Verdict};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;

use super::PolitenessStore;
use super::keeping::{full_record, origin};
use super::trial::{Trial, ask, report, secs, site};

const WHO: &str = "ann";

/// Reservations from before a pause are void, nothing is reserved during it, and the pace applies after it.
pub async fn a_paused_site_gives_nothing_until_it_is_resumed(store: &dyn PolitenessStore) {
    let here = Trial::new(store);
    let there = here.beside(store);
    let first = here.go("a.test").await;
    let reserved = here.go("a.test").await;
    assert_eq!(here.spend("a.test", &first).await, Spend::Go);
    assert!(there.order("a.test", Order::Pause).await);
    assert_eq!(here.spend("a.test", &reserved).await, Spend::Void);
    assert_eq!(here.wait("a.test").await, (here.now() + secs(1), Because::Paused));
    here.go("b.test").await;
    here.clock.advance(secs(86_400));
    assert_eq!(here.wait("a.test").await.1, Because::Paused);
    assert!(here.order("a.test", Order::Resume).await);
    let one = there.go("a.test").await;
    let other = here.go("a.test").await;
    assert_eq!(there.spend("a.test", &one).await, Spend::Go);
    assert!(other.slot.at >= here.now() + secs(1), "it is not met by a burst");
}

/// A breaker that is due for a probe gets none while its site is paused, and keeps its state.
pub async fn a_paused_site_is_not_probed(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let probe_at = trial.fail_until_open("down.test").await;
    trial.order("down.test", Order::Pause).await;
    trial.clock.set(probe_at + secs(60));
    assert_eq!(trial.wait("down.test").await.1, Because::Paused);
    trial.order("down.test", Order::Resume).await;
    trial.probe("down.test").await;
}

/// The first one to pause a site is recorded; an order that changes nothing reports that.
pub async fn an_order_that_changes_nothing_says_so(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    assert!(!trial.order("never.test", Order::Resume).await);
    assert!(!trial.order("never.test", Order::ResetBreaker).await);
    let since = trial.now();
    assert!(trial.store.order(&site("a.test"), Order::Pause, WHO).await.expect("it is heard"));
    trial.clock.advance(secs(60));
    assert!(!trial.store.order(&site("a.test"), Order::Pause, "bob").await.expect("it is heard"));
    let paused = trial.look("a.test").await.and_then(|state| state.orders.paused);
    let paused = paused.expect("it is paused");
    assert_eq!((paused.by.as_str(), paused.at), (WHO, since));
}

/// It applies to every process, voids reservations, and ends when it is revoked.
pub async fn an_ordered_pace_overrides_what_is_asked_for(store: &dyn PolitenessStore) {
    let here = Trial::new(store);
    let there = here.beside(store);
    let first = here.go("a.test").await;
    let reserved = here.go("a.test").await;
    assert_eq!(here.spend("a.test", &first).await, Spend::Go);
    assert!(there.order("a.test", Order::SetInterval(secs(5))).await);
    assert_eq!(here.spend("a.test", &reserved).await, Spend::Void);
    let next = here.go("a.test").await;
    assert!(next.rate_is_ordered && next.rate.interval == secs(5), "{next:?}");
    assert!(next.slot.at >= first.slot.at + secs(5));
    here.clock.set(next.slot.at);
    assert_eq!(here.spend("a.test", &next).await, Spend::Go);
    assert!(there.order("a.test", Order::ClearInterval).await);
    let after = there.go("a.test").await;
    assert!(!after.rate_is_ordered && after.rate.interval == secs(1), "{after:?}");
    assert_eq!(after.slot.at, next.slot.at + secs(1));
}

/// However fast the operator wants it.
pub async fn an_ordered_pace_never_undercuts_a_crawl_delay(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    trial.order("a.test", Order::SetInterval(Duration::from_millis(100))).await;
    let patient = SiteAsk { rate: Rate::at_most_every(secs(4)), ..ask("a.test") };
    let turn = trial.turn(&[], &[patient.clone(), patient]).await;
    let slots: Vec<_> = turn
        .verdicts
        .iter()
        .map(|verdict| match verdict {
            Verdict::Go(permit) => (permit.slot.at, permit.rate.interval, permit.rate_is_ordered),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!((slots[0].1, slots[0].2), (secs(4), false));
    assert!(slots[1].0 >= slots[0].0 + secs(4), "{slots:?}");
    let hasty = trial.go("a.test").await;
    assert_eq!((hasty.rate.interval, hasty.rate_is_ordered), (Duration::from_millis(100), true));
}

/// A Retry-After stays in force, even if an operator resets the breaker.
pub async fn a_reset_breaker_is_closed_and_a_rest_stays(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    trial.fail_until_open("down.test").await;
    let late = trial.look("down.test").await.map_or(0, |state| state.generation);
    assert!(trial.order("down.test", Order::ResetBreaker).await);
    trial.go("down.test").await;
    for _ in 0..5 {
        trial.report(report("down.test", Mark::Failed, None, late)).await;
    }
    trial.go("down.test").await;
    trial.report(report("limited.test", Mark::Limited, Some(secs(600)), 0)).await;
    trial.order("limited.test", Order::ResetBreaker).await;
    assert_eq!(trial.wait("limited.test").await, (trial.now() + secs(600), Because::Penalty));
}

/// For both schemes, and for no other site. From then on, permits contain the time of the order.
pub async fn what_is_known_of_robots_txt_is_forgotten(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let origins = ["https://a.test", "http://a.test", "https://b.test", "http://a.test:8080"];
    for name in origins {
        let record = full_record(trial.now());
        trial.store.keep_robots(&origin(name), &record).await.expect("it is kept");
    }
    let before = trial.go("a.test").await;
    assert!(trial.order("a.test", Order::ForgetRobots).await);
    let mut left = Vec::new();
    for name in origins {
        left.extend(trial.store.robots(&origin(name)).await.expect("it can be read").map(|_| name));
    }
    assert_eq!(left, ["https://b.test", "http://a.test:8080"]);
    assert_eq!(trial.spend("a.test", &before).await, Spend::Void);
    assert_eq!(trial.go("a.test").await.robots_forgotten, Some(trial.now()));
}

/// So that jobs that wait for a site need not be checked repeatedly. An order is reported for an hour.
pub async fn orders_are_told_of_by_their_time(store: &dyn PolitenessStore) {
    let here = Trial::new(store);
    let there = here.beside(store);
    let began = here.now();
    there.order("b.test", Order::ResetBreaker).await;
    here.clock.advance(secs(10));
    here.order("a.test", Order::SetInterval(secs(2))).await;
    here.clock.advance(secs(10));
    there.order("never.test", Order::Resume).await;
    there.order("quiet.test", Order::Pause).await; // A pause ends no wait.
    let told = |names: &[(&str, u64)]| -> Vec<(Site, Time)> {
        names.iter().map(|(name, after_s)| (site(name), began + secs(*after_s))).collect()
    };
    assert_eq!(
        here.orders_since(Time::EPOCH).await,
        told(&[("b.test", 0), ("a.test", 10), ("never.test", 20)])
    );
    assert_eq!(
        here.orders_since(began + secs(10)).await,
        told(&[("a.test", 10), ("never.test", 20)])
    );
    here.clock.advance(secs(10));
    here.order("b.test", Order::Resume).await;
    assert_eq!(
        there.orders_since(began + secs(11)).await,
        told(&[("never.test", 20), ("b.test", 30)])
    );
    here.clock.set(began + secs(20) + ORDERS_TOLD_FOR);
    here.order("last.test", Order::ForgetRobots).await;
    let last = (site("last.test"), here.now());
    let left = [told(&[("never.test", 20), ("b.test", 30)]), vec![last]].concat();
    assert_eq!(there.orders_since(Time::EPOCH).await, left);
}
