//! The port for an event log that other programs consume.

use std::time::Duration;

use async_trait::async_trait;

use crate::ports::error::StoreError;

/// An event for the consumers of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEvent {
    /// Identifies the event. It stays the same if the batch is published again, so that consumers can detect
    /// duplicates.
    pub id: String,
    /// Events with the same key are consumed in the order in which they were published.
    pub key: [u8; 32],
    /// JSON.
    pub value: String,
}

/// The result of publishing an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Published {
    /// It is stored, possibly more than once.
    Confirmed,
    /// The log will never accept it.
    Refused {
        /// Why it was refused.
        reason: String,
    },
}

/// A log of events with at-least-once delivery, ordered per key.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Returns once each event is stored or refused, with one result per event, in order. After an error the outcome is
    /// unknown, so the same batch is published again.
    async fn publish(&self, events: &[LogEvent]) -> Result<Vec<Published>, StoreError>;

    /// Checks whether events can be published, by a call to the server if there is one.
    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Removes events that are older than `keep`, unless the server does so itself. Returns how many were removed.
    async fn sweep(&self, _keep: Duration) -> Result<u64, StoreError> {
        Ok(0)
    }
}

/// Events with a larger value are refused. This matches Kafka's default, so that Kafka accepts every event that the
/// embedded log accepts.
const MAX_EVENT_BYTES: usize = 1_000_000;

/// Accepts or refuses an event by its size, for the embedded logs.
pub fn judge_by_size(event: &LogEvent) -> Published {
    match event.value.len() {
        0..=MAX_EVENT_BYTES => Published::Confirmed,
        bytes => Published::Refused {
            reason: format!("an event of {bytes} bytes; the maximum is {MAX_EVENT_BYTES}"),
        },
    }
}
