//! Batches know nothing of where the archive is: this says it, so that they wait their turn there.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_engine::ports::source::{Demand, Renewal, Source, Taken};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use tokio::sync::Notify;

/// A source whose leases all have their first request at one site.
pub(super) struct AtArchive {
    pub(super) inner: Arc<dyn Source>,
    pub(super) site: Site,
}

#[async_trait]
impl Source for AtArchive {
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreError> {
        let mut taken = self.inner.take(demand).await?;
        if let Taken::Jobs(leases) = &mut taken {
            for lease in leases {
                lease.job.site = Some(self.site.clone());
            }
        }
        Ok(taken)
    }

    async fn started(&self, leases: &[LeaseId]) -> Result<(), StoreError> {
        self.inner.started(leases).await
    }

    async fn renew(&self) -> Result<Renewal, StoreError> {
        self.inner.renew().await
    }

    fn rescued(&self) -> u64 {
        self.inner.rescued()
    }

    async fn oldest_waiting(&self) -> Result<Option<Time>, StoreError> {
        self.inner.oldest_waiting().await
    }

    async fn leave(&self) -> Result<(), StoreError> {
        self.inner.leave().await
    }

    fn news(&self) -> Option<Arc<Notify>> {
        self.inner.news()
    }
}
