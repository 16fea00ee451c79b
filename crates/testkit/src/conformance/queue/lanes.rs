//! Lanes take turns, so that none holds up another; groups may rest.

use std::collections::BTreeMap;

use fetchwell_engine::adapters::NewJob;
use fetchwell_engine::ports::{Demand, Lane, Lease, Settlement, Taken};

use super::QueueStore;
use super::trial::{Trial, job, secs, site, urls};

fn lane(group: &str, party: &str) -> Lane {
    let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    Lane { group: named(group), party: named(party) }
}

fn job_in(lane: &Lane, url: &str) -> NewJob {
    let mut new = job(url);
    new.job.lane = lane.clone();
    new
}

/// Puts so many jobs of a lane in, all of one site.
async fn add(trial: &Trial, lane: &Lane, site: &str, count: usize) {
    let jobs = (0..count).map(|n| job_in(lane, &format!("http://{site}/{n}")));
    assert_eq!(trial.enqueue(jobs.collect()).await, count);
}

fn count_by_lane(leases: &[Lease]) -> BTreeMap<Lane, usize> {
    let mut counts = BTreeMap::new();
    for lease in leases {
        *counts.entry(lease.job.lane.clone()).or_default() += 1;
    }
    counts
}

/// Over several takes, however small, each lane has its share, whoever came first.
pub async fn lanes_take_turns(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let lanes = [lane("shop", "anna"), lane("shop", "berta"), lane("", "anna"), Lane::default()];
    for one in &lanes {
        add(&trial, one, "a.test", 30).await;
        trial.clock.advance(secs(1));
    }
    let worker = trial.worker().await;
    let mut leases = Vec::new();
    for _ in 0..8 {
        leases.extend(worker.lease(1).await);
    }
    assert_eq!(count_by_lane(&leases), lanes.iter().cloned().map(|lane| (lane, 2)).collect());
    let leases = worker.lease(40).await;
    assert_eq!(count_by_lane(&leases), lanes.iter().cloned().map(|lane| (lane, 10)).collect());
    // Within a lane, what came first goes first.
    for one in &lanes {
        let own = leases.iter().filter(|lease| lease.job.lane == *one).cloned();
        let own: Vec<Lease> = own.collect();
        let expected: Vec<String> = (2..12).map(|n| format!("http://a.test/{n}")).collect();
        assert_eq!(urls(&own), expected);
    }
}

/// One lane's jobs, all older and over thousands of sites, leave room for one of another lane.
pub async fn a_flood_over_many_sites_does_not_hold_up_another_lane(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let (loud, quiet) = (lane("shop", "loud"), lane("shop", "quiet"));
    let flood = (0..3_000).map(|n| job_in(&loud, &format!("http://s{n}.test/"))).collect();
    assert_eq!(trial.enqueue(flood).await, 3_000);
    trial.clock.advance(secs(1));
    let worker = trial.worker().await;
    for round in 0..3 {
        let url = format!("http://s{round}.test/quiet");
        trial.enqueue(vec![job_in(&quiet, &url)]).await;
        let leases = worker.lease(16).await;
        assert!(urls(&leases).contains(&url.as_str()), "round {round}");
        assert!(leases.len() >= 9, "the others go on: {}", leases.len());
    }
}

/// What is there of theirs is as much as their pace lets go; others run, and the next time they may.
pub async fn groups_that_rest_give_nothing_this_time(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let (tired, awake) = (lane("tired", "anna"), lane("awake", "anna"));
    for one in [&tired, &lane("tired", "berta"), &awake, &Lane::default()] {
        add(&trial, one, "a.test", 2).await;
    }
    let worker = trial.worker().await;
    let resting = vec!["tired".to_owned(), "unknown".to_owned()];
    let demand = Demand { most: 10, most_per_site: 10, resting, ..Demand::default() };
    let leases = worker.lease_by(&demand).await;
    assert_eq!(count_by_lane(&leases), BTreeMap::from([(awake, 2), (Lane::default(), 2)]));
    let Taken::Idle { until } = worker.take(&demand).await else { panic!("they rest") };
    assert!(until > trial.now(), "it would be asked without end");
    assert_eq!(worker.lease(10).await.len(), 4);
}

/// `most_per_group` holds for each lane that has a group, and leaves room for others.
pub async fn no_more_of_a_group_than_asked_for(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let (shop, nobodys) = (lane("shop", "anna"), lane("", "anna"));
    for n in 0..4 {
        for one in [&shop, &nobodys] {
            add(&trial, one, &format!("s{n}.test"), 3).await;
        }
    }
    let worker = trial.worker().await;
    let demand = Demand { most: 20, most_per_site: 2, most_per_group: 3, ..Demand::default() };
    let counts = count_by_lane(&worker.lease_by(&demand).await);
    assert_eq!(counts, BTreeMap::from([(shop.clone(), 3), (nobodys.clone(), 8)]));
    let demand = Demand { most: 20, most_per_site: 20, ..Demand::default() };
    let counts = count_by_lane(&worker.lease_by(&demand).await);
    assert_eq!(counts, BTreeMap::from([(shop, 9), (nobodys, 4)]), "0 is no limit");
}

/// `most_per_site` holds for each lane of a site.
pub async fn each_lane_of_a_site_gives_so_many(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let lanes = [lane("shop", "anna"), lane("shop", "berta")];
    for one in &lanes {
        add(&trial, one, "a.test", 5).await;
        add(&trial, one, "b.test", 5).await;
    }
    let worker = trial.worker().await;
    let demand = Demand { most: 100, most_per_site: 2, ..Demand::default() };
    let leases = worker.lease_by(&demand).await;
    assert_eq!(count_by_lane(&leases), lanes.into_iter().map(|lane| (lane, 4)).collect());
}

/// For those that have something there, and for those that come; and so it is when it opens again.
pub async fn a_closed_site_is_closed_for_every_lane(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let lanes = [lane("shop", "anna"), lane("shop", "berta"), lane("", "late")];
    add(&trial, &lanes[0], "a.test", 1).await;
    add(&trial, &lanes[1], "a.test", 1).await;
    let (one, other) = (trial.worker().await, trial.worker().await);
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
    // The last word holds for all of them, too.
    let leases = one.lease_by(&until(trial.now())).await;
    assert_eq!(count_by_lane(&leases), lanes.into_iter().map(|lane| (lane, 1)).collect());
}

/// What comes back, or is rescued, is done in the same name as before.
pub async fn a_job_stays_in_its_lane(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let shop = lane("shop", "anna");
    add(&trial, &shop, "a.test", 1).await;
    let (one, other) = (trial.worker().await, trial.worker().await);
    let lease = one.lease_one().await;
    one.settle(&lease, Settlement::HandBack { at: trial.now() }).await;
    assert_eq!(one.lease_one().await.job.lane, shop);
    trial.clock.advance(super::LEASE_TTL);
    other.renew().await;
    assert_eq!(other.lease_one().await.job.lane, shop);
}

/// A deadline that has passed is not kept waiting by anybody's turn.
pub async fn what_is_overdue_comes_in_whatever_lane(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let (shop, other) = (lane("shop", "anna"), lane("shop", "berta"));
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
