//! A queue with a manual clock, whose ledger is checked after every operation.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::job::{Job, Lane, Lease, NewJob};
use fetchwell_engine::ports::queue::{Instance, Ledger};
use fetchwell_engine::ports::source::{Demand, Renewal, Source, Taken};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Site, WebUrl};

use super::{QueueOnTrial, QueueStore, audited};
use crate::conformance::HandClock;

/// A queue under test, as seen by one process.
pub(super) struct Trial {
    pub(super) clock: HandClock,
    queue: Box<dyn QueueOnTrial>,
}

impl Trial {
    /// A run-once queue with a new clock.
    pub(super) async fn new(store: &dyn QueueStore) -> Trial {
        Trial::open(store, &HandClock::new(), true).await
    }

    /// The queue, as seen by another process.
    pub(super) async fn beside(&self, store: &dyn QueueStore) -> Trial {
        Trial::open(store, &self.clock, true).await
    }

    pub(super) async fn open(store: &dyn QueueStore, clock: &HandClock, run_once: bool) -> Trial {
        Trial { clock: clock.clone(), queue: store.open(clock.clock(), run_once).await }
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    pub(super) async fn enqueue(&self, jobs: Vec<NewJob>) -> usize {
        let accepted = self.queue.enqueue(jobs).await.expect("jobs go in");
        self.ledger().await;
        accepted
    }

    /// Adds URLs that are due at once.
    pub(super) async fn add(&self, urls: &[&str]) {
        let added = self.enqueue(urls.iter().map(|url| job(url)).collect()).await;
        assert_eq!(added, urls.len());
    }

    /// An instance that has joined but not renewed yet.
    pub(super) fn stranger(&self) -> Worker<'_> {
        Worker { trial: self, instance: self.queue.instance() }
    }

    /// An instance that is alive.
    pub(super) async fn worker(&self) -> Worker<'_> {
        let worker = self.stranger();
        assert!(matches!(worker.renew().await, Renewal::Held { .. }), "it never held anything");
        worker
    }

    pub(super) async fn ledger(&self) -> Ledger {
        let ledger = audited(&*self.queue).await;
        assert!(ledger.balances(), "{ledger:?}");
        ledger
    }

    pub(super) async fn dead(&self) -> Vec<(String, String)> {
        self.queue.dead().await
    }
}

/// An instance that works on a [`Trial`].
pub(super) struct Worker<'a> {
    trial: &'a Trial,
    instance: Arc<dyn Instance>,
}

impl Worker<'_> {
    pub(super) async fn take(&self, demand: &Demand) -> Taken {
        let taken = self.instance.take(demand).await.expect("the queue gives or says why not");
        self.trial.ledger().await;
        taken
    }

    /// Leases at most `most` jobs of any site.
    pub(super) async fn lease(&self, most: usize) -> Vec<Lease> {
        self.lease_by(&Demand { most, most_per_site: most, ..Demand::default() }).await
    }

    pub(super) async fn lease_by(&self, demand: &Demand) -> Vec<Lease> {
        match self.take(demand).await {
            Taken::Jobs(leases) => leases,
            Taken::Idle { .. } | Taken::Exhausted => Vec::new(),
        }
    }

    /// Leases the only job that is due.
    pub(super) async fn lease_one(&self) -> Lease {
        let mut leases = self.lease(2).await;
        assert_eq!(leases.len(), 1, "{leases:?}");
        leases.remove(0)
    }

    pub(super) async fn start(&self, leases: &[Lease]) {
        let ids: Vec<_> = leases.iter().map(|lease| lease.id).collect();
        self.instance.started(&ids).await.expect("a start is noted");
        self.trial.ledger().await;
    }

    pub(super) async fn renew(&self) -> Renewal {
        let renewal = Source::renew(&*self.instance).await.expect("a lease is renewed or lost");
        self.trial.ledger().await;
        renewal
    }

    pub(super) async fn leave(&self) {
        self.instance.leave().await.expect("an instance leaves");
        self.trial.ledger().await;
    }

    pub(super) fn rescued(&self) -> u64 {
        self.instance.rescued()
    }

    pub(super) async fn oldest_waiting(&self) -> Option<Time> {
        self.instance.oldest_waiting().await.expect("the store can be read")
    }

    pub(super) async fn settle(&self, lease: &Lease, settlement: Settlement) -> Settled {
        self.settle_all(&[(lease, &settlement)]).await[0]
    }

    pub(super) async fn settle_all(&self, batch: &[(&Lease, &Settlement)]) -> Vec<Settled> {
        let settled = self.instance.settle(batch).await.expect("a settlement is answered");
        self.trial.ledger().await;
        assert_eq!(settled.len(), batch.len());
        settled
    }
}

/// A job that is due at once.
pub(super) fn job(url: &str) -> NewJob {
    let site = WebUrl::parse(url).ok().map(|url| url.site());
    NewJob::now(Job {
        url: url.to_owned(),
        site,
        lane: Lane::default(),
        payload: Vec::new(),
        deadline: None,
    })
}

/// A job that may go then.
pub(super) fn job_at(url: &str, due: Time) -> NewJob {
    NewJob { due: Some(due), ..job(url) }
}

pub(super) fn site(name: &str) -> Site {
    Site::parse(name).expect("the name of a site")
}

pub(super) fn urls(leases: &[Lease]) -> Vec<&str> {
    leases.iter().map(|lease| lease.job.url.as_str()).collect()
}

pub(super) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
