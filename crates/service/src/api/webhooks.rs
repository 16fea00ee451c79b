//! A caller's own webhooks: its deliveries, their replay, and its secret.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, Request, State};
use fetchwell_engine::ports::inbox::{
    DeliveryFilter, DeliveryStatus, MAX_REPLAYS, ReplayCursor, ReplayRange, ReplayedOne,
};
use fetchwell_policy::time::Time;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::callers::{Rotation, manager};
use super::identity::Identity;
use super::parameters::{CURSOR, cursor, limit, whole};
use super::problems::{
    BodyProblems, CallerProblems, ConflictProblems, DeliveryProblems, InvalidFieldProblems,
    QueryProblems, SenderProblems, SizeProblems, StoreProblems,
};
use super::respond::json;
use super::{Api, ApiResult, PathName, fields_of_body, parameters};
use crate::callers::NewSecretView;
use crate::problem::{FieldError, Problem, ProblemKind};
use crate::views::deliveries::{DeliveriesView, DeliveryView};

const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 200;

/// No `webhook-id` is longer than this.
const MAX_ID_BYTES: usize = 100;

/// The routes for webhooks.
pub(super) fn routes() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::new()
        .routes(routes!(deliveries))
        .routes(routes!(replay))
        .routes(routes!(replay_one))
        .routes(routes!(rotate_own_secret))
}

/// Deliveries to replay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Replay {
    /// Replay deliveries whose results were stored at this time or later.
    #[schema(example = "2026-01-01T00:00:00Z", format = DateTime)]
    since: String,
    /// Replay deliveries whose results were stored before this time.
    #[schema(example = "2026-01-02T00:00:00Z", format = DateTime)]
    until: String,
    /// `delivered` or `failed`; without it, both.
    #[schema(example = "failed", pattern = "^(delivered|failed)$")]
    status: Option<String>,
    /// Where to continue: `next` of the response to the same request.
    #[schema(pattern = r"^[0-9]+\.[0-9]+$")]
    after: Option<String>,
    /// Maximum number of deliveries, 1 to 1000 (default 1000).
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// How many deliveries are replayed.
#[derive(Debug, Serialize, ToSchema)]
struct ReplayStarted {
    /// The number of deliveries that wait again.
    replayed: u32,
    /// Pass this as `after` to replay the rest; null if there is none.
    #[schema(required, pattern = r"^[0-9]+\.[0-9]+$")]
    next: Option<String>,
}

/// What became of a replay of one delivery.
#[derive(Debug, Serialize, ToSchema)]
struct ReplayOfOne {
    /// The `webhook-id`, which stays the same.
    id: String,
    /// Whether it waits again; false if it was still pending.
    replayed: bool,
}

/// List your webhook deliveries
///
/// Newest first, with the last attempts of each. They are kept as long as results.
#[utoipa::path(
    get,
    path = "/webhooks/deliveries",
    operation_id = "webhook_deliveries",
    tag = "Webhooks",
    params(
        ("status" = Option<String>, Query, description = "pending, delivered or failed", pattern = "^(pending|delivered|failed)$"),
        ("after" = Option<String>, Query, description = "where to continue: `next` of an earlier response", pattern = "^[0-9]+$"),
        ("limit" = Option<u32>, Query, description = "maximum number of deliveries, 1 to 200 (default 50)", minimum = 1, maximum = 200),
    ),
    responses(
        (status = 200, description = "the deliveries", body = DeliveriesView),
        CallerProblems, QueryProblems, StoreProblems,
    ),
    security(("token" = []))
)]
async fn deliveries(
    State(api): State<Arc<Api>>,
    identity: Identity,
    RawQuery(query): RawQuery,
) -> ApiResult {
    api.charge(&identity.caller, 1)?;
    let filter = asked_filter(query.as_deref().unwrap_or_default())?;
    let found = api.stored(api.on.inbox.deliveries(&identity.caller.name, filter).await)?;
    let last = found.last().filter(|_| found.len() == filter.most as usize);
    let next = last.map(|last| last.position.to_string());
    let deliveries = found.into_iter().map(DeliveryView::from).collect();
    Ok(json(&DeliveriesView { deliveries, next }))
}

