//! One message: its timeline, its attempts and its result.

use askama::Template;
use axum::extract::Path;
use fetchwell_engine::ports::inbox::MessageId;
use fetchwell_engine::ports::oversight::{MessageDetail, MessageState, Milestone, timeline};
use fetchwell_policy::url::Site;

use super::acting::offers_for_one;
use super::reason::{Reason, reason};
use super::{Absent, mood, oversight};
use crate::dashboard::access::Visitor;
use crate::dashboard::fault::{PageError, PageResult};
use crate::dashboard::layout::{self, Section};
use crate::dashboard::offer::Offer;
use crate::dashboard::words;
use crate::sites::SiteRow;

/// The maximum number of characters shown of the content.
const MOST_CONTENT: usize = 4_000;

#[derive(Template)]
#[template(path = "message.html")]
struct Page<'a> {
    visitor: &'a Visitor,
    detail: &'a MessageDetail,
    reason: Reason,
    way: Vec<Milestone>,
    content: Option<(String, usize)>,
    offers: Vec<Offer>,
}

pub(in super::super) async fn page(visitor: Visitor, Path(id): Path<String>) -> PageResult {
    let title = (Section::Messages, "Message");
    let Some(oversight) = oversight(&visitor.dashboard) else {
        return layout::page(&visitor, title, &Absent).await;
    };
    let unknown = PageError::NotFound("there is no such message; old messages are deleted");
    let Ok(id) = id.parse::<MessageId>() else { return Err(unknown) };
    let Some(detail) = oversight.detail(id).await? else { return Err(unknown) };
    let site = site_of(&visitor, &detail).await?;
    let content = Page {
        visitor: &visitor,
        reason: reason(&detail, site.as_ref()),
        way: timeline(&detail),
        content: content(&detail),
        offers: offers_for_one(&detail.message),
        detail: &detail,
    };
    layout::page(&visitor, title, &content).await
}

/// The state of the message's site, if the message waits for it.
async fn site_of(visitor: &Visitor, detail: &MessageDetail) -> Result<Option<SiteRow>, PageError> {
    let waits = matches!(detail.message.state, MessageState::Queued | MessageState::Delayed);
    let Ok(site) = Site::parse(&detail.message.site) else { return Ok(None) };
    if !waits {
        return Ok(None);
    }
    Ok(Some(visitor.dashboard.subject.sites.row_uncounted(&site).await?))
}

/// The beginning of the content, and its length in characters.
fn content(detail: &MessageDetail) -> Option<(String, usize)> {
    let content = detail.outbox.as_ref()?.result.content.as_ref()?;
    Some((content.chars().take(MOST_CONTENT).collect(), content.chars().count()))
}

/// The label of a stage in the timeline.
fn stage_name(stage: &str) -> &str {
    match stage {
        "queued" => "Queued",
        "robots" => "robots.txt known",
        "slot" => "Slot reached",
        "connect" => "Connected",
        "first_byte" => "First byte",
        "extracted" => "Content extracted",
        "delivered" => "Result stored",
        other => other,
    }
}
