//! What viewers and operators see of all callers' messages: `GET /operator/…`.
//!
//! What operators do about them is in `acts`, how it is written in `view`, and what is asked in `query`.

mod acts;
mod query;
mod view;

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use fetchwell_engine::inbox::MessageId;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Api;
use super::identity::Identity;
use super::problem::{Kind, Problem, ProblemBody};
use super::routes::json;
use query::Asked;

use view::{AuditLine, InstanceDetails, SightingsView};
pub(crate) use view::{CountView, DeedView, DossierView, FailuresView, QueueView, SightingView};

/// All that is for viewers and operators.
pub(super) fn routes() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::new()
        .routes(routes!(messages))
        .routes(routes!(count))
        .routes(routes!(message))
        .routes(routes!(failures))
        .routes(routes!(instances))
        .routes(routes!(audit))
        .routes(routes!(ledger))
        .routes(routes!(acts::retry))
        .routes(routes!(acts::cancel))
        .routes(routes!(acts::retry_matching))
        .routes(routes!(acts::cancel_matching))
}

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
async fn messages(
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
async fn count(
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
async fn message(
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
async fn failures(State(api): State<Arc<Api>>, identity: Identity) -> Result<Response, Problem> {
    api.admit(&identity)?;
    let failures = api.stored(api.oversight.failures().await)?;
    Ok(json(&FailuresView::from(failures)))
}

/// Who is at work.
#[derive(Debug, Serialize, ToSchema)]
struct InstancesView {
    /// Each instance of each queue.
    instances: Vec<InstanceDetails>,
}

/// Who is at work on the store
#[utoipa::path(
    get,
    path = "/operator/instances",
    operation_id = "operator_instances",
    tag = "Oversight",
    responses(
        (status = 200, description = "each instance of each queue", body = InstancesView),
        (status = 401, description = "no token, or one that is not good", body = ProblemBody, content_type = "application/problem+json", headers(("WWW-Authenticate" = String, description = "Bearer"))),
        (status = 403, description = "this is for viewers and operators", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "over the caller's own limit", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
        (status = 503, description = "the store is down", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
    ),
    security(("token" = []))
)]
async fn instances(State(api): State<Arc<Api>>, identity: Identity) -> Result<Response, Problem> {
    api.admit(&identity)?;
    let instances = api.stored(api.oversight.instances().await)?;
    let instances = instances.into_iter().map(InstanceDetails::from).collect();
    Ok(json(&InstancesView { instances }))
}

/// What was done by whom.
#[derive(Debug, Serialize, ToSchema)]
struct AuditView {
    /// The newest first.
    entries: Vec<AuditLine>,
}

/// What was done by whom
#[utoipa::path(
    get,
    path = "/operator/audit",
    operation_id = "operator_audit",
    tag = "Oversight",
    params(("limit" = Option<u32>, Query, description = "at most so many: 1 to 200, without it 50", minimum = 1, maximum = 200)),
    responses(
        (status = 200, description = "the newest first", body = AuditView),
        (status = 401, description = "no token, or one that is not good", body = ProblemBody, content_type = "application/problem+json", headers(("WWW-Authenticate" = String, description = "Bearer"))),
        (status = 403, description = "this is for viewers and operators", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "a parameter is invalid", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "over the caller's own limit", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
        (status = 503, description = "the store is down", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
    ),
    security(("token" = []))
)]
async fn audit(
    State(api): State<Arc<Api>>,
    identity: Identity,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    api.admit(&identity)?;
    let asked = Asked::read(query.as_deref().unwrap_or_default())?;
    let entries = api.stored(api.inbox.audit_trail(asked.limit).await)?;
    let entries = entries.into_iter().map(AuditLine::from).collect();
    Ok(json(&AuditView { entries }))
}

/// How every queue stands.
#[derive(Debug, Serialize, ToSchema)]
struct LedgerView {
    /// By name.
    queues: Vec<QueueView>,
}

/// How many jobs stand where, in every queue of the store
#[utoipa::path(
    get,
    path = "/operator/ledger",
    operation_id = "operator_ledger",
    tag = "Oversight",
    responses(
        (status = 200, description = "accepted = done + skipped + queued + in_flight + delayed + dead", body = LedgerView),
        (status = 401, description = "no token, or one that is not good", body = ProblemBody, content_type = "application/problem+json", headers(("WWW-Authenticate" = String, description = "Bearer"))),
        (status = 403, description = "this is for viewers and operators", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "over the caller's own limit", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
        (status = 503, description = "the store is down", body = ProblemBody, content_type = "application/problem+json", headers(("Retry-After" = u64, description = "seconds to wait"))),
    ),
    security(("token" = []))
)]
async fn ledger(State(api): State<Arc<Api>>, identity: Identity) -> Result<Response, Problem> {
    api.admit(&identity)?;
    let ledgers = api.stored(api.oversight.ledgers().await)?;
    Ok(json(&LedgerView { queues: ledgers.into_iter().map(QueueView::from).collect() }))
}

impl Api {
    /// Lets in who may see everybody's messages.
    pub(super) fn admit(&self, identity: &Identity) -> Result<(), Problem> {
        identity.check_may_look()?;
        self.charge(&identity.caller, 1)
    }
}
