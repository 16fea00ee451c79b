//! `POST /fetch/batch`: many messages are accepted in one transaction.

use std::sync::Arc;

use axum::extract::{Request, State};
use fetchwell_engine::ports::inbox::{BatchId, MessageId, NewBatch};
use fetchwell_engine::ports::message_batches::MessageBatch;
use fetchwell_policy::rfc3339::rfc3339;
use fetchwell_policy::time::Time;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::accept::idempotency;
use super::batch::{BatchBody, Invalid, MAX_BATCH, SkippedMessage, Sorted, has_too_many_values};
use super::fields::FetchRequest;
use super::identity::Identity;
use super::problems::{BodyProblems, CallerProblems, SenderProblems, StoreProblems};
use super::respond::json;
use super::submit::Accepted;
use super::{Api, ApiResult, body};
use crate::problem::{FieldError, PROBLEM_JSON, Problem, ProblemBody};
use crate::server::until_sent;

/// Messages to accept together.
#[derive(ToSchema)]
#[schema(as = Batch)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for its schema: a batch is read entry by entry")]
pub(super) struct NewBatchBody {
    /// 1 to 10,000 messages.
    #[schema(min_items = 1, max_items = 10_000)]
    messages: Vec<FetchRequest>,
    /// The URL to which the end of the batch is delivered as a signed webhook: `batch.completed`.
    #[schema(format = "uri", min_length = 1, max_length = 8192)]
    callback_url: Option<String>,
    /// What happens to invalid messages: `reject` (the default) refuses the batch; `skip` leaves them out, and the
    /// response has a problem for each of them. If no message is valid, the batch is refused in any case.
    invalid: Option<Invalid>,
}

/// The accepted messages of a batch, in the order in which they were sent.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AcceptedBatch {
    /// The id of the batch. Only repeated requests of an earlier version have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        example = "batch_018bcfe56800ffffffffffffffffffff",
        pattern = "^batch_[0-9a-f]{32}$",
        nullable = false
    )]
    batch_id: Option<String>,
    /// One entry per accepted message.
    messages: Vec<Accepted>,
    /// The invalid messages that were left out, if the batch has `"invalid": "skip"`.
    #[schema(value_type = Vec<SkippedMessage>, required)]
    skipped: Value,
    /// When the batch is expected to end, from the pace of its sites and the limits of its retailers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    estimated_end: Option<String>,
}

/// Send up to 10,000 messages at once
///
/// All are accepted in one transaction, or none: one invalid message refuses the batch, and the response names up to
/// 1,000 errors. With `"invalid": "skip"` the invalid messages are left out instead.
#[utoipa::path(
    post,
    path = "/fetch/batch",
    operation_id = "batch",
    tag = "Messages",
    params(("Idempotency-Key" = Option<String>, Header, description = "a key of your choice for this request: 1 to 255 visible ASCII characters", pattern = "^[!-~]{1,255}$")),
    request_body = NewBatchBody,
    responses(
        (status = 200, description = "accepted, in this order", body = AcceptedBatch,
            links(
                ("the first message" = (operation_id = "message", parameters(("id" = "$response.body#/messages/0/message_id")))),
                ("the batch" = (operation_id = "batch_state", parameters(("id" = "$response.body#/batch_id"))))
            )
        ),
        (status = 413, description = "the body is too large", body = ProblemBody, content_type = PROBLEM_JSON),
        (status = 422, description = "a message is invalid, or the key was used for another request", body = ProblemBody, content_type = PROBLEM_JSON),
        CallerProblems, SenderProblems, BodyProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn send_batch(
    State(api): State<Arc<Api>>,
    identity: Identity,
    request: Request,
) -> ApiResult {
    identity.check_may_send()?;
    let (parts, body) = request.into_parts();
    let most_bytes = api.rules.max_batch_body_bytes;
    let whole = body::read(&api.memory, &parts.headers, body, most_bytes).await?;
    if has_too_many_values(&whole.bytes) {
        let detail = format!("has more values than {MAX_BATCH} messages can have");
        return Err(Problem::invalid(vec![FieldError::at("", detail)]));
    }
    let json_body = body::json(&whole.bytes)?;
    let batch = BatchBody::read(&json_body, &api.judge());
    api.charge(&identity.caller, batch.as_ref().map_or(1, |batch| batch.entries.len()))?;
    let idempotency = idempotency(&parts.headers, "/fetch/batch", &whole.bytes)?;
    let batch = batch.map_err(Problem::invalid)?;
    let Sorted { messages, skipped } = batch.sort(&api.judge())?;
    let told = serde_json::to_value(&skipped).unwrap_or_default();
    let told_text = told.to_string();
    // Twice: the value, and the JSON of the response.
    let share = api.memory.take(2 * told_text.len() as u64).await?;
    let new = NewBatch {
        callback_url: batch.callback_url,
        expected_in: api.expected_in(&messages).await,
        skipped: u32::try_from(skipped.len()).unwrap_or(u32::MAX),
        skipped_told: (idempotency.is_some() && !skipped.is_empty()).then_some(told_text),
    };
    let expected_in = new.expected_in;
    let committed = api.submit(&identity, idempotency, messages, Some(new)).await?;
    let ids = committed.ids;
    let accepted = match committed.created_at {
        Some(created_at) => {
            let id = BatchId::of(ids.iter().copied());
            answer(&ids, id.map(|id| (id, created_at + expected_in)), told)
        }
        // It was sent before, under the same key.
        None => {
            let stored = api.stored_batch(&ids).await;
            let told = stored.as_ref().and_then(|(_, told)| told.clone()).unwrap_or(told);
            answer(&ids, stored.map(|(batch, _)| (batch.id, batch.expected_at)), told)
        }
    };
    Ok(until_sent(json(&accepted), share))
}

/// `batch` has the id of the batch, and when it is expected to end.
fn answer(ids: &[MessageId], batch: Option<(BatchId, Time)>, skipped: Value) -> AcceptedBatch {
    let accepted = |id: &MessageId| Accepted { message_id: id.to_string(), status: "queued" };
    AcceptedBatch {
        batch_id: batch.map(|(id, _)| id.to_string()),
        messages: ids.iter().map(accepted).collect(),
        skipped,
        estimated_end: batch.map(|(_, expected_at)| rfc3339(expected_at)),
    }
}

impl Api {
    /// The batch with these messages as it was stored the first time, so that a repeated request gets the same answer,
    /// and the problems that were stored with it. The messages are accepted already, so an error here is no refusal.
    async fn stored_batch(&self, ids: &[MessageId]) -> Option<(MessageBatch, Option<Value>)> {
        let id = BatchId::of(ids.iter().copied())?;
        let batch = self.on.batches.batch(id, None).await.ok()??;
        if batch.skipped == 0 {
            return Some((batch, None));
        }
        let told = self.on.batches.skipped_told(id).await.ok()?;
        let told = told.and_then(|text| serde_json::from_str(&text).ok());
        Some((batch, told))
    }
}
