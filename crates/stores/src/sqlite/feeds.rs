//! Feeds on SQLite.

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::feeds::{Claim, FeedMemory, Feeds, Subscription};
use fetchwell_sqlite::db::Db;
use rusqlite::{OptionalExtension, Row};

/// Feeds in a SQLite file.
pub struct SqliteFeeds {
    db: Db,
}

impl SqliteFeeds {
    /// Uses an open file.
    pub fn new(db: Db) -> SqliteFeeds {
        SqliteFeeds { db }
    }
}

#[async_trait]
impl Feeds for SqliteFeeds {
    async fn subscribe(&self, subscriptions: &[Subscription]) -> Result<u64, StoreError> {
        let subscriptions = subscriptions.to_vec();
        self.db
            .write(move |tx| {
                let mut new = 0;
                for Subscription { category, url, interval, title } in &subscriptions {
                    let interval_s = interval.map(|interval| interval.as_secs());
                    let values = (category, url, interval_s, title);
                    new += tx
                        .prepare_cached(
                            "INSERT INTO subscription VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
                        )?
                        .execute(values)? as u64;
                    tx.prepare_cached(
                        "UPDATE subscription SET interval_s = ?3, title = ?4
                         WHERE category = ?1 AND url = ?2",
                    )?
                    .execute(values)?;
                }
                Ok(new)
            })
            .await
    }

    async fn unsubscribe(&self, subscriptions: &[Subscription]) -> Result<u64, StoreError> {
        let subscriptions = subscriptions.to_vec();
        self.db
            .write(move |tx| {
                let mut delete =
                    tx.prepare_cached("DELETE FROM subscription WHERE category = ?1 AND url = ?2")?;
                let mut gone = 0;
                for Subscription { category, url, .. } in &subscriptions {
                    gone += delete.execute((category, url))? as u64;
                }
                Ok(gone)
            })
            .await
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError> {
        self.db
            .write(|tx| {
                tx.prepare_cached("SELECT * FROM subscription ORDER BY category, url")?
                    .query_map([], subscription)?
                    .collect()
            })
            .await
    }

    async fn memories(&self, urls: &[&str]) -> Result<Vec<Option<FeedMemory>>, StoreError> {
        let urls = owned(urls);
        self.db
            .write(move |tx| {
                let mut select = tx.prepare_cached("SELECT memory FROM feed WHERE url = ?1")?;
                let mut memory = |url: &String| -> rusqlite::Result<Option<FeedMemory>> {
                    let text: Option<Option<String>> =
                        select.query_row([url], |row| row.get(0)).optional()?;
                    // An invalid record counts as missing: the feed is read again.
                    Ok(text.flatten().and_then(|text| serde_json::from_str(&text).ok()))
                };
                urls.iter().map(&mut memory).collect()
            })
            .await
    }

    async fn claim(&self, urls: &[&str], claim: &Claim<'_>) -> Result<Vec<bool>, StoreError> {
        let urls = owned(urls);
        let holder = claim.holder.to_owned();
        let now = claim.now.as_micros();
        let until = claim.until.as_micros();
        self.db
            .write(move |tx| {
                let mut claim = tx.prepare_cached(
                    "INSERT INTO feed (url, claimed_by, claimed_until) VALUES (?1, ?2, ?3)
                     ON CONFLICT (url) DO UPDATE
                     SET claimed_by = excluded.claimed_by, claimed_until = excluded.claimed_until
                     WHERE claimed_by IS NULL OR claimed_by = ?2 OR claimed_until <= ?4",
                )?;
                let mut granted = Vec::with_capacity(urls.len());
                for url in &urls {
                    granted.push(claim.execute((url, &holder, until, now))? > 0);
                }
                Ok(granted)
            })
            .await
    }

    async fn keep(&self, url: &str, holder: &str, memory: &FeedMemory) -> Result<bool, StoreError> {
        let url = url.to_owned();
        let holder = holder.to_owned();
        let memory = serde_json::to_string(memory)
            .map_err(|error| StoreError::bug("cannot encode a feed record").with_source(error))?;
        self.db
            .write(move |tx| {
                let kept = tx
                    .prepare_cached(
                        "UPDATE feed SET memory = ?3, claimed_by = NULL, claimed_until = NULL
                         WHERE url = ?1 AND claimed_by = ?2",
                    )?
                    .execute((url, holder, memory))?;
                Ok(kept > 0)
            })
            .await
    }

    async fn release(&self, urls: &[&str], holder: &str) -> Result<(), StoreError> {
        let urls = owned(urls);
        let holder = holder.to_owned();
        self.db
            .write(move |tx| {
                let mut release = tx.prepare_cached(
                    "UPDATE feed SET claimed_by = NULL, claimed_until = NULL
                     WHERE url = ?1 AND claimed_by = ?2",
                )?;
                for url in &urls {
                    release.execute((url, &holder))?;
                }
                Ok(())
            })
            .await
    }

    async fn forget(&self, urls: &[&str]) -> Result<(), StoreError> {
        let urls = owned(urls);
        self.db
            .write(move |tx| {
                let mut delete = tx.prepare_cached("DELETE FROM feed WHERE url = ?1")?;
                for url in &urls {
                    delete.execute([url])?;
                }
                Ok(())
            })
            .await
    }
}

fn owned(urls: &[&str]) -> Vec<String> {
    urls.iter().map(|url| (*url).to_owned()).collect()
}

fn subscription(row: &Row<'_>) -> rusqlite::Result<Subscription> {
    let interval_s: Option<u64> = row.get(2)?;
    Ok(Subscription {
        category: row.get(0)?,
        url: row.get(1)?,
        interval: interval_s.map(Duration::from_secs),
        title: row.get(3)?,
    })
}
