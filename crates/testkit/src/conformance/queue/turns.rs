//! Lanes take turns, so that none holds up another; groups may rest.

use std::collections::BTreeMap;

use fetchwell_engine::ports::job::{Lane, Lease};
use fetchwell_engine::ports::source::{Demand, Taken};

use super::QueueStore;
use super::lanes::{add, count_by_lane, job_in, lane};
use super::trial::{Trial, secs, urls};

/// Over several takes, however small, each lane gets its share, whichever came first.
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
    // Within a lane, first in, first out.
    for one in &lanes {
        let own = leases.iter().filter(|lease| lease.job.lane == *one).cloned();
        let own: Vec<Lease> = own.collect();
        let expected: Vec<String> = (2..12).map(|n| format!("http://a.test/{n}")).collect();
        assert_eq!(urls(&own), expected);
    }
}

/// Older jobs of one lane, over thousands of sites, leave room for one of another lane.
pub async fn a_flood_over_many_sites_does_not_hold_up_another_lane(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let loud = lane("shop", "loud");
    let quiet = lane("shop", "quiet");
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

/// Enough of their jobs are already leased for their pace. Other groups continue, and the next take may include them
/// again.
pub async fn groups_that_rest_give_nothing_this_time(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let tired = lane("tired", "anna");
    let awake = lane("awake", "anna");
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

/// `most_per_group` applies to each lane that has a group, and leaves room for others.
pub async fn no_more_of_a_group_than_asked_for(store: &dyn QueueStore) {
    let trial = Trial::new(store).await;
    let shop = lane("shop", "anna");
    let nobodys = lane("", "anna");
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

/// `most_per_site` applies to each lane of a site.
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

/// As `random::a_random_history_follows_the_model`, with the order in each lane.
pub async fn a_random_history_in_lanes_follows_the_model(store: &dyn QueueStore) {
    super::random::histories(store, true).await;
}
