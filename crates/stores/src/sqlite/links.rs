//! Links by category, on SQLite.

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::links::{CategoryLinks, CategorySet, LINKS_TTL};
use fetchwell_policy::time::Time;
use fetchwell_sqlite::db::Db;
use rusqlite::Connection;

/// Links in a SQLite file.
pub struct SqliteLinks {
    db: Db,
    clock: Clock,
}

impl SqliteLinks {
    /// Uses an open file.
    pub fn new(db: Db, clock: Clock) -> SqliteLinks {
        SqliteLinks { db, clock }
    }
}

#[async_trait]
impl CategoryLinks for SqliteLinks {
    async fn add(&self, category: &str, urls: &[String]) -> Result<u64, StoreError> {
        if urls.is_empty() {
            return Ok(0);
        }
        let category = category.to_owned();
        let urls = urls.to_vec();
        let clock = self.clock.clone();
        self.db
            .write(move |tx| {
                forget_what_is_over(tx, clock.now())?;
                renew(tx, &category, clock.now() + LINKS_TTL)?;
                let mut insert = tx.prepare_cached(
                    "INSERT INTO category_link VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                )?;
                let mut added = 0;
                for url in &urls {
                    added += insert.execute((&category, url))? as u64;
                }
                Ok(added)
            })
            .await
    }

    async fn snapshot(&self) -> Result<Vec<CategorySet>, StoreError> {
        let clock = self.clock.clone();
        self.db.write(move |tx| living(tx, clock.now())).await
    }
}

fn renew(tx: &Connection, category: &str, expires_at: Time) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO category VALUES (?1, ?2)
         ON CONFLICT (name) DO UPDATE SET expires_at = excluded.expires_at",
    )?
    .execute((category, expires_at.as_micros()))?;
    Ok(())
}

fn forget_what_is_over(tx: &Connection, now: Time) -> rusqlite::Result<()> {
    let over = "SELECT name FROM category WHERE expires_at <= ?1";
    tx.prepare_cached(&format!("DELETE FROM category_link WHERE category IN ({over})"))?
        .execute([now.as_micros()])?;
    tx.prepare_cached("DELETE FROM category WHERE expires_at <= ?1")?.execute([now.as_micros()])?;
    Ok(())
}

fn living(tx: &Connection, now: Time) -> rusqlite::Result<Vec<CategorySet>> {
    let mut select = tx.prepare_cached(
        "SELECT category, url FROM category_link JOIN category ON name = category
         WHERE expires_at > ?1 ORDER BY category, url",
    )?;
    let mut rows = select.query([now.as_micros()])?;
    let mut sets: Vec<CategorySet> = Vec::new();
    while let Some(row) = rows.next()? {
        let category: String = row.get(0)?;
        let url: String = row.get(1)?;
        match sets.last_mut() {
            Some(set) if set.category == category => {
                set.urls.insert(url);
            }
            _ => sets.push(CategorySet { category, urls: [url].into() }),
        }
    }
    Ok(sets)
}
