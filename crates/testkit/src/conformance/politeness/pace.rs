//! Slots: one per interval, for all processes on the store.

use std::collections::BTreeSet;
use std::time::Duration;

use fetchwell_engine::ports::politeness::{SiteAsk, SiteReport};
use fetchwell_policy::outcome::Mark;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::{Because, HORIZON, Spend, Verdict};
use fetchwell_policy::time::Time;

use super::PolitenessStore;
use super::trial::{RATE, Trial, ask, report, secs, site};

/// Even if both are requested in one turn.
pub async fn the_first_request_goes_at_once_and_the_second_after_the_interval(
    store: &dyn PolitenessStore,
) {
    let trial = Trial::new(store);
    let now = trial.now();
    let verdicts = trial.turn(&[], &[ask("a.test"), ask("a.test")]).await.verdicts;
    let [Verdict::Go(first), Verdict::Go(second)] = verdicts[..] else { panic!("{verdicts:?}") };
    assert_eq!(first.slot.at, now);
    assert_eq!(second.slot.at, first.slot.use_by + RATE.interval);
    assert_eq!(trial.go("a.test").await.slot.at, second.slot.at + RATE.interval);
    trial.clock.advance(secs(60));
    assert_eq!(trial.go("a.test").await.slot.at, trial.now(), "after a rest it goes at once");
}

