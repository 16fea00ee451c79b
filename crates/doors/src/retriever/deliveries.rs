//! Prepares deliveries: a job only names a message, but its plan needs the body and the caller's secret.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::crawls::{Crawls, MessageCrawl};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{BatchId, CrawlId, Inbox, Message, MessageId};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::message_batches::{MessageBatch, MessageBatches};
use fetchwell_engine::wrapped_source::LeaseHooks;
use fetchwell_policy::rfc3339::rfc3339;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tracing::warn;

use crate::webhooks::{Delivery, Letter, Sign, WebhookSecrets};

/// If a result has more content than this, its delivery leaves the content out: the receiver can ask the API for it.
const MAX_CONTENT_BYTES: usize = 256 << 10;

/// The fields that hold the content.
const CONTENT: [&str; 4] = ["content", "text", "markdown", "links"];

/// Encode what is delivered as the API does.
#[derive(Clone)]
pub struct Encode {
    /// A message.
    pub message: Arc<dyn Fn(Message) -> Value + Send + Sync>,
    /// A batch that has ended.
    pub batch: Arc<dyn Fn(&MessageBatch) -> Value + Send + Sync>,
    /// A crawl that has ended.
    pub crawl: Arc<dyn Fn(&MessageCrawl) -> Value + Send + Sync>,
}

/// The secrets of callers with deliveries in progress. They exist only in memory, never in the payload of a job.
#[derive(Clone, Default)]
pub(super) struct Secrets(Arc<Mutex<HashMap<String, WebhookSecrets>>>);

impl Secrets {
    pub(super) fn signer(&self) -> Sign {
        let secrets = self.clone();
        Arc::new(move |caller, content| {
            let secrets = secrets.0.lock();
            secrets.get(caller).map(|secrets| secrets.sign(content))
        })
    }

    fn set(&self, caller: &str, of_caller: Option<WebhookSecrets>) {
        let mut secrets = self.0.lock();
        match of_caller {
            Some(of_caller) => secrets.insert(caller.to_owned(), of_caller),
            None => secrets.remove(caller),
        };
    }
}

/// Makes deliveries ready.
pub(super) struct Ready {
    pub(super) inbox: Arc<dyn Inbox>,
    pub(super) batches: Arc<dyn MessageBatches>,
    pub(super) crawls: Option<Arc<dyn Crawls>>,
    pub(super) secrets: Secrets,
    pub(super) encode: Encode,
}

impl Ready {
    /// Reads what a delivery needs. The lease has been taken, so it must reach its plan even if the store is
    /// unavailable. A permanent error ends the flow, which hands the lease back.
    async fn delivery(&self, lease: &Lease) -> Result<Delivery, StoreError> {
        let payload = String::from_utf8_lossy(&lease.job.payload);
        let letter = if let Ok(id) = payload.parse::<MessageId>() {
            self.letter(id).await
        } else if let Ok(id) = payload.parse::<BatchId>() {
            self.batch_letter(id).await
        } else if let Ok(id) = payload.parse::<CrawlId>() {
            self.crawl_letter(id).await
        } else {
            let reason = "the job has no message".to_owned();
            return Ok(Delivery::Dead { id: payload.into_owned(), reason });
        };
        match letter {
            Ok(Some(letter)) => Ok(Delivery::Post(letter)),
            Ok(None) => {
                let reason = "its message was deleted".to_owned();
                Ok(Delivery::Dead { id: payload.into_owned(), reason })
            }
            Err(fault) if fault.is_transient() => {
                warn!("the delivery of {payload} is delayed: {fault}");
                Ok(Delivery::Later)
            }
            Err(fault) => Err(fault),
        }
    }

    async fn letter(&self, id: MessageId) -> Result<Option<Letter>, StoreError> {
        let Some(message) = self.inbox.message(id, None).await? else { return Ok(None) };
        let caller = message.caller.clone();
        self.renew_secrets(&caller).await?;
        Ok(Some(Letter { id: id.to_string(), caller, body: body(message, &*self.encode.message) }))
    }

    /// The end of a batch. Its ID is the same for each attempt, as that of a message.
    async fn batch_letter(&self, id: BatchId) -> Result<Option<Letter>, StoreError> {
        let Some(batch) = self.batches.batch(id, None).await? else { return Ok(None) };
        self.renew_secrets(&batch.caller).await?;
        let body = json!({
            "type": "batch.completed",
            "timestamp": batch.ended_at.map(rfc3339),
            "data": (self.encode.batch)(&batch),
        });
        Ok(Some(Letter { id: id.to_string(), caller: batch.caller, body: body.to_string() }))
    }

    /// The end of a crawl, likewise.
    async fn crawl_letter(&self, id: CrawlId) -> Result<Option<Letter>, StoreError> {
        let Some(crawls) = &self.crawls else { return Ok(None) };
        let Some(crawl) = crawls.crawl(id, None).await? else { return Ok(None) };
        self.renew_secrets(&crawl.caller).await?;
        let body = json!({
            "type": "crawl.completed",
            "timestamp": crawl.ended_at.map(rfc3339),
            "data": (self.encode.crawl)(&crawl),
        });
        Ok(Some(Letter { id: id.to_string(), caller: crawl.caller, body: body.to_string() }))
    }

