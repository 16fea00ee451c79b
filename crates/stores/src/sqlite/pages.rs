//! The page cache: bodies by key, each with a time to live.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::page_cache::PageCache;
use fetchwell_policy::time::Time;
use fetchwell_sqlite::db::Db;
use fetchwell_sqlite::statements::Statements;

/// Rows to delete per transaction of a sweep.
const SWEEP_STEP: u32 = 500;

/// A page cache on SQLite.
pub struct SqlitePages {
    db: Db,
    clock: Clock,
}

impl SqlitePages {
    /// Uses an open file.
    pub fn new(db: Db, clock: Clock) -> SqlitePages {
        SqlitePages { db, clock }
    }
}

#[async_trait]
impl PageCache for SqlitePages {
    async fn put(&self, key: &str, body: Bytes, ttl: Duration) -> Result<(), StoreError> {
        let key = key.to_owned();
        let expires_at = (self.clock.now() + ttl).as_micros();
        let insert = "INSERT INTO page VALUES (?1, ?2, ?3) ON CONFLICT (key) DO UPDATE
             SET body = excluded.body, expires_at = excluded.expires_at";
        self.db.write(move |tx| tx.run(insert, (key, body.as_ref(), expires_at))).await?;
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let key = key.to_owned();
        let now = self.clock.now().as_micros();
        let select = "SELECT body FROM page WHERE key = ?1 AND expires_at > ?2";
        let body: Option<Vec<u8>> =
            self.db.write(move |tx| tx.find(select, (key, now), |row| row.get(0))).await?;
        Ok(body.map(Bytes::from))
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        let delete = "DELETE FROM page WHERE key IN (
             SELECT key FROM page WHERE expires_at <= ?1 LIMIT ?2)";
        sweep(&self.db, delete, self.clock.now()).await
    }
}

/// Runs a statement that deletes what is older than ?1, ?2 rows at a time, until nothing is left. Returns how many.
pub(super) async fn sweep(db: &Db, delete: &'static str, before: Time) -> Result<u64, StoreError> {
    let mut swept = 0;
    loop {
        let step = db.write(move |tx| tx.run(delete, (before.as_micros(), SWEEP_STEP))).await?;
        swept += step as u64;
        if step == 0 {
            return Ok(swept);
        }
    }
}
