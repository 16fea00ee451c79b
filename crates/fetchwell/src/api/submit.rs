//! `POST /fetch` and `POST /fetch/batch`: messages are accepted when they are committed.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;
use fetchwell_engine::inbox::{Idempotency, MessageId, NewMessage, Submission, Submitted};
use fetchwell_policy::url::{MAX_URL_BYTES, WebUrl};
use http::{HeaderMap, HeaderValue};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::fields::{FetchRequest, Judge, pointer};
use super::identity::Identity;
use super::problem::{FieldError, Kind, Problem, ProblemBody};
use super::routes::json;
use super::view::{self, MessageView};
use super::{Api, body, prefer, waiting};

const MAX_BODY_BYTES: u64 = 64 << 10;
const MAX_BATCH: usize = 1_000;
const MAX_KEY_BYTES: usize = 255;

/// A message that was accepted.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Accepted {
    /// Its name.
    #[schema(example = "msg_018bcfe56800ffffffffffffffffffff")]
    message_id: String,
    /// `queued`; with `max_age` and a stored page at once `completed`.
    #[schema(example = "queued")]
    status: &'static str,
}

/// Messages to be accepted together.
#[derive(ToSchema)]
#[expect(dead_code, reason = "for its schema: a batch is read entry by entry")]
pub(super) struct Batch {
    /// Up to 1,000.
    #[schema(min_items = 1, max_items = 1000)]
    messages: Vec<FetchRequest>,
}

/// Messages that were accepted together, in the order in which they were sent.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AcceptedBatch {
    /// One for each.
    messages: Vec<Accepted>,
}

/// Send a message: a page to be fetched
///
/// The answer comes when the message is committed; the page is fetched after that, politely. With
/// `Prefer: wait=N` (at most 60 seconds) the answer waits for the result, and is that of
/// `/messages/{id}` if it came in time. With an `Idempotency-Key` a repetition gets the first answer,
/// and nothing is accepted twice.
#[utoipa::path(
    post,
    path = "/fetch",
    tag = "Messages",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "your own name for this request: 1 to 255 visible ASCII characters"),
        ("Prefer" = Option<String>, Header, description = "wait=N waits up to N seconds for the result", example = "wait=10"),
    ),
    request_body = FetchRequest,
    responses(
        (status = 200, description = "accepted; or, with Prefer: wait=N, the message with its result", body = Accepted),
        (status = 400, description = "the body is not JSON", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "no token, or one that is not good", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "a viewer sends nothing", body = ProblemBody, content_type = "application/problem+json"),
        (status = 408, description = "the body took too long to come", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "the body is over 64 KiB", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "the body is no application/json", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "a field is missing or invalid, the URL is refused, or the key was used otherwise", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "over the caller's own limit", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "the store is down", body = ProblemBody, content_type = "application/problem+json"),
    ),
    security(("token" = []))
)]
pub(super) async fn fetch(
    State(api): State<Arc<Api>>,
    identity: Identity,
    request: Request,
) -> Result<Response, Problem> {
    identity.check_may_send()?;
    let (parts, body) = request.into_parts();
    let bytes = body::read(&parts.headers, body, MAX_BODY_BYTES).await?;
    let json = body::json(&bytes)?;
    let entry = Entry::of(&json);
    let submitted = async {
        api.charge(&identity.caller, 1)?;
        let idempotency = idempotency(&parts.headers, "/fetch", &bytes)?;
        let message = FetchRequest::read(&json, &api.judge()).map_err(Problem::invalid)?;
        let sharing = message.max_age.is_some();
        let ids = api.submit(&identity, idempotency, vec![message]).await?;
        let id = ids.first().copied().ok_or_else(|| Problem::new(Kind::Internal))?;
        answer(&api, &identity, id, sharing, prefer::wait(&parts.headers)).await
    };
    submitted.await.map_err(|problem| problem.about(entry.url, entry.correlation_id))
}

