//! The inbox: the store of a service that accepts messages and returns results.
//!
//! Messages are jobs of a queue, so the pipeline fetches them like any others. The differences: a message keeps its row
//! when it is done, its result goes to the outbox in the same transaction, and callers see only their own messages.

mod attempt;
mod batch_id;
mod bodies;
mod crawl_id;
mod deliveries;
pub mod details;
pub mod document;
mod message_id;
pub mod options;
mod result_notifier;
pub mod sent;
mod tokens;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;

use crate::ports::error::StoreError;
use crate::ports::queue::Ledger;

pub use attempt::{AttemptRecord, attempts_of};
pub use batch_id::{BatchId, NoBatchId};
pub use bodies::{KeptBody, MessageBody, NewBody, ResultBody};
pub use crawl_id::{CrawlId, NoCrawlId};
pub use deliveries::{
    DeliveryAttempt, DeliveryFilter, DeliveryLogEntry, DeliveryRecord, DeliveryStatus, MAX_REPLAYS,
    ReplayCursor, ReplayRange, Replayed, ReplayedOne, delivery_attempts_of,
};
pub use message_id::{MessageId, NoMessageId};
pub use result_notifier::ResultNotifier;
pub use tokens::{
    FIRST_TOKEN, KeyRotated, MAX_TOKENS, NewToken, TokenAdded, TokenRecord, WebhookKey, WebhookKeys,
};

/// A store of messages, as the API sees it.
#[async_trait]
pub trait Inbox: Send + Sync {
    /// Accepts messages, all or none; they are committed when this returns. Concurrent submissions share a commit. If
    /// the ID of a message exists already, or if it cannot be stored, only its own submission is refused.
    async fn submit(&self, submission: Submission) -> Result<Submitted, StoreError>;

    /// A message with its result; with `of`, only if it belongs to this caller.
    async fn message(&self, id: MessageId, of: Option<&str>)
    -> Result<Option<Message>, StoreError>;

    /// The body of the response to a message; with `of`, only if the message belongs to this caller.
    async fn body(
        &self,
        id: MessageId,
        of: Option<&str>,
    ) -> Result<Option<MessageBody>, StoreError>;

    /// The newest page of this kind, with the message that it was fetched for.
    async fn newest_page(&self, kind: [u8; 16]) -> Result<Option<StoredPage>, StoreError>;

    /// Messages of a caller that match, newest first, from the start or from the `next` of another page; at most
    /// [`sent::MOST_SENT`].
    async fn sent(
        &self,
        caller: &str,
        filter: &sent::SentFilter,
        from: Option<i64>,
        most: u32,
    ) -> Result<sent::SentPage, StoreError>;

    /// Results of a caller in commit order, after the given cursor, or from the oldest one if it is `None`.
    async fn outbox(
        &self,
        caller: &str,
        after: Option<i64>,
        most: OutboxMost,
    ) -> Result<OutboxPage, StoreError>;

    /// The cursor of a caller's newest result; 0 if it never had one.
    async fn newest_cursor(&self, caller: &str) -> Result<i64, StoreError>;

    /// The caller with this token, unless the token was revoked or has expired.
    async fn caller_of(&self, token: &TokenHash) -> Result<Option<Caller>, StoreError>;

    /// The keys with which webhooks of a caller are signed, unless it was revoked.
    async fn webhook_keys(&self, caller: &str) -> Result<Option<WebhookKeys>, StoreError>;

    /// Replaces the key with which webhooks of a caller are signed. The one before it remains in use for `overlap`.
    ///
    /// This and the other changes of callers add `entry` to the audit log in the same transaction, if they change
    /// anything.
    async fn rotate_webhook_key(
        &self,
        caller: &str,
        key: &WebhookKey,
        overlap: Duration,
        entry: &AuditEntry,
    ) -> Result<KeyRotated, StoreError>;

    /// The tokens of this caller, or of all callers, ordered by caller and name.
    async fn tokens(&self, of: Option<&str>) -> Result<Vec<TokenRecord>, StoreError>;

    /// Adds a token to a caller.
    async fn add_token(
        &self,
        caller: &str,
        token: &NewToken,
        entry: &AuditEntry,
    ) -> Result<TokenAdded, StoreError>;

    /// Revokes one token of a caller. A caller without any token is revoked itself. Returns `false` if there is no such
    /// token.
    async fn revoke_token(
        &self,
        caller: &str,
        name: &str,
        entry: &AuditEntry,
    ) -> Result<bool, StoreError>;

    /// Records that these tokens were used now.
    async fn tokens_used(&self, tokens: &[TokenHash]) -> Result<(), StoreError>;

    /// Deliveries to webhooks of a caller.
    async fn deliveries(
        &self,
        caller: &str,
        filter: DeliveryFilter,
    ) -> Result<Vec<DeliveryLogEntry>, StoreError>;

    /// Delivers a result again, with the same `webhook-id`.
    async fn replay_one(&self, caller: &str, webhook: &str) -> Result<ReplayedOne, StoreError>;

