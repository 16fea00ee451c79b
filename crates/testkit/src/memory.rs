//! A page cache and an event log in memory. They behave like the durable ones.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::event_log::{EventLog, LogEvent, Published, judge_by_size};
use fetchwell_engine::ports::page_cache::PageCache;
use fetchwell_policy::time::Time;
use parking_lot::Mutex;

/// A page cache in memory.
pub struct MemoryPages {
    clock: Clock,
    pages: Mutex<HashMap<String, (Time, Bytes)>>,
}

impl MemoryPages {
    pub fn new(clock: Clock) -> MemoryPages {
        MemoryPages { clock, pages: Mutex::default() }
    }
}

#[async_trait]
impl PageCache for MemoryPages {
    async fn put(&self, key: &str, body: Bytes, ttl: Duration) -> Result<(), StoreError> {
        self.pages.lock().insert(key.to_owned(), (self.clock.now() + ttl, body));
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let now = self.clock.now();
        let pages = self.pages.lock();
        Ok(pages.get(key).filter(|(expires_at, _)| *expires_at > now).map(|(_, body)| body.clone()))
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        let now = self.clock.now();
        let mut pages = self.pages.lock();
        let before = pages.len();
        pages.retain(|_, (expires_at, _)| *expires_at > now);
        Ok((before - pages.len()) as u64)
    }
}

/// A log of events in memory.
#[derive(Default)]
pub struct MemoryEvents(Mutex<Vec<LogEvent>>);

impl MemoryEvents {
    /// All published events, in order.
    pub fn published(&self) -> Vec<LogEvent> {
        self.0.lock().clone()
    }
}

#[async_trait]
impl EventLog for MemoryEvents {
    async fn publish(&self, events: &[LogEvent]) -> Result<Vec<Published>, StoreError> {
        let published: Vec<Published> = events.iter().map(judge_by_size).collect();
        let taken = events.iter().zip(&published).filter(|(_, one)| **one == Published::Confirmed);
        let taken = taken.map(|(event, _)| event.clone());
        self.0.lock().extend(taken);
        Ok(published)
    }
}