/// Send up to 1,000 messages at once
///
/// All are accepted, or none: one bad message refuses the batch, and the answer names each of them.
#[utoipa::path(
    post,
    path = "/fetch/batch",
    tag = "Messages",
    params(("Idempotency-Key" = Option<String>, Header, description = "your own name for this request: 1 to 255 visible ASCII characters")),
    request_body = Batch,
    responses(
        (status = 200, description = "accepted, in this order", body = AcceptedBatch),
        (status = 400, description = "the body is not JSON", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "no token, or one that is not good", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "a viewer sends nothing", body = ProblemBody, content_type = "application/problem+json"),
        (status = 408, description = "the body took too long to come", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "the body is too large", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "the body is no application/json", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "a message is invalid, or the key was used otherwise", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "over the caller's own limit", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "the store is down", body = ProblemBody, content_type = "application/problem+json"),
    ),
    security(("token" = []))
)]
pub(super) async fn batch(
    State(api): State<Arc<Api>>,
    identity: Identity,
    request: Request,
) -> Result<Response, Problem> {
    identity.check_may_send()?;
    let (parts, body) = request.into_parts();
    let bytes = body::read(&parts.headers, body, api.rules.max_batch_body_bytes).await?;
    let json_body = body::json(&bytes)?;
    let entries = entries(&json_body);
    api.charge(&identity.caller, entries.as_ref().map_or(1, |entries| entries.len()))?;
    let idempotency = idempotency(&parts.headers, "/fetch/batch", &bytes)?;
    let messages = read_all(entries.map_err(Problem::invalid)?, &api.judge())?;
    let ids = api.submit(&identity, idempotency, messages).await?;
    let accepted = |id: &MessageId| Accepted { message_id: id.to_string(), status: "queued" };
    Ok(json(&AcceptedBatch { messages: ids.iter().map(accepted).collect() }))
}

/// What a problem says of the message that it is about.
struct Entry {
    url: Option<String>,
    correlation_id: Option<String>,
}

impl Entry {
    fn of(json: &Value) -> Entry {
        // What is longer than it may be is not repeated.
        let text = |name: &str| {
            let text = json.get(name)?.as_str()?;
            (text.len() <= MAX_URL_BYTES).then(|| text.to_owned())
        };
        Entry { url: text("url"), correlation_id: text("correlation_id") }
    }
}

fn entries(json: &Value) -> Result<&[Value], Vec<FieldError>> {
    let fault = |pointer: &str, detail: &str| vec![FieldError::at(pointer, detail)];
    let Value::Object(fields) = json else {
        return Err(fault("", "is no JSON object; send {\"messages\": […]}"));
    };
    if let Some(unknown) = fields.keys().find(|name| *name != "messages") {
        return Err(fault(&pointer(&[unknown]), "is not a known field; known is messages"));
    }
    match fields.get("messages") {
        Some(Value::Array(entries)) if (1..=MAX_BATCH).contains(&entries.len()) => Ok(entries),
        Some(Value::Array(_)) => Err(fault("/messages", "must have 1 to 1000 messages")),
        Some(_) => Err(fault("/messages", "is no JSON array")),
        None => Err(fault("/messages", "is missing")),
    }
}

/// Reads all, or tells of each that is bad.
fn read_all(entries: &[Value], judge: &Judge<'_>) -> Result<Vec<FetchRequest>, Problem> {
    let mut errors = Vec::new();
    let mut messages = Vec::with_capacity(entries.len());
    for (index, json) in entries.iter().enumerate() {
        match FetchRequest::read(json, judge) {
            Ok(message) => messages.push(message),
            Err(faults) => errors.extend(faults.into_iter().map(|fault| {
                let Entry { url, correlation_id } = Entry::of(json);
                let within = fault.pointer.unwrap_or_default();
                let pointer = Some(format!("/messages/{index}{within}"));
                FieldError { pointer, index: Some(index), url, correlation_id, ..fault }
            })),
        }
    }
    if errors.is_empty() { Ok(messages) } else { Err(Problem::invalid(errors)) }
}

/// The name that the caller gave to this submission, with what was in it.
fn idempotency(
    headers: &HeaderMap,
    path: &str,
    body: &[u8],
) -> Result<Option<Idempotency>, Problem> {
    const NAME: &str = "Idempotency-Key";
    let mut values = headers.get_all(NAME).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let visible = |value: &HeaderValue| value.as_bytes().iter().all(u8::is_ascii_graphic);
    let key = value.to_str().unwrap_or_default();
    if values.next().is_some() || !visible(value) || !(1..=MAX_KEY_BYTES).contains(&key.len()) {
        let detail = format!("must be one key of 1 to {MAX_KEY_BYTES} visible ASCII characters");
        return Err(Problem::invalid(vec![FieldError::in_header(NAME, detail)]));
    }
    let mut hash = Sha256::new();
    hash.update(path);
    hash.update(b"\n");
    hash.update(body);
    Ok(Some(Idempotency { key: key.to_owned(), body_hash: hash.finalize().into() }))
}