    /// Delivers the results of a time range again.
    async fn replay(&self, caller: &str, range: ReplayRange) -> Result<Replayed, StoreError>;

    /// Adds a caller with its first token, or gives a revoked one a new token. Returns `false` if a caller of that name
    /// exists.
    async fn add_caller(
        &self,
        caller: &Caller,
        token: &TokenHash,
        entry: &AuditEntry,
    ) -> Result<bool, StoreError>;

    /// All callers, ordered by name.
    async fn callers(&self) -> Result<Vec<CallerRecord>, StoreError>;

    /// Revokes all tokens of a caller. Returns `false` if there is no such caller, or if it was revoked before.
    async fn revoke_caller(&self, name: &str, entry: &AuditEntry) -> Result<bool, StoreError>;

    /// Appends entries to the audit log.
    async fn audit(&self, entries: &[AuditEntry]) -> Result<(), StoreError>;

    /// The latest entries of the audit log, newest first.
    async fn audit_trail(&self, most: u32) -> Result<Vec<AuditEntry>, StoreError>;

    /// Removes at most `most` messages that ended longer ago than `keep`, with their results, the audit entries of
    /// their submission and all other related data. The results of a caller are removed in commit order. Returns the
    /// number of messages removed.
    async fn prune(&self, keep: Duration, most: u32) -> Result<u64, StoreError>;

    /// Deletes expired bodies, at most `most` of them. Returns the number; 0 if there are none left.
    async fn prune_bodies(&self, most: u32) -> Result<u64, StoreError>;

    /// The number of messages by state.
    async fn ledger(&self) -> Result<Ledger, StoreError>;

    /// Whether the store can be read and written.
    async fn check(&self) -> Result<(), StoreError>;
}

/// Messages that are accepted together.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The caller that sends them.
    pub caller: String,
    /// The client's address, for the audit log.
    pub from: String,
    /// The idempotency key, if the caller sent one. A submission that is sent again is not accepted twice.
    pub idempotency: Option<Idempotency>,
    /// The messages.
    pub messages: Vec<NewMessage>,
    /// The batch that they form; `None` for a single message.
    pub batch: Option<NewBatch>,
}

/// A batch to be accepted together with its messages. Its ID is that of [`BatchId::of`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewBatch {
    /// The webhook for the end of the batch.
    pub callback_url: Option<String>,
    /// How long it is expected to take.
    pub expected_in: Duration,
    /// The number of invalid messages that were left out.
    pub skipped: u32,
    /// The part of the answer that names these messages, so that a repeated submission gets the same answer.
    pub skipped_told: Option<String>,
}

/// The key and the content of a submission.
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
    /// Its ID, created by the process that accepts it.
    pub id: MessageId,
    /// The exact string that was posted.
    pub url: String,
    /// Its site.
    pub site: Site,
    /// The retailer on whose behalf it is fetched.
    pub retailer: String,
    /// The caller's ID for it.
    pub correlation_id: String,
    /// The time until its deadline, counted from acceptance.
    pub deadline_in: Duration,
    /// The webhook for its result.
    pub callback_url: Option<String>,
    /// The encoded [`options::Options`], which messages of a batch may share.
    pub options: Bytes,
    /// Equal for messages of one caller that request the same, and for no others; see [`options::kind`].
    pub kind: [u8; 16],
    /// Accepts a page of the same kind that was stored at most this long ago, or the result of an unfinished message of
    /// the same kind that has this set, too.
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
            options: Bytes::new(),
            kind: id.0,
            max_age: None,
        }
    }
}

/// The result of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// It is accepted.
    Accepted {
        /// Its messages, in order. If it was sent before, these are the messages of the first time.
        ids: Vec<MessageId>,
        /// When its messages were created, by the wall clock; `None` if it was sent before.
        created_at: Option<Time>,
    },
    /// Its idempotency key was used before with a different body.
    KeyUsedOtherwise,
}

/// The status of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageStatus {
    /// It is waiting.
    Queued,
    /// An instance holds it.
    Processing,
    /// The outbox has its page.
    Completed,
    /// The outbox has the reason why there is no page.
    Failed,
}

/// A message as its caller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its ID.
    pub id: MessageId,
    /// The exact string that was posted.
    pub url: String,
    /// The retailer on whose behalf it is fetched.
    pub retailer: String,
    /// The caller's ID for it.
    pub correlation_id: String,
    /// The caller that sent it.
    pub caller: String,
    /// Its status.
    pub status: MessageStatus,
    /// When it was accepted, by the wall clock (that of the store's server, if there is one).
    pub created_at: Time,
    /// Attempts so far. Failed probes of its site count.
    pub attempts: u32,
    /// Its result.
    pub outbox: Option<OutboxMessage>,
}

/// A result as its caller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxMessage {
    /// The cursor: its position among the caller's results.
    pub cursor: i64,
    /// The message that it belongs to.
    pub message: MessageId,
    /// The exact string that was posted.
    pub url: String,
    /// The retailer on whose behalf it was fetched.
    pub retailer: String,
    /// The caller's ID for it.
    pub correlation_id: String,
    /// When it was stored, by the wall clock.
    pub created_at: Time,
    /// The result.
    pub result: FetchResult,
}

