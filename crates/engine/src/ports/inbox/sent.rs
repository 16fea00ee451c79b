//! The messages that a caller sent, as a list.

use super::{BatchId, Message, MessageStatus};

/// The maximum number of messages per page.
pub const MOST_SENT: u32 = 200;

/// Selects messages of a caller that match all given fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentFilter {
    /// The caller's ID for them.
    pub correlation_id: Option<String>,
    /// Their status.
    pub status: Option<MessageStatus>,
    /// The batch with which they were submitted.
    pub batch: Option<BatchId>,
}

/// A message in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentMessage {
    /// The message, without its result.
    pub message: Message,
    /// The status of its result; `None` until there is one.
    pub result_status: Option<String>,
}

/// A page of the list, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentPage {
    /// The messages. There may be fewer than requested, or none, even if more follow, because the cost of a page is
    /// bounded.
    pub messages: Vec<SentMessage>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<i64>,
}