impl Api {
    fn judge(&self) -> Judge<'_> {
        Judge {
            guard: &self.guard,
            wall: self.clock.wall(),
            default_deadline: self.rules.default_deadline,
        }
    }

    async fn submit(
        &self,
        identity: &Identity,
        idempotency: Option<Idempotency>,
        messages: Vec<FetchRequest>,
    ) -> Result<Vec<MessageId>, Problem> {
        let caller = identity.caller.name.clone();
        let messages: Result<Vec<NewMessage>, Problem> =
            messages.into_iter().map(|message| self.new_message(message, &caller)).collect();
        let submission =
            Submission { caller, from: identity.from.clone(), idempotency, messages: messages? };
        let own: Vec<MessageId> = submission.messages.iter().map(|message| message.id).collect();
        match self.stored(self.inbox.submit(submission).await)? {
            Submitted::Accepted(ids) => {
                // A repetition is answered with the ids of the first time, and accepts nothing.
                if ids == own {
                    self.metrics.accepted(ids.len());
                }
                Ok(ids)
            }
            Submitted::KeyUsedOtherwise => Err(Problem::new(Kind::KeyReused)),
        }
    }

    fn new_message(&self, message: FetchRequest, caller: &str) -> Result<NewMessage, Problem> {
        let mut chance = [0; 16];
        getrandom::fill(&mut chance).map_err(|_| Problem::new(Kind::Internal))?;
        let site = WebUrl::parse(&message.url).map_err(|_| Problem::new(Kind::Internal))?.site();
        let options = message.options();
        Ok(NewMessage {
            id: MessageId::new(self.clock.wall(), u128::from_be_bytes(chance)),
            site,
            kind: options.kind(caller, &message.url),
            options: options.to_payload(),
            url: message.url,
            retailer: message.retailer,
            correlation_id: message.correlation_id,
            deadline_in: message.deadline,
            callback_url: message.callback_url,
            max_age: message.max_age,
        })
    }
}

/// The answer to one message: with its result, if that was waited for and came.
async fn answer(
    api: &Api,
    identity: &Identity,
    id: MessageId,
    sharing: bool,
    wait: Option<Duration>,
) -> Result<Response, Problem> {
    let caller = &identity.caller.name;
    if let Some(wait) = wait
        && let Some(message) = waiting::result_of(api, caller, id, wait).await?
    {
        identity.check_again(api).await?;
        let mut response = json(&MessageView::from(message));
        let applied = HeaderValue::from_str(&format!("wait={}", wait.as_secs()));
        if let Ok(applied) = applied {
            response.headers_mut().insert("preference-applied", applied);
        }
        return Ok(response);
    }
    // Only a message that shares may be complete by now.
    let stored = if sharing { api.message(id, Some(caller)).await? } else { None };
    let ended = stored.filter(|message| message.outbox.is_some());
    let status = ended.map_or("queued", |message| view::status(message.status));
    Ok(json(&Accepted { message_id: id.to_string(), status }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_batch_is_an_array_of_messages() {
        let many = |count: usize| json!({"messages": vec![json!({}); count]});
        assert_eq!(entries(&many(MAX_BATCH)).map(<[Value]>::len), Ok(MAX_BATCH));
        for (json, pointer) in [
            (many(0), "/messages"),
            (many(MAX_BATCH + 1), "/messages"),
            (json!({}), "/messages"),
            (json!({"messages": {}}), "/messages"),
            (json!({"messages": [{}], "x": 1}), "/x"),
            (json!([]), ""),
        ] {
            assert_eq!(entries(&json).unwrap_err()[0].pointer.as_deref(), Some(pointer), "{json}");
        }
    }

    #[test]
    fn a_key_is_bound_to_path_and_body() {
        let with = |key: &str| {
            HeaderMap::from_iter([(
                http::header::HeaderName::from_static("idempotency-key"),
                key.parse().unwrap(),
            )])
        };
        let hash = |path, body| idempotency(&with("k"), path, body).unwrap().unwrap().body_hash;
        assert_eq!(hash("/fetch", b"{}"), hash("/fetch", b"{}"));
        assert_ne!(hash("/fetch", b"{}"), hash("/fetch", b"{ }"));
        assert_ne!(hash("/fetch", b"{}"), hash("/fetch/batch", b"{}"));
        assert!(idempotency(&HeaderMap::new(), "/", b"").unwrap().is_none());
        for wrong in ["", "a b", &"x".repeat(256)] {
            assert!(idempotency(&with(wrong), "/", b"").is_err(), "{wrong}");
        }
    }
}
