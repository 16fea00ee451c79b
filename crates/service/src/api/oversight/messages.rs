//! Messages of all callers, for viewers and operators.

use axum::extract::RawQuery;

use super::query::Asked;
use crate::api::held_message::MAX_RESULT_BYTES;
use crate::api::identity::Viewer;
use crate::api::messages::message_id;
use crate::api::problems::{
    CallerProblems, MessageProblems, QueryProblems, StoreProblems, ViewerProblems,
};
use crate::api::respond::json;
use crate::api::{ApiResult, PathName};
use crate::problem::{Problem, ProblemKind};
use crate::server::until_sent;
use crate::views::oversight::{CountView, FailuresView, MessageDetailView, MessageSummariesView};

/// List messages of all callers
///
/// Newest first. Queries on a large store are bounded: a response may have fewer messages than requested,
/// or none, and still a `next` to continue with.
#[utoipa::path(
    get,
    path = "/operator/messages",
    operation_id = "operator_messages",
    tag = "Oversight",
    params(
        ("state" = Option<String>, Query, description = "queued, processing, delayed, completed or failed", pattern = "^(queued|processing|delayed|completed|failed)$"),
        ("site" = Option<String>, Query, description = "the host, with the port unless it is the default one", example = "shop.test"),
        ("retailer" = Option<String>, Query, description = "the retailer"),
        ("caller" = Option<String>, Query, description = "the caller"),
        ("reason" = Option<String>, Query, description = "the reason of the failure, as a list shows it", example = "http_error 404"),
        ("url" = Option<String>, Query, description = "text in the URL"),
        ("correlation_id" = Option<String>, Query, description = "the correlation id"),
        ("as_of" = Option<String>, Query, description = "ignore messages that were accepted or ended after this time; use `as_of` of an earlier response", pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$"),
        ("after" = Option<String>, Query, description = "where to continue: `next` of an earlier response", pattern = "^[0-9]+$"),
        ("limit" = Option<u32>, Query, description = "maximum number of results, 1 to 200 (default 50)", minimum = 1, maximum = 200),
    ),
    responses(
        (status = 200, description = "messages, and the time to which the list refers", body = MessageSummariesView),
        CallerProblems, ViewerProblems, QueryProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn messages(Viewer(api): Viewer, RawQuery(query): RawQuery) -> ApiResult {
    let asked = Asked::read(query.as_deref().unwrap_or_default())?;
    let page = api.stored(api.on.oversight.list(&asked.filter, asked.after, asked.limit).await)?;
    Ok(json(&MessageSummariesView::from(page)))
}

/// Count messages of all callers
///
/// Counting stops at 10,000, and earlier on a large store: then `exact` is false, and there
/// are at least this many.
#[utoipa::path(
    get,
    path = "/operator/messages/count",
    operation_id = "operator_count",
    tag = "Oversight",
    params(
        ("state" = Option<String>, Query, description = "queued, processing, delayed, completed or failed", pattern = "^(queued|processing|delayed|completed|failed)$"),
        ("site" = Option<String>, Query, description = "the host, with the port unless it is the default one", example = "shop.test"),
        ("retailer" = Option<String>, Query, description = "the retailer"),
        ("caller" = Option<String>, Query, description = "the caller"),
        ("reason" = Option<String>, Query, description = "the reason of the failure, as a list shows it", example = "http_error 404"),
        ("url" = Option<String>, Query, description = "text in the URL"),
        ("correlation_id" = Option<String>, Query, description = "the correlation id"),
        ("as_of" = Option<String>, Query, description = "ignore messages that were accepted or ended after this time; use `as_of` of an earlier response", pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$"),
    ),
    responses(
        (status = 200, description = "the number of messages, and the time to which it refers", body = CountView),
        CallerProblems, ViewerProblems, QueryProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn count(Viewer(api): Viewer, RawQuery(query): RawQuery) -> ApiResult {
    let asked = Asked::read(query.as_deref().unwrap_or_default())?;
    let count = api.stored(api.on.oversight.count(&asked.filter).await)?;
    Ok(json(&CountView::from(count)))
}

/// Get details of a message
///
/// Its timeline from the queue to the result, its last attempts with their reasons, and its result.
#[utoipa::path(
    get,
    path = "/operator/messages/{id}",
    operation_id = "operator_message",
    tag = "Oversight",
    params(("id" = String, Path, description = "the message", example = "msg_018bcfe56800ffffffffffffffffffff", pattern = "^msg_[0-9a-f]{32}$")),
    responses(
        (status = 200, description = "the message", body = MessageDetailView),
        CallerProblems, ViewerProblems, MessageProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn message(Viewer(api): Viewer, id: PathName) -> ApiResult {
    let id = message_id(id)?;
    let mut share = api.memory.take(MAX_RESULT_BYTES).await?;
    let found = api.stored(api.on.oversight.detail(id).await)?;
    let detail = found.ok_or_else(|| Problem::new(ProblemKind::NOT_FOUND))?;
    share.shrink_to(detail.outbox.as_ref().map_or(0, |outbox| outbox.result.text_bytes()));
    Ok(until_sent(json(&MessageDetailView::from(detail)), share))
}

/// Group failed messages by reason and site
///
/// Failures that were not retried yet, largest groups first. If there are very many, only the
/// newest are grouped: then `exact` is false.
#[utoipa::path(
    get,
    path = "/operator/failures",
    operation_id = "operator_failures",
    tag = "Oversight",
    responses(
        (status = 200, description = "the groups", body = FailuresView),
        CallerProblems, ViewerProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn failures(Viewer(api): Viewer) -> ApiResult {
    let failures = api.stored(api.on.oversight.failures().await)?;
    Ok(json(&FailuresView::from(failures)))
}
