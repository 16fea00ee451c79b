//! How many URLs wait, in any state.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::queue::Instance;
use fetchwell_engine::ports::rounds::{Put, Round};
use fetchwell_engine::ports::source::{Demand, Taken};
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_policy::time::Time;

use super::RoundsStore;
use crate::conformance::HandClock;
use crate::conformance::queue::LEASE_TTL;

/// A queue with three URLs of one site, and an instance.
struct Trial {
    clock: HandClock,
    queue: Box<dyn UrlQueue>,
    fetcher: Arc<dyn Instance>,
}

impl Trial {
    async fn new(store: &dyn RoundsStore) -> Trial {
        let clock = HandClock::new();
        let queue = store.open_rounds(clock.clock()).await;
        let urls = ["1", "2", "3"].map(|page| format!("http://a.test/{page}"));
        let put = queue.put(&round("e"), &urls, 0).await.expect("a round is put");
        assert_eq!(put, Put::Done);
        let fetcher = queue.instance();
        fetcher.renew().await.expect("an instance joins");
        Trial { clock, queue, fetcher }
    }

    async fn lease(&self, most: usize) -> Vec<Lease> {
        let demand = Demand { most, most_per_site: most, ..Demand::default() };
        match self.fetcher.take(&demand).await.expect("a take is answered") {
            Taken::Jobs(leases) => leases,
            Taken::Idle { .. } | Taken::Exhausted => Vec::new(),
        }
    }

    async fn settle(&self, lease: &Lease, settlement: Settlement) {
        self.fetcher.settle(&[(lease, &settlement)]).await.expect("a settlement is answered");
    }

    async fn start(&self, lease: &Lease) {
        self.fetcher.started(&[lease.id]).await.expect("a start is noted");
    }

    async fn waiting(&self) -> u64 {
        self.queue.waiting().await.expect("it is counted")
    }
}

fn round(entry: &str) -> Round {
    Round { entry: entry.to_owned(), due: Time::from_secs(1_700_000_000) }
}

/// A leased URL still waits until its fetch has started.
pub async fn what_is_leased_waits_until_it_is_under_way(store: &dyn RoundsStore) {
    let trial = Trial::new(store).await;
    assert_eq!(trial.waiting().await, 3);
    let leases = trial.lease(2).await;
    assert_eq!((leases.len(), trial.waiting().await), (2, 3));
    trial.start(&leases[0]).await;
    assert_eq!(trial.waiting().await, 2);
    trial.start(&leases[0]).await;
    assert_eq!(trial.waiting().await, 2, "it was under way before");
    trial.settle(&leases[0], Settlement::Done).await;
    assert_eq!(trial.waiting().await, 2);
    // A job may be settled that was never started.
    trial.settle(&leases[1], Settlement::Skipped).await;
    assert_eq!(trial.waiting().await, 1);
    let lease = trial.lease(1).await.remove(0);
    trial.start(&lease).await;
    trial.settle(&lease, Settlement::Dead { reason: "so".to_owned() }).await;
    assert_eq!(trial.waiting().await, 0);
}

/// Whether or not it had been started.
pub async fn what_is_put_back_or_delayed_waits(store: &dyn RoundsStore) {
    let trial = Trial::new(store).await;
    let leases = trial.lease(3).await;
    for lease in &leases[..2] {
        trial.start(lease).await;
    }
    assert_eq!(trial.waiting().await, 1);
    let later = trial.clock.now() + Duration::from_secs(3_600);
    trial.settle(&leases[0], Settlement::HandBack { at: trial.clock.now() }).await;
    trial.settle(&leases[1], Settlement::retry(later, leases[1].history)).await;
    trial.settle(&leases[2], Settlement::HandBack { at: later }).await;
    assert_eq!(trial.waiting().await, 3);
}

/// A rescue puts it back.
pub async fn what_a_dead_instance_had_under_way_waits_again(store: &dyn RoundsStore) {
    let trial = Trial::new(store).await;
    for lease in trial.lease(2).await {
        trial.start(&lease).await;
    }
    assert_eq!(trial.waiting().await, 1);
    trial.clock.advance(LEASE_TTL * 2);
    trial.queue.instance().renew().await.expect("another joins, and rescues");
    assert_eq!(trial.waiting().await, 3);
}

/// A scheduler that counted only URLs that are not leased would first fill up all instances.
pub async fn what_waits_in_hands_counts_for_the_depth(store: &dyn RoundsStore) {
    let trial = Trial::new(store).await;
    assert_eq!(trial.lease(3).await.len(), 3);
    let urls = ["http://b.test/".to_owned()];
    let put = trial.queue.put(&round("f"), &urls, 3).await.expect("an answer");
    assert_eq!(put, Put::TooDeep { waiting: 3 });
}
