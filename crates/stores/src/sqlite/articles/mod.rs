//! Articles on SQLite.

mod reading;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::articles::{
    ARTICLE_TTL, ATTEMPTED_FOR, ArticleFailure, ArticleResult, Articles, Counts, Fields,
    RUNS_UNTIL_ATTEMPTED, SITE_FAILURES_TTL, Wanted,
};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_policy::time::Time;
use fetchwell_sqlite::db::Db;
use fetchwell_sqlite::statements::Statements;
use rusqlite::Connection;

use super::clock::write_at;

/// Articles in a SQLite file.
pub struct SqliteArticles {
    db: Db,
    clock: Clock,
}

impl SqliteArticles {
    /// Uses an open file.
    pub fn new(db: Db, clock: Clock) -> SqliteArticles {
        SqliteArticles { db, clock }
    }
}

#[async_trait]
impl Articles for SqliteArticles {
    async fn now(&self) -> Result<Time, StoreError> {
        Ok(self.clock.now())
    }

    async fn pending(&self, uids: &[String], run: Time) -> Result<Vec<bool>, StoreError> {
        let uids = uids.to_vec();
        write_at(&self.db, &self.clock, move |tx, now| {
            let books = Books { tx, now, run };
            uids.iter().map(|uid| books.is_pending(uid)).collect()
        })
        .await
    }

    async fn keep(&self, article_results: &[&ArticleResult], run: Time) -> Result<(), StoreError> {
        let article_results: Vec<ArticleResult> =
            article_results.iter().map(|one| (*one).clone()).collect();
        write_at(&self.db, &self.clock, move |tx, now| {
            let books = Books { tx, now, run };
            article_results.iter().try_for_each(|article_result| books.keep(article_result))
        })
        .await
    }

    async fn trim(&self) -> Result<(), StoreError> {
        write_at(&self.db, &self.clock, trim).await
    }

    async fn find(&self, uid: &str) -> Result<Option<Fields>, StoreError> {
        let uid = uid.to_owned();
        write_at(&self.db, &self.clock, move |tx, now| reading::find(tx, &uid, now)).await
    }

    async fn list(&self, wanted: &Wanted) -> Result<Vec<Fields>, StoreError> {
        let wanted = wanted.clone();
        write_at(&self.db, &self.clock, move |tx, now| reading::list(tx, &wanted, now)).await
    }

    async fn count(&self) -> Result<Counts, StoreError> {
        self.db.write(reading::count).await
    }
}

/// The bookkeeping of a run, in one transaction.
struct Books<'a> {
    tx: &'a Connection,
    now: Time,
    run: Time,
}

impl Books<'_> {
    fn is_pending(&self, uid: &str) -> rusqlite::Result<bool> {
        let attempted = "SELECT 1 FROM attempted WHERE uid = ?1 AND at > ?2";
        if self.tx.has(attempted, (uid, (self.now - ATTEMPTED_FOR).as_micros()))? {
            return Ok(false);
        }
        if self.has_article(uid)? {
            self.note_attempt(uid)?;
            return Ok(false);
        }
        let (_, failed_at) = self.site_failures(uid)?;
        Ok(failed_at.is_none_or(|at| at < self.run))
    }

    fn keep(&self, article_result: &ArticleResult) -> rusqlite::Result<()> {
        match &article_result.failure {
            None => self.keep_article(article_result),
            Some(failure) => self.keep_failure(article_result, failure),
        }
    }

    fn keep_article(&self, article_result: &ArticleResult) -> rusqlite::Result<()> {
        self.write(article_result)?;
        let uid = &article_result.uid;
        let file = "INSERT INTO article_category VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        for category in &article_result.categories {
            self.tx.run(file, (category, uid))?;
        }
        self.tx.run("DELETE FROM site_failure WHERE uid = ?1", [uid])?;
        self.note_attempt(uid)
    }

    fn keep_failure(
        &self,
        article_result: &ArticleResult,
        failure: &ArticleFailure,
    ) -> rusqlite::Result<()> {
        let uid = &article_result.uid;
        if self.has_article(uid)? {
            return self.note_attempt(uid);
        }
        self.write(article_result)?;
        self.tx.run(
            "INSERT INTO article_failure VALUES (?1, ?2, ?3)
             ON CONFLICT (uid, code) DO UPDATE SET at = excluded.at",
            (uid, failure.code, article_result.fetched_ts),
        )?;
        if failure.is_of_site && self.count_site_failure(uid)? < RUNS_UNTIL_ATTEMPTED {
            return Ok(());
        }
        self.note_attempt(uid)
    }

    /// In how many runs the site has failed so far. Concurrent runs count as one, and so does a repeated report.
    fn count_site_failure(&self, uid: &str) -> rusqlite::Result<u32> {
        let (runs, last_at) = self.site_failures(uid)?;
        if last_at.is_some_and(|at| at >= self.run) {
            return Ok(runs);
        }
        self.tx.run(
            "INSERT INTO site_failure VALUES (?1, ?2, ?3)
             ON CONFLICT (uid) DO UPDATE SET runs = excluded.runs, at = excluded.at",
            (uid, runs + 1, self.now.as_micros()),
        )?;
        Ok(runs + 1)
    }

    fn site_failures(&self, uid: &str) -> rusqlite::Result<(u32, Option<Time>)> {
        let found = self.tx.find(
            "SELECT runs, at FROM site_failure WHERE uid = ?1 AND at > ?2",
            (uid, (self.now - SITE_FAILURES_TTL).as_micros()),
            |row| Ok((row.get(0)?, Some(Time::from_micros(row.get(1)?)))),
        )?;
        Ok(found.unwrap_or_default())
    }

    fn has_article(&self, uid: &str) -> rusqlite::Result<bool> {
        self.tx.has(
            "SELECT 1 FROM article WHERE uid = ?1 AND NOT is_failure AND expires_at > ?2",
            (uid, self.now.as_micros()),
        )
    }

    fn note_attempt(&self, uid: &str) -> rusqlite::Result<()> {
        self.tx.run(
            "INSERT INTO attempted VALUES (?1, ?2)
             ON CONFLICT (uid) DO UPDATE SET at = excluded.at",
            (uid, self.now.as_micros()),
        )?;
        Ok(())
    }

    fn write(&self, article_result: &ArticleResult) -> rusqlite::Result<()> {
        let ArticleResult { uid, fields, fetched_ts, failure, categories } = article_result;
        let fields = reading::json(fields)?;
        let expires_at = (self.now + ARTICLE_TTL).as_micros();
        self.tx.run(
            "INSERT OR REPLACE INTO article VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            (uid, failure.is_some(), categories.first(), fetched_ts, fields, expires_at),
        )?;
        Ok(())
    }
}

fn trim(tx: &Connection, now: Time) -> rusqlite::Result<()> {
    let over = |statement: &str, at: Time| tx.run(statement, [at.as_micros()]);
    over("DELETE FROM article WHERE expires_at <= ?1", now)?;
    over("DELETE FROM attempted WHERE at <= ?1", now - ATTEMPTED_FOR)?;
    over("DELETE FROM site_failure WHERE at <= ?1", now - SITE_FAILURES_TTL)?;
    tx.run(
        "DELETE FROM article_category WHERE NOT EXISTS (
             SELECT 1 FROM article WHERE article.uid = article_category.uid AND NOT is_failure)",
        [],
    )?;
    Ok(())
}
