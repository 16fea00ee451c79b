//! The port for operators of a service: the messages of all callers, and actions on them.
//!
//! Callers see their own messages through [`crate::ports::inbox`]; viewers and operators see all messages here. A store
//! may hold millions of messages, so every query has a bounded cost, and says so if its result is partial.

mod acting;
mod timeline;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::time::Time;
use serde::{Deserialize, Serialize};

use crate::ports::error::StoreError;
use crate::ports::inbox::{AttemptRecord, MessageId, OutboxMessage};
use crate::ports::queue::Ledger;

pub use acting::{Acted, Action, ActionResult, MESSAGES_PER_ACT};
pub use timeline::{Milestone, timeline};

/// The maximum number of messages per page.
pub const MESSAGES_PER_PAGE: u32 = 200;
/// Counting stops here.
pub const MOST_COUNTED: u64 = 10_000;

/// The state of a message, as an operator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageState {
    /// It waits for its turn.
    Queued,
    /// An instance holds it.
    Processing,
    /// It waits until a certain time for another attempt, or for the result of an identical message.
    Delayed,
    /// The outbox has its page.
    Completed,
    /// It has no page: the outbox has the reason, or it ended without a result.
    Failed,
}

impl MessageState {
    /// All states, in the order in which a message goes through them.
    pub const ALL: [MessageState; 5] = [
        MessageState::Queued,
        MessageState::Processing,
        MessageState::Delayed,
        MessageState::Completed,
        MessageState::Failed,
    ];

    /// The name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            MessageState::Queued => "queued",
            MessageState::Processing => "processing",
            MessageState::Delayed => "delayed",
            MessageState::Completed => "completed",
            MessageState::Failed => "failed",
        }
    }

    /// Parses the name of a state.
    pub fn parse(word: &str) -> Option<MessageState> {
        MessageState::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether the state is final.
    pub fn has_ended(self) -> bool {
        matches!(self, MessageState::Completed | MessageState::Failed)
    }
}

/// Selects the messages that match all given fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageFilter {
    /// Their state.
    pub state: Option<MessageState>,
    /// Their site.
    pub site: Option<String>,
    /// The retailer on whose behalf they are fetched.
    pub retailer: Option<String>,
    /// The caller that sent them.
    pub caller: Option<String>,
    /// Why they failed: see [`MessageSummary::reason`].
    pub reason: Option<String>,
    /// A part of their URL; the case of ASCII letters is ignored.
    pub url_contains: Option<String>,
    /// The caller's ID for them.
    pub correlation_id: Option<String>,
    /// Excludes messages that were accepted or ended after this time, by the store's clock. An action on a list or a
    /// count thus changes no message that was not part of it.
    pub as_of: Option<Time>,
}

/// A message in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSummary {
    /// Its ID.
    pub id: MessageId,
    /// The exact string that was posted.
    pub url: String,
    /// Its site.
    pub site: String,
    /// The retailer on whose behalf it is fetched.
    pub retailer: String,
    /// The caller's ID for it.
    pub correlation_id: String,
    /// The caller that sent it.
    pub caller: String,
    /// Its state.
    pub state: MessageState,
    /// Why it failed: the status of its result, with the status code after an HTTP error (`timeout`, `http_error 404`);
    /// if it ended without a result, a description.
    pub reason: Option<String>,
    /// When it was accepted, by the wall clock.
    pub created_at: Time,
    /// When it is due, by the store's clock, while it waits.
    pub due_at: Option<Time>,
    /// When it ended, by the store's clock.
    pub ended_at: Option<Time>,
    /// Attempts so far. Failed probes of its site count.
    pub attempts: u32,
    /// The message that this one retries.
    pub retry_of: Option<MessageId>,
    /// The message that retries this one.
    pub retried_as: Option<MessageId>,
}

/// A page of a list, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSummaries {
    /// The messages. There may be fewer than requested, or none, even if more follow, because the cost of a page is
    /// bounded.
    pub messages: Vec<MessageSummary>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<i64>,
    /// The time of the view: the filter's `as_of`, or when this query began.
    pub as_of: Time,
}

/// The number of messages that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The number of messages found.
    pub found: u64,
    /// Whether these are all. Otherwise counting stopped at [`MOST_COUNTED`] or at another limit.
    pub is_exact: bool,
    /// The time of the view.
    pub as_of: Time,
}

