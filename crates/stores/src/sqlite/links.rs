//! Links by category, on SQLite.

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::links::{CategoryLinks, CategorySet, LINKS_TTL};
use fetchwell_policy::time::Time;
use fetchwell_sqlite::db::Db;
use fetchwell_sqlite::statements::Statements;
use rusqlite::Connection;

use super::clock::write_at;

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
        write_at(&self.db, &self.clock, move |tx, now| {
            forget_what_is_over(tx, now)?;
            tx.run(
                "INSERT INTO category VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET expires_at = excluded.expires_at",
                (&category, (now + LINKS_TTL).as_micros()),
            )?;
            let mut insert = tx.prepare_cached(
                "INSERT INTO category_link VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            )?;
            urls.iter().map(|url| Ok(insert.execute((&category, url))? as u64)).sum()
        })
        .await
    }

    async fn snapshot(&self) -> Result<Vec<CategorySet>, StoreError> {
        write_at(&self.db, &self.clock, living).await
    }
}

fn forget_what_is_over(tx: &Connection, now: Time) -> rusqlite::Result<()> {
    let delete_links = "DELETE FROM category_link WHERE category IN (
             SELECT name FROM category WHERE expires_at <= ?1)";
    tx.run(delete_links, [now.as_micros()])?;
    tx.run("DELETE FROM category WHERE expires_at <= ?1", [now.as_micros()])?;
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
