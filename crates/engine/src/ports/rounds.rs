//! The port for schedules: each round goes on a queue once, even if several processes try to add it.

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::time::Time;

use crate::ports::error::StoreError;

/// The maximum number of URLs in a round. They are added in one transaction, which blocks others for its duration.
pub const MAX_URLS_PER_ROUND: usize = 50_000;

/// How long the last round of an entry is remembered. No interval between two rounds may be longer.
pub const MEMORY: Duration = Duration::from_secs(400 * 86_400);

/// One occurrence of a scheduled entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// The name of the entry.
    pub entry: String,
    /// When it is due, by the wall clock.
    pub due: Time,
}

/// The result of adding a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// Its URLs are on the queue, and the round is recorded.
    Done,
    /// This round or a later one was already added.
    Before,
    /// Nothing was added: too many URLs are waiting.
    TooDeep {
        /// The number of waiting URLs.
        waiting: u64,
    },
}

/// A queue that scheduled rounds of URLs are added to.
#[async_trait]
pub trait Rounds: Send + Sync {
    /// For each entry, when its last added round was due.
    async fn last_rounds(&self, entries: &[&str]) -> Result<Vec<Option<Time>>, StoreError>;

    /// The number of waiting URLs: due, delayed, or leased by an instance that has not begun to fetch them.
    async fn waiting(&self) -> Result<u64, StoreError>;

    /// Adds the URLs of a round to the queue and records the round, atomically. Does nothing if that was done before,
    /// or if `max_waiting` URLs are waiting already (0 for no limit). There may be at most [`MAX_URLS_PER_ROUND`] URLs.
    /// A round without URLs is only recorded, regardless of `max_waiting`.
    async fn put(
        &self,
        round: &Round,
        urls: &[String],
        max_waiting: u64,
    ) -> Result<Put, StoreError>;
}
