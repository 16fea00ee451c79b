//! Instances: which holds what, which are dead, and what happens to the leases of the dead.

use std::collections::BTreeSet;
use std::time::Duration;

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_engine::ports::source::Renewal;

use super::trial::{Trial, job, secs, urls};
use super::{LEASE_TTL, QueueStore};

const ALMOST_TTL: Duration = LEASE_TTL.saturating_sub(Duration::from_micros(1));

/// If two take at the same time, they share the available jobs.
pub async fn two_instances_never_get_the_same_job(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    add_many(&trial, 300).await;
    let one = trial.worker().await;
    let other = trial.worker().await;
    let mut leases = Vec::new();
    for _ in 0..30 {
        let (some, more) = tokio::join!(one.lease(7), other.lease(7));
        leases.extend(some.into_iter().chain(more));
    }
    assert_each_once(&leases, 300);
}

/// Two handles on one store, as two processes have: one adds what the other takes.
pub async fn two_processes_share_one_queue(store: &dyn QueueStore) {
    let here = Trial::new(store).await;
    let there = here.beside(store).await;
    tokio::join!(add_many(&here, 150), add_many(&there, 150));
    let one = here.worker().await;
    let other = there.worker().await;
    let mut leases = Vec::new();
    for _ in 0..30 {
        let (some, more) = tokio::join!(one.lease(7), other.lease(7));
        for lease in &some {
            assert_eq!(one.settle(lease, Settlement::Done).await, Settled::Confirmed);
            assert_eq!(other.settle(lease, Settlement::Done).await, Settled::Stale);
        }
        leases.extend(some.into_iter().chain(more));
    }
    assert_each_once(&leases, 300);
    assert_eq!(here.ledger().await, there.ledger().await);
    here.clock.advance(ALMOST_TTL);
    assert!(matches!(one.renew().await, Renewal::Held { .. }));
    here.clock.advance(secs(1));
    assert!(matches!(one.renew().await, Renewal::Held { .. }));
    assert_eq!(there.ledger().await.in_flight, 0, "what the other held is rescued from here");
}

async fn add_many(trial: &Trial, count: usize) {
    let jobs = (0..count).map(|n| job(&format!("http://site{}.test/{n}", n % 10))).collect();
    assert_eq!(trial.enqueue(jobs).await, count);
}

fn assert_each_once(leases: &[Lease], count: usize) {
    let ids: BTreeSet<_> = leases.iter().map(|lease| lease.id).collect();
    assert_eq!((leases.len(), ids.len()), (count, count));
}

/// A lease belongs to the instance that took it, whatever other instances do.
pub async fn what_another_holds_is_not_ours_to_settle(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/"]).await;
    let one = trial.worker().await;
    let other = trial.worker().await;
    let lease = one.lease_one().await;
    other.start(std::slice::from_ref(&lease)).await;
    assert_eq!(other.settle(&lease, Settlement::Done).await, Settled::Stale);
    assert_eq!(trial.stranger().settle(&lease, Settlement::Done).await, Settled::Stale);
    trial.clock.advance(LEASE_TTL);
    let next = trial.worker().await;
    let lease = next.lease_one().await;
    assert_eq!(lease.interruptions, 0, "it was not for the other to start it");
    assert_eq!(next.settle(&lease, Settlement::Done).await, Settled::Confirmed);
}

/// If it renews in time, to the microsecond, an instance stays alive, and is told for how long.
pub async fn an_instance_that_renews_keeps_its_leases(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/"]).await;
    let worker = trial.worker().await;
    let lease = worker.lease_one().await;
    for _ in 0..5 {
        trial.clock.advance(ALMOST_TTL);
        trial.worker().await; // Others come and rescue what they can.
        assert_eq!(worker.renew().await, Renewal::Held { ttl: LEASE_TTL });
    }
    trial.clock.advance(ALMOST_TTL);
    assert_eq!(worker.settle(&lease, Settlement::Done).await, Settled::Confirmed);
}

/// The next instance that renews rescues the leases of the dead one, and only those.
pub async fn a_dead_instance_loses_its_leases_to_another(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/1", "http://a.test/2", "http://a.test/3"]).await;
    let dead = trial.worker().await;
    let living = trial.worker().await;
    assert_eq!(dead.lease(2).await.len(), 2);
    assert_eq!(living.lease(1).await.len(), 1);
    trial.clock.advance(secs(10));
    living.renew().await;
    assert_eq!(trial.ledger().await.in_flight, 3, "nobody is dead yet");
    assert_eq!(living.rescued(), 0);
    trial.clock.advance(secs(10));
    living.renew().await;
    let expected = Ledger { accepted: 3, queued: 2, in_flight: 1, ..Ledger::default() };
    assert_eq!(trial.ledger().await, expected);
    assert_eq!((living.rescued(), dead.rescued()), (2, 0));
    assert_eq!(urls(&living.lease(10).await), ["http://a.test/1", "http://a.test/2"]);
}

