//! What operators do about messages: `POST /operator/messages/…`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use fetchwell_engine::inbox::{AuditEntry, MessageId};
use fetchwell_engine::oversight::{Act, Acted, Filter, MESSAGES_PER_ACT, MessageState};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::query::{AS_OF, STATES, moment};
use super::view::DeedView;
use crate::api::identity::Identity;
use crate::api::problem::{FieldError, Problem, ProblemBody};
use crate::api::routes::json;
use crate::api::{Api, body};

const MAX_BODY_BYTES: u64 = 64 << 10;

/// Which messages, by name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    /// Up to 200 messages.
    #[schema(min_items = 1, max_items = 200, example = json!(["msg_018bcfe56800ffffffffffffffffffff"]))]
    ids: Vec<String>,
}

/// Which messages, by what they have in common.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Matching {
    /// What they have in common.
    filter: ActFilter,
    /// When they were seen: `as_of` of a list or a count. What came in or ended after that is left alone.
    #[schema(example = "2026-01-01T00:00:00Z", format = DateTime)]
    as_of: String,
    /// At most so many, the newest first; 1 is a canary. Without it, all of them.
    #[schema(minimum = 1, maximum = 4294967295u32)]
    most: Option<u32>,
}

/// What messages have in common. A state must be named: nobody means every message there ever was.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ActFilter {
    /// queued, processing, delayed, completed or failed.
    #[schema(example = "failed", pattern = "^(queued|processing|delayed|completed|failed)$")]
    state: String,
    /// The host, with the port unless it is the usual one.
    site: Option<String>,
    /// On whose behalf.
    retailer: Option<String>,
    /// Who sent them.
    caller: Option<String>,
    /// Why they failed, as a list shows it.
    reason: Option<String>,
    /// What their URL contains.
    url: Option<String>,
    /// The caller's own name for them.
    correlation_id: Option<String>,
}

/// What was done.
#[derive(Debug, Serialize, ToSchema)]
struct ActedView {
    /// With how many messages something was done.
    done: u64,
    /// How many were left alone.
    left_alone: u64,
    /// What became of each, the first 200 of them.
    deeds: Vec<DeedView>,
}

/// Try messages anew
///
/// One that has ended is sent again as a message of its own, with the same caller, URL, options and
/// correlation id, once; its result stays. One that waits for a time is due now.
#[utoipa::path(
    post,
    path = "/operator/messages/retry",
    operation_id = "operator_retry",
    tag = "Oversight",
    request_body = Named,
    responses(
        (status = 200, description = "what became of each", body = ActedView),
        (status = 400, description = "the body is not JSON", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "no token, or one that is not good", body = ProblemBody, content_type = "application/problem+json", headers(("WWW-Authenticate" = String, description = "Bearer"))),
        (status = 403, description = "this is for operators", body = ProblemBody, content_type = "application/problem+json"),
        (status = 408, description = "the body took too long to come", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "the body is over 64 KiB", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "the body is no application/json", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "a field is missing or invalid", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "over the caller's own limit", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
        (status = 503, description = "the store is down", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
    ),
    security(("token" = []))
)]
pub(super) async fn retry(
    State(api): State<Arc<Api>>,
    identity: Identity,
    request: Request,
) -> Result<Response, Problem> {
    api.act_on_named(&identity, Act::Retry, request).await
}

/// Cancel messages that wait
///
/// Each ends with a result that says `cancelled`. One that is in flight is left alone, and says so.
#[utoipa::path(
    post,
    path = "/operator/messages/cancel",
    operation_id = "operator_cancel",
    tag = "Oversight",
    request_body = Named,
    responses(
        (status = 200, description = "what became of each", body = ActedView),
        (status = 400, description = "the body is not JSON", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "no token, or one that is not good", body = ProblemBody, content_type = "application/problem+json", headers(("WWW-Authenticate" = String, description = "Bearer"))),
        (status = 403, description = "this is for operators", body = ProblemBody, content_type = "application/problem+json"),
        (status = 408, description = "the body took too long to come", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "the body is over 64 KiB", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "the body is no application/json", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "a field is missing or invalid", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "over the caller's own limit", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
        (status = 503, description = "the store is down", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
    ),
    security(("token" = []))
)]
pub(super) async fn cancel(
    State(api): State<Arc<Api>>,
    identity: Identity,
    request: Request,
) -> Result<Response, Problem> {
    api.act_on_named(&identity, Act::Cancel, request).await
}

/// Try anew what matches
///
/// All that matched at a moment, and nothing that came in or ended later.
#[utoipa::path(
    post,
    path = "/operator/messages/retry-matching",
    operation_id = "operator_retry_matching",
    tag = "Oversight",
    request_body = Matching,
    responses(
        (status = 200, description = "how many, and what became of the first", body = ActedView),
        (status = 400, description = "the body is not JSON", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "no token, or one that is not good", body = ProblemBody, content_type = "application/problem+json", headers(("WWW-Authenticate" = String, description = "Bearer"))),
        (status = 403, description = "this is for operators", body = ProblemBody, content_type = "application/problem+json"),
        (status = 408, description = "the body took too long to come", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "the body is over 64 KiB", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "the body is no application/json", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "a field is missing or invalid", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "over the caller's own limit", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
        (status = 503, description = "the store is down; what was done is done, and asking again does the rest", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
    ),
    security(("token" = []))
)]
pub(super) async fn retry_matching(
    State(api): State<Arc<Api>>,
    identity: Identity,
    request: Request,
) -> Result<Response, Problem> {
    api.act_on_matching(&identity, Act::Retry, request).await
}