/// Answers are in the order of the questions, each by the state and rate of its site.
pub async fn sites_are_paced_apart(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let now = trial.now();
    trial.go("a.test").await;
    let unpaced = SiteAsk { rate: Rate::every(Duration::ZERO), ..ask("c.test") };
    let asks = [ask("b.test"), ask("a.test"), ask("a.test:8080"), unpaced.clone(), unpaced];
    let verdicts = trial.turn(&[], &asks).await.verdicts;
    let waits: Vec<bool> = verdicts
        .iter()
        .map(|verdict| match verdict {
            Verdict::Go(permit) => permit.slot.at > now,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(waits, [false, true, false, false, false]);
}

/// The pair is exempt; the next request comes a whole interval later.
pub async fn the_page_may_follow_its_robots_txt_at_once(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let now = trial.now();
    trial.go("a.test").await;
    let page = SiteAsk { follows_robots: true, ..ask("a.test") };
    let Verdict::Go(page) = trial.turn(&[], &[page]).await.verdicts[0] else { panic!("at once") };
    assert_eq!(page.slot.at, now);
    assert!(trial.go("a.test").await.slot.at >= now + RATE.interval);
}

/// If the wait would be longer, the caller is told when to ask again, and nothing is reserved.
pub async fn what_lies_beyond_the_horizon_is_not_reserved(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let slow = SiteAsk { rate: Rate::every(secs(20)), ..ask("a.test") };
    trial.turn(&[], std::slice::from_ref(&slow)).await;
    let before = trial.look("a.test").await;
    for _ in 0..3 {
        let verdict = trial.turn(&[], std::slice::from_ref(&slow)).await.verdicts[0];
        let Verdict::NotBefore { at, because: Because::Pace } = verdict else {
            panic!("{verdict:?}")
        };
        assert!(at >= trial.now() + secs(20) && at <= trial.now() + secs(21), "{at}");
    }
    assert_eq!(trial.look("a.test").await, before);
}

/// From its time on; before that, the caller must wait.
pub async fn a_slot_in_time_is_good(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let first = trial.go("a.test").await;
    let second = trial.go("a.test").await;
    assert_eq!(trial.spend("a.test", &first).await, Spend::Go);
    let Spend::Wait(waits) = trial.spend("a.test", &second).await else { panic!("too soon") };
    assert_eq!(waits.slot.at, second.slot.at);
    trial.clock.set(second.slot.at);
    assert_eq!(trial.spend("a.test", &second).await, Spend::Go);
}

/// A late request goes at once, and the following ones keep their distance from it.
pub async fn a_slot_slept_past_delays_the_next(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let late = trial.go("a.test").await;
    trial.clock.advance(Duration::from_millis(300));
    assert_eq!(trial.spend("a.test", &late).await, Spend::Go);
    let next = trial.go("a.test").await;
    assert!(next.slot.at >= trial.now() + RATE.interval, "the next one counts from there");

    let late = trial.go("b.test").await;
    let after = trial.go("b.test").await;
    trial.clock.advance(Duration::from_millis(300));
    assert_eq!(trial.spend("b.test", &late).await, Spend::Go);
    let went_at = trial.now();
    trial.clock.set(after.slot.at);
    let Spend::Wait(moved) = trial.spend("b.test", &after).await else { panic!("too soon") };
    assert_eq!(moved.slot.at, went_at + RATE.interval);
    trial.clock.set(moved.slot.at);
    assert_eq!(trial.spend("b.test", &moved).await, Spend::Go);
}

/// Not because of its pace, a penalty or an open breaker.
pub async fn a_clock_that_jumps_back_does_not_close_a_site(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    trial.go("paced.test").await;
    let limited = report("limited.test", Mark::Limited, Some(secs(60)), 0);
    trial.report(limited).await;
    trial.fail_until_open("down.test").await;
    trial.clock.set(trial.now() - secs(30 * 86_400));
    let now = trial.now();
    assert!(trial.wait("paced.test").await.0 <= now + HORIZON + RATE.interval * 3);
    assert!(trial.wait("limited.test").await.0 <= now + secs(86_400));
    assert!(trial.wait("down.test").await.0 <= now + secs(300));
    trial.clock.advance(secs(86_400));
    trial.go("paced.test").await;
    trial.go("limited.test").await;
    trial.probe("down.test").await;
}

/// Concurrent requests get different slots, all an interval apart.
pub async fn two_processes_share_one_pace(store: &dyn PolitenessStore) {
    let here = Trial::new(store);
    let there = here.beside(store);
    let rate = Rate::every(Duration::from_millis(400));
    let question = [SiteAsk { rate, ..ask("a.test") }];
    let mut slots: BTreeSet<Time> = BTreeSet::new();
    for _ in 0..10 {
        let (one, other) = tokio::join!(here.turn(&[], &question), there.turn(&[], &question));
        for verdict in [one.verdicts[0], other.verdicts[0]] {
            let Verdict::Go(permit) = verdict else { panic!("{verdict:?}") };
            assert!(slots.insert(permit.slot.at), "{} was given twice", permit.slot.at);
        }
    }
    let slots: Vec<Time> = slots.into_iter().collect();
    assert!(slots.windows(2).all(|pair| pair[1] >= pair[0] + rate.interval), "{slots:?}");
    assert_eq!(here.look("a.test").await, there.look("a.test").await);
}

/// Each has its own state; a turn over all of them is one step.
pub async fn ten_thousand_sites_in_one_turn(store: &dyn PolitenessStore) {
    let trial = Trial::new(store);
    let asks: Vec<SiteAsk> = (0..10_000).map(|n| ask(&format!("site{n}.test"))).collect();
    let now = trial.now();
    let first = trial.turn(&[], &asks).await.verdicts;
    assert!(first.iter().all(|v| matches!(v, Verdict::Go(permit) if permit.slot.at == now)));
    let limited: Vec<SiteReport> = (0..10_000)
        .step_by(100)
        .map(|n| report(&format!("site{n}.test"), Mark::Limited, Some(secs(60)), 0))
        .collect();
    let second = trial.turn(&limited, &asks).await.verdicts;
    for (n, verdict) in second.iter().enumerate() {
        let rests = matches!(verdict, Verdict::NotBefore { because: Because::Penalty, .. });
        assert_eq!(rests, n % 100 == 0, "{verdict:?} of {}", site(&format!("site{n}.test")));
    }
}
