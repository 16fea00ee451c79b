//! The port of those who look after a service: the messages of all callers, and what is done about them.
//!
//! Callers see their own messages by [`crate::ports::inbox`]. Here is everybody's, for viewers and operators. A store
//! may hold millions: every question is answered by a bounded look, and says so where it saw only a part.

mod acting;
mod timeline;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::time::Time;
use serde::{Deserialize, Serialize};

use crate::ports::error::StoreError;
use crate::ports::inbox::{Attempt, MessageId, OutboxMessage};
use crate::ports::queue::Ledger;

pub use acting::{Act, Acted, Deed, MESSAGES_PER_ACT};
pub use timeline::{Milestone, timeline};

/// The most messages of one page.
pub const MESSAGES_PER_PAGE: u32 = 200;
/// Counting ends here: there are at least so many.
pub const MOST_COUNTED: u64 = 10_000;

/// Where a message stands, as an operator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageState {
    /// It waits for its turn.
    Queued,
    /// An instance has it.
    Processing,
    /// It waits for a time: for another attempt, or for the result of one that asks for the same.
    Delayed,
    /// Its page is in the outbox.
    Completed,
    /// It has no page: why stands in the outbox, or it ended without a result.
    Failed,
}

impl MessageState {
    /// All of them, in the order of a message's life.
    pub const ALL: [MessageState; 5] = [
        MessageState::Queued,
        MessageState::Processing,
        MessageState::Delayed,
        MessageState::Completed,
        MessageState::Failed,
    ];

    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            MessageState::Queued => "queued",
            MessageState::Processing => "processing",
            MessageState::Delayed => "delayed",
            MessageState::Completed => "completed",
            MessageState::Failed => "failed",
        }
    }

    /// The state of that word.
    pub fn parse(word: &str) -> Option<MessageState> {
        MessageState::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether nothing more happens to it.
    pub fn has_ended(self) -> bool {
        matches!(self, MessageState::Completed | MessageState::Failed)
    }
}

/// Which messages are meant: those that have all that is named here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Where they stand.
    pub state: Option<MessageState>,
    /// The site that they go to.
    pub site: Option<String>,
    /// On whose behalf.
    pub retailer: Option<String>,
    /// Who sent them.
    pub caller: Option<String>,
    /// Why they failed: see [`Sighting::reason`].
    pub reason: Option<String>,
    /// What their URL contains; the case of ASCII letters does not matter.
    pub url_contains: Option<String>,
    /// The caller's own name for them.
    pub correlation_id: Option<String>,
    /// By the store's clock: what came in or ended after this is not meant. So whoever acts on what was
    /// listed or counted acts on nothing that was not there to see.
    pub as_of: Option<Time>,
}

/// A message in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Its name.
    pub id: MessageId,
    /// The exact string that was posted.
    pub url: String,
    /// Its site.
    pub site: String,
    /// On whose behalf.
    pub retailer: String,
    /// The caller's own name for it.
    pub correlation_id: String,
    /// Who sent it.
    pub caller: String,
    /// Where it stands.
    pub state: MessageState,
    /// Why it failed: the status of its result, with the answer's number where there was one (`timeout`,
    /// `http_error 404`); for one that ended without a result, why in words.
    pub reason: Option<String>,
    /// When it was accepted, by the wall clock.
    pub created_at: Time,
    /// When it may go, by the store's clock, while it waits.
    pub due_at: Option<Time>,
    /// When it ended, by the store's clock.
    pub ended_at: Option<Time>,
    /// Attempts so far. Failed probes of its site count.
    pub attempts: u32,
    /// The message that this one is another try of.
    pub retry_of: Option<MessageId>,
    /// The message that is another try of this one.
    pub retried_as: Option<MessageId>,
}

/// A part of a list, the newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sightings {
    /// These. There may be fewer than were asked for, or none, though more follow: a look is bounded.
    pub messages: Vec<Sighting>,
    /// Where to look on; `None`: there are no more.
    pub next: Option<i64>,
    /// What was there to see: the filter's own moment, or when this look began.
    pub as_of: Time,
}

/// How many messages match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// So many were found.
    pub found: u64,
    /// Whether these are all. Else counting ended at [`MOST_COUNTED`], or where the look is bounded.
    pub is_exact: bool,
    /// What was there to see.
    pub as_of: Time,
}