/// Cancel what matches
///
/// All that matched at a moment and waits, and nothing that came in or ended later.
#[utoipa::path(
    post,
    path = "/operator/messages/cancel-matching",
    operation_id = "operator_cancel_matching",
    tag = "Oversight",
    request_body = Matching,
    responses(
        (status = 200, description = "how many, and what became of the first", body = ActedView),
        (status = 400, description = "the body is not JSON", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "no token, or one that is not good", body = ProblemBody, content_type = "application/problem+json", headers(("WWW-Authenticate" = String, description = "Bearer"))),
        (status = 403, description = "this is for operators", body = ProblemBody, content_type = "application/problem+json"),
        (status = 408, description = "the body took too long to come", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "the body is over 64 KiB", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "the body is no application/json", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "a field is missing or invalid", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "over the caller's own limit", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
        (status = 503, description = "the store is down; what was done is done, and asking again does the rest", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
    ),
    security(("token" = []))
)]
pub(super) async fn cancel_matching(
    State(api): State<Arc<Api>>,
    identity: Identity,
    request: Request,
) -> Result<Response, Problem> {
    api.act_on_matching(&identity, Act::Cancel, request).await
}

impl Api {
    async fn act_on_named(
        &self,
        identity: &Identity,
        act: Act,
        request: Request,
    ) -> Result<Response, Problem> {
        let named: Named = self.read_act(identity, request).await?;
        let ids = message_ids(&named.ids)?;
        let deeds = self.stored(self.oversight.act_on(act, &ids, None).await)?;
        let mut acted = Acted::default();
        for (id, deed) in ids.into_iter().zip(deeds) {
            acted.enter(id, deed);
        }
        self.audit_act(identity, act, &acted, &named.ids.join(" ")).await?;
        Ok(answer(&acted))
    }

    async fn act_on_matching(
        &self,
        identity: &Identity,
        act: Act,
        request: Request,
    ) -> Result<Response, Problem> {
        let matching: Matching = self.read_act(identity, request).await?;
        let filter = matching.filter()?;
        let most = matching.most.map_or(usize::MAX, |most| most as usize);
        let acted = self.stored(self.oversight.act(act, &filter, most).await)?;
        let what = format!("what matched {:?} as of {}", matching.filter, matching.as_of);
        self.audit_act(identity, act, &acted, &what).await?;
        Ok(answer(&acted))
    }

    /// What is to be done, if this caller may do it.
    async fn read_act<T: for<'de> Deserialize<'de>>(
        &self,
        identity: &Identity,
        request: Request,
    ) -> Result<T, Problem> {
        identity.check_may_act()?;
        let (parts, body) = request.into_parts();
        let whole = body::read(&self.memory, &parts.headers, body, MAX_BODY_BYTES).await?;
        let json: Value = body::json(&whole.bytes)?;
        self.charge(&identity.caller, 1)?;
        serde_json::from_value(json)
            .map_err(|fault| Problem::invalid(vec![FieldError::at("", fault.to_string())]))
    }

    async fn audit_act(
        &self,
        identity: &Identity,
        act: Act,
        acted: &Acted,
        what: &str,
    ) -> Result<(), Problem> {
        let entry = AuditEntry {
            at: self.clock.wall(),
            caller: Some(identity.caller.name.clone()),
            action: format!("{}_messages", act.as_str()),
            detail: format!("{} done, {} left alone: {what}", acted.done, acted.left_alone),
            from: identity.from.clone(),
        };
        self.stored(self.inbox.audit(&[entry]).await)
    }
}

impl Matching {
    fn filter(&self) -> Result<Filter, Problem> {
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
        let ActFilter { site, retailer, caller, reason, url, correlation_id, .. } = &self.filter;
        let texts = [site, retailer, caller, reason, url, correlation_id];
        if texts.into_iter().flatten().any(|text| text.contains('\0')) {
            errors.push(FieldError::at("/filter", "must have no NUL in its texts"));
        }
        if !errors.is_empty() {
            return Err(Problem::invalid(errors));
        }
        Ok(Filter {
            state,
            site: site.clone(),
            retailer: retailer.clone(),
            caller: caller.clone(),
            reason: reason.clone(),
            url_contains: url.clone(),
            correlation_id: correlation_id.clone(),
            as_of,
        })
    }
}

fn message_ids(texts: &[String]) -> Result<Vec<MessageId>, Problem> {
    if !(1..=MESSAGES_PER_ACT).contains(&texts.len()) {
        return Err(Problem::invalid(vec![FieldError::at("/ids", "must be 1 to 200 messages")]));
    }
    let read = |(place, text): (usize, &String)| {
        text.parse().map_err(|fault: fetchwell_engine::inbox::NoMessageId| {
            FieldError::at(format!("/ids/{place}"), fault.to_string())
        })
    };
    let ids: Result<Vec<MessageId>, FieldError> = texts.iter().enumerate().map(read).collect();
    ids.map_err(|error| Problem::invalid(vec![error]))
}

fn answer(acted: &Acted) -> Response {
    let deeds = acted.deeds.iter().map(|(id, deed)| DeedView::of(*id, *deed)).collect();
    json(&ActedView { done: acted.done, left_alone: acted.left_alone, deeds })
}
