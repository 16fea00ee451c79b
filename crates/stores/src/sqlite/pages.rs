//! The page cache: bodies by key, each with a time to live.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::page_cache::PageCache;
use fetchwell_policy::time::Time;
use fetchwell_sqlite::db::Db;
use rusqlite::OptionalExtension;

/// Expired pages to delete per transaction.
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
        let expires_at = self.clock.now() + ttl;
        self.db
            .write(move |tx| {
                tx.prepare_cached(
                    "INSERT INTO page VALUES (?1, ?2, ?3) ON CONFLICT (key) DO UPDATE
                     SET body = excluded.body, expires_at = excluded.expires_at",
                )?
                .execute((key, body.as_ref(), expires_at.as_micros()))?;
                Ok(())
            })
            .await
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let key = key.to_owned();
        let now = self.clock.now();
        let body: Option<Vec<u8>> = self
            .db
            .write(move |tx| {
                tx.prepare_cached("SELECT body FROM page WHERE key = ?1 AND expires_at > ?2")?
                    .query_row((key, now.as_micros()), |row| row.get(0))
                    .optional()
            })
            .await?;
        Ok(body.map(Bytes::from))
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        let mut swept = 0;
        loop {
            let now: Time = self.clock.now();
            let step = self
                .db
                .write(move |tx| {
                    tx.prepare_cached(
                        "DELETE FROM page WHERE key IN (
                             SELECT key FROM page WHERE expires_at <= ?1 LIMIT ?2)",
                    )?
                    .execute((now.as_micros(), SWEEP_STEP))
                })
                .await?;
            swept += step as u64;
            if step == 0 {
                return Ok(swept);
            }
        }
    }
}
