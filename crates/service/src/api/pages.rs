//! Reads one page for a caller, for the endpoints whose response is a page.
//!
//! A page that was stored recently is returned as it is, which writes nothing to the store but an audit entry. Any
//! other page becomes a message like those of `POST /fetch`, and the request waits for its result.

use std::time::Duration;

use fetchwell_engine::ports::inbox::options::kind;
use fetchwell_engine::ports::inbox::{FetchResult, OutboxMessage, StoredPage};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::fields::FetchRequest;
use super::held_message::{HeldMessage, MAX_RESULT_BYTES};
use super::identity::Identity;
use super::memory::Held;
use super::{Api, waiting};
use crate::problem::{Problem, ProblemKind};

/// When to ask again for a page that an instance of an earlier release fetched.
const EARLIER_RELEASE_RETRY_SECONDS: u64 = 5;

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
        mut message: FetchRequest,
        wait: Duration,
    ) -> Result<PageResult, Problem> {
        let wants_document = message.document.is_some();
        let wants_links = message.links;
        let lacks_document = |result: &FetchResult| {
            wants_document && result.content.is_some() && Parts::of(result).document.is_none()
        };
        // A text that is neither HTML nor a sitemap has none, either, and is fetched again each time.
        let lacks_links = |result: &FetchResult| {
            wants_links && result.content.is_some() && Parts::of(result).links.is_none()
        };
        let mut share = self.memory.take(MAX_RESULT_BYTES).await?;
        if let Some(max_age) = message.max_age
            && let Some(page) = self.stored_page(identity, &message).await?
        {
            let result = &page.outbox.result;
            if lacks_document(result) || lacks_links(result) {
                // Otherwise, the store would answer the message with that page.
                message.max_age = None;
            } else if page.age <= max_age {
                self.reads.note(&identity.caller.name, &identity.from);
                share.shrink_to(page.outbox.result.text_bytes());
                return Ok(PageResult { outbox: page.outbox, age: Some(page.age), share });
            }
        }
        // A wait must not keep memory from others.
        share.shrink_to(0);
        let ids = self.submit(identity, None, vec![message], None).await?.ids;
        let id = ids.first().copied().ok_or_else(|| Problem::new(ProblemKind::INTERNAL))?;
        let held = waiting::result_of(self, &identity.caller.name, id, wait).await?;
        identity.check_again(self).await?;
        let not_in_time = || match self.on.stop.is_cancelled() {
            true => Problem::stopped_waiting(id),
            false => Problem::not_in_time(id, wait),
        };
        let HeldMessage { message, share } = held.ok_or_else(not_in_time)?;
        let outbox = message.outbox.ok_or_else(not_in_time)?;
        if lacks_document(&outbox.result) {
            return Err(Problem::new(ProblemKind::INTERNAL)
                .saying(
                    "An instance of an earlier release fetched this page, without the formats of the request. Send \
                     the request again.",
                )
                .retry_after(EARLIER_RELEASE_RETRY_SECONDS));
        }
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

/// The parts of a result that instances of earlier releases leave out. They may share the store while the service is
/// upgraded.
#[derive(Default, Deserialize)]
struct Parts {
    document: Option<IgnoredAny>,
    links: Option<IgnoredAny>,
}

impl Parts {
    fn of(result: &FetchResult) -> Parts {
        let extracted = result.extracted.as_deref();
        extracted.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
    }
}
