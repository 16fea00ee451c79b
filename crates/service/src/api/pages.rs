//! Reads one page for a caller, for the endpoints whose response is a page.
//!
//! A page that was stored recently is returned as it is, which writes nothing to the store but an audit entry. Any
//! other page becomes a message like those of `POST /fetch`, and the request waits for its result.

use std::time::Duration;

use fetchwell_engine::ports::inbox::options::kind;
use fetchwell_engine::ports::inbox::{OutboxMessage, StoredPage};

use super::fields::FetchRequest;
use super::held_message::{HeldMessage, MAX_RESULT_BYTES};
use super::identity::Identity;
use super::memory::Held;
use super::{Api, waiting};
use crate::problem::{Problem, ProblemKind};

/// The result for a page, which may be a failure.
pub(super) struct PageResult {
    pub(super) outbox: OutboxMessage,
    /// How long ago the page was stored; `None` if it was fetched for this request.
    pub(super) age: Option<Duration>,
    /// The memory that the result takes. Keep it until the response is sent.
    pub(super) share: Held,
}

impl Api {
    /// The newest stored page for the same request, unless it is older than the `max_age` of the message; otherwise
    /// the result of the message. A result that does not come in time is a problem; the message is still queued.
    pub(super) async fn read_page(
        &self,
        identity: &Identity,
        message: FetchRequest,
        wait: Duration,
    ) -> Result<PageResult, Problem> {
        let mut share = self.memory.take(MAX_RESULT_BYTES).await?;
        if let Some(max_age) = message.max_age
            && let Some(page) = self.stored_page(identity, &message).await?
            && page.age <= max_age
        {
            self.reads.note(&identity.caller.name, &identity.from);
            share.shrink_to(page.outbox.result.text_bytes());
            return Ok(PageResult { outbox: page.outbox, age: Some(page.age), share });
        }
        // A wait must not keep memory from others.
        share.shrink_to(0);
        let ids = self.submit(identity, None, vec![message], None).await?.ids;
        let id = ids.first().copied().ok_or_else(|| Problem::new(ProblemKind::INTERNAL))?;
        let held = waiting::result_of(self, &identity.caller.name, id, wait).await?;
        identity.check_again(self).await?;
        let not_in_time = || Problem::not_in_time(id, wait);
        let HeldMessage { message, share } = held.ok_or_else(not_in_time)?;
        let outbox = message.outbox.ok_or_else(not_in_time)?;
        Ok(PageResult { outbox, age: None, share })
    }

    /// The newest page that was fetched for this caller and the same request.
    async fn stored_page(
        &self,
        identity: &Identity,
        message: &FetchRequest,
    ) -> Result<Option<StoredPage>, Problem> {
        let kind = kind(&identity.caller.name, &message.url, &message.options().to_payload());
        self.stored(self.on.inbox.newest_page(kind).await)
    }
}
