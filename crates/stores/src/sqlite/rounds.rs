//! Rounds of a schedule on SQLite.

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::{Job, Lane, NewJob};
use fetchwell_engine::ports::rounds::{MEMORY, Put, Round, Rounds};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
use rusqlite::{Connection, OptionalExtension};

use super::SqliteQueue;
use super::moves::Moves;
use super::queue::read_ledger;
use crate::shared::job_state::sql;

#[async_trait]
impl Rounds for SqliteQueue {
    async fn last_rounds(&self, entries: &[&str]) -> Result<Vec<Option<Time>>, StoreError> {
        let queue = self.queue;
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        self.db
            .write(move |tx| entries.iter().map(|entry| last_round(tx, queue, entry)).collect())
            .await
    }

    async fn waiting(&self) -> Result<u64, StoreError> {
        let queue = self.queue;
        self.db.write(move |tx| waiting(tx, queue)).await
    }

    async fn put(
        &self,
        round: &Round,
        urls: &[String],
        max_waiting: u64,
    ) -> Result<Put, StoreError> {
        let queue = self.queue;
        let clock = self.clock.clone();
        let Round { entry, due } = round.clone();
        let urls = urls.to_vec();
        let put = self
            .db
            .write(move |tx| {
                if last_round(tx, queue, &entry)?.is_some_and(|last| last >= due) {
                    return Ok(Put::Before);
                }
                let waiting = waiting(tx, queue)?;
                if !urls.is_empty() && max_waiting > 0 && waiting >= max_waiting {
                    return Ok(Put::TooDeep { waiting });
                }
                let mut moves = Moves::new(tx, queue, clock.now());
                for url in urls {
                    moves.accept(&NewJob::now(job(url)))?;
                }
                moves.enter()?;
                note(tx, queue, &entry, due)?;
                Ok(Put::Done)
            })
            .await?;
        self.news.notify_one();
        Ok(put)
    }
}

fn note(tx: &Connection, queue: i64, entry: &str, due: Time) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO round VALUES (?1, ?2, ?3)
         ON CONFLICT (queue, entry) DO UPDATE SET due = excluded.due",
    )?
    .execute((queue, entry, due.as_micros()))?;
    tx.prepare_cached("DELETE FROM round WHERE queue = ?1 AND due <= ?2")?
        .execute((queue, (due - MEMORY).as_micros()))?;
    Ok(())
}

fn last_round(tx: &Connection, queue: i64, entry: &str) -> rusqlite::Result<Option<Time>> {
    tx.prepare_cached("SELECT due FROM round WHERE queue = ?1 AND entry = ?2")?
        .query_row((queue, entry), |row| row.get(0).map(Time::from_micros))
        .optional()
}

/// The number of waiting jobs, including those that are leased but not being fetched yet.
fn waiting(tx: &Connection, queue: i64) -> rusqlite::Result<u64> {
    let ledger = read_ledger(tx, queue)?;
    let not_begun: i64 = tx
        .prepare_cached(sql!(
            "SELECT count(*) FROM job INDEXED BY job_leased
             WHERE queue = ?1 AND state = {leased} AND started = 0"
        ))?
        .query_row([queue], |row| row.get(0))?;
    Ok(u64::try_from(ledger.waiting() + not_begun).unwrap_or(0))
}

pub(super) fn job(url: String) -> Job {
    let site = WebUrl::parse(&url).ok().map(|url| url.site());
    Job { url, site, lane: Lane::default(), payload: Vec::new(), deadline: None }
}
