//! A log of events that others follow.

use std::time::Duration;

use async_trait::async_trait;

use crate::ports::error::StoreError;

/// Something that happened, for those who follow a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Names it: the same one when its batch comes again, so that who reads it twice can tell.
    pub id: String,
    /// Events of one key are read in the order in which they were published.
    pub key: [u8; 32],
    /// JSON.
    pub value: String,
}

/// What became of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Published {
    /// It is safe. It may be there more than once.
    Confirmed,
    /// The log will never take it.
    Refused {
        /// Why.
        reason: String,
    },
}

/// A log of events: at least once, in order for each key.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Returns once each event is safe or refused, an answer for each in order. An error means that
    /// nothing is known: the same batch is tried again.
    async fn publish(&self, events: &[Event]) -> Result<Vec<Published>, StoreError>;

    /// Whether events could be published: asks the server, where there is one.
    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Takes out what was published longer ago than `keep`, unless the server does so by itself. Returns how many.
    async fn sweep(&self, _keep: Duration) -> Result<u64, StoreError> {
        Ok(0)
    }
}

/// An event with a larger value is refused. Kafka's default is as much, so that an event which the
/// embedded log takes is one that Kafka takes.
const MAX_EVENT_BYTES: usize = 1_000_000;

/// What becomes of an event by its size alone, in a log of our own.
pub fn judge_by_size(event: &Event) -> Published {
    match event.value.len() {
        0..=MAX_EVENT_BYTES => Published::Confirmed,
        bytes => Published::Refused {
            reason: format!("an event of {bytes} bytes; the maximum is {MAX_EVENT_BYTES}"),
        },
    }
}