/// All that is known of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dossier {
    /// As it stands in a list.
    pub message: Sighting,
    /// After this it is not worth having, by the store's clock.
    pub deadline: Option<Time>,
    /// Where its result is delivered to.
    pub callback_url: Option<String>,
    /// The message whose result will be this one's, too.
    pub follows: Option<MessageId>,
    /// What happened, the oldest first: the last few attempts.
    pub attempts: Vec<Attempt>,
    /// Its result.
    pub outbox: Option<OutboxMessage>,
}

/// Failures of one reason at one site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureGroup {
    /// Why: see [`Sighting::reason`].
    pub reason: String,
    /// Where.
    pub site: String,
    /// How many.
    pub messages: u64,
    /// The newest of them.
    pub sample: Sighting,
}

/// The failures, the largest groups first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures {
    /// The groups.
    pub groups: Vec<FailureGroup>,
    /// Whether these are all failures. Else they are the newest: a look is bounded.
    pub is_exact: bool,
    /// What was there to see.
    pub as_of: Time,
}

/// A process at work on a queue of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceView {
    /// Its number: no two instances ever have the same.
    pub epoch: i64,
    /// The queue.
    pub queue: String,
    /// Which process of which machine, where it said so.
    pub who: Option<String>,
    /// Since when, by the store's clock.
    pub since: Option<Time>,
    /// When it last said that it is there, by the store's clock.
    pub last_heartbeat: Option<Time>,
    /// When it is taken for dead if it says so no more.
    pub expires_at: Time,
    /// How many jobs it holds.
    pub in_flight: u64,
}

/// A queue of the store, and how many of its jobs stand where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueLedger {
    /// The queue's name.
    pub queue: String,
    /// By the counters, which change with each move.
    pub ledger: Ledger,
}

/// What the rows of a queue say, beside its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recount {
    /// By the counters.
    pub told: QueueLedger,
    /// What differs, in words.
    pub difference: Option<String>,
}

/// How far the results of a caller reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxExtent {
    /// Whose.
    pub caller: String,
    /// Results up to this cursor were taken out.
    pub pruned: i64,
    /// The cursor of the newest.
    pub newest: i64,
}

/// What a store shows those who look after it, and what it lets them do.
#[async_trait]
pub trait Oversight: Send + Sync {
    /// Messages that match, the newest first, from where another list ended; [`MESSAGES_PER_PAGE`] at most.
    async fn list(
        &self,
        filter: &Filter,
        from: Option<i64>,
        most: u32,
    ) -> Result<Sightings, StoreError>;

    /// How many messages match.
    async fn count(&self, filter: &Filter) -> Result<Count, StoreError>;

    /// All that is known of a message.
    async fn dossier(&self, id: MessageId) -> Result<Option<Dossier>, StoreError>;

    /// Why messages failed, and where.
    async fn failures(&self) -> Result<Failures, StoreError>;

    /// Acts on these messages, [`MESSAGES_PER_ACT`] at most, as one move; what came in or ended after
    /// `as_of` is left alone. Returns what was done with each, in order.
    async fn act_on(
        &self,
        act: Act,
        ids: &[MessageId],
        as_of: Option<Time>,
    ) -> Result<Vec<Deed>, StoreError>;

    /// Acts on messages that match, the newest first, `most` of them at most. What came in or ended while
    /// this goes on, or after the filter's own moment, is left alone.
    async fn act(&self, act: Act, filter: &Filter, most: usize) -> Result<Acted, StoreError> {
        acting::act_on_matches(self, act, filter, most).await
    }

    /// Who is at work on the store.
    async fn instances(&self) -> Result<Vec<InstanceView>, StoreError>;

    /// How far the results of each caller reach, by name.
    async fn outboxes(&self) -> Result<Vec<OutboxExtent>, StoreError>;

    /// Every queue of the store, by name, as its counters have it.
    async fn ledgers(&self) -> Result<Vec<QueueLedger>, StoreError>;

    /// For how long the oldest job has waited that waits in each queue, by the queue's name. One in which
    /// nothing waits is left out.
    async fn oldest_waiting(&self) -> Result<BTreeMap<String, Duration>, StoreError>;

    /// Counts the rows of every queue and compares. This takes its time where there are many.
    async fn recount(&self) -> Result<Vec<Recount>, StoreError>;
}
