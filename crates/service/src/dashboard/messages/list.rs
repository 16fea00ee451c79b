//! The list of messages.

use askama::Template;
use fetchwell_engine::ports::oversight::{Count, MessageFilter, MessageState, MessageSummaries};

use super::acting::{ACTION, bulk_buttons, how_many, offers_for_all};
use super::{Absent, filter, mood, oversight};
use crate::dashboard::access::Visitor;
use crate::dashboard::bulk::Bulk;
use crate::dashboard::fault::PageResult;
use crate::dashboard::layout::{self, Section};
use crate::dashboard::offer::Offer;
use crate::dashboard::tabs::Tab;
use crate::dashboard::words;

/// The maximum number of messages on a page.
const MOST: u32 = 50;

#[derive(Template)]
#[template(path = "messages.html")]
struct Page<'a> {
    visitor: &'a Visitor,
    filter: &'a MessageFilter,
    tabs: Vec<Tab>,
    seen: MessageSummaries,
    count: Count,
    next: Option<String>,
    offers: Vec<Offer>,
    bulk: Option<Bulk>,
    is_unfiltered: bool,
}

pub(in super::super) async fn page(visitor: Visitor) -> PageResult {
    let title = (Section::Messages, "Messages");
    let Some(oversight) = oversight(&visitor.dashboard) else {
        return layout::page(&visitor, title, &Absent).await;
    };
    let query = visitor.query();
    let filter = filter::read(&query)?;
    let from = query.text("from").and_then(|from| from.parse().ok());
    let seen = oversight.list(&filter, from, MOST).await?;
    // Actions apply to the messages as of this time, so they are counted as of the same time.
    let as_seen = MessageFilter { as_of: Some(seen.as_of), ..filter.clone() };
    let count = oversight.count(&as_seen).await?;
    let buttons = bulk_buttons(filter.state);
    let bulk = Bulk::of(&visitor, ACTION, seen.as_of.as_micros(), buttons);
    let content = Page {
        bulk: bulk.filter(|_| !seen.messages.is_empty()),
        is_unfiltered: filter == MessageFilter::default() && from.is_none(),
        visitor: &visitor,
        tabs: tabs(&filter),
        next: seen.next.map(|next| filter::path(&filter, Some(next))),
        offers: offers_for_all(&as_seen, &count),
        seen,
        count,
        filter: &filter,
    };
    layout::page(&visitor, title, &content).await
}

/// A tab for each state; the other fields of the filter are kept.
fn tabs(filter: &MessageFilter) -> Vec<Tab> {
    let path = |state| filter::path(&MessageFilter { state, ..filter.clone() }, None);
    Tab::all(MessageState::ALL, filter.state, MessageState::as_str, path)
}

/// The value of a form field.
fn given(field: &Option<String>) -> &str {
    field.as_deref().unwrap_or_default()
}
