//! Where leases come from.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use tokio::sync::Notify;

use crate::ports::error::StoreError;
use crate::ports::job::{Lease, LeaseId};

/// What a source is asked for.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    /// At most so many.
    pub most: usize,
    /// At most so many of one site and lane.
    pub most_per_site: usize,
    /// At most so many of one lane that has a group; 0: as many as there are.
    pub most_per_group: usize,
    /// What changed since the last demand: none of these sites before the time given, since they are
    /// busy, full or closed; a time that has come opens one again.
    pub closed: Vec<(Site, Time)>,
    /// None of these groups, this time, but for what is overdue: what is here of theirs is as much as
    /// their pace lets go.
    pub resting: Vec<String>,
}

/// What a source gives.
#[derive(Debug)]
pub enum Taken {
    /// These.
    Jobs(Vec<Lease>),
    /// Nothing is due; ask again then, or sooner.
    Idle {
        /// When something is due by what the source knows.
        until: Time,
    },
    /// Nothing is left and nothing will come: a run-once door ends.
    Exhausted,
}

/// How the instance's own lease stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// It holds for this long from the moment it was asked for.
    Held {
        /// How long.
        ttl: Duration,
    },
    /// It had run out. Everything that was taken before is not ours any more; a new epoch began.
    Lost,
}

/// Where leases come from.
#[async_trait]
pub trait Source: Send + Sync {
    /// Hands out leases. An instance asks again when it has its answer, not before.
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreError>;

    /// Notes that these are about to be fetched: if we die now, that was an interruption.
    async fn started(&self, leases: &[LeaseId]) -> Result<(), StoreError>;

    /// Renews the instance's lease, and rescues what dead instances held.
    async fn renew(&self) -> Result<Renewal, StoreError>;

    /// Leaves: what this instance still holds can be taken by others at once.
    async fn leave(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// How many leases of dead instances it has rescued so far.
    fn rescued(&self) -> u64 {
        0
    }

    /// When the oldest job was accepted that waits in the store, however far ahead its time is; `None` if nothing
    /// waits there, or the store can't tell. Jobs in somebody's hands may count. A store may have to look at all
    /// that waits: this is asked for now and then.
    async fn oldest_waiting(&self) -> Result<Option<Time>, StoreError> {
        Ok(None)
    }

    /// Notified when something was put in by this process. It only wakes: what others put in is found
    /// by asking from time to time.
    fn news(&self) -> Option<Arc<Notify>> {
        None
    }
}
