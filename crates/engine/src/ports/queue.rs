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
    /// Adds jobs; they are stored when this returns. Returns the number of jobs added; a job whose key is already there
    /// is not added again.
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<usize, StoreError>;

    /// Joins as a new instance.
    fn instance(&self) -> Arc<dyn Instance>;

    /// How many jobs stand where, by the counters.
    async fn ledger(&self) -> Result<Ledger, StoreError>;

    /// Counts the jobs themselves and compares with the counters.
    async fn audit(&self) -> Result<Result<Ledger, LedgerMismatch>, StoreError>;
}

/// One instance's hold on a queue: where leases come from, and where they end.
pub trait Instance: Source + Settle {}

impl<T: Source + Settle> Instance for T {}

/// How many jobs stand where. Every move changes two of these in the same transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// All that ever came in.
    pub accepted: i64,
    /// With a result.
    pub done: i64,
    /// Not to be fetched.
    pub skipped: i64,
    /// Waiting.
    pub queued: i64,
    /// Leased.
    pub in_flight: i64,
    /// Waiting for a time.
    pub delayed: i64,
    /// Given up.
    pub dead: i64,
}

/// The counters of a queue and its jobs disagree. Says how, in words for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LedgerMismatch(pub String);

impl Ledger {
    /// Whether nothing is missing and nothing is double.
    pub fn balances(&self) -> bool {
        self.difference() == 0
    }

    /// What was accepted less what is accounted for: jobs that are missing, or (below 0) double.
    pub fn difference(&self) -> i64 {
        self.accepted - self.ended() - self.unfinished()
    }

    /// What `difference` says, in words. `None`: there is none.
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

    /// Jobs that nobody has taken yet, whether or not their time has come.
    pub fn waiting(&self) -> i64 {
        self.queued + self.delayed
    }

    /// Each count with the name of its state.
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

    /// What is wrong with it, in words, where the jobs themselves were counted: those that are queued,
    /// delayed, in flight and dead.
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
