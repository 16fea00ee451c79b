//! Failed messages by reason and site.

use std::sync::Arc;

use askama::Template;
use axum::body::Bytes;
use fetchwell_engine::ports::oversight::{
    Failures, MESSAGES_PER_PAGE, MessageFilter, MessageState, MessageSummary, Oversight,
};
use fetchwell_policy::rfc3339::rfc3339;
use futures::StreamExt;
use futures::stream::try_unfold;

use super::bulk::key;
use super::{BULK, Lines, MOST_GROUPS};
use crate::dashboard::access::Visitor;
use crate::dashboard::bulk::{self, Bulk};
use crate::dashboard::fault::PageResult;
use crate::dashboard::layout::{self, Section};
use crate::dashboard::words::{self, shell};
use crate::views::oversight::MessageSummaryView;

#[derive(Template)]
#[template(path = "failures.html")]
struct Page<'a> {
    visitor: &'a Visitor,
    failures: Failures,
    messages: u64,
    more: usize,
    /// In the format that commands accept.
    as_of: String,
    bulk: Option<Bulk>,
}

/// The largest groups.
pub(super) async fn page(visitor: &Visitor, oversight: &dyn Oversight) -> PageResult {
    let mut failures = oversight.failures().await?;
    let messages = failures.groups.iter().map(|group| group.messages).sum();
    let more = failures.groups.len().saturating_sub(MOST_GROUPS);
    failures.groups.truncate(MOST_GROUPS);
    let as_of = rfc3339(failures.as_of);
    let bulk = Bulk::of(visitor, BULK, failures.as_of.as_micros(), vec![bulk::RETRY]);
    let content = Page { visitor, failures, messages, more, as_of, bulk };
    layout::page(visitor, (Section::DeadLetters, "Dead letters"), &content).await
}

/// Every failed message as a line of JSON, newest first.
pub(super) fn lines(oversight: Arc<dyn Oversight>) -> Lines {
    try_unfold(Some(None), move |from: Option<Option<i64>>| {
        let oversight = oversight.clone();
        async move {
            let Some(from) = from else { return Ok(None) };
            let failed =
                MessageFilter { state: Some(MessageState::Failed), ..MessageFilter::default() };
            let seen = oversight.list(&failed, from, MESSAGES_PER_PAGE).await?;
            let lines: String = seen.messages.into_iter().map(line).collect();
            Ok(Some((Bytes::from(lines), seen.next.map(Some))))
        }
    })
    .boxed()
}

fn line(message: MessageSummary) -> String {
    format!("{}\n", serde_json::to_string(&MessageSummaryView::from(message)).unwrap_or_default())
}
