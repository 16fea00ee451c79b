//! Feeds on SQLite.

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::feeds::{Claim, FeedMemory, Feeds, Subscription};
use fetchwell_sqlite::db::Db;
use fetchwell_sqlite::statements::Statements;
use rusqlite::Row;

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
                    new += tx.run(
                        "INSERT INTO subscription VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
                        values,
                    )? as u64;
                    tx.run(
                        "UPDATE subscription SET interval_s = ?3, title = ?4
                         WHERE category = ?1 AND url = ?2",
                        values,
                    )?;
                }
                Ok(new)
            })
            .await
    }

    async fn unsubscribe(&self, subscriptions: &[Subscription]) -> Result<u64, StoreError> {
        let subscriptions = subscriptions.to_vec();
        let delete = "DELETE FROM subscription WHERE category = ?1 AND url = ?2";
        let gone: usize = self
            .db
            .write(move |tx| {
                subscriptions.iter().map(|one| tx.run(delete, (&one.category, &one.url))).sum()
            })
            .await?;
        Ok(gone as u64)
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError> {
        let select = "SELECT * FROM subscription ORDER BY category, url";
        self.db.write(move |tx| tx.list(select, [], subscription)).await
    }

    async fn memories(&self, urls: &[&str]) -> Result<Vec<Option<FeedMemory>>, StoreError> {
        let urls = owned(urls);
        self.db
            .write(move |tx| {
                let select = "SELECT memory FROM feed WHERE url = ?1";
                let memory = |url: &String| -> rusqlite::Result<Option<FeedMemory>> {
                    let text: Option<Option<String>> = tx.find(select, [url], |row| row.get(0))?;
                    // An invalid record counts as missing: the feed is read again.
                    Ok(text.flatten().and_then(|text| serde_json::from_str(&text).ok()))
                };
                urls.iter().map(memory).collect()
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
                let claim = "INSERT INTO feed (url, claimed_by, claimed_until) VALUES (?1, ?2, ?3)
                     ON CONFLICT (url) DO UPDATE
                     SET claimed_by = excluded.claimed_by, claimed_until = excluded.claimed_until
                     WHERE claimed_by IS NULL OR claimed_by = ?2 OR claimed_until <= ?4";
                urls.iter().map(|url| Ok(tx.run(claim, (url, &holder, until, now))? > 0)).collect()
            })
            .await
    }

    async fn keep(&self, url: &str, holder: &str, memory: &FeedMemory) -> Result<bool, StoreError> {
        let url = url.to_owned();
        let holder = holder.to_owned();
        let memory = serde_json::to_string(memory)
            .map_err(|error| StoreError::bug("cannot encode a feed record").with_source(error))?;
        let update = "UPDATE feed SET memory = ?3, claimed_by = NULL, claimed_until = NULL
             WHERE url = ?1 AND claimed_by = ?2";
        Ok(self.db.write(move |tx| tx.run(update, (url, holder, memory))).await? > 0)
    }

    async fn release(&self, urls: &[&str], holder: &str) -> Result<(), StoreError> {
        let urls = owned(urls);
        let holder = holder.to_owned();
        let release = "UPDATE feed SET claimed_by = NULL, claimed_until = NULL
             WHERE url = ?1 AND claimed_by = ?2";
        self.db
            .write(move |tx| {
                urls.iter().try_for_each(|url| tx.run(release, (url, &holder)).map(drop))
            })
            .await
    }

    async fn forget(&self, urls: &[&str]) -> Result<(), StoreError> {
        let urls = owned(urls);
        let delete = "DELETE FROM feed WHERE url = ?1";
        self.db
            .write(move |tx| urls.iter().try_for_each(|url| tx.run(delete, [url]).map(drop)))
            .await
    }
}

fn owned(urls: &[&str]) -> Vec<String> {
    urls.iter().map(|url| (*url).to_owned()).collect()
}

fn subscription(row: &Row<'_>) -> rusqlite::Result<Subscription> {
    let (category, url, interval_s, title) = <(_, _, Option<u64>, _)>::try_from(row)?;
    Ok(Subscription { category, url, interval: interval_s.map(Duration::from_secs), title })
}
