//! The port of schedules: what is due goes on a queue once, whoever puts it there.

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::time::Time;

use crate::ports::error::StoreError;

/// The most URLs of one round. They go in by one move, so others wait that long.
pub const MAX_URLS_PER_ROUND: usize = 50_000;

/// How long it is remembered that a round was put. None may be longer than this.
pub const MEMORY: Duration = Duration::from_secs(400 * 86_400);

/// One time at which something is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Names what is due.
    pub entry: String,
    /// When, by the wall clock.
    pub due: Time,
}

/// What became of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// Its URLs are on the queue, and it is noted.
    Done,
    /// It, or one after it, was put before.
    Before,
    /// Nothing happened: the queue is too deep.
    TooDeep {
        /// How many URLs wait there.
        waiting: u64,
    },
}

/// A queue that URLs are put on, round by round.
#[async_trait]
pub trait Rounds: Send + Sync {
    /// When the last round was due that was put, for each of these.
    async fn last_rounds(&self, entries: &[&str]) -> Result<Vec<Option<Time>>, StoreError>;

    /// How many URLs wait: those that may go, those that are delayed, and those that are leased by an instance that
    /// has not begun to fetch them.
    async fn waiting(&self) -> Result<u64, StoreError>;

    /// Puts the URLs of a round on the queue and notes the round, as one move; unless that was done, or
    /// `max_waiting` wait already (0: any number). There are [`MAX_URLS_PER_ROUND`] at most; a round
    /// without any is only noted, however deep the queue is.
    async fn put(
        &self,
        round: &Round,
        urls: &[String],
        max_waiting: u64,
    ) -> Result<Put, StoreError>;
}
