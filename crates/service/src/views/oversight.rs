//! Messages of all callers, as JSON for the API and the command line.

use fetchwell_engine::ports::inbox::{AttemptRecord, MessageId};
use fetchwell_engine::ports::oversight::{
    Acted, ActionResult, Count, FailureGroup, Failures, MessageDetail, MessageSummaries,
    MessageSummary, Milestone, timeline,
};
use fetchwell_policy::rfc3339::rfc3339;
use serde::Serialize;
use utoipa::ToSchema;

use super::messages::OutboxView;

/// A message of any caller.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Sighting)]
pub struct MessageSummaryView {
    /// The id of the message.
    #[schema(example = "msg_018bcfe56800ffffffffffffffffffff", pattern = "^msg_[0-9a-f]{32}$")]
    pub id: String,
    /// `queued`, `processing`, `delayed`, `completed` or `failed`.
    pub state: &'static str,
    /// Why it failed: the status of the result, and the HTTP status if there was a response.
    #[schema(required)]
    pub reason: Option<String>,
    /// The exact text that was posted.
    pub url: String,
    /// Its site.
    pub site: String,
    /// The retailer.
    pub retailer: String,
    /// The correlation id.
    pub correlation_id: String,
    /// The caller that sent it.
    pub caller_id: String,
    /// When it was accepted.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it is due; null unless it waits.
    #[schema(required, format = DateTime)]
    pub due_at: Option<String>,
    /// When it ended.
    #[schema(required, format = DateTime)]
    pub ended_at: Option<String>,
    /// Attempts so far. Failed probes of its site count.
    pub attempts: u32,
    /// The message that this one is a retry of.
    #[schema(required)]
    pub retry_of: Option<String>,
    /// The message that is a retry of this one.
    #[schema(required)]
    pub retried_as: Option<String>,
}

impl From<MessageSummary> for MessageSummaryView {
    fn from(seen: MessageSummary) -> MessageSummaryView {
        let name = |id: Option<MessageId>| id.map(|id| id.to_string());
        MessageSummaryView {
            id: seen.id.to_string(),
            state: seen.state.as_str(),
            reason: seen.reason,
            url: seen.url,
            site: seen.site,
            retailer: seen.retailer,
            correlation_id: seen.correlation_id,
            caller_id: seen.caller,
            created_at: rfc3339(seen.created_at),
            due_at: seen.due_at.map(rfc3339),
            ended_at: seen.ended_at.map(rfc3339),
            attempts: seen.attempts,
            retry_of: name(seen.retry_of),
            retried_as: name(seen.retried_as),
        }
    }
}

/// A page of messages.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Sightings)]
pub struct MessageSummariesView {
    /// The messages, newest first.
    pub messages: Vec<MessageSummaryView>,
    /// The cursor for `after` to continue; null at the end.
    #[schema(required, example = "42", pattern = "^[0-9]+$")]
    pub next: Option<String>,
    /// The time to which the list refers. Send it with an action, so that later messages are not changed.
    #[schema(format = DateTime)]
    pub as_of: String,
}

impl From<MessageSummaries> for MessageSummariesView {
    fn from(page: MessageSummaries) -> MessageSummariesView {
        MessageSummariesView {
            messages: page.messages.into_iter().map(MessageSummaryView::from).collect(),
            next: page.next.map(|next| next.to_string()),
            as_of: rfc3339(page.as_of),
        }
    }
}

/// The number of messages that match.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Count)]
pub struct CountView {
    /// The number of messages found.
    pub count: u64,
    /// Whether `count` is exact; otherwise there are at least this many.
    pub exact: bool,
    /// The time to which this refers.
    #[schema(format = DateTime)]
    pub as_of: String,
}

impl From<Count> for CountView {
    fn from(count: Count) -> CountView {
        CountView { count: count.found, exact: count.is_exact, as_of: rfc3339(count.as_of) }
    }
}

/// All details of a message.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Dossier)]
pub struct MessageDetailView {
    /// The message.
    #[serde(flatten)]
    pub message: MessageSummaryView,
    /// Its deadline.
    #[schema(required, format = DateTime)]
    pub deadline: Option<String>,
    /// The URL to which its result is delivered.
    #[schema(required)]
    pub callback_url: Option<String>,
    /// The message whose result this one will share.
    #[schema(required)]
    pub follows: Option<String>,
    /// The timeline of its last attempt.
    pub timeline: Vec<MilestoneView>,
    /// Its last attempts, oldest first.
    pub last_attempts: Vec<AttemptView>,
    /// Its result.
    #[schema(required)]
    pub outbox: Option<OutboxView>,
}

impl From<MessageDetail> for MessageDetailView {
    fn from(detail: MessageDetail) -> MessageDetailView {
        MessageDetailView {
            timeline: timeline(&detail).iter().map(MilestoneView::of).collect(),
            last_attempts: detail.attempts.iter().map(AttemptView::of).collect(),
            deadline: detail.deadline.map(rfc3339),
            callback_url: detail.callback_url,
            follows: detail.follows.map(|id| id.to_string()),
            outbox: detail.outbox.map(OutboxView::from),
            message: detail.message.into(),
        }
    }
}

