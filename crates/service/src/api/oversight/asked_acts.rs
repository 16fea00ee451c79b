//! The request bodies of operators' actions: which messages to act on.

use fetchwell_engine::ports::inbox::{MessageId, NoMessageId};
use fetchwell_engine::ports::oversight::{MESSAGES_PER_ACT, MessageFilter, MessageState};
use serde::Deserialize;
use utoipa::ToSchema;

use super::query::{AS_OF, STATES, moment};
use crate::problem::{FieldError, Problem};

/// The messages to act on, by id.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    /// 1 to 200 ids of messages.
    #[schema(min_items = 1, max_items = 200, example = json!(["msg_018bcfe56800ffffffffffffffffffff"]))]
    pub(super) ids: Vec<String>,
}

/// The messages to act on, by a filter.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Matching {
    /// The filter.
    pub(super) filter: ActFilter,
    /// The time to which the filter refers: `as_of` of a list or a count. Messages that were accepted or ended later
    /// are not changed.
    #[schema(example = "2026-01-01T00:00:00Z", format = DateTime)]
    pub(super) as_of: String,
    /// Maximum number of messages, newest first; use 1 as a test. Without it, all of them.
    #[schema(minimum = 1, maximum = 4294967295u32)]
    pub(super) most: Option<u32>,
}

/// A filter. It must include a state, so that it never means all messages.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ActFilter {
    /// queued, processing, delayed, completed or failed.
    #[schema(example = "failed", pattern = "^(queued|processing|delayed|completed|failed)$")]
    state: String,
    /// The host, with the port unless it is the default one.
    site: Option<String>,
    /// The retailer.
    retailer: Option<String>,
    /// The caller that sent them.
    caller: Option<String>,
    /// The reason of the failure, as a list shows it.
    reason: Option<String>,
    /// Text in the URL.
    url: Option<String>,
    /// The correlation id.
    correlation_id: Option<String>,
}

impl Named {
    /// The parsed ids.
    pub(super) fn messages(&self) -> Result<Vec<MessageId>, Problem> {
        let texts = &self.ids;
        if !(1..=MESSAGES_PER_ACT).contains(&texts.len()) {
            let error = FieldError::at("/ids", "must be 1 to 200 messages");
            return Err(Problem::invalid(vec![error]));
        }
        let parse = |(place, text): (usize, &String)| {
            text.parse::<MessageId>().map_err(|fault: NoMessageId| {
                let error = FieldError::at(format!("/ids/{place}"), fault.to_string());
                Problem::invalid(vec![error])
            })
        };
        texts.iter().enumerate().map(parse).collect()
    }
}

impl Matching {
    /// The checked filter, including `as_of`.
    pub(super) fn checked(self) -> Result<MessageFilter, Problem> {
        let state = MessageState::parse(&self.filter.state);
        let as_of = moment(&self.as_of);
        let mut errors = Vec::new();
        if state.is_none() {
            errors.push(FieldError::at("/filter/state", STATES));
        }
        if as_of.is_none() {
            errors.push(FieldError::at("/as_of", AS_OF));
        }
        if self.most == Some(0) {
            errors.push(FieldError::at("/most", "must be 1 or more"));
        }
        let ActFilter { site, retailer, caller, reason, url, correlation_id, .. } = self.filter;
        let texts = [&site, &retailer, &caller, &reason, &url, &correlation_id];
        if texts.into_iter().flatten().any(|text| text.contains('\0')) {
            errors.push(FieldError::at("/filter", "must not contain NUL"));
        }
        if !errors.is_empty() {
            return Err(Problem::invalid(errors));
        }
        Ok(MessageFilter {
            state,
            site,
            retailer,
            caller,
            reason,
            url_contains: url,
            correlation_id,
            as_of,
        })
    }
}
