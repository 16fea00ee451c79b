//! Ports for writing records and settling leases.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::retry::History;
use fetchwell_policy::time::Time;

use crate::budget::Share;
use crate::ports::error::StoreError;
use crate::ports::job::Lease;
use crate::web::Phases;

/// How a lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It has a result.
    Done,
    /// It must not be fetched.
    Skipped,
    /// Another attempt, not before `at`.
    Retry {
        /// The earliest time.
        at: Time,
        /// Its failures so far, including this attempt.
        history: History,
        /// The new payload; `None` to keep the current one.
        payload: Option<Vec<u8>>,
    },
    /// Given up.
    Dead {
        /// Why it was given up.
        reason: String,
    },
    /// Returned unchanged. Any instance, including this one, may take it from `at` on.
    HandBack {
        /// The earliest time.
        at: Time,
    },
}

impl Settlement {
    /// Another attempt with the same payload.
    pub fn retry(at: Time, history: History) -> Settlement {
        Settlement::Retry { at, history, payload: None }
    }
}

/// A lease that is ready to be settled.
#[derive(Debug)]
pub struct Finished<R> {
    /// The lease.
    pub lease: Lease,
    /// Its records.
    pub records: Vec<R>,
    /// How the lease ends.
    pub settlement: Settlement,
    /// How long each phase of its last request took.
    pub phases: Phases,
    /// The share of the byte budget that its records hold until they are stored.
    pub share: Share,
}

impl<R> Finished<R> {
    /// Whether a server answered a request for it. If it is lost, that request has to be repeated.
    pub(crate) fn is_page(&self) -> bool {
        self.phases.first_byte > Duration::ZERO
    }
}

/// Whether a settlement was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The records are in the sink and the lease is settled.
    Confirmed,
    /// This instance no longer held the lease: it was not settled.
    Stale,
}

/// Writes records and settles leases.
#[async_trait]
pub trait Finish<R>: Send + Sync {
    /// Writes the records, then settles the leases, in one transaction if store and sink are the same. After an error
    /// the outcome is unknown, so the same batch is tried again.
    async fn finish(&self, batch: &[Finished<R>]) -> Result<Vec<Settled>, StoreError>;
}

/// A sink that is separate from the store. Writes must be idempotent by key, because a batch may be repeated.
#[async_trait]
pub trait Sink<R>: Send + Sync {
    /// Returns once the records are stored durably.
    async fn write(&self, records: &[&R]) -> Result<(), StoreError>;
}

#[async_trait]
impl<R: Send + Sync, T: Sink<R> + ?Sized> Sink<R> for Arc<T> {
    async fn write(&self, records: &[&R]) -> Result<(), StoreError> {
        (**self).write(records).await
    }
}

/// Settles leases without writing records: the second half of a [`Finish`] that is not one transaction.
#[async_trait]
pub trait Settle: Send + Sync {
    /// Settles the leases that this instance still holds.
    async fn settle(&self, batch: &[(&Lease, &Settlement)]) -> Result<Vec<Settled>, StoreError>;
}

#[async_trait]
impl<T: Settle + ?Sized> Settle for Arc<T> {
    async fn settle(&self, batch: &[(&Lease, &Settlement)]) -> Result<Vec<Settled>, StoreError> {
        (**self).settle(batch).await
    }
}
