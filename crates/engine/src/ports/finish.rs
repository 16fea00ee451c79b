//! Where records go, and how leases end.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::retry::History;
use fetchwell_policy::time::Time;

use crate::budget::Share;
use crate::ports::error::StoreError;
use crate::ports::job::Lease;
use crate::web::Phases;

/// What is to become of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It has its result.
    Done,
    /// It was not to be fetched.
    Skipped,
    /// Another attempt, not before `at`.
    Retry {
        /// When.
        at: Time,
        /// What it has been through by now.
        history: History,
        /// The door's own data from now on; `None`: as it was.
        payload: Option<Vec<u8>>,
    },
    /// Given up.
    Dead {
        /// Why.
        reason: String,
    },
    /// Untouched: somebody else, or we ourselves, shall have it not before `at`.
    HandBack {
        /// When.
        at: Time,
    },
}

impl Settlement {
    /// Another attempt, with the door's data as it was.
    pub fn retry(at: Time, history: History) -> Settlement {
        Settlement::Retry { at, history, payload: None }
    }
}

/// A lease that has come to an end.
#[derive(Debug)]
pub struct Finished<R> {
    /// The lease.
    pub lease: Lease,
    /// What came out.
    pub records: Vec<R>,
    /// What is to become of the lease.
    pub settlement: Settlement,
    /// Where the time of its last request went.
    pub phases: Phases,
    /// What its records hold of the byte budget, until they are safe.
    pub share: Share,
}

impl<R> Finished<R> {
    /// Whether somebody was asked for something: if it is lost, they will be asked again.
    pub(crate) fn is_page(&self) -> bool {
        self.phases.first_byte > Duration::ZERO
    }
}

/// Whether a settlement was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was: the records are in the sink and the lease is gone.
    Confirmed,
    /// The lease was not ours any more: nothing was written.
    Stale,
}

/// Where records go, and how leases end.
#[async_trait]
pub trait Finish<R>: Send + Sync {
    /// Writes the records, then settles the leases; in one transaction where store and sink are one.
    /// An error means that nothing is known: the same batch is tried again.
    async fn finish(&self, batch: &[Finished<R>]) -> Result<Vec<Settled>, StoreError>;
}

/// A sink on its own: idempotent by key, since a batch may come again.
#[async_trait]
pub trait Sink<R>: Send + Sync {
    /// Returns once the records are safe.
    async fn write(&self, records: &[&R]) -> Result<(), StoreError>;
}

#[async_trait]
impl<R: Send + Sync, T: Sink<R> + ?Sized> Sink<R> for Arc<T> {
    async fn write(&self, records: &[&R]) -> Result<(), StoreError> {
        (**self).write(records).await
    }
}

/// Ends leases without writing records: the second half of a finish that is not one transaction.
#[async_trait]
pub trait Settle: Send + Sync {
    /// Ends the leases that are still ours.
    async fn settle(&self, batch: &[(&Lease, &Settlement)]) -> Result<Vec<Settled>, StoreError>;
}

#[async_trait]
impl<T: Settle + ?Sized> Settle for Arc<T> {
    async fn settle(&self, batch: &[(&Lease, &Settlement)]) -> Result<Vec<Settled>, StoreError> {
        (**self).settle(batch).await
    }
}