    /// Reads the secrets again for each delivery: they may have been rotated, or the caller revoked.
    async fn renew_secrets(&self, caller: &str) -> Result<(), StoreError> {
        let keys = self.inbox.webhook_keys(caller).await?;
        self.secrets.set(caller, keys.as_ref().map(WebhookSecrets::of));
        Ok(())
    }
}

/// The body to deliver: the message as the API shows it.
fn body(message: Message, encode: &dyn Fn(Message) -> Value) -> String {
    let kind = match &message.outbox {
        Some(outbox) if outbox.result.is_success() => "fetch.completed",
        _ => "fetch.failed",
    };
    let mut data = encode(message);
    let outbox = &mut data["outbox"];
    let content_bytes: usize = CONTENT.iter().map(|name| text_bytes(&outbox[*name])).sum();
    if content_bytes > MAX_CONTENT_BYTES {
        for name in CONTENT {
            if outbox.get(name).is_some() {
                outbox[name] = Value::Null;
            }
        }
        outbox["content_omitted"] = true.into();
    }
    let timestamp = outbox["created_at"].clone();
    json!({"type": kind, "timestamp": timestamp, "data": data}).to_string()
}

/// The length of a text, or of the texts in a list.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(text_bytes).sum(),
        _ => 0,
    }
}

#[async_trait]
impl LeaseHooks for Ready {
    async fn prepare(&self, leases: &mut Vec<Lease>) -> Result<(), StoreError> {
        let mut payloads = Vec::with_capacity(leases.len());
        for lease in &*leases {
            let delivery = self.delivery(lease).await?;
            payloads.push(serde_json::to_vec(&delivery).unwrap_or_default());
        }
        // All or none: a lease that comes again must still name its message.
        for (lease, payload) in leases.iter_mut().zip(payloads) {
            lease.job.payload = payload;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::ports::inbox::{FetchResult, MessageStatus, OutboxMessage};
    use fetchwell_policy::rfc3339::rfc3339;
    use fetchwell_policy::time::Time;

    use super::*;

    fn message(content: &str, status: &str) -> Message {
        let id = MessageId([1; 16]);
        let url = "http://a.test/";
        let retailer = "shop";
        let correlation_id = "c1";
        let result = FetchResult {
            status: status.to_owned(),
            content: Some(content.to_owned()),
            http_status: Some(200),
            attempts: 1,
            ..FetchResult::default()
        };
        let outbox = OutboxMessage {
            cursor: 1,
            message: id,
            url: url.to_owned(),
            retailer: retailer.to_owned(),
            correlation_id: correlation_id.to_owned(),
            created_at: Time::from_secs(1_700_000_000),
            result,
        };
        Message {
            id,
            url: url.to_owned(),
            retailer: retailer.to_owned(),
            correlation_id: correlation_id.to_owned(),
            caller: "me".to_owned(),
            status: MessageStatus::Completed,
            created_at: Time::from_secs(1_699_999_999),
            attempts: 1,
            outbox: Some(outbox),
        }
    }

    /// The part of the API's view that a delivery looks at.
    fn view(message: Message) -> Value {
        let outbox = message.outbox.unwrap();
        let created_at = rfc3339(outbox.created_at);
        let outbox = json!({"content": outbox.result.content, "created_at": created_at});
        json!({"caller_id": message.caller, "outbox": outbox})
    }

    fn delivered(content: &str, status: &str) -> Value {
        serde_json::from_str(&body(message(content, status), &view)).unwrap()
    }

    #[test]
    fn a_delivery_has_the_message_as_the_api_shows_it() {
        let body = delivered("page", "success");
        assert_eq!(body["type"], "fetch.completed");
        assert_eq!(body["timestamp"], "2023-11-14T22:13:20Z");
        assert_eq!(body["data"]["outbox"]["content"], "page");
        assert_eq!(body["data"]["caller_id"], "me");
        assert_eq!(delivered("page", "timeout")["type"], "fetch.failed");
    }

    #[test]
    fn a_large_page_is_left_out_and_that_is_said() {
        let at = |bytes: usize| delivered(&"x".repeat(bytes), "success")["data"]["outbox"].clone();
        assert!(at(MAX_CONTENT_BYTES).get("content_omitted").is_none());
        let large = at(MAX_CONTENT_BYTES + 1);
        assert_eq!((&large["content"], &large["content_omitted"]), (&Value::Null, &json!(true)));
        let links = vec!["http://a.test/".to_owned(); MAX_CONTENT_BYTES / 10];
        let with_links = |message| {
            let mut view = view(message);
            view["outbox"]["links"] = json!(links);
            view
        };
        let body: Value = serde_json::from_str(&body(message("", "success"), &with_links)).unwrap();
        let outbox = &body["data"]["outbox"];
        assert_eq!((&outbox["links"], &outbox["content_omitted"]), (&Value::Null, &json!(true)));
    }
}