/// A page in the outbox, for those who want the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPage {
    /// The result that has the page.
    pub outbox: OutboxMessage,
    /// How long ago it was stored.
    pub age: Duration,
}

/// The result of a message: the record type of the pipeline that fetches messages. A message that was given up also has
/// a result and counts as done; one that ends without a record is dead. With a retry, only the `attempt` of the record
/// is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchResult {
    /// `success`, or an error code.
    pub status: String,
    /// The page as text.
    pub content: Option<String>,
    /// The `Content-Type` of the response.
    pub content_type: Option<String>,
    /// The body of the response, as it was received.
    pub body: ResultBody,
    /// The status code of the last response.
    pub http_status: Option<u16>,
    /// What went wrong, as text.
    pub error: Option<String>,
    /// Data that the door extracted from the page, as JSON.
    pub extracted: Option<String>,
    /// The encoded [`details::FetchDetails`]. Results of earlier versions have none.
    pub details: Option<String>,
    /// If this is a stored page that answered a message with a `max_age`: its age at that time.
    pub cached_age: Option<Duration>,
    /// The number of attempts. Failed probes of its site count.
    pub attempts: u32,
    /// The last attempt. Operators see it, its caller does not.
    pub attempt: Option<AttemptRecord>,
}

impl FetchResult {
    /// The status of a result with a page.
    pub const SUCCESS: &'static str = "success";
    /// The status of a result without a page, because robots.txt disallows it.
    pub const REFUSED_BY_ROBOTS: &'static str = "refused_by_robots";
    /// The status of a result for a message that its caller or an operator cancelled.
    pub const CANCELLED: &'static str = "cancelled";
    /// The status of a result without a page, because the page asks not to be indexed. Only crawls obey that.
    pub const NOINDEX: &'static str = "noindex";
    /// The status of a result without a page, because it redirects to a page that is in another result of the same
    /// crawl.
    pub const REDIRECTED: &'static str = "redirected";
    /// The status of a result without a page, because this program failed.
    pub const INTERNAL_ERROR: &'static str = "internal_error";

    /// Why there is no page: the status, with the status code after an HTTP error. Failures are grouped by it.
    pub fn reason(&self) -> Option<String> {
        match (self.is_success(), self.http_status) {
            (true, _) => None,
            (false, Some(http_status)) if self.status == "http_error" => {
                Some(format!("http_error {http_status}"))
            }
            (false, _) => Some(self.status.clone()),
        }
    }

    /// The size of its long texts.
    pub fn text_bytes(&self) -> u64 {
        let texts = [&self.content, &self.extracted, &self.details];
        texts.into_iter().flatten().map(|text| text.len() as u64).sum()
    }

    /// Whether there is a page.
    pub fn is_success(&self) -> bool {
        self.status == FetchResult::SUCCESS
    }
}

/// The maximum size of a part of an outbox.
#[derive(Clone, Copy, Debug)]
pub struct OutboxMost {
    /// The maximum number of results.
    pub results: u32,
    /// No result is added once the contents have this many bytes.
    pub bytes: u64,
}

/// A part of an outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboxPage {
    /// Results without a gap after the cursor.
    Results {
        /// The results; empty if there are none yet.
        results: Vec<OutboxMessage>,
        /// The cursor for the next part.
        next: i64,
    },
    /// Results after the cursor were already removed, or the cursor is beyond the newest result and so comes from
    /// another store.
    Gone {
        /// The oldest cursor after which no result was removed.
        oldest: i64,
    },
}

/// SHA-256 of a token.
pub type TokenHash = [u8; 32];

/// A caller of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its unique name.
    pub name: String,
    /// What it is allowed to do.
    pub role: Role,
}

/// What a caller is allowed to do. Later roles may do more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// May send messages and see their results.
    Caller,
    /// May see everything.
    Viewer,
    /// May do everything.
    Operator,
}

impl Role {
    /// The name of the role.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Caller => "caller",
            Role::Viewer => "viewer",
            Role::Operator => "operator",
        }
    }

    /// Parses the name of a role.
    pub fn parse(word: &str) -> Option<Role> {
        [Role::Caller, Role::Viewer, Role::Operator].into_iter().find(|role| role.as_str() == word)
    }
}

/// A caller, and when it was added and revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerRecord {
    /// The caller.
    pub caller: Caller,
    /// When it was added, or added again after it was revoked.
    pub created_at: Time,
    /// When it was revoked.
    pub revoked_at: Option<Time>,
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// When it happened, by the wall clock.
    pub at: Time,
    /// Who did it; `None` if unknown.
    pub caller: Option<String>,
    /// What was done, such as `submit`, `add_caller`, `revoke_caller` or `authentication_failed`.
    pub action: String,
    /// Details as text. Never contains a token.
    pub detail: String,
    /// The address of the client.
    pub from: String,
}
