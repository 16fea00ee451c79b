//! How leases are settled.

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::job::{Lease, NewJob};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_policy::retry::History;
use fetchwell_policy::time::Time;

use super::trial::{Trial, job, job_at, secs, urls};
use super::{LEASE_TTL, QueueStore};

fn dead(reason: &str) -> Settlement {
    Settlement::Dead { reason: reason.to_owned() }
}

fn eventful(since: Time) -> History {
    History { url_failures: 1, site_failures: 2, paced: 3, first_site_failure: Some(since) }
}

/// A finished job is not leased again.
pub async fn done_and_skipped_are_counted_and_gone(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/1", "http://a.test/2"]).await;
    let worker = trial.worker().await;
    let leases = worker.lease(2).await;
    assert_eq!(worker.settle(&leases[0], Settlement::Done).await, Settled::Confirmed);
    assert_eq!(worker.settle(&leases[1], Settlement::Skipped).await, Settled::Confirmed);
    let expected = Ledger { accepted: 2, done: 1, skipped: 1, ..Ledger::default() };
    assert_eq!(trial.ledger().await, expected);
    trial.clock.advance(LEASE_TTL * 2);
    worker.renew().await;
    assert!(worker.lease(10).await.is_empty());
}

/// Of two jobs with the same key only the first is accepted, as long as it is waiting, leased or dead. Once it is done,
/// the key is free.
pub async fn a_key_goes_in_once(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let keyed = |url: &str, key: u8| NewJob { key: Some([key; 16]), ..job(url) };
    let three = vec![
        keyed("http://a.test/first", 1),
        keyed("http://b.test/second", 1),
        keyed("http://a.test/other", 2),
    ];
    assert_eq!(trial.enqueue(three).await, 2, "twice in one batch");
    assert_eq!(trial.enqueue(vec![keyed("http://a.test/waiting", 1)]).await, 0);
    let worker = trial.worker().await;
    let leases = worker.lease(10).await;
    assert_eq!(urls(&leases), ["http://a.test/first", "http://a.test/other"]);
    assert_eq!(trial.enqueue(vec![keyed("http://a.test/leased", 1)]).await, 0);
    worker.settle(&leases[0], dead("so")).await;
    assert_eq!(trial.enqueue(vec![keyed("http://a.test/dead", 1)]).await, 0);
    worker.settle(&leases[1], Settlement::Done).await;
    assert_eq!(trial.enqueue(vec![keyed("http://a.test/done", 2)]).await, 1);
    assert_eq!(trial.ledger().await.accepted, 3);
}

/// The history of a URL stays with it for the next attempt, which waits until it is due.
pub async fn a_retry_keeps_its_history_and_waits(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/"]).await;
    let worker = trial.worker().await;
    let accepted_at = trial.now();
    let lease = worker.lease_one().await;
    trial.clock.advance(secs(1));
    let history = eventful(trial.now());
    let at = trial.now() + secs(5);
    assert_eq!(worker.settle(&lease, Settlement::retry(at, history)).await, Settled::Confirmed);
    assert_eq!(trial.ledger().await.delayed, 1);
    assert!(worker.lease(1).await.is_empty());
    trial.clock.set(at);
    let again = worker.lease_one().await;
    assert_eq!((again.history, again.accepted_at), (history, accepted_at));
    assert_eq!(again.job, lease.job);
    // A job that is due at once is queued, not delayed.
    worker.settle(&again, Settlement::retry(at, history)).await;
    let ledger = trial.ledger().await;
    assert_eq!((ledger.queued, ledger.delayed, ledger.accepted), (1, 0, 1));
}

