//! Messages of all callers, for viewers and operators.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use fetchwell_engine::ports::inbox::MessageId;

use super::query::Asked;
use crate::api::Api;
use crate::api::identity::Identity;
use crate::api::routes::json;
use crate::problem::{Kind, Problem, ProblemBody};
use crate::views::oversight::{CountView, DossierView, FailuresView, SightingsView};

/// List messages of all callers
///
/// The newest first. A look at a large store is bounded: an answer may have fewer messages than asked for,
/// or none, and still a `next` to go on with.
#[utoipa::path(
    get,
    path = "/operator/messages",
    operation_id = "operator_messages",
    tag = "Oversight",
    params(
        ("state" = Option<String>, Query, description = "queued, processing, delayed, completed or failed", pattern = "^(queued|processing|delayed|completed|failed)$"),
        ("site" = Option<String>, Query, description = "the host, with the port unless it is the usual one", example = "shop.test"),
        ("retailer" = Option<String>, Query, description = "on whose behalf"),
        ("caller" = Option<String>, Query, description = "who sent them"),
        ("reason" = Option<String>, Query, description = "why they failed, as a list shows it", example = "http_error 404"),
        ("url" = Option<String>, Query, description = "what their URL contains"),
        ("correlation_id" = Option<String>, Query, description = "the caller's own name for them"),
        ("as_of" = Option<String>, Query, description = "nothing that came in or ended after this time, as an earlier answer gave it", pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$"),
        ("after" = Option<String>, Query, description = "where to look on: `next` of an earlier answer", pattern = "^[0-9]+$"),
        ("limit" = Option<u32>, Query, description = "at most so many: 1 to 200, without it 50", minimum = 1, maximum = 200),
    ),
    responses(
        (status = 200, description = "messages, and what was there to see", body = SightingsView),
        (status = 401, description = "no token, or one that is not good", body = ProblemBody, content_type = "application/problem+json", headers(("WWW-Authenticate" = String, description = "Bearer"))),
        (status = 403, description = "callers see their own messages only", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "a parameter is invalid", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "over the caller's own limit", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
        (status = 503, description = "the store is down", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
    ),
    security(("token" = []))
)]
pub(super) async fn messages(
    State(api): State<Arc<Api>>,
    identity: Identity,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    api.admit(&identity)?;
    let asked = Asked::read(query.as_deref().unwrap_or_default())?;
    let page = api.stored(api.oversight.list(&asked.filter, asked.after, asked.limit).await)?;
    Ok(json(&SightingsView::from(page)))
}

/// Count messages of all callers
///
/// Counting ends at 10,000, and where a look at a large store is bounded: then `exact` is false, and there
/// are at least so many.
#[utoipa::path(
    get,
    path = "/operator/messages/count",
    operation_id = "operator_count",
    tag = "Oversight",
    params(
        ("state" = Option<String>, Query, description = "queued, processing, delayed, completed or failed", pattern = "^(queued|processing|delayed|completed|failed)$"),
        ("site" = Option<String>, Query, description = "the host, with the port unless it is the usual one", example = "shop.test"),
        ("retailer" = Option<String>, Query, description = "on whose behalf"),
        ("caller" = Option<String>, Query, description = "who sent them"),
        ("reason" = Option<String>, Query, description = "why they failed, as a list shows it", example = "http_error 404"),
        ("url" = Option<String>, Query, description = "what their URL contains"),
        ("correlation_id" = Option<String>, Query, description = "the caller's own name for them"),
        ("as_of" = Option<String>, Query, description = "nothing that came in or ended after this time, as an earlier answer gave it", pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$"),
    ),
    responses(
        (status = 200, description = "how many, and what was there to see", body = CountView),
        (status = 401, description = "no token, or one that is not good", body = ProblemBody, content_type = "application/problem+json", headers(("WWW-Authenticate" = String, description = "Bearer"))),
        (status = 403, description = "callers see their own messages only", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "a parameter is invalid", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "over the caller's own limit", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
        (status = 503, description = "the store is down", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
    ),
    security(("token" = []))
)]
pub(super) async fn count(
    State(api): State<Arc<Api>>,
    identity: Identity,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    api.admit(&identity)?;
    let asked = Asked::read(query.as_deref().unwrap_or_default())?;
    let count = api.stored(api.oversight.count(&asked.filter).await)?;
    Ok(json(&CountView::from(count)))
}

/// All that is known of a message
///
/// Its way from the queue to its result, its last attempts with their reasons, and its result.
#[utoipa::path(
    get,
    path = "/operator/messages/{id}",
    operation_id = "operator_message",
    tag = "Oversight",
    params(("id" = String, Path, description = "the message", example = "msg_018bcfe56800ffffffffffffffffffff", pattern = "^msg_[0-9a-f]{32}$")),
    responses(
        (status = 200, description = "the message", body = DossierView),
        (status = 401, description = "no token, or one that is not good", body = ProblemBody, content_type = "application/problem+json", headers(("WWW-Authenticate" = String, description = "Bearer"))),
        (status = 403, description = "callers see their own messages only", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "no such message", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "over the caller's own limit", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
        (status = 503, description = "the store is down", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
    ),
    security(("token" = []))
)]
pub(super) async fn message(
    State(api): State<Arc<Api>>,
    identity: Identity,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    api.admit(&identity)?;
    let id = id.ok().and_then(|Path(text)| text.parse::<MessageId>().ok());
    let found = match id {
        Some(id) => api.stored(api.oversight.dossier(id).await)?,
        None => None,
    };
    let dossier = found.ok_or_else(|| Problem::new(Kind::NotFound))?;
    Ok(json(&DossierView::from(dossier)))
}

/// Why messages failed, and where
///
/// The failures that nobody has tried anew, by reason and site, the largest groups first. Of very many the
/// newest are grouped: then `exact` is false.
#[utoipa::path(
    get,
    path = "/operator/failures",
    operation_id = "operator_failures",
    tag = "Oversight",
    responses(
        (status = 200, description = "the groups", body = FailuresView),
        (status = 401, description = "no token, or one that is not good", body = ProblemBody, content_type = "application/problem+json", headers(("WWW-Authenticate" = String, description = "Bearer"))),
        (status = 403, description = "callers see their own messages only", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "over the caller's own limit", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
        (status = 503, description = "the store is down", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
    ),
    security(("token" = []))
)]
pub(super) async fn failures(
    State(api): State<Arc<Api>>,
    identity: Identity,
) -> Result<Response, Problem> {
    api.admit(&identity)?;
    let failures = api.stored(api.oversight.failures().await)?;
    Ok(json(&FailuresView::from(failures)))
}
