//! A source that processes the leases of another source before it hands them out.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_policy::time::Time;
use tokio::sync::{Mutex, Notify};

use crate::ports::error::StoreError;
use crate::ports::job::{Lease, LeaseId};
use crate::ports::source::{Demand, Renewal, Source, Taken};

/// How a [`WrappedSource`] processes leases.
#[async_trait]
pub trait LeaseHooks: Send + Sync {
    /// Changes leases before they are handed out, or removes some. After an error, it is called again with the same
    /// leases.
    async fn prepare(&self, leases: &mut Vec<Lease>) -> Result<(), StoreError>;

    /// These leases are about to be fetched, and the source has recorded that.
    async fn started(&self, _leases: &[LeaseId]) -> Result<(), StoreError> {
        Ok(())
    }

    /// The source lost its leases, or is about to hand them back.
    async fn released(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// The leases of a source, with hooks.
pub struct WrappedSource {
    inner: Arc<dyn Source>,
    hooks: Arc<dyn LeaseHooks>,
    /// Leases that were taken but could not be prepared yet.
    unprepared: Mutex<Vec<Lease>>,
}

impl WrappedSource {
    pub fn new(inner: Arc<dyn Source>, hooks: Arc<dyn LeaseHooks>) -> WrappedSource {
        WrappedSource { inner, hooks, unprepared: Mutex::default() }
    }
}

#[async_trait]
impl Source for WrappedSource {
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreError> {
        let mut leases = self.unprepared.lock().await;
        loop {
            if leases.is_empty() {
                match self.inner.take(demand).await? {
                    Taken::Jobs(taken) => *leases = taken,
                    nothing => return Ok(nothing),
                }
            }
            self.hooks.prepare(&mut leases).await?;
            if !leases.is_empty() {
                return Ok(Taken::Jobs(std::mem::take(&mut leases)));
            }
        }
    }

    async fn started(&self, leases: &[LeaseId]) -> Result<(), StoreError> {
        self.inner.started(leases).await?;
        self.hooks.started(leases).await
    }

    async fn renew(&self) -> Result<Renewal, StoreError> {
        let renewal = self.inner.renew().await?;
        if renewal == Renewal::Lost {
            self.unprepared.lock().await.clear();
            self.hooks.released().await?;
        }
        Ok(renewal)
    }

    async fn leave(&self) -> Result<(), StoreError> {
        self.hooks.released().await?;
        self.inner.leave().await
    }

    fn rescued(&self) -> u64 {
        self.inner.rescued()
    }

    async fn oldest_waiting(&self) -> Result<Option<Time>, StoreError> {
        self.inner.oldest_waiting().await
    }

    fn news(&self) -> Option<Arc<Notify>> {
        self.inner.news()
    }
}
