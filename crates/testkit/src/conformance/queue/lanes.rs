//! The lane of a job stays with it, and does not affect when it may run.

use std::collections::BTreeMap;

use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::{Lane, Lease, NewJob};
use fetchwell_engine::ports::source::Demand;

use super::QueueStore;
use super::trial::{Trial, job, secs, site, urls};

pub(super) fn lane(group: &str, party: &str) -> Lane {
    let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    Lane { group: named(group), party: named(party) }
}

pub(super) fn job_in(lane: &Lane, url: &str) -> NewJob {
    let mut new = job(url);
    new.job.lane = lane.clone();
    new
}

/// Adds this many jobs of a lane, all of one site.
pub(super) async fn add(trial: &Trial, lane: &Lane, site: &str, count: usize) {
    let jobs = (0..count).map(|n| job_in(lane, &format!("http://{site}/{n}")));
    assert_eq!(trial.enqueue(jobs.collect()).await, count);
}

pub(super) fn count_by_lane(leases: &[Lease]) -> BTreeMap<Lane, usize> {
    let mut counts = BTreeMap::new();
    for lease in leases {
        *counts.entry(lease.job.lane.clone()).or_default() += 1;
    }
    counts
}

/// For lanes with waiting jobs and for new ones; the same applies when the site opens again.
pub async fn a_closed_site_is_closed_for_every_lane(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let lanes = [lane("shop", "anna"), lane("shop", "berta"), lane("", "late")];
    add(&trial, &lanes[0], "a.test", 1).await;
    add(&trial, &lanes[1], "a.test", 1).await;
    let one = trial.worker().await;
    let other = trial.worker().await;
    let until = |at| Demand {
        most: 10,
        most_per_site: 10,
        closed: vec![(site("a.test"), at)],
        ..Demand::default()
    };
    assert!(one.lease_by(&until(trial.now() + secs(10))).await.is_empty());
    add(&trial, &lanes[2], "a.test", 1).await;
    add(&trial, &lanes[2], "b.test", 1).await;
    assert_eq!(urls(&other.lease(10).await), ["http://b.test/0"]);
    trial.clock.advance(secs(9));
    assert!(other.lease(10).await.is_empty());
    // The latest time applies to all of them, too.
    let leases = one.lease_by(&until(trial.now())).await;
    assert_eq!(count_by_lane(&leases), lanes.into_iter().map(|lane| (lane, 1)).collect());
}

/// A job that comes back or is rescued stays in its lane.
pub async fn a_job_stays_in_its_lane(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let shop = lane("shop", "anna");
    add(&trial, &shop, "a.test", 1).await;
    let one = trial.worker().await;
    let other = trial.worker().await;
    let lease = one.lease_one().await;
    one.settle(&lease, Settlement::HandBack { at: trial.now() }).await;
    assert_eq!(one.lease_one().await.job.lane, shop);
    trial.clock.advance(super::LEASE_TTL);
    other.renew().await;
    assert_eq!(other.lease_one().await.job.lane, shop);
}

/// An overdue job does not wait for its lane's turn.
pub async fn what_is_overdue_comes_in_whatever_lane(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let shop = lane("shop", "anna");
    let other = lane("shop", "berta");
    let mut urgent = job_in(&shop, "http://a.test/urgent");
    urgent.job.deadline = Some(trial.now() + secs(5));
    trial.enqueue(vec![urgent]).await;
    add(&trial, &other, "b.test", 20).await;
    let closed = vec![(site("a.test"), trial.now() + secs(900))];
    let worker = trial.worker().await;
    let closing = Demand { most: 1, most_per_site: 1, closed, ..Demand::default() };
    assert_eq!(urls(&worker.lease_by(&closing).await), ["http://b.test/0"]);
    trial.clock.advance(secs(5));
    let leases = worker.lease(3).await;
    assert_eq!(leases.len(), 3);
    let overdue = leases.iter().find(|lease| lease.job.url == "http://a.test/urgent");
    assert_eq!(overdue.map(|lease| &lease.job.lane), Some(&shop));
}
