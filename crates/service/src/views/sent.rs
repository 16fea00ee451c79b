//! A caller's list of its own messages.

use fetchwell_engine::ports::inbox::sent::{SentMessage, SentPage};
use fetchwell_policy::rfc3339::rfc3339;
use serde::Serialize;
use utoipa::ToSchema;

use super::messages::status;
use super::schemas::{MessageStatus, ResultStatus};

/// A message in a list: its fields without the result, which may be large.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = SentMessage)]
pub struct SentMessageView {
    /// The id of the message.
    #[schema(example = "msg_018bcfe56800ffffffffffffffffffff", pattern = "^msg_[0-9a-f]{32}$")]
    pub id: String,
    /// The same as `id`.
    #[schema(example = "msg_018bcfe56800ffffffffffffffffffff", pattern = "^msg_[0-9a-f]{32}$")]
    pub message_id: String,
    /// The exact text that was posted.
    pub url: String,
    /// The retailer.
    pub retailer: String,
    /// The correlation id.
    pub correlation_id: String,
    /// The caller that sent it.
    pub caller_id: String,
    /// `queued`, `processing`, `completed` or `failed`.
    #[schema(value_type = MessageStatus)]
    pub status: &'static str,
    /// When it was accepted.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Attempts so far. Failed probes of its site count.
    pub attempts: u32,
    /// The status of its result; null until there is one.
    #[schema(required, value_type = Option<ResultStatus>)]
    pub result_status: Option<String>,
}

/// A part of a list of messages.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = SentMessages)]
pub struct SentPageView {
    /// The messages, newest first.
    pub messages: Vec<SentMessageView>,
    /// The cursor for `after` to continue; null at the end.
    #[schema(required, example = "42", pattern = "^[0-9]+$")]
    pub next: Option<String>,
}

impl From<SentMessage> for SentMessageView {
    fn from(sent: SentMessage) -> SentMessageView {
        let SentMessage { message, result_status } = sent;
        SentMessageView {
            id: message.id.to_string(),
            message_id: message.id.to_string(),
            url: message.url,
            retailer: message.retailer,
            correlation_id: message.correlation_id,
            caller_id: message.caller,
            status: status(message.status),
            created_at: rfc3339(message.created_at),
            attempts: message.attempts,
            result_status,
        }
    }
}

impl From<SentPage> for SentPageView {
    fn from(page: SentPage) -> SentPageView {
        SentPageView {
            messages: page.messages.into_iter().map(SentMessageView::from).collect(),
            next: page.next.map(|next| next.to_string()),
        }
    }
}
