//! The port for batches: messages that were submitted together, and that are watched, read and cancelled together.
//!
//! A batch counts its messages as they end, in the transactions that end them. The one that ends the last message
//! completes the batch, once: a message that an operator retries is a new message outside of the batch. An instance of
//! an earlier release on the same store does not count; such batches are recounted when nothing of them is left.

use async_trait::async_trait;
use fetchwell_policy::time::Time;

use crate::ports::error::StoreError;
use crate::ports::inbox::{BatchId, MessageId, OutboxMost, OutboxPage};

/// The maximum number of batches per page.
pub const BATCHES_PER_PAGE: u32 = 200;

/// The maximum number of batches that one call of [`MessageBatches::open`] returns.
pub const OPEN_AT_ONCE: u32 = 50;

/// The maximum number of messages that one call of [`MessageBatches::cancel_some`] cancels.
pub const CANCELLED_AT_ONCE: u32 = 500;

/// A batch, as its caller sees it. Times are by the wall clock (that of the store's server, if there is one).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageBatch {
    /// Its ID.
    pub id: BatchId,
    /// The caller that sent it.
    pub caller: String,
    /// When it was accepted.
    pub created_at: Time,
    /// When it was expected to end, as of its acceptance.
    pub expected_at: Time,
    /// Since when its waiting messages are being cancelled.
    pub cancelled_at: Option<Time>,
    /// When its last message ended.
    pub ended_at: Option<Time>,
    /// The webhook for its end.
    pub callback_url: Option<String>,
    /// The number of invalid messages that were left out.
    pub skipped: u32,
    /// Its messages by status.
    pub counts: BatchCounts,
    /// Where its end comes among the results and the ended batches of its caller.
    pub completion: Option<Completion>,
}

/// The messages of a batch by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchCounts {
    /// All of them.
    pub total: u32,
    /// An instance holds them.
    pub processing: u32,
    /// The outbox has their page.
    pub completed: u32,
    /// They ended without a page.
    pub failed: u32,
    /// Those of `failed` that were cancelled.
    pub cancelled: u32,
}

impl BatchCounts {
    /// The messages that have ended.
    pub fn ended(&self) -> u32 {
        self.completed.saturating_add(self.failed)
    }

    /// The messages that wait.
    pub fn queued(&self) -> u32 {
        self.total.saturating_sub(self.ended()).saturating_sub(self.processing)
    }
}

/// A result for which the site sent nothing that can be shown, without its other fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// Its cursor in its caller's outbox.
    pub cursor: i64,
    /// The message that it belongs to.
    pub message: MessageId,
    /// The exact string that was posted.
    pub url: String,
    /// When it was stored, by the wall clock.
    pub created_at: Time,
    /// An error code, or `success` for a page that is not text.
    pub status: String,
    /// What went wrong, as text.
    pub error: Option<String>,
}

/// A batch that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenBatch {
    /// Its ID.
    pub id: BatchId,
    /// Whether its waiting messages are to be cancelled.
    pub is_cancelled: bool,
    /// Whether a message of it waits or is held by an instance.
    pub has_messages_left: bool,
}

/// Where the end of a batch comes in the event stream of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Counts the batches of the caller that ended, in commit order and without gaps.
    pub number: i64,
    /// The cursor of the caller's newest result at that time. Every result of the batch has this cursor or a lower one.
    pub cursor: i64,
}

/// Where a reader of a caller's ended batches is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadUpTo {
    /// It read the batches up to this number.
    Number(i64),
    /// It read the results up to this cursor. Batches that ended with that very result may be unread.
    Cursor(i64),
    /// It has read nothing.
    Nothing,
}

/// The batches of a store.
#[async_trait]
pub trait MessageBatches: Send + Sync {
    /// A batch; with `of`, only if it belongs to this caller.
    async fn batch(
        &self,
        id: BatchId,
        of: Option<&str>,
    ) -> Result<Option<MessageBatch>, StoreError>;

    /// The part of the answer that names the messages that were left out, if it was stored.
    async fn skipped_told(&self, id: BatchId) -> Result<Option<String>, StoreError>;

    /// Batches of a caller, newest first, from the newest or after the given one; at most [`BATCHES_PER_PAGE`].
    async fn batches(
        &self,
        caller: &str,
        after: Option<BatchId>,
        most: u32,
    ) -> Result<Vec<MessageBatch>, StoreError>;

    /// Results of a batch in commit order, after the given cursor of its caller's outbox, or from the oldest one if it
    /// is `None`. `None` if there is no such batch, or if it does not belong to `of`.
    async fn results(
        &self,
        id: BatchId,
        of: Option<&str>,
        after: Option<i64>,
        most: OutboxMost,
    ) -> Result<Option<OutboxPage>, StoreError>;

    /// Results of a batch in commit order, after the given cursor, for which the site sent neither a text nor a status
    /// that says why not: 304, or one from 400 on. Contents are not read. If there is no such batch, or if it does not
    /// belong to `of`, there are none.
    async fn unanswered(
        &self,
        id: BatchId,
        of: Option<&str>,
        after: i64,
        most: u32,
    ) -> Result<Vec<Unanswered>, StoreError>;

    /// Batches of a caller that ended after those that were read, in the order of their completion, and whose results
    /// have no cursor beyond `until`.
    async fn ended_batches(
        &self,
        caller: &str,
        read: ReadUpTo,
        until: i64,
        most: u32,
    ) -> Result<Vec<MessageBatch>, StoreError>;

    /// Marks a batch as cancelled: its messages that wait, now or later, are to be cancelled. Returns `false` if there
    /// is no such batch, or if it does not belong to `of`. A batch that has ended is not changed.
    async fn cancel(&self, id: BatchId, of: Option<&str>) -> Result<bool, StoreError>;

    /// Ends waiting messages of this batch with the status `cancelled`, if the batch is cancelled; at most
    /// [`CANCELLED_AT_ONCE`]. Returns how many.
    async fn cancel_some(&self, id: BatchId) -> Result<u32, StoreError>;

    /// Batches of all callers that have not ended, ordered by ID, from the first or after the given one; at most
    /// [`OPEN_AT_ONCE`].
    async fn open(&self, after: Option<BatchId>) -> Result<Vec<OpenBatch>, StoreError>;

    /// Recounts the messages of a batch that has not ended but has none left, and completes it. Returns `false` if
    /// there is no such batch.
    async fn recount(&self, id: BatchId) -> Result<bool, StoreError>;
}
