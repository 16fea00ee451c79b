//! The port for the URL list of `pages`, which other programs may also fill and read.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::ports::dead_letters::{DeadLetters, SettleWithDetails};
use crate::ports::error::StoreError;
use crate::ports::queue::{Ledger, Queue};
use crate::ports::rounds::Rounds;
use crate::ports::source::Source;

/// A queue of bare URLs. In a store that other programs can access, URLs arrive on a list and are accepted from there.
#[async_trait]
pub trait UrlQueue: Queue + DeadLetters + Rounds {
    /// Puts URLs in, also those that make no sense: they become dead letters.
    async fn push(&self, urls: &[String]) -> Result<(), StoreError>;

    /// Joins as a new instance whose dead letters have details.
    fn dead_letter_worker(&self) -> Arc<dyn DeadLetterWorker>;

    /// How many URLs stand where, at one moment.
    async fn backlog(&self) -> Result<Backlog, StoreError>;

    /// How long ago the oldest URL was accepted that has not ended. What is on the list is not accepted yet.
    async fn waited_longest(&self) -> Result<Option<Duration>, StoreError>;

    /// Forgets the dead letters that other programs took off their list, with their details. Those who read letters
    /// need not ask for it.
    async fn follow_dead_list(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Puts waiting URLs and those of dead instances back on the list; with `only_when_alone`, only if no instance is
    /// running. Waits until it is known which instances are dead. `None`: there is no list.
    async fn unpark(&self, _only_when_alone: bool) -> Result<Option<Unparked>, StoreError> {
        Ok(None)
    }
}

/// One instance's hold on a queue whose dead letters have details.
pub trait DeadLetterWorker: Source + SettleWithDetails {}

impl<T: Source + SettleWithDetails> DeadLetterWorker for T {}

/// How many URLs stand where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Those that were accepted, by the counters.
    pub ledger: Ledger,
    /// On the list that other programs see; `None`: there is no list.
    pub on_list: Option<u64>,
    /// Waiting, there or anywhere else.
    pub waiting: u64,
    /// Dead letters. Other programs may have put some on their list, or taken some off.
    pub dead: u64,
}

/// What unparking came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unparked {
    /// URLs that went back to the list.
    pub urls: u64,
    /// Instances that are at work.
    pub at_work: usize,
    /// URLs that those hold.
    pub held: u64,
}
