//! `POST /fetch` and `POST /fetch/batch`: messages are accepted when they are committed.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use fetchwell_engine::ports::inbox::MessageId;
use serde::Serialize;
use utoipa::ToSchema;

use super::accept::idempotency;
use super::batch::{Entry, entries, read_all};
use super::fields::FetchRequest;
use super::identity::Identity;
use super::json::Json;
use super::problems::{BodyProblems, CallerProblems, SenderProblems, SizeProblems, StoreProblems};
use super::respond::json;
use super::{Api, ApiResult, body, prefer, waiting};
use crate::problem::{PROBLEM_JSON, Problem, ProblemBody, ProblemKind};
use crate::views::messages::{self, MessageView};
use crate::views::schemas::MessageStatus;

const MAX_BODY_BYTES: u64 = 64 << 10;

/// Without a valid token the body is read only to name the message in the problem. It takes memory that other requests
/// wait for, so this limit is short.
const STRANGERS_BODY_TIMEOUT: Duration = Duration::from_secs(1);

/// An accepted message.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Accepted {
    /// The id of the message.
    #[schema(example = "msg_018bcfe56800ffffffffffffffffffff", pattern = "^msg_[0-9a-f]{32}$")]
    message_id: String,
    /// `queued`; or `completed`, if `max_age` was given and a stored page answers it.
    #[schema(example = "queued", value_type = MessageStatus)]
    status: &'static str,
}

/// The response of `/fetch`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum FetchAnswer {
    /// The message was accepted.
    Accepted(Accepted),
    /// The message with its result, if the request waited for it.
    Waited(Box<MessageView>),
}

/// Messages to accept together.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for its schema: a batch is read entry by entry")]
pub(super) struct Batch {
    /// 1 to 1,000 messages.
    #[schema(min_items = 1, max_items = 1000)]
    messages: Vec<FetchRequest>,
}

/// The accepted messages of a batch, in the order in which they were sent.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AcceptedBatch {
    /// One entry per message.
    messages: Vec<Accepted>,
}

