//! The inbox: what a service needs of its store that takes messages and gives results.
//!
//! Messages are jobs of a queue, so the one flow fetches them like any others. What is different: a
//! message keeps its row when it is done, its result goes to the outbox in the same transaction, and
//! whoever sent it is told of nobody else's.

mod attempt;
mod bell;
mod message_id;
pub mod options;

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;

use crate::ports::error::StoreError;
use crate::ports::queue::Ledger;

pub use attempt::{Attempt, attempts_of};
pub use bell::Bell;
pub use message_id::{MessageId, NoMessageId};

/// A store of messages, as the API sees it.
#[async_trait]
pub trait Inbox: Send + Sync {
    /// Accepts messages, all or none: they are committed when this returns. Those that come at the same
    /// time share a commit. One under an id that is there already, or that can't be stored, refuses its
    /// own submission and no other.
    async fn submit(&self, submission: Submission) -> Result<Submitted, StoreError>;

    /// A message with its result; `of`: only if it is this caller's.
    async fn message(&self, id: MessageId, of: Option<&str>)
    -> Result<Option<Message>, StoreError>;

    /// Results of a caller in the order of their commits, after this one; `None`: from the oldest on.
    async fn outbox(
        &self,
        caller: &str,
        after: Option<i64>,
        most: OutboxMost,
    ) -> Result<OutboxPage, StoreError>;

    /// Whose token this is, unless it was revoked.
    async fn caller_of(&self, token: &TokenHash) -> Result<Option<Caller>, StoreError>;

    /// What is kept of a caller's token, unless it was revoked: webhooks are signed by it.
    async fn token_of(&self, caller: &str) -> Result<Option<TokenHash>, StoreError>;

    /// Adds a caller, or gives a revoked one another token. `false`: there is one of that name.
    async fn add_caller(&self, caller: &Caller, token: &TokenHash) -> Result<bool, StoreError>;

    /// All callers, by name.
    async fn callers(&self) -> Result<Vec<CallerRecord>, StoreError>;

    /// Takes a caller's token away. `false`: there is no such caller, or it has none.
    async fn revoke_caller(&self, name: &str) -> Result<bool, StoreError>;

    /// Keeps these for whoever looks into what happened.
    async fn audit(&self, entries: &[AuditEntry]) -> Result<(), StoreError>;

    /// The latest entries of the audit, the newest first.
    async fn audit_trail(&self, most: u32) -> Result<Vec<AuditEntry>, StoreError>;

    /// Takes out messages that ended longer ago than `keep`, with their results and all that belongs to
    /// them, the audit of their submission included; a caller's results go in the order of their commits. Returns how many messages, `most` at
    /// most.
    async fn prune(&self, keep: Duration, most: u32) -> Result<u64, StoreError>;

    /// How many messages stand where.
    async fn ledger(&self) -> Result<Ledger, StoreError>;

    /// Whether the store can be read and written.
    async fn check(&self) -> Result<(), StoreError>;
}

/// Messages that are accepted together.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Who sends them.
    pub caller: String,
    /// The address that they came from, for the audit.
    pub from: String,
    /// The caller's own name for this submission: sent again, it is not accepted again.
    pub idempotency: Option<Idempotency>,
    /// The messages.
    pub messages: Vec<NewMessage>,
}

/// A submission's name, and what was in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The `Idempotency-Key`.
    pub key: String,
    /// SHA-256 of the body.
    pub body_hash: [u8; 32],
}

/// A message to be accepted.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// Its name, made by whoever accepts it.
    pub id: MessageId,
    /// The exact string that was posted.
    pub url: String,
    /// Its site.
    pub site: Site,
    /// On whose behalf.
    pub retailer: String,
    /// The caller's own name for it.
    pub correlation_id: String,
    /// How long it is worth having.
    pub deadline_in: Duration,
    /// Where its result is delivered to.
    pub callback_url: Option<String>,
    /// The door's own data.
    pub options: Vec<u8>,
    /// The same for messages of one caller that ask for the same, and for no others.
    pub kind: [u8; 16],
    /// A page of the same kind that was stored at most this long ago will do, and so will the result of
    /// a message of the same kind that has this set, too, and has not ended yet.
    pub max_age: Option<Duration>,
}

impl NewMessage {
    /// A message with nothing else set. Its kind is its own, so it asks for the same as no other.
    pub fn new(id: MessageId, url: String, site: Site, deadline_in: Duration) -> NewMessage {
        NewMessage {
            id,
            url,
            site,
            retailer: String::new(),
            correlation_id: String::new(),
            deadline_in,
            callback_url: None,
            options: Vec::new(),
            kind: id.0,
            max_age: None,
        }
    }
}

/// What became of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// These messages stand for it, in order: its own, or those of the first time it was sent.
    Accepted(Vec<MessageId>),
    /// Something else was sent under its name before.
    KeyUsedOtherwise,
}

