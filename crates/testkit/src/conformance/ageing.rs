//! Stores whose data expires, with a clock that tests control.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::articles::Articles;
use fetchwell_engine::ports::links::CategoryLinks;
use fetchwell_stores::StoreClock;
use fetchwell_stores::redis::{RedisArticles, RedisLinks};
use fetchwell_stores::sqlite::{SqliteArticles, SqliteLinks};
use redis::AsyncCommands;

use super::adapters::SqliteStore;
use super::articles::ArticlesStore;
use super::hand_clock::{Ageing, HandClock};
use super::links::LinksStore;
use super::servers::RedisStore;

/// A SQLite file with a manual clock.
pub struct AgeingSqlite {
    store: SqliteStore,
    clock: HandClock,
}

impl AgeingSqlite {
    #[expect(clippy::new_without_default, reason = "it creates a folder")]
    pub fn new() -> AgeingSqlite {
        AgeingSqlite { store: SqliteStore::new(), clock: HandClock::new() }
    }
}

#[async_trait]
impl Ageing for AgeingSqlite {
    async fn let_pass(&self, span: Duration) {
        self.clock.advance(span);
    }
}

#[async_trait]
impl LinksStore for AgeingSqlite {
    async fn open_links(&self) -> Arc<dyn CategoryLinks> {
        Arc::new(SqliteLinks::new(self.store.connect(), self.clock.clock()))
    }
}

#[async_trait]
impl ArticlesStore for AgeingSqlite {
    async fn open_articles(&self) -> Arc<dyn Articles> {
        Arc::new(SqliteArticles::new(self.store.connect(), self.clock.clock()))
    }

    async fn forget_attempt(&self, uid: &str) {
        let uid = uid.to_owned();
        let forgotten = self
            .store
            .connect()
            .write(move |tx| tx.execute("DELETE FROM attempted WHERE uid = ?1", [uid]))
            .await;
        assert_eq!(forgotten.expect("the file can be written"), 1);
    }
}

/// A database on a Redis server. The clock is manual where the store asks for the time; the expiry of keys follows the
/// server's clock, so their TTLs are shortened.
pub struct AgeingRedis {
    store: RedisStore,
    clock: HandClock,
}

impl AgeingRedis {
    /// `None` if no server is named; the skip is reported.
    pub fn if_there() -> Option<AgeingRedis> {
        Some(AgeingRedis { store: RedisStore::if_there()?, clock: HandClock::new() })
    }
}

#[async_trait]
impl Ageing for AgeingRedis {
    async fn let_pass(&self, span: Duration) {
        self.clock.advance(span);
        let span_ms = i64::try_from(span.as_millis()).expect("a span");
        let mut line = self.store.line().await;
        let keys: Vec<String> = line.keys("*").await.expect("keys are listed");
        for key in keys {
            let left_ms: i64 = line.pttl(&key).await.expect("a key has its time");
            // A negative value means that the key does not expire or is gone.
            if left_ms >= 0 {
                let _: bool = line.pexpire(&key, left_ms - span_ms).await.expect("it is set");
            }
        }
    }
}

#[async_trait]
impl LinksStore for AgeingRedis {
    async fn open_links(&self) -> Arc<dyn CategoryLinks> {
        let links = RedisLinks::open(&self.store.address().await).await;
        Arc::new(links.expect("the server answers"))
    }
}

#[async_trait]
impl ArticlesStore for AgeingRedis {
    async fn open_articles(&self) -> Arc<dyn Articles> {
        let clock = StoreClock::ByHand(self.clock.clock());
        let articles = RedisArticles::open(&self.store.address().await, clock).await;
        Arc::new(articles.expect("the server answers"))
    }

    async fn forget_attempt(&self, uid: &str) {
        let mut line = self.store.line().await;
        let forgotten: usize =
            line.srem("rss:canonical_attempted", uid).await.expect("the server answers");
        assert_eq!(forgotten, 1);
    }
}
