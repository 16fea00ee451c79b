//! What outlives the process: everything that was accepted.

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::job::{Job, Lane, NewJob};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_policy::retry::History;

use super::trial::{Trial, job, job_at, secs, site, urls};
use super::{LEASE_TTL, QueueStore};
use crate::conformance::HandClock;

/// Queued, delayed and dead jobs, histories, keys and the ledger are still there.
pub async fn everything_is_there_after_reopening(store: &dyn QueueStore) {
    let clock = HandClock::new();
    let start = clock.now();
    let history =
        History { url_failures: 3, site_failures: 2, paced: 1, first_site_failure: Some(start) };
    let full = Job {
        url: "http://a.test/full".to_owned(),
        site: Some(site("a.test")),
        lane: Lane { group: Some("group".to_owned()), party: None },
        payload: vec![0, 1, 255],
        deadline: Some(start + secs(900)),
    };
    let ledger = {
        let trial = Trial::open(store, &clock, true).await;
        let keyed = NewJob { key: Some([1; 16]), ..NewJob::now(full.clone()) };
        trial.enqueue(vec![keyed, job("http://a.test/dead"), job("http://a.test/done")]).await;
        trial.enqueue(vec![job_at("http://b.test/later", start + secs(60))]).await;
        let worker = trial.worker().await;
        let mut leases = worker.lease(3).await;
        leases.sort_by_key(|lease| lease.id); // Lanes take turns.
        worker.settle(&leases[0], Settlement::retry(start + secs(5), history)).await;
        worker.settle(&leases[1], Settlement::Dead { reason: "for good".to_owned() }).await;
        worker.settle(&leases[2], Settlement::Done).await;
        trial.ledger().await
    };
    assert_eq!(ledger, Ledger { accepted: 4, done: 1, delayed: 2, dead: 1, ..Ledger::default() });

    let trial = Trial::open(store, &clock, true).await;
    assert_eq!(trial.ledger().await, ledger);
    assert_eq!(trial.dead().await, [("http://a.test/dead".to_owned(), "for good".to_owned())]);
    let twin = NewJob { key: Some([1; 16]), ..job("http://a.test/twin") };
    assert_eq!(trial.enqueue(vec![twin]).await, 0);
    let worker = trial.worker().await;
    assert!(worker.lease(10).await.is_empty());
    clock.advance(secs(5));
    let lease = worker.lease_one().await;
    assert_eq!((lease.job, lease.history, lease.accepted_at), (full, history, start));
    clock.set(start + secs(60));
    worker.renew().await;
    assert_eq!(worker.lease(10).await.len(), 2, "the one that was delayed, and the one it lost");
}

/// The leases of a killed process go to the next one, at the latest when they expire.
pub async fn a_process_that_died_is_rescued_after_reopening(store: &dyn QueueStore) {
    let clock = HandClock::new();
    let held = {
        let trial = Trial::open(store, &clock, true).await;
        trial.add(&["http://a.test/held", "http://a.test/started"]).await;
        let killed = trial.worker().await;
        let leases = killed.lease(2).await;
        killed.start(&leases[1..]).await;
        leases
    };

    let trial = Trial::open(store, &clock, true).await;
    let worker = trial.worker().await;
    assert_eq!(worker.settle(&held[0], Settlement::Done).await, Settled::Stale);
    clock.advance(LEASE_TTL - secs(1));
    worker.renew().await;
    clock.advance(secs(1));
    worker.renew().await;
    let leases = worker.lease(10).await;
    let interruptions: Vec<_> = leases.iter().map(|lease| lease.interruptions).collect();
    assert_eq!(urls(&leases), urls(&held));
    assert_eq!(interruptions, [0, 1]);
    for lease in &leases {
        assert_eq!(worker.settle(lease, Settlement::Done).await, Settled::Confirmed);
    }
    assert_eq!(trial.ledger().await, Ledger { accepted: 2, done: 2, ..Ledger::default() });
}