/// Where a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageStatus {
    /// It waits.
    Queued,
    /// An instance has it.
    Processing,
    /// Its page is in the outbox.
    Completed,
    /// Why it has no page is in the outbox.
    Failed,
}

/// A message as its caller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its name.
    pub id: MessageId,
    /// The exact string that was posted.
    pub url: String,
    /// On whose behalf.
    pub retailer: String,
    /// The caller's own name for it.
    pub correlation_id: String,
    /// Who sent it.
    pub caller: String,
    /// Where it stands.
    pub status: MessageStatus,
    /// When it was accepted, by the wall clock: the server's, where there is one.
    pub created_at: Time,
    /// Attempts so far. Failed probes of its site count.
    pub attempts: u32,
    /// Its result.
    pub outbox: Option<OutboxMessage>,
}

/// A result as its caller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxMessage {
    /// Its place among the caller's results: the cursor.
    pub cursor: i64,
    /// Which message it answers.
    pub message: MessageId,
    /// The exact string that was posted.
    pub url: String,
    /// On whose behalf.
    pub retailer: String,
    /// The caller's own name for it.
    pub correlation_id: String,
    /// When it was stored, by the wall clock.
    pub created_at: Time,
    /// What came out.
    pub result: FetchResult,
}

/// What came out of a message: the record of the flow that fetches them. A message that is given up has
/// one, too, and counts as done; one that ends without a record is dead. Beside a retry it tells what the
/// attempt came to, and that alone is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchResult {
    /// `success`, or what went wrong, in one word.
    pub status: String,
    /// The page as text.
    pub content: Option<String>,
    /// The answer's own word for it.
    pub content_type: Option<String>,
    /// The status of the last answer.
    pub http_status: Option<u16>,
    /// What went wrong, in words.
    pub error: Option<String>,
    /// The door's own data about it, in JSON.
    pub extracted: Option<String>,
    /// Attempts that it took. Failed probes of its site count.
    pub attempts: u32,
    /// What the last attempt came to, for those who look after the service: its caller does not see it.
    pub attempt: Option<Attempt>,
}

impl FetchResult {
    /// The status of a result with a page.
    pub const SUCCESS: &'static str = "success";
    /// The status of a result without a page, because robots.txt disallows it.
    pub const REFUSED_BY_ROBOTS: &'static str = "refused_by_robots";
    /// The status of a result that an operator put in the place of one.
    pub const CANCELLED: &'static str = "cancelled";
    /// The status of a result without a page, because this program failed.
    pub const INTERNAL_ERROR: &'static str = "internal_error";

    /// Why there is no page, in a word and the answer's number: failures are grouped by it.
    pub fn reason(&self) -> Option<String> {
        match (self.is_success(), self.http_status) {
            (true, _) => None,
            (false, Some(http_status)) if self.status == "http_error" => {
                Some(format!("http_error {http_status}"))
            }
            (false, _) => Some(self.status.clone()),
        }
    }

    /// Whether the page is there.
    pub fn is_success(&self) -> bool {
        self.status == FetchResult::SUCCESS
    }
}

/// How much of an outbox is wanted.
#[derive(Clone, Copy, Debug)]
pub struct OutboxMost {
    /// At most so many results.
    pub results: u32,
    /// No more results once their contents have so many bytes.
    pub bytes: u64,
}

/// A part of an outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboxPage {
    /// There is nothing missing before these.
    Results {
        /// These; none: there are none yet.
        results: Vec<OutboxMessage>,
        /// The cursor to go on after.
        next: i64,
    },
    /// What follows the cursor was taken out already, or the cursor is beyond the newest result: it was not given by
    /// this store.
    Gone {
        /// The oldest cursor after which all is there.
        oldest: i64,
    },
}

/// SHA-256 of a token.
pub type TokenHash = [u8; 32];

/// Who may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name.
    pub name: String,
    /// What is allowed.
    pub role: Role,
}

/// What a caller is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// To send messages and to see what became of them.
    Caller,
    /// To see everything.
    Viewer,
    /// To do everything.
    Operator,
}

impl Role {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Caller => "caller",
            Role::Viewer => "viewer",
            Role::Operator => "operator",
        }
    }

    /// The role of that word.
    pub fn parse(word: &str) -> Option<Role> {
        [Role::Caller, Role::Viewer, Role::Operator].into_iter().find(|role| role.as_str() == word)
    }
}

/// A caller, with its past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerRecord {
    /// Who.
    pub caller: Caller,
    /// When it was added, or had its last token.
    pub created_at: Time,
    /// When its token was revoked.
    pub revoked_at: Option<Time>,
}

/// Something that happened, for whoever looks into it later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// When, by the wall clock.
    pub at: Time,
    /// Who; `None`: nobody knows.
    pub caller: Option<String>,
    /// What, in one word: `submit`, `add_caller`, `revoke_caller`, `authentication_failed`…
    pub action: String,
    /// On what, in words. Never a token.
    pub detail: String,
    /// From which address.
    pub from: String,
}