/// Replay deliveries of a time range
///
/// Each of them is sent again with the same `webhook-id`, at the usual pace. Pending deliveries are left alone. At most
/// 1,000 are replayed at once: continue with `next`.
#[utoipa::path(
    post,
    path = "/webhooks/deliveries/replay",
    operation_id = "replay_webhooks",
    tag = "Webhooks",
    request_body = Replay,
    responses(
        (status = 200, description = "how many wait again", body = ReplayStarted),
        CallerProblems, SenderProblems, BodyProblems, SizeProblems, InvalidFieldProblems, StoreProblems,
    ),
    security(("token" = []))
)]
async fn replay(State(api): State<Arc<Api>>, identity: Identity, request: Request) -> ApiResult {
    identity.check_may_send()?;
    let asked: Replay = fields_of_body::read(&api, request).await?;
    api.charge(&identity.caller, 1)?;
    let range = asked.range()?;
    let caller = &identity.caller.name;
    let replayed = api.stored(api.on.inbox.replay(caller, range).await)?;
    let detail = format!("{} deliveries from {} to {}", replayed.count, asked.since, asked.until);
    let noted = api.on.audit.note(caller, "replay_webhooks", detail, &identity.from).await;
    api.stored(noted)?;
    let next = replayed.next.map(|(at, position)| format!("{at}.{position}"));
    Ok(json(&ReplayStarted { replayed: replayed.count, next }))
}

/// Replay one delivery
///
/// It is sent again with the same `webhook-id`. A pending delivery is left alone, and the response says so.
#[utoipa::path(
    post,
    path = "/webhooks/deliveries/{id}/replay",
    operation_id = "replay_webhook",
    tag = "Webhooks",
    params(("id" = String, Path, description = "the `webhook-id`: the id of the message or of the batch", example = "msg_018bcfe56800ffffffffffffffffffff")),
    responses(
        (status = 200, description = "whether it waits again", body = ReplayOfOne),
        CallerProblems, SenderProblems, DeliveryProblems, StoreProblems,
    ),
    security(("token" = []))
)]
async fn replay_one(State(api): State<Arc<Api>>, identity: Identity, id: PathName) -> ApiResult {
    identity.check_may_send()?;
    api.charge(&identity.caller, 1)?;
    let unknown = || Problem::new(ProblemKind::NOT_FOUND);
    let id = id.ok().map(|Path(id)| id).filter(|id| id.len() <= MAX_ID_BYTES);
    let id = id.ok_or_else(unknown)?;
    let caller = &identity.caller.name;
    let replayed = match api.stored(api.on.inbox.replay_one(caller, &id).await)? {
        ReplayedOne::Unknown => return Err(unknown()),
        ReplayedOne::StillPending => false,
        ReplayedOne::Again => true,
    };
    let noted = api.on.audit.note(caller, "replay_webhooks", id.clone(), &identity.from).await;
    api.stored(noted)?;
    Ok(json(&ReplayOfOne { id, replayed }))
}

/// Rotate your webhook secret
///
/// The response has the new secret, which is shown only once. During the overlap, deliveries have two signatures, so
/// that receivers can change to the new secret at any time.
#[utoipa::path(
    post,
    path = "/webhooks/secret",
    operation_id = "rotate_webhook_secret",
    tag = "Webhooks",
    request_body = Rotation,
    responses(
        (status = 200, description = "the new secret", body = NewSecretView),
        CallerProblems, SenderProblems, ConflictProblems, BodyProblems, SizeProblems, InvalidFieldProblems,
        StoreProblems,
    ),
    security(("token" = []))
)]
async fn rotate_own_secret(
    State(api): State<Arc<Api>>,
    identity: Identity,
    request: Request,
) -> ApiResult {
    identity.check_may_send()?;
    let asked: Rotation = fields_of_body::read(&api, request).await?;
    api.charge(&identity.caller, 1)?;
    let overlap = asked.checked_overlap()?;
    let service = &api.on.callers;
    let rotated = service.rotate_secret(&manager(&identity), &identity.caller.name, overlap).await;
    api.changed(rotated)
}