/// A stage of the timeline of a message.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Milestone)]
pub struct MilestoneView {
    /// `queued`, `robots`, `slot`, `connect`, `first_byte`, `extracted` or `delivered`.
    pub stage: &'static str,
    /// When it ended.
    #[schema(format = DateTime)]
    pub at: String,
    /// How long it took, in milliseconds.
    pub took_ms: f64,
}

impl MilestoneView {
    fn of(milestone: &Milestone) -> MilestoneView {
        let took_ms = milestone.took.as_secs_f64() * 1_000.0;
        MilestoneView { stage: milestone.stage, at: rfc3339(milestone.at), took_ms }
    }
}

/// The outcome of an attempt.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Attempt)]
pub struct AttemptView {
    /// When it ended.
    #[schema(format = DateTime)]
    pub at: String,
    /// Whether a request was sent.
    pub sent: bool,
    /// What happened.
    pub what: String,
    /// The HTTP status of the response.
    #[schema(required)]
    pub http_status: Option<u16>,
    /// The robots.txt rule that decided.
    #[schema(required)]
    pub robots: Option<String>,
    /// Milliseconds of waiting for robots.txt.
    pub robots_ms: f64,
    /// Milliseconds of waiting for a slot of the site.
    pub slot_ms: f64,
    /// Milliseconds of connecting; 0 on a reused connection.
    pub connect_ms: f64,
    /// Milliseconds from the head of the request to the head of the response.
    pub first_byte_ms: f64,
    /// Milliseconds of reading the body.
    pub body_ms: f64,
}

impl AttemptView {
    fn of(attempt: &AttemptRecord) -> AttemptView {
        let ms = |us: u64| us as f64 / 1_000.0;
        AttemptView {
            at: rfc3339(attempt.at),
            sent: attempt.sent,
            what: attempt.told.clone(),
            http_status: attempt.http_status,
            robots: attempt.robots.clone(),
            robots_ms: ms(attempt.robots_us),
            slot_ms: ms(attempt.slot_us),
            connect_ms: ms(attempt.connect_us),
            first_byte_ms: ms(attempt.first_byte_us),
            body_ms: ms(attempt.body_us),
        }
    }
}

/// Failed messages, grouped by reason and site.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Failures)]
pub struct FailuresView {
    /// The groups, largest first.
    pub groups: Vec<GroupView>,
    /// Whether these are all failures; otherwise they are the newest.
    pub exact: bool,
    /// The time to which this refers.
    #[schema(format = DateTime)]
    pub as_of: String,
}

/// Failures for one reason at one site.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = FailureGroup)]
pub struct GroupView {
    /// Why they failed.
    pub reason: String,
    /// The site.
    pub site: String,
    /// The number of messages.
    pub messages: u64,
    /// The newest of them.
    pub sample: MessageSummaryView,
}

impl From<Failures> for FailuresView {
    fn from(failures: Failures) -> FailuresView {
        let group = |group: FailureGroup| GroupView {
            reason: group.reason,
            site: group.site,
            messages: group.messages,
            sample: group.sample.into(),
        };
        FailuresView {
            groups: failures.groups.into_iter().map(group).collect(),
            exact: failures.is_exact,
            as_of: rfc3339(failures.as_of),
        }
    }
}

/// The outcome of an action for one message.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Deed)]
pub struct ActionResultView {
    /// The message.
    pub id: String,
    /// `renewed`, `hastened` or `cancelled`; or why it was not changed: `retried_before`, `is_due`,
    /// `follows`, `in_flight`, `has_ended`, `came_later` or `unknown`.
    pub deed: &'static str,
    /// The message that is a retry of it.
    #[schema(required)]
    pub retried_as: Option<String>,
    /// The outcome as a sentence.
    pub told: String,
}

impl ActionResultView {
    pub fn of(id: MessageId, deed: ActionResult) -> ActionResultView {
        ActionResultView {
            id: id.to_string(),
            deed: deed.as_str(),
            retried_as: deed.another_try().map(|id| id.to_string()),
            told: format!("{id} {}", deed.told()),
        }
    }
}

/// The outcome of an action.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ActedView {
    /// How many messages were changed.
    pub done: u64,
    /// How many were not changed.
    pub left_alone: u64,
    /// The outcome for each message, up to 200.
    pub deeds: Vec<ActionResultView>,
}

impl From<&Acted> for ActedView {
    fn from(acted: &Acted) -> ActedView {
        let deeds = acted.deeds.iter().map(|(id, deed)| ActionResultView::of(*id, *deed));
        ActedView { done: acted.done, left_alone: acted.left_alone, deeds: deeds.collect() }
    }
}
