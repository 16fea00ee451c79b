//! `POST /fetch`: a message is accepted when it is committed.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use fetchwell_engine::ports::inbox::{Message, MessageStatus as Status};
use serde::Serialize;
use utoipa::ToSchema;

use super::accept::idempotency;
use super::batch::Entry;
use super::fields::FetchRequest;
use super::identity::Identity;
use super::json::Json;
use super::problems::{BodyProblems, CallerProblems, SenderProblems, SizeProblems, StoreProblems};
use super::respond::json;
use super::{Api, ApiResult, body, prefer, waiting};
use crate::problem::{PROBLEM_JSON, Problem, ProblemBody, ProblemKind};
use crate::views::messages::MessageView;
use crate::views::schemas::MessageStatus;

const MAX_BODY_BYTES: u64 = 64 << 10;

/// Without a valid token the body is read only to name the message in the problem. It takes memory that other requests
/// wait for, so this limit is short.
const STRANGERS_BODY_TIMEOUT: Duration = Duration::from_secs(1);

/// An accepted message of a batch.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Accepted {
    /// The id of the message.
    #[schema(example = "msg_018bcfe56800ffffffffffffffffffff", pattern = "^msg_[0-9a-f]{32}$")]
    pub(super) message_id: String,
    /// `queued`.
    #[schema(example = "queued", value_type = MessageStatus)]
    pub(super) status: &'static str,
}

/// Send a message: a page to fetch
///
/// The response is the message, as `GET /messages/{id}` shows it. It is sent when the message is stored; the page is
/// fetched after that, so `outbox` is null. With `Prefer: wait=N` (at most 60 seconds) the response waits for the
/// result. With an `Idempotency-Key` a repeated request gets the message of the first one, as it is now, and nothing is
/// accepted twice.
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
        (status = 200, description = "the accepted message; with Prefer: wait=N or max_age possibly with its result", body = MessageView,
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
    let posted = body::json(&whole.bytes)?;
    let submitted = async {
        api.charge(&identity.caller, 1)?;
        let idempotency = idempotency(&parts.headers, "/fetch", &whole.bytes)?;
        let message = FetchRequest::read(&posted, &api.judge()).map_err(Problem::invalid)?;
        let is_shared = message.max_age.is_some();
        let url = message.url.clone();
        let retailer = message.retailer.clone();
        let correlation_id = message.correlation_id.clone();
        let committed = api.submit(&identity, idempotency, vec![message], None).await?;
        let id = committed.ids.first().copied();
        let id = id.ok_or_else(|| Problem::new(ProblemKind::INTERNAL))?;
        let sent = Message {
            id,
            url,
            retailer,
            correlation_id: correlation_id.unwrap_or_else(|| id.to_string()),
            caller: identity.caller.name.clone(),
            status: Status::Queued,
            created_at: committed.created_at.unwrap_or_else(|| api.on.clock.wall()),
            attempts: 0,
            outbox: None,
        };
        let wait = prefer::wait(&parts.headers);
        // A message that shares results may have ended at once, and one that was sent before at any time. All others
        // are answered without asking the store.
        if is_shared || committed.created_at.is_none() || wait.is_some() {
            // Boxed, because most requests do not need this large future.
            return Ok(Box::pin(respond_with_current_state(&api, &identity, sent, wait)).await);
        }
        Ok(json(&MessageView::from(sent)))
    };
    submitted.await.map_err(|problem| about(problem, &posted))
}

/// Adds the message to the problem.
fn about(problem: Problem, message: &Json<'_>) -> Problem {
    let Entry { url, correlation_id } = Entry::of(message);
    problem.about(url, correlation_id)
}

/// The current state of an accepted message, or its result. The message is already accepted, so an error here must not
/// look like a refusal: in that case, the response shows the message as it was sent.
async fn respond_with_current_state(
    api: &Api,
    identity: &Identity,
    sent: Message,
    wait: Option<Duration>,
) -> Response {
    let caller = &identity.caller.name;
    let found = match wait {
        Some(wait) => waiting::result_of(api, caller, sent.id, wait).await,
        None => api.message(sent.id, Some(caller)).await,
    };
    // The token may have been revoked while the request waited.
    let may_see = wait.is_none() || identity.check_again(api).await.is_ok();
    let Some(held) = found.ok().flatten().filter(|_| may_see) else {
        return json(&MessageView::from(sent));
    };
    let waited = wait.filter(|_| held.message.outbox.is_some());
    let answer = held.into_response();
    match waited {
        Some(wait) => {
            ([("preference-applied", format!("wait={}", wait.as_secs()))], answer).into_response()
        }
        None => answer,
    }
}
