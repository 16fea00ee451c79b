//! The adapters, for the suites.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::memory::{MemoryPoliteness, MemoryQueue};
use fetchwell_engine::ports::dead_letters::{DeadLetters, Revision};
use fetchwell_engine::ports::event_log::{EventLog, LogEvent};
use fetchwell_engine::ports::feeds::Feeds;
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_engine::ports::sites::Sites;
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_policy::breaker::BreakerRule;
use fetchwell_sqlite::db::{Db, Durability};
use fetchwell_stores::sqlite::{self, SqliteEvents, SqliteFeeds, SqlitePoliteness, SqliteQueue};
use tempfile::TempDir;

use super::batches::{BatchStore, Batches};
use super::dead_letters::{LettersStore, the_dead};
use super::events::EventStore;
use super::feeds::FeedsStore;
use super::hand_clock::HandClock;
use super::inbox::{self, InboxStore};
use super::politeness::PolitenessStore;
use super::queue::{LEASE_TTL, QueueOnTrial, QueueStore};
use super::rounds::RoundsStore;
use crate::memory::MemoryEvents;

/// The seed for the jitter of the breakers' open times.
const SEED: u64 = 7;

/// The adapters in memory: opening one twice gives the same store.
#[derive(Default)]
pub struct MemoryStore {
    queue: OnceLock<MemoryQueue>,
    politeness: OnceLock<Arc<MemoryPoliteness>>,
    events: Arc<MemoryEvents>,
}

#[async_trait]
impl QueueStore for MemoryStore {
    async fn open(&self, clock: Clock, run_once: bool) -> Box<dyn QueueOnTrial> {
        let fresh = || MemoryQueue::new(clock, LEASE_TTL, run_once);
        Box::new(self.queue.get_or_init(fresh).clone())
    }

    fn fresh(&self) -> Box<dyn QueueStore> {
        Box::new(MemoryStore::default())
    }
}

impl PolitenessStore for MemoryStore {
    fn open(&self, clock: Clock, rule: BreakerRule) -> Arc<dyn Sites> {
        let fresh = || Arc::new(MemoryPoliteness::new(clock, rule, SEED));
        self.politeness.get_or_init(fresh).clone()
    }

    fn fresh(&self) -> Box<dyn PolitenessStore> {
        Box::new(MemoryStore::default())
    }
}

#[async_trait]
impl EventStore for MemoryStore {
    async fn open(&self) -> Arc<dyn EventLog> {
        self.events.clone()
    }

    async fn read(&self) -> Vec<LogEvent> {
        self.events.published()
    }
}

#[async_trait]
impl QueueOnTrial for MemoryQueue {
    async fn dead(&self) -> Vec<(String, String)> {
        MemoryQueue::dead(self)
    }
}

/// The adapters on a SQLite file, which is deleted with this value.
pub struct SqliteStore {
    folder: TempDir,
}

impl SqliteStore {
    /// An empty folder; the file is created when it is first opened.
    #[expect(clippy::new_without_default, reason = "it creates a folder")]
    pub fn new() -> SqliteStore {
        SqliteStore { folder: tempfile::tempdir().expect("a folder for the file") }
    }

    /// A separate connection, as each process has one.
    pub(super) fn connect(&self) -> Db {
        let path: PathBuf = self.folder.path().join("store.db");
        // Power cuts are not tested here, and waiting for the disk is slow.
        sqlite::open(&path, Durability::Process).expect("the file opens")
    }
}

impl SqliteStore {
    async fn open_queue(&self, clock: Clock, run_once: bool) -> SqliteQueue {
        let queue =
            SqliteQueue::open(self.connect(), "conformance", clock, LEASE_TTL, run_once).await;
        queue.expect("the queue opens")
    }
}

#[async_trait]
impl LettersStore for SqliteStore {
    async fn open_letters(&self, clock: Clock) -> Box<dyn UrlQueue> {
        Box::new(self.open_queue(clock, false).await)
    }

    async fn pop_letter(&self, url: &str) {
        let queue = self.open_queue(HandClock::new().clock(), false).await;
        let letters = queue.dead_letters_of(url).await.expect("letters can be read");
        let first = letters.first().expect("a letter").id;
        let dropped = queue.take_off(&[first], Revision::Drop).await;
        assert_eq!(dropped.expect("it is taken off"), 1);
    }
}

#[async_trait]
impl RoundsStore for SqliteStore {
    async fn open_rounds(&self, clock: Clock) -> Box<dyn UrlQueue> {
        Box::new(self.open_queue(clock, false).await)
    }
}

#[async_trait]
impl FeedsStore for SqliteStore {
    async fn open_feeds(&self) -> Arc<dyn Feeds> {
        Arc::new(SqliteFeeds::new(self.connect()))
    }
}

#[async_trait]
impl BatchStore for SqliteStore {
    async fn open_batches(&self, clock: Clock) -> Box<dyn Batches> {
        Box::new(self.open_queue(clock, false).await)
    }
}

#[async_trait]
impl Batches for SqliteQueue {
    async fn dead(&self) -> Vec<(String, String)> {
        the_dead(self).await
    }
}

#[async_trait]
impl QueueStore for SqliteStore {
    async fn open(&self, clock: Clock, run_once: bool) -> Box<dyn QueueOnTrial> {
        Box::new(self.open_queue(clock, run_once).await)
    }

    fn fresh(&self) -> Box<dyn QueueStore> {
        Box::new(SqliteStore::new())
    }
}

#[async_trait]
impl InboxStore for SqliteStore {
    async fn open(&self, clock: Clock) -> RetrieverStore {
        let path = self.folder.path().join("store.db");
        let poll = Duration::from_millis(500);
        let store = sqlite::open_retriever(&path, clock, inbox::LEASE_TTL, poll).await;
        store.expect("the file opens")
    }

    async fn execute(&self, statement: &str) {
        let statement = statement.replace("{}", "");
        let done = self.connect().write(move |tx| tx.execute_batch(&statement)).await;
        done.expect("the statement is sound");
    }
}

impl PolitenessStore for SqliteStore {
    fn open(&self, clock: Clock, rule: BreakerRule) -> Arc<dyn Sites> {
        Arc::new(SqlitePoliteness::new(self.connect(), clock, rule, SEED))
    }

    fn fresh(&self) -> Box<dyn PolitenessStore> {
        Box::new(SqliteStore::new())
    }
}

/// How many events are read at once: so few that the cursor is needed.
const READ_AT_ONCE: u32 = 700;

#[async_trait]
impl EventStore for SqliteStore {
    async fn open(&self) -> Arc<dyn EventLog> {
        Arc::new(SqliteEvents::new(self.connect(), HandClock::new().clock()))
    }

    async fn read(&self) -> Vec<LogEvent> {
        let log = SqliteEvents::new(self.connect(), HandClock::new().clock());
        let mut events = Vec::new();
        let mut after = 0;
        loop {
            let reading = log.read(after, READ_AT_ONCE).await.expect("the log can be read");
            if reading.events.is_empty() {
                return events;
            }
            events.extend(reading.events.into_iter().map(|(_, event)| event));
            after = reading.next;
        }
    }
}

#[async_trait]
impl QueueOnTrial for SqliteQueue {
    async fn dead(&self) -> Vec<(String, String)> {
        the_dead(self).await
    }
}