/// Leaving is not an interruption, and the first renewal after leaving does not report `Lost`.
pub async fn a_leaving_instance_releases_its_leases(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/1", "http://a.test/2"]).await;
    let leaving = trial.worker().await;
    let other = trial.worker().await;
    let held = leaving.lease(1).await;
    leaving.start(&held).await;
    leaving.leave().await;
    assert_eq!(trial.ledger().await, Ledger { accepted: 2, queued: 2, ..Ledger::default() });
    assert_eq!(leaving.settle(&held[0], Settlement::Done).await, Settled::Stale);
    assert!(leaving.lease(1).await.is_empty(), "it has left the queue");
    let leases = other.lease(10).await;
    assert_eq!((leases.len(), leases[0].interruptions, leases[1].interruptions), (2, 0, 0));
    assert_eq!((other.rescued(), leaving.rescued()), (0, 0));
    leaving.leave().await;
    assert_eq!(leaving.renew().await, Renewal::Held { ttl: LEASE_TTL });
}

/// A process that slept past its lease must not write, even if no other instance noticed.
pub async fn settlements_of_the_dead_are_stale_before_any_rescue(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/1", "http://a.test/2"]).await;
    let worker = trial.worker().await;
    let lease = worker.lease(1).await.remove(0);
    trial.clock.advance(LEASE_TTL);
    assert_eq!(worker.settle(&lease, Settlement::Done).await, Settled::Stale);
    assert!(worker.lease(1).await.is_empty(), "the dead get nothing");
    let expected = Ledger { accepted: 2, queued: 1, in_flight: 1, ..Ledger::default() };
    assert_eq!(trial.ledger().await, expected);
}

/// Its renewal reports that its leases are lost; after that it continues under a new epoch.
pub async fn a_dead_instance_comes_back_under_a_new_epoch(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/1", "http://a.test/2"]).await;
    let sleeper = trial.worker().await;
    let other = trial.worker().await;
    let lost = sleeper.lease(1).await.remove(0);
    trial.clock.advance(secs(15));
    other.renew().await;
    trial.clock.advance(secs(5));
    assert_eq!(sleeper.renew().await, Renewal::Lost);
    assert_eq!(sleeper.settle(&lost, Settlement::Done).await, Settled::Stale);
    // Its own rescue put the lost job behind those that were already waiting.
    let leases = other.lease(2).await;
    assert_eq!(urls(&leases), ["http://a.test/2", "http://a.test/1"]);
    assert_eq!(sleeper.settle(&lost, Settlement::Done).await, Settled::Stale, "another has it");
    trial.add(&["http://a.test/3"]).await;
    let fresh = sleeper.lease_one().await;
    assert_eq!(sleeper.settle(&fresh, Settlement::Done).await, Settled::Confirmed);
    assert_eq!(sleeper.renew().await, Renewal::Held { ttl: LEASE_TTL });
    assert_eq!(other.settle(&leases[1], Settlement::Done).await, Settled::Confirmed);
}

/// A URL that was held but not started when a process died is not to blame.
pub async fn interruptions_count_only_what_was_started(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/held", "http://a.test/started"]).await;
    for round in 1..=3 {
        let unlucky = trial.worker().await;
        let leases = by_url(unlucky.lease(2).await);
        unlucky.start(&leases[1..]).await;
        unlucky.start(&leases[1..]).await;
        trial.clock.advance(LEASE_TTL);
        let worker = trial.worker().await;
        let leases = by_url(worker.lease(2).await);
        assert_eq!((leases[0].interruptions, leases[1].interruptions), (0, round));
        for lease in &leases {
            worker.settle(lease, Settlement::HandBack { at: trial.now() }).await;
        }
    }
}

fn by_url(mut leases: Vec<Lease>) -> Vec<Lease> {
    leases.sort_by(|one, other| one.job.url.cmp(&other.job.url));
    leases
}

/// A start belongs to the lease that it was recorded for, not to the job.
pub async fn what_was_handed_back_is_not_started_any_more(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/"]).await;
    let first = trial.worker().await;
    let lease = first.lease_one().await;
    first.start(std::slice::from_ref(&lease)).await;
    first.settle(&lease, Settlement::HandBack { at: trial.now() }).await;
    let second = trial.worker().await;
    second.lease_one().await;
    first.start(std::slice::from_ref(&lease)).await; // Too late: the first no longer holds it.
    trial.clock.advance(LEASE_TTL);
    assert_eq!(trial.worker().await.lease_one().await.interruptions, 0);
}

/// The queue only counts; the holder of the lease sees how many processes died, and decides.
pub async fn every_interruption_is_counted(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/deadly"]).await;
    for interruptions in 0..4 {
        let unlucky = trial.worker().await;
        let lease = unlucky.lease_one().await;
        assert_eq!(lease.interruptions, interruptions);
        unlucky.start(&[lease]).await;
        trial.clock.advance(LEASE_TTL);
    }
    let worker = trial.worker().await;
    assert_eq!(worker.lease_one().await.interruptions, 4);
}