/// Send a message: a page to fetch
///
/// The response is sent when the message is stored; the page is fetched after that. With
/// `Prefer: wait=N` (at most 60 seconds) the response waits for the result, and is that of
/// `/messages/{id}` if it arrives in time. With an `Idempotency-Key` a repeated request gets the first response,
/// and nothing is accepted twice.
#[utoipa::path(
    post,
    path = "/fetch",
    tag = "Messages",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "a key of your choice for this request: 1 to 255 visible ASCII characters", pattern = "^[!-~]{1,255}$"),
        ("Prefer" = Option<String>, Header, description = "wait=N waits up to N seconds for the result", example = "wait=10"),
    ),
    request_body = FetchRequest,
    responses(
        (status = 200, description = "accepted; or, with Prefer: wait=N, the message with its result", body = FetchAnswer,
            headers(("Preference-Applied" = Option<String>, description = "wait=N, if the result arrived in time")),
            links(("the message" = (operation_id = "message", parameters(("id" = "$response.body#/message_id")))))
        ),
        (status = 422, description = "a field is missing or invalid, the URL is refused, or the key was used for another request", body = ProblemBody, content_type = PROBLEM_JSON),
        CallerProblems, SenderProblems, BodyProblems, SizeProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn fetch(
    State(api): State<Arc<Api>>,
    identity: Result<Identity, Problem>,
    request: Request,
) -> ApiResult {
    let (parts, body) = request.into_parts();
    let reading = body::read(&api.memory, &parts.headers, body, MAX_BODY_BYTES);
    let whole = match &identity {
        Ok(_) => reading.await,
        Err(problem) => {
            let in_time = tokio::time::timeout(STRANGERS_BODY_TIMEOUT, reading).await;
            in_time.unwrap_or_else(|_| Err(problem.clone()))
        }
    };
    let sender = identity.and_then(|identity| identity.check_may_send().map(|()| identity));
    let identity = sender.map_err(|problem| match &whole {
        // A client that sends many requests at once needs to know which message this is about.
        Ok(whole) => body::json(&whole.bytes).map_or(problem.clone(), |json| about(problem, &json)),
        Err(_) => problem,
    })?;
    let whole = whole?;
    let json = body::json(&whole.bytes)?;
    let submitted = async {
        api.charge(&identity.caller, 1)?;
        let idempotency = idempotency(&parts.headers, "/fetch", &whole.bytes)?;
        let message = FetchRequest::read(&json, &api.judge()).map_err(Problem::invalid)?;
        let sharing = message.max_age.is_some();
        let ids = api.submit(&identity, idempotency, vec![message]).await?;
        let id = ids.first().copied().ok_or_else(|| Problem::new(ProblemKind::INTERNAL))?;
        Ok(answer(&api, &identity, id, sharing, prefer::wait(&parts.headers)).await)
    };
    submitted.await.map_err(|problem| about(problem, &json))
}

/// Adds the message to the problem.
fn about(problem: Problem, message: &Json<'_>) -> Problem {
    let Entry { url, correlation_id } = Entry::of(message);
    problem.about(url, correlation_id)
}

/// Send up to 1,000 messages at once
///
/// All are accepted, or none: one invalid message refuses the batch, and the response names each of them.
#[utoipa::path(
    post,
    path = "/fetch/batch",
    tag = "Messages",
    params(("Idempotency-Key" = Option<String>, Header, description = "a key of your choice for this request: 1 to 255 visible ASCII characters", pattern = "^[!-~]{1,255}$")),
    request_body = Batch,
    responses(
        (status = 200, description = "accepted, in this order", body = AcceptedBatch,
            links(("the first message" = (operation_id = "message", parameters(("id" = "$response.body#/messages/0/message_id")))))
        ),
        (status = 413, description = "the body is too large", body = ProblemBody, content_type = PROBLEM_JSON),
        (status = 422, description = "a message is invalid, or the key was used for another request", body = ProblemBody, content_type = PROBLEM_JSON),
        CallerProblems, SenderProblems, BodyProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn batch(
    State(api): State<Arc<Api>>,
    identity: Identity,
    request: Request,
) -> ApiResult {
    identity.check_may_send()?;
    let (parts, body) = request.into_parts();
    let most_bytes = api.rules.max_batch_body_bytes;
    let whole = body::read(&api.memory, &parts.headers, body, most_bytes).await?;
    let json_body = body::json(&whole.bytes)?;
    let entries = entries(&json_body);
    api.charge(&identity.caller, entries.as_ref().map_or(1, |entries| entries.len()))?;
    let idempotency = idempotency(&parts.headers, "/fetch/batch", &whole.bytes)?;
    let messages = read_all(entries.map_err(Problem::invalid)?, &api.judge())?;
    let ids = api.submit(&identity, idempotency, messages).await?;
    let accepted = |id: &MessageId| Accepted { message_id: id.to_string(), status: "queued" };
    Ok(json(&AcceptedBatch { messages: ids.iter().map(accepted).collect() }))
}

/// The response for an accepted message, with its result if the caller waited and it arrived in time. The message is
/// already accepted, so an error here must not look like a refusal.
async fn answer(
    api: &Api,
    identity: &Identity,
    id: MessageId,
    sharing: bool,
    wait: Option<Duration>,
) -> Response {
    // The token may have been revoked while the request waited.
    if let Some(wait) = wait
        && let Ok(Some(message)) = waiting::result_of(api, &identity.caller.name, id, wait).await
        && identity.check_again(api).await.is_ok()
    {
        let applied = [("preference-applied", format!("wait={}", wait.as_secs()))];
        return (applied, json(&FetchAnswer::Waited(Box::new(message.into())))).into_response();
    }
    // Only a message with `max_age` can be complete by now.
    let stored = match sharing {
        true => api.message(id, Some(&identity.caller.name)).await.unwrap_or_default(),
        false => None,
    };
    let ended = stored.filter(|message| message.outbox.is_some());
    let status = ended.map_or("queued", |message| messages::status(message.status));
    json(&FetchAnswer::Accepted(Accepted { message_id: id.to_string(), status }))
}
