//! The port for the URL list of `pages`, which other programs may also fill and read.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::ports::dead_letters::{DeadLetters, SettleWithDetails};
use crate::ports::error::StoreError;
use crate::ports::queue::{Ledger, Queue};
use crate::ports::rounds::Rounds;
use crate::ports::source::Source;

/// A queue of URLs. In a store that other programs can access, URLs arrive on a list and are accepted from there.
#[async_trait]
pub trait UrlQueue: Queue + DeadLetters + Rounds {
    /// Adds URLs. Invalid ones become dead letters.
    async fn push(&self, urls: &[String]) -> Result<(), StoreError>;

    /// Joins as a new instance that stores details with dead letters.
    fn dead_letter_worker(&self) -> Arc<dyn DeadLetterWorker>;

    /// The number of URLs by state, as one consistent snapshot.
    async fn backlog(&self) -> Result<Backlog, StoreError>;

    /// How long ago the oldest unfinished URL was accepted. URLs on the list are not accepted yet.
    async fn waited_longest(&self) -> Result<Option<Duration>, StoreError>;

    /// Deletes the dead letters that other programs removed from their list, with their details. Reading dead letters
    /// does this, too.
    async fn follow_dead_list(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Puts waiting URLs and those of dead instances back on the list; with `only_when_alone`, only if no instance is
    /// running. Waits until it is known which instances are dead. Returns `None` if there is no list.
    async fn unpark(&self, _only_when_alone: bool) -> Result<Option<Unparked>, StoreError> {
        Ok(None)
    }
}

/// An instance of a queue that stores details with dead letters.
pub trait DeadLetterWorker: Source + SettleWithDetails {}

impl<T: Source + SettleWithDetails> DeadLetterWorker for T {}

/// The number of URLs by state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// The accepted URLs, from the counters.
    pub ledger: Ledger,
    /// URLs on the list that other programs see; `None` if there is no list.
    pub on_list: Option<u64>,
    /// Waiting URLs, on the list or accepted.
    pub waiting: u64,
    /// Dead letters. Other programs may have added some to their list, or removed some.
    pub dead: u64,
}

/// The result of unparking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unparked {
    /// URLs that were put back on the list.
    pub urls: u64,
    /// Running instances.
    pub at_work: usize,
    /// URLs that these instances hold.
    pub held: u64,
}
