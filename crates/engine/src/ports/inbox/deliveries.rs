//! The log of webhook deliveries, as their callers see it.

use fetchwell_policy::time::Time;
use serde::{Deserialize, Serialize};

/// The maximum number of deliveries that one call replays.
pub const MAX_REPLAYS: u32 = 1_000;

/// The maximum length of the error of an attempt, in characters.
const MAX_ERROR_CHARS: usize = 240;

/// The status of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// It waits for its first or its next attempt.
    Pending,
    /// The receiver accepted it.
    Delivered,
    /// It was given up.
    Failed,
}

impl DeliveryStatus {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            DeliveryStatus::Pending => "pending",
            DeliveryStatus::Delivered => "delivered",
            DeliveryStatus::Failed => "failed",
        }
    }

    /// Parses its name.
    pub fn parse(word: &str) -> Option<DeliveryStatus> {
        [DeliveryStatus::Pending, DeliveryStatus::Delivered, DeliveryStatus::Failed]
            .into_iter()
            .find(|status| status.as_str() == word)
    }
}

/// The record of one attempt at a delivery: the record type of the pipeline that delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRecord {
    /// The `webhook-id` of the delivery.
    pub webhook: String,
    /// The caller whose result is delivered.
    pub caller: String,
    /// The callback URL.
    pub url: String,
    /// The status of the delivery after this attempt.
    pub status: DeliveryStatus,
    /// The attempt.
    pub attempt: DeliveryAttempt,
}

/// An attempt at a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryAttempt {
    /// When it ended, by the wall clock.
    pub at: Time,
    /// The status code of the response.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub http_status: Option<u16>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
}

impl DeliveryAttempt {
    /// An attempt, with its error in a bounded length.
    pub fn new(at: Time, http_status: Option<u16>, error: Option<&str>) -> DeliveryAttempt {
        let error = error.map(|text| text.replace('\0', "\u{FFFD}"));
        let error = error.map(|text| text.chars().take(MAX_ERROR_CHARS).collect());
        DeliveryAttempt { at, http_status, error }
    }

    /// Writes it as one line of JSON. The attempts of a delivery are stored as such lines.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Parses stored attempts, oldest first. Lines that cannot be parsed are skipped.
pub fn delivery_attempts_of(lines: &str) -> Vec<DeliveryAttempt> {
    lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// A delivery and its attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryLogEntry {
    /// Its position in the log: later deliveries have higher ones.
    pub position: i64,
    /// The `webhook-id`.
    pub webhook: String,
    /// The callback URL.
    pub url: String,
    /// Its status.
    pub status: DeliveryStatus,
    /// The number of attempts.
    pub attempts: u32,
    /// When the result was stored, by the wall clock.
    pub created_at: Time,
    /// The last attempts, oldest first.
    pub last_attempts: Vec<DeliveryAttempt>,
}

/// Which deliveries to list, newest first.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryFilter {
    /// Only those with this status.
    pub status: Option<DeliveryStatus>,
    /// Only those before this position.
    pub before: Option<i64>,
    /// The maximum number.
    pub most: u32,
}

/// Which deliveries to replay: those of one time range, oldest first.
#[derive(Clone, Copy, Debug)]
pub struct ReplayRange {
    /// The earliest `created_at`.
    pub since: Time,
    /// All of them were created before this.
    pub until: Time,
    /// Only those with this status; without it, both delivered and failed ones.
    pub status: Option<DeliveryStatus>,
    /// Where an earlier call ended.
    pub after: Option<ReplayCursor>,
    /// The maximum number, at most [`MAX_REPLAYS`].
    pub most: u32,
}

/// Where a replay ended: `created_at` in microseconds, and the position.
pub type ReplayCursor = (i64, i64);

/// The result of a replay of a time range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The number of deliveries that wait again.
    pub count: u32,
    /// Where to continue; `None` if no more deliveries match.
    pub next: Option<ReplayCursor>,
}

/// The result of a replay of one delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayedOne {
    /// It waits again.
    Again,
    /// It was still pending, so nothing was changed.
    StillPending,
    /// This caller has no such delivery.
    Unknown,
}
