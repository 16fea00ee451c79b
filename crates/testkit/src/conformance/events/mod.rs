//! The contract of every event log: [`EventLog`].

pub mod publishing;

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::event_log::{EventLog, LogEvent};

/// A store with one log, empty at first.
#[async_trait]
pub trait EventStore: Send + Sync {
    /// Opens the log as a process does at startup. Opened twice, it is the same log.
    async fn open(&self) -> Arc<dyn EventLog>;

    /// All events, as a consumer reads them. Events with the same key are in the order in which they were published.
    async fn read(&self) -> Vec<LogEvent>;
}

/// Tests of the contract: `events_conformance!(Some(SqliteStore::new()))`.
#[macro_export]
macro_rules! events_conformance {
    ($store:expr) => {
        $crate::case_tests!(
            events,
            $store,
            publishing: [
                an_event_is_read_as_it_was_published,
                nothing_published_is_nothing_read,
                the_order_of_a_key_is_kept,
                a_batch_may_come_again,
                an_event_that_is_too_large_is_refused_alone,
                a_large_batch_is_all_there,
                what_several_publish_at_once_is_all_there,
                everything_is_there_for_another_process,
            ],
        );
    };
}
