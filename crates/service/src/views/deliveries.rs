//! Deliveries to webhooks as their callers see them.

use fetchwell_engine::ports::inbox::{DeliveryAttempt, DeliveryLogEntry};
use fetchwell_policy::rfc3339::rfc3339;
use serde::Serialize;
use utoipa::ToSchema;

/// A page of deliveries.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = WebhookDeliveries)]
pub struct DeliveriesView {
    /// The deliveries, newest first.
    pub deliveries: Vec<DeliveryView>,
    /// Pass this as `after` for the next page; null if there is none.
    #[schema(required, example = "42", pattern = "^[0-9]+$")]
    pub next: Option<String>,
}

/// A delivery to a webhook.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = WebhookDelivery)]
pub struct DeliveryView {
    /// The `webhook-id` of the delivery: the id of its message, or of its batch for `batch.completed`.
    #[schema(example = "msg_018bcfe56800ffffffffffffffffffff")]
    pub id: String,
    /// The callback URL.
    pub url: String,
    /// `pending`, `delivered` or `failed`.
    #[schema(pattern = "^(pending|delivered|failed)$")]
    pub status: &'static str,
    /// The number of attempts, those of replays included.
    pub attempts: u32,
    /// When the result was stored, or when the batch ended.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// The last attempts, oldest first: about the last ten.
    pub last_attempts: Vec<DeliveryAttemptView>,
}

/// An attempt at a delivery.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = WebhookAttempt)]
pub struct DeliveryAttemptView {
    /// When it ended.
    #[schema(format = DateTime)]
    pub at: String,
    /// The status code of the response; null if there was none.
    #[schema(required)]
    pub http_status: Option<u16>,
    /// Why it failed; null if it was accepted.
    #[schema(required)]
    pub error: Option<String>,
}

impl From<DeliveryLogEntry> for DeliveryView {
    fn from(entry: DeliveryLogEntry) -> DeliveryView {
        DeliveryView {
            id: entry.webhook,
            url: entry.url,
            status: entry.status.as_str(),
            attempts: entry.attempts,
            created_at: rfc3339(entry.created_at),
            last_attempts: entry.last_attempts.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<DeliveryAttempt> for DeliveryAttemptView {
    fn from(attempt: DeliveryAttempt) -> DeliveryAttemptView {
        let DeliveryAttempt { at, http_status, error } = attempt;
        DeliveryAttemptView { at: rfc3339(at), http_status, error }
    }
}
