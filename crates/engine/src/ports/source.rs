//! The port that hands out leases.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use tokio::sync::Notify;

use crate::ports::error::StoreError;
use crate::ports::job::{Lease, LeaseId};

/// What an instance requests from a source.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    /// The maximum number of leases.
    pub most: usize,
    /// The maximum number of leases per site and lane.
    pub most_per_site: usize,
    /// The maximum number of leases per lane that has a group; 0 for no limit.
    pub most_per_group: usize,
    /// Changes since the last demand: hand out nothing of these sites before the given time, since they are busy, full
    /// or closed. A time in the past reopens a site.
    pub closed: Vec<(Site, Time)>,
    /// Hand out nothing of these groups this time, except for overdue jobs: the instance already holds as many of
    /// theirs as their rate allows.
    pub resting: Vec<String>,
}

/// The answer of a source.
#[derive(Debug)]
pub enum Taken {
    /// These leases.
    Jobs(Vec<Lease>),
    /// Nothing is due. Ask again at `until` or sooner.
    Idle {
        /// When the next job is due, as far as the source knows.
        until: Time,
    },
    /// Nothing is left, and nothing will be added: a run-once door ends.
    Exhausted,
}

/// The result of renewing the instance's own lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// It is valid for `ttl`, counted from when the renewal was requested.
    Held {
        /// How long it is valid.
        ttl: Duration,
    },
    /// It had expired. The instance lost all leases that it held, and a new epoch began.
    Lost,
}

/// Hands out leases.
#[async_trait]
pub trait Source: Send + Sync {
    /// Takes leases. An instance calls this again only after the previous call has returned.
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreError>;

    /// Records that these leases are about to be fetched. If the process dies now, that counts as an interruption.
    async fn started(&self, leases: &[LeaseId]) -> Result<(), StoreError>;

    /// Renews the instance's own lease, and rescues the leases of dead instances.
    async fn renew(&self) -> Result<Renewal, StoreError>;

    /// Leaves the queue. Other instances can take what this one still holds at once.
    async fn leave(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// The number of leases of dead instances rescued so far.
    fn rescued(&self) -> u64 {
        0
    }

    /// When the oldest waiting job in the store was accepted, even if it is not due yet; `None` if no job waits or the
    /// store cannot tell. Leased jobs may count. A store may have to scan all waiting jobs, so call this rarely.
    async fn oldest_waiting(&self) -> Result<Option<Time>, StoreError> {
        Ok(None)
    }

    /// Notified when this process adds jobs. Jobs that other processes add are found by polling.
    fn news(&self) -> Option<Arc<Notify>> {
        None
    }
}
