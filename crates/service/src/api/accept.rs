//! Commits the messages of a request to the inbox.

use axum::body::Bytes;
use fetchwell_engine::ports::inbox::options::kind;
use fetchwell_engine::ports::inbox::{
    Idempotency, MessageId, NewBatch, NewMessage, Submission, Submitted,
};
use fetchwell_policy::time::Time;
use http::{HeaderMap, HeaderValue};
use sha2::{Digest, Sha256};
use tracing::debug;

use super::Api;
use super::fields::{FetchRequest, Judge};
use super::identity::Identity;
use crate::problem::{FieldError, Problem, ProblemKind};

const MAX_KEY_BYTES: usize = 255;

/// Messages that are stored.
pub(super) struct Committed {
    /// Their ids, in the order in which they were sent.
    pub(super) ids: Vec<MessageId>,
    /// When they were created; `None` if they were sent before, under the same key.
    pub(super) created_at: Option<Time>,
}

/// The `Idempotency-Key` of a request, with a hash of the path and the body that it belongs to.
pub(super) fn idempotency(
    headers: &HeaderMap,
    path: &str,
    body: &[u8],
) -> Result<Option<Idempotency>, Problem> {
    idempotency_of("Idempotency-Key", headers, path, body)
}

/// The same for a header with another name.
pub(super) fn idempotency_of(
    name: &'static str,
    headers: &HeaderMap,
    path: &str,
    body: &[u8],
) -> Result<Option<Idempotency>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let visible = |value: &HeaderValue| value.as_bytes().iter().all(u8::is_ascii_graphic);
    let key = value.to_str().unwrap_or_default();
    if values.next().is_some() || !visible(value) || !(1..=MAX_KEY_BYTES).contains(&key.len()) {
        let detail = format!("must be one key of 1 to {MAX_KEY_BYTES} visible ASCII characters");
        return Err(Problem::invalid(vec![FieldError::in_header(name, detail)]));
    }
    let mut hash = Sha256::new();
    hash.update(path);
    hash.update(b"\n");
    hash.update(body);
    Ok(Some(Idempotency { key: key.to_owned(), body_hash: hash.finalize().into() }))
}

impl Api {
    /// The rules for checking the fields of a message.
    pub(super) fn judge(&self) -> Judge<'_> {
        Judge {
            guard: &self.on.guard,
            wall: self.on.clock.wall(),
            default_deadline: self.rules.default_deadline,
        }
    }

    /// Commits messages.
    pub(super) async fn submit(
        &self,
        identity: &Identity,
        idempotency: Option<Idempotency>,
        messages: Vec<FetchRequest>,
        batch: Option<NewBatch>,
    ) -> Result<Committed, Problem> {
        let caller = identity.caller.name.clone();
        let own = self.new_ids(messages.len())?;
        let payloads = payloads(&messages);
        let new = |((message, id), options)| new_message(message, id, options, &caller);
        let messages = messages.into_iter().zip(own).zip(payloads).map(new).collect();
        let from = identity.from.clone();
        let submission = Submission { caller, from, idempotency, messages, batch };
        match self.stored(self.on.inbox.submit(submission).await)? {
            Submitted::Accepted { ids, created_at } => {
                // A replay returns the ids of the first request and accepts nothing.
                if created_at.is_some() {
                    self.on.metrics.accepted(ids.len());
                    for message_id in &ids {
                        debug!(%message_id, caller = identity.caller.name, "message accepted");
                    }
                }
                Ok(Committed { ids, created_at })
            }
            Submitted::KeyUsedOtherwise => Err(Problem::new(ProblemKind::KEY_REUSED)),
        }
    }

    /// New ids in ascending order, so that the messages of a batch sort in the order of the batch and an index of ids
    /// grows at its end.
    pub(super) fn new_ids(&self, count: usize) -> Result<Vec<MessageId>, Problem> {
        let mut chance = vec![[0; 16]; count];
        getrandom::fill(chance.as_flattened_mut())
            .map_err(|_| Problem::new(ProblemKind::INTERNAL))?;
        let wall = self.on.clock.wall();
        let new = |chance| MessageId::new(wall, u128::from_be_bytes(chance));
        let mut ids: Vec<MessageId> = chance.into_iter().map(new).collect();
        ids.sort_unstable();
        Ok(ids)
    }
}

/// The encoded options of messages. Neighbours with the same options share them, because a batch of 10,000 messages
/// mostly has one set of options.
fn payloads(messages: &[FetchRequest]) -> Vec<Bytes> {
    let mut last: Option<(&FetchRequest, Bytes)> = None;
    let mut payloads = Vec::with_capacity(messages.len());
    for message in messages {
        let shared = last.filter(|(before, _)| before.has_same_options(message));
        let encoded = || message.options().to_payload().into();
        let payload = shared.map_or_else(encoded, |(_, payload)| payload);
        payloads.push(payload.clone());
        last = Some((message, payload));
    }
    payloads
}

fn new_message(message: FetchRequest, id: MessageId, options: Bytes, caller: &str) -> NewMessage {
    NewMessage {
        id,
        site: message.site,
        kind: kind(caller, &message.url, &options),
        options,
        url: message.url,
        retailer: message.retailer,
        correlation_id: message.correlation_id.unwrap_or_else(|| id.to_string()),
        deadline_in: message.deadline,
        callback_url: message.callback_url,
        max_age: message.max_age,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fetchwell_policy::address::AddressGuard;
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_with_the_same_options_share_them() {
        let guard = AddressGuard::default();
        let default_deadline = Duration::from_secs(60);
        let judge = Judge { guard: &guard, wall: Time::EPOCH, default_deadline };
        let message = |path: &str, extract: bool| {
            let text = json!({"url": format!("http://a.test{path}"), "extract": extract});
            let text = text.to_string();
            FetchRequest::read(&serde_json::from_str(&text).unwrap(), &judge).unwrap()
        };
        let payloads = payloads(&[message("/1", true), message("/2", true), message("/3", false)]);
        assert_eq!(payloads, [r#"{"extract":true}"#, r#"{"extract":true}"#, "{}"]);
        assert_eq!(payloads[0].as_ptr(), payloads[1].as_ptr());
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