fn asked_filter(query: &str) -> Result<DeliveryFilter, Problem> {
    let mut filter = DeliveryFilter { status: None, before: None, most: DEFAULT_LIMIT };
    parameters::read_known(query, &["status", "after", "limit"], |name, value| {
        match name {
            "status" => {
                let status = DeliveryStatus::parse(value);
                filter.status =
                    Some(status.ok_or(("status", "must be pending, delivered or failed"))?);
            }
            "after" => filter.before = Some(cursor(value).ok_or(("after", CURSOR))?),
            "limit" => {
                filter.most = limit(value, MAX_LIMIT).ok_or(("limit", "must be 1 to 200"))?;
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(filter)
}

impl Replay {
    fn range(&self) -> Result<ReplayRange, Problem> {
        let mut errors = Vec::new();
        let mut invalid =
            |pointer: &str, detail: &str| errors.push(FieldError::at(pointer, detail));
        let since = moment(&self.since);
        let until = moment(&self.until);
        if since.is_none() {
            invalid("/since", TIME_RULE);
        }
        match (since, until) {
            (_, None) => invalid("/until", TIME_RULE),
            (Some(since), Some(until)) if until <= since => {
                invalid("/until", "must be after since");
            }
            _ => {}
        }
        let status = self.status.as_deref().map(DeliveryStatus::parse);
        if matches!(status, Some(None | Some(DeliveryStatus::Pending))) {
            invalid("/status", "must be delivered or failed");
        }
        let after = self.after.as_deref().map(replay_cursor);
        if after == Some(None) {
            invalid("/after", CURSOR);
        }
        let most = self.limit.unwrap_or(MAX_REPLAYS);
        if !(1..=MAX_REPLAYS).contains(&most) {
            invalid("/limit", "must be 1 to 1000");
        }
        match (since, until) {
            (Some(since), Some(until)) if errors.is_empty() => Ok(ReplayRange {
                since,
                until,
                status: status.flatten(),
                after: after.flatten(),
                most,
            }),
            _ => Err(Problem::invalid(errors)),
        }
    }
}

const TIME_RULE: &str = "must be an RFC 3339 time, such as 2026-01-01T00:00:00Z";

fn moment(text: &str) -> Option<Time> {
    let at: Timestamp = text.parse().ok()?;
    Some(Time::from_micros(at.as_microsecond()))
}

fn replay_cursor(text: &str) -> Option<ReplayCursor> {
    let (at, position) = text.split_once('.')?;
    Some((whole(at)?, whole(position)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(json: &str) -> Option<(u32, Option<ReplayCursor>)> {
        let replay: Replay = serde_json::from_str(json).ok()?;
        replay.range().ok().map(|range| (range.most, range.after))
    }

    #[test]
    fn a_replay_names_a_time_range() {
        let with = |rest: &str| {
            range(&format!(
                r#"{{"since":"2026-01-01T00:00:00Z","until":"2026-01-02T00:00:00+01:00"{rest}}}"#
            ))
        };
        assert_eq!(with(""), Some((MAX_REPLAYS, None)));
        assert_eq!(with(r#","after":"5.7","limit":3,"status":"failed""#), Some((3, Some((5, 7)))));
        for wrong in [
            r#","status":"pending""#,
            r#","status":"x""#,
            r#","after":"5""#,
            r#","after":"-5.7""#,
            r#","limit":0"#,
            r#","limit":1001"#,
            r#","colour":1"#,
        ] {
            assert_eq!(with(wrong), None, "{wrong}");
        }
        assert_eq!(
            range(r#"{"since":"2026-01-02T00:00:00Z","until":"2026-01-02T00:00:00Z"}"#),
            None
        );
        assert_eq!(range(r#"{"since":"yesterday","until":"2026-01-02T00:00:00Z"}"#), None);
    }

    #[test]
    fn a_filter_of_deliveries_is_read_strictly() {
        let read = |query| asked_filter(query).ok().map(|filter| (filter.before, filter.most));
        assert_eq!(read(""), Some((None, DEFAULT_LIMIT)));
        assert_eq!(read("status=failed&after=7&limit=200"), Some((Some(7), 200)));
        for wrong in ["status=x", "after=x", "limit=201", "colour=1"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