/// The details of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageDetail {
    /// The message as shown in a list.
    pub message: MessageSummary,
    /// Its deadline, by the store's clock.
    pub deadline: Option<Time>,
    /// The webhook for its result.
    pub callback_url: Option<String>,
    /// The message whose result this one shares.
    pub follows: Option<MessageId>,
    /// The last few attempts, oldest first.
    pub attempts: Vec<AttemptRecord>,
    /// Its result.
    pub outbox: Option<OutboxMessage>,
}

/// Failures with the same reason at the same site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureGroup {
    /// The reason; see [`MessageSummary::reason`].
    pub reason: String,
    /// The site.
    pub site: String,
    /// The number of messages.
    pub messages: u64,
    /// The newest of these messages.
    pub sample: MessageSummary,
}

/// The failures by group, largest groups first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures {
    /// The groups.
    pub groups: Vec<FailureGroup>,
    /// Whether these are all failures. Otherwise they are the newest, because the cost of the query is bounded.
    pub is_exact: bool,
    /// The time of the view.
    pub as_of: Time,
}

/// A process that works on a queue of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceView {
    /// Its unique number.
    pub epoch: i64,
    /// The queue.
    pub queue: String,
    /// The process and its machine, if known.
    pub who: Option<String>,
    /// When it started, by the store's clock.
    pub since: Option<Time>,
    /// The time of its last heartbeat, by the store's clock.
    pub last_heartbeat: Option<Time>,
    /// When it is considered dead unless it sends another heartbeat.
    pub expires_at: Time,
    /// The number of jobs that it holds.
    pub in_flight: u64,
}

/// A queue of the store, with the number of its jobs by state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueLedger {
    /// The queue's name.
    pub queue: String,
    /// The counters, which are updated with every change of a job.
    pub ledger: Ledger,
}

/// Compares the rows of a queue with its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recount {
    /// The counters.
    pub told: QueueLedger,
    /// A description of the difference, if there is one.
    pub difference: Option<String>,
}

/// The range of cursors in a caller's outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxExtent {
    /// The caller.
    pub caller: String,
    /// Results up to this cursor were removed.
    pub pruned: i64,
    /// The cursor of the newest result.
    pub newest: i64,
}

/// Queries and actions for viewers and operators.
#[async_trait]
pub trait Oversight: Send + Sync {
    /// Messages that match, newest first, from the start or from the `next` of another page; at most
    /// [`MESSAGES_PER_PAGE`].
    async fn list(
        &self,
        filter: &MessageFilter,
        from: Option<i64>,
        most: u32,
    ) -> Result<MessageSummaries, StoreError>;

    /// Counts the messages that match.
    async fn count(&self, filter: &MessageFilter) -> Result<Count, StoreError>;

    /// The details of a message.
    async fn detail(&self, id: MessageId) -> Result<Option<MessageDetail>, StoreError>;

    /// The failures, grouped by reason and site.
    async fn failures(&self) -> Result<Failures, StoreError>;

    /// Acts on these messages, at most [`MESSAGES_PER_ACT`], atomically. Messages that were accepted or ended after
    /// `as_of` are not changed. Returns the effect on each message, in order.
    async fn act_on(
        &self,
        act: Action,
        ids: &[MessageId],
        as_of: Option<Time>,
    ) -> Result<Vec<ActionResult>, StoreError>;

    /// Acts on messages that match, newest first, until `most` are changed. Messages that are accepted or end
    /// meanwhile, or after the filter's `as_of`, are not changed.
    async fn act(
        &self,
        act: Action,
        filter: &MessageFilter,
        most: usize,
    ) -> Result<Acted, StoreError> {
        acting::act_on_matches(self, act, filter, most).await
    }

    /// The instances that work on the store.
    async fn instances(&self) -> Result<Vec<InstanceView>, StoreError>;

    /// The range of each caller's outbox, ordered by name.
    async fn outboxes(&self) -> Result<Vec<OutboxExtent>, StoreError>;

    /// The counters of every queue of the store, ordered by name.
    async fn ledgers(&self) -> Result<Vec<QueueLedger>, StoreError>;

    /// How long the oldest waiting job of each queue has waited, by the name of the queue. Queues without waiting jobs
    /// are omitted.
    async fn oldest_waiting(&self) -> Result<BTreeMap<String, Duration>, StoreError>;

    /// Counts the rows of every queue and compares them with its counters. This is slow if there are many rows.
    async fn recount(&self) -> Result<Vec<Recount>, StoreError>;
}
