//! Queues: jobs go in, instances take them out, and a ledger counts them by state.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::ports::error::StoreError;
use crate::ports::finish::Settle;
use crate::ports::job::NewJob;
use crate::ports::source::Source;

/// A queue, as one process sees it.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Adds jobs; they are stored when this returns. A job whose key already exists is not added again. Returns the
    /// number of jobs added.
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<usize, StoreError>;

    /// Joins as a new instance.
    fn instance(&self) -> Arc<dyn Instance>;

    /// The number of jobs by state, from the counters.
    async fn ledger(&self) -> Result<Ledger, StoreError>;

    /// Counts the jobs and compares the result with the counters.
    async fn audit(&self) -> Result<Result<Ledger, LedgerMismatch>, StoreError>;
}

/// An instance of a queue: hands out leases, and settles them.
pub trait Instance: Source + Settle {}

impl<T: Source + Settle> Instance for T {}

/// The number of jobs by state. When a job changes its state, both counters change in the same transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// All jobs ever added.
    pub accepted: i64,
    /// Ended with a result.
    pub done: i64,
    /// Ended without being fetched, because they must not be.
    pub skipped: i64,
    /// Waiting for their turn.
    pub queued: i64,
    /// Leased by an instance.
    pub in_flight: i64,
    /// Waiting until a certain time.
    pub delayed: i64,
    /// Given up.
    pub dead: i64,
}

/// The counters of a queue differ from its jobs. The text describes how.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LedgerMismatch(pub String);

impl Ledger {
    /// Whether no job is missing or counted twice.
    pub fn balances(&self) -> bool {
        self.difference() == 0
    }

    /// The accepted jobs minus the sum of all states: the number of missing jobs or, if negative, of jobs counted
    /// twice.
    pub fn difference(&self) -> i64 {
        self.accepted - self.ended() - self.unfinished()
    }

    /// Describes the `difference`; `None` if it is 0.
    pub fn imbalance(&self) -> Option<String> {
        let accepted = self.accepted;
        let sum = self.ended() + self.unfinished();
        (!self.balances())
            .then(|| format!("{accepted} were accepted, but the states add up to {sum}"))
    }

    /// Jobs that have ended.
    pub fn ended(&self) -> i64 {
        self.done + self.skipped + self.dead
    }

    /// Jobs that have not ended.
    pub fn unfinished(&self) -> i64 {
        self.waiting() + self.in_flight
    }

    /// Jobs that are not leased, due or not.
    pub fn waiting(&self) -> i64 {
        self.queued + self.delayed
    }

    /// Each counter with its name.
    pub fn states(&self) -> [(&'static str, i64); 7] {
        [
            ("accepted", self.accepted),
            ("done", self.done),
            ("skipped", self.skipped),
            ("queued", self.queued),
            ("in_flight", self.in_flight),
            ("delayed", self.delayed),
            ("dead", self.dead),
        ]
    }

    /// Describes how the counters differ from `counted`, the numbers of queued, delayed, in-flight and dead jobs.
    pub fn difference_from(&self, counted: [i64; 4]) -> Option<String> {
        let told = [self.queued, self.delayed, self.in_flight, self.dead];
        let mut wrong = Vec::from_iter(self.imbalance());
        for ((name, told), counted) in
            ["queued", "delayed", "in flight", "dead"].iter().zip(told).zip(counted)
        {
            if told != counted {
                wrong.push(format!("the counter says {told} {name}, the rows say {counted}"));
            }
        }
        (!wrong.is_empty()).then(|| wrong.join("; "))
    }
}
