//! Which instance may settle a message, and that it is settled once.

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::inbox::MessageStatus;
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_policy::retry::History;

use super::trial::{ANNA, Trial, finished, message, secs, success};
use super::{InboxStore, LEASE_TTL};
use crate::conformance::HandClock;

/// A batch that is repeated, because its outcome was unknown, writes nothing more.
pub async fn a_message_ends_once(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    trial.send(ANNA, message("http://a.test/")).await;
    let lease = trial.lease_one().await;
    let end = || finished(&lease, Settlement::Done, Some(success("page")));
    assert_eq!(trial.finish(vec![end(), end()]).await, [Settled::Confirmed, Settled::Stale]);
    assert_eq!(trial.finish(vec![end()]).await, [Settled::Stale]);
    assert_eq!(trial.results(ANNA, None).await.len(), 1);
    assert_eq!(trial.ledger().await, Ledger { accepted: 1, done: 1, ..Ledger::default() });
}

/// A process that slept past its lease must not write, neither before nor after a rescue.
pub async fn the_dead_write_nothing(place: &dyn InboxStore) {
    let sleeper = Trial::new(place).await;
    let other = sleeper.beside(place).await;
    let id = sleeper.send(ANNA, message("http://a.test/")).await;
    let lost = sleeper.lease_one().await;
    sleeper.clock.advance(LEASE_TTL);
    assert_eq!(sleeper.end(&lost, success("too late")).await, Settled::Stale);
    other.renew().await;
    assert_eq!(sleeper.end(&lost, success("too late")).await, Settled::Stale);
    let lease = other.lease_one().await;
    assert_eq!(sleeper.end(&lost, success("too late")).await, Settled::Stale);
    assert!(other.results(ANNA, None).await.is_empty());
    assert_eq!(other.message(id).await.status, MessageStatus::Processing);
    assert_eq!(other.end(&lease, success("in time")).await, Settled::Confirmed);
    let results = other.results(ANNA, None).await;
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].result, success("in time"));
}

/// Whatever it was doing, each message that it held is settled once, by others.
pub async fn what_a_killed_process_held_ends_once(place: &dyn InboxStore) {
    let clock = HandClock::new();
    {
        let killed = Trial::open(place, &clock).await;
        for n in 0..10 {
            killed.send(ANNA, message(&format!("http://a.test/{n}"))).await;
        }
        let leases = killed.lease(6).await;
        for lease in &leases[..2] {
            killed.end(lease, success("page")).await;
        }
    }
    let next = Trial::open(place, &clock).await;
    next.wait(LEASE_TTL * 2).await;
    assert_eq!(next.end_all(&success("page")).await, 8);
    assert_eq!(next.results(ANNA, None).await.len(), 10);
    assert_eq!(next.ledger().await, Ledger { accepted: 10, done: 10, ..Ledger::default() });
}

/// If a message is not finished, it has no result, even if there is a record.
pub async fn what_is_handed_back_or_tried_again_has_no_result_yet(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let id = trial.send(ANNA, message("http://a.test/")).await;
    let later = trial.now() + secs(1);
    let failed = History { url_failures: 1, ..History::default() };
    for settlement in [Settlement::HandBack { at: trial.now() }, Settlement::retry(later, failed)] {
        let lease = trial.lease_one().await;
        let end = finished(&lease, settlement, Some(success("not yet")));
        assert_eq!(trial.finish(vec![end]).await, [Settled::Confirmed]);
        assert!(trial.results(ANNA, None).await.is_empty());
        assert_eq!(trial.message(id).await.status, MessageStatus::Queued);
    }
    trial.clock.advance(secs(1));
    assert_eq!(trial.lease_one().await.history, failed);
}

/// Each settlement is answered separately, whatever the result of the others.
pub async fn a_batch_is_answered_in_order(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    for n in 0..5 {
        trial.send(ANNA, message(&format!("http://a.test/{n}"))).await;
    }
    let leases = trial.lease(5).await;
    assert_eq!(trial.end(&leases[2], success("before")).await, Settled::Confirmed);
    let at = trial.now() + secs(1);
    let batch = vec![
        finished(&leases[4], Settlement::Done, Some(success("fourth"))),
        finished(&leases[2], Settlement::Done, Some(success("again"))),
        finished(&leases[1], Settlement::HandBack { at }, None),
        finished(&leases[0], Settlement::Skipped, Some(success("zeroth"))),
        finished(&leases[3], Settlement::Dead { reason: "so".to_owned() }, None),
    ];
    use Settled::{Confirmed, Stale};
    assert_eq!(trial.finish(batch).await, [Confirmed, Stale, Confirmed, Confirmed, Confirmed]);
    let results = trial.results(ANNA, None).await;
    let contents: Vec<_> = results.iter().filter_map(|one| one.result.content.clone()).collect();
    assert_eq!(contents, ["before", "fourth", "zeroth"]);
    let expected =
        Ledger { accepted: 5, done: 2, skipped: 1, delayed: 1, dead: 1, ..Ledger::default() };
    assert_eq!(trial.ledger().await, expected);
}