/// Waiting for something else is neither an attempt nor an interruption.
pub async fn what_is_handed_back_is_untouched(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/"]).await;
    let worker = trial.worker().await;
    let first = worker.lease_one().await;
    let history = eventful(trial.now());
    worker.settle(&first, Settlement::retry(trial.now(), history)).await;
    let unlucky = trial.worker().await;
    let leases = unlucky.lease(1).await;
    unlucky.start(&leases).await;
    trial.clock.advance(LEASE_TTL);
    worker.renew().await;
    let expected = worker.lease_one().await;
    assert_eq!((expected.interruptions, expected.history), (1, history));
    let at = trial.now() + secs(5);
    let handed_back = worker.settle(&expected, Settlement::HandBack { at }).await;
    assert_eq!(handed_back, Settled::Confirmed);
    assert_eq!(trial.ledger().await.delayed, 1);
    assert!(worker.lease(1).await.is_empty());
    trial.clock.set(at);
    let again = worker.lease_one().await;
    assert_eq!((again.interruptions, again.history), (1, history));
    assert_eq!((again.accepted_at, again.job), (first.accepted_at, first.job));
}

/// Dead letters can be read, in order, and stay.
pub async fn the_dead_keep_their_reason_and_never_come_back(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/1", "http://b.test/2", "http://a.test/3"]).await;
    let worker = trial.worker().await;
    let mut leases = worker.lease(3).await;
    leases.sort_by_key(|lease| std::cmp::Reverse(lease.id));
    for lease in &leases {
        let reason = format!("no luck with {}", lease.job.url);
        assert_eq!(worker.settle(lease, dead(&reason)).await, Settled::Confirmed);
    }
    trial.clock.advance(LEASE_TTL * 2);
    worker.renew().await;
    assert!(worker.lease(10).await.is_empty());
    assert_eq!(trial.ledger().await, Ledger { accepted: 3, dead: 3, ..Ledger::default() });
    let expected = ["http://a.test/1", "http://b.test/2", "http://a.test/3"]
        .map(|url| (url.to_owned(), format!("no luck with {url}")));
    assert_eq!(trial.dead().await, expected);
}

/// Whatever happens to a lease, it is settled once, even within one batch.
pub async fn a_second_settlement_is_stale(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let worker = trial.worker().await;
    let at = trial.now();
    let history = History::default();
    for settlement in [
        Settlement::Done,
        Settlement::Skipped,
        Settlement::retry(at, history),
        Settlement::HandBack { at },
        dead("so"),
    ] {
        trial.add(&["http://a.test/1", "http://a.test/2"]).await;
        let leases = worker.lease(2).await;
        assert_eq!(worker.settle(&leases[0], settlement.clone()).await, Settled::Confirmed);
        let after = trial.ledger().await;
        assert_eq!(worker.settle(&leases[0], Settlement::Done).await, Settled::Stale);
        assert_eq!(worker.settle(&leases[0], settlement.clone()).await, Settled::Stale);
        assert_eq!(trial.ledger().await, after, "{settlement:?}");
        let twice = [(&leases[1], &settlement), (&leases[1], &settlement)];
        assert_eq!(worker.settle_all(&twice).await, [Settled::Confirmed, Settled::Stale]);
        finish_all(&trial).await;
    }
}

async fn finish_all(trial: &Trial) {
    let worker = trial.worker().await;
    for lease in worker.lease(100).await {
        worker.settle(&lease, Settlement::Done).await;
    }
}

/// One stale settlement in a batch does not affect the others.
pub async fn a_batch_is_answered_in_order(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/1", "http://b.test/2", "http://c.test/3"]).await;
    trial.enqueue(vec![job_at("http://d.test/", trial.now() + secs(9))]).await;
    let worker = trial.worker().await;
    let leases = worker.lease(3).await;
    worker.settle(&leases[1], Settlement::Done).await;
    let unknown = Lease { id: i64::MAX, ..leases[0].clone() };
    let batch = [&leases[0], &leases[1], &unknown, &leases[2]];
    let batch: Vec<_> = batch.into_iter().map(|lease| (lease, &Settlement::Skipped)).collect();
    let confirmed = Settled::Confirmed;
    let stale = Settled::Stale;
    assert_eq!(worker.settle_all(&batch).await, [confirmed, stale, stale, confirmed]);
    assert_eq!(worker.settle_all(&[]).await, []);
    let expected = Ledger { accepted: 4, done: 1, skipped: 2, delayed: 1, ..Ledger::default() };
    assert_eq!(trial.ledger().await, expected);
}
