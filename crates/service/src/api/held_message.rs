//! A message whose result counts in the memory budget until it is sent.

use axum::response::Response;
use fetchwell_engine::ports::inbox::{FetchResult, Message, MessageId};

use super::Api;
use super::memory::Held;
use super::respond::json;
use crate::problem::Problem;
use crate::server::until_sent;
use crate::views::messages::MessageView;

/// The memory reserved before the size of a result is known.
pub(super) const MAX_RESULT_BYTES: u64 = 16 << 20;

/// A message that was read from the store.
pub(super) struct HeldMessage {
    pub(super) message: Message,
    /// The memory that its result occupies.
    pub(super) share: Held,
}

impl HeldMessage {
    /// The response with this message.
    pub(super) fn into_response(self) -> Response {
        let HeldMessage { message, share } = self;
        until_sent(json(&MessageView::from(message)), share)
    }
}

impl Api {
    /// A message with its result; with `of`, only if it belongs to this caller.
    pub(super) async fn message(
        &self,
        id: MessageId,
        of: Option<&str>,
    ) -> Result<Option<HeldMessage>, Problem> {
        let mut share = self.memory.take(MAX_RESULT_BYTES).await?;
        let found = self.stored(self.on.inbox.message(id, of).await)?;
        Ok(found.map(|message| {
            let result = message.outbox.as_ref().map(|outbox| &outbox.result);
            share.shrink_to(result.map_or(0, FetchResult::text_bytes));
            HeldMessage { message, share }
        }))
    }
}
