//! Rounds of a schedule on SQLite.

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::{Job, Lane, NewJob};
use fetchwell_engine::ports::rounds::{MEMORY, Put, Round, Rounds};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
use fetchwell_sqlite::statements::Statements;

use super::SqliteQueue;
use super::moves::Moves;
use super::queue::read_ledger;
use crate::shared::job_state::sql;

#[async_trait]
impl Rounds for SqliteQueue {
    async fn last_rounds(&self, entries: &[&str]) -> Result<Vec<Option<Time>>, StoreError> {
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        self.transact(move |moves| entries.iter().map(|entry| last_round(moves, entry)).collect())
            .await
    }

    async fn waiting(&self) -> Result<u64, StoreError> {
        self.transact(|moves| waiting(moves)).await
    }

    async fn put(
        &self,
        round: &Round,
        urls: &[String],
        max_waiting: u64,
    ) -> Result<Put, StoreError> {
        let Round { entry, due } = round.clone();
        let urls = urls.to_vec();
        let put = self
            .transact(move |moves| {
                if last_round(moves, &entry)?.is_some_and(|last| last >= due) {
                    return Ok(Put::Before);
                }
                let waiting = waiting(moves)?;
                if !urls.is_empty() && max_waiting > 0 && waiting >= max_waiting {
                    return Ok(Put::TooDeep { waiting });
                }
                for url in urls {
                    moves.accept(&NewJob::now(job(url)))?;
                }
                note(moves, &entry, due)?;
                Ok(Put::Done)
            })
            .await?;
        self.news.notify_one();
        Ok(put)
    }
}

fn note(moves: &Moves<'_>, entry: &str, due: Time) -> rusqlite::Result<()> {
    let Moves { tx, queue, .. } = *moves;
    tx.run(
        "INSERT INTO round VALUES (?1, ?2, ?3)
         ON CONFLICT (queue, entry) DO UPDATE SET due = excluded.due",
        (queue, entry, due.as_micros()),
    )?;
    let forgotten = (due - MEMORY).as_micros();
    tx.run("DELETE FROM round WHERE queue = ?1 AND due <= ?2", (queue, forgotten))?;
    Ok(())
}

fn last_round(moves: &Moves<'_>, entry: &str) -> rusqlite::Result<Option<Time>> {
    let select = "SELECT due FROM round WHERE queue = ?1 AND entry = ?2";
    moves.tx.find(select, (moves.queue, entry), |row| row.get(0).map(Time::from_micros))
}

/// The number of waiting jobs, including those that are leased but not being fetched yet.
fn waiting(moves: &Moves<'_>) -> rusqlite::Result<u64> {
    let ledger = read_ledger(moves.tx, moves.queue)?;
    let count = sql!(
        "SELECT count(*) FROM job INDEXED BY job_leased
         WHERE queue = ?1 AND state = {leased} AND started = 0"
    );
    let not_begun: i64 = moves.tx.one(count, [moves.queue], |row| row.get(0))?;
    Ok(u64::try_from(ledger.waiting() + not_begun).unwrap_or(0))
}

pub(super) fn job(url: String) -> Job {
    let site = WebUrl::parse(&url).ok().map(|url| url.site());
    Job { url, site, lane: Lane::default(), payload: Vec::new(), deadline: None }
}
