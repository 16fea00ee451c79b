//! A source of links that are still to be fetched.
//!
//! A run puts on the queue what was new when it looked; another run may have done it since. Who holds a
//! lease is the only one who does: so whatever is known of a link then is the last word.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::articles::Articles;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::links::LINKS_TTL;
use fetchwell_engine::ports::{
    Demand, Lease, LeaseId, Renewal, Settle, Settlement, Source, StoreFault, Taken,
};
use fetchwell_policy::time::Time;
use tokio::sync::{Mutex, Notify};

use super::uid;

/// Passes on what is still to be fetched; what is not ends here.
pub(super) struct Unattempted {
    inner: Arc<dyn Source>,
    ends: Arc<dyn Settle>,
    articles: Arc<dyn Articles>,
    /// When the run began, by the store's clock.
    run: Time,
    clock: Clock,
    /// Leases that are ours, and that nobody has looked at yet: the store may fail in between.
    unseen: Mutex<Vec<Lease>>,
}

impl Unattempted {
    pub(super) fn new(
        (inner, ends): (Arc<dyn Source>, Arc<dyn Settle>),
        articles: Arc<dyn Articles>,
        run: Time,
        clock: Clock,
    ) -> Unattempted {
        Unattempted { inner, ends, articles, run, clock, unseen: Mutex::default() }
    }

    /// Of our leases, those that are to be fetched. The others end, before any is passed on.
    async fn sift(&self, unseen: &mut Vec<Lease>) -> Result<Vec<Lease>, StoreFault> {
        let uids: Vec<String> = unseen.iter().map(|lease| uid(&lease.job.url)).collect();
        let pending = self.articles.pending(&uids, self.run).await?;
        // Links don't live longer: it was left by a run long ago.
        let oldest = self.clock.now() - LINKS_TTL;
        let is_wanted =
            |(lease, pending): &(&Lease, &bool)| **pending && lease.accepted_at > oldest;
        let over: Vec<(&Lease, &Settlement)> = (unseen.iter().zip(&pending))
            .filter(|one| !is_wanted(one))
            .map(|(lease, _)| (lease, &Settlement::Skipped))
            .collect();
        if !over.is_empty() {
            self.ends.settle(&over).await?;
        }
        let leases = std::mem::take(unseen).into_iter().zip(pending);
        Ok(leases.filter(|(lease, pending)| is_wanted(&(lease, pending))).map(|(l, _)| l).collect())
    }
}

#[async_trait]
impl Source for Unattempted {
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreFault> {
        let mut unseen = self.unseen.lock().await;
        loop {
            if unseen.is_empty() {
                match self.inner.take(demand).await? {
                    Taken::Jobs(leases) => *unseen = leases,
                    nothing => return Ok(nothing),
                }
            }
            let leases = self.sift(&mut unseen).await?;
            if !leases.is_empty() {
                return Ok(Taken::Jobs(leases));
            }
        }
    }

    async fn started(&self, leases: &[LeaseId]) -> Result<(), StoreFault> {
        self.inner.started(leases).await
    }

    async fn renew(&self) -> Result<Renewal, StoreFault> {
        let renewal = self.inner.renew().await?;
        if renewal == Renewal::Lost {
            self.unseen.lock().await.clear();
        }
        Ok(renewal)
    }

    async fn leave(&self) -> Result<(), StoreFault> {
        self.inner.leave().await
    }

    fn news(&self) -> Option<Arc<Notify>> {
        self.inner.news()
    }
}
