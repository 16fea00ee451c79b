//! The least that an inbox on SQLite has to do: prepared inserts into one table, as durable as the
//! program's.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use rusqlite::Connection;

use super::message::{CALLER, Names, Text};

/// The pragmas are the program's: see `adapters::sqlite::Db`.
const PREPARE: &str = "
    PRAGMA journal_mode = wal;
    PRAGMA synchronous = full;
    PRAGMA cache_size = -32768;
    PRAGMA wal_autocheckpoint = 4096;
    CREATE TABLE inbox (
        id BLOB PRIMARY KEY,
        url TEXT NOT NULL,
        retailer TEXT NOT NULL,
        correlation_id TEXT NOT NULL,
        caller_id TEXT NOT NULL,
        status TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        attempts INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX inbox_status ON inbox (status, created_at);";

const INSERT: &str = "INSERT INTO inbox VALUES (?1, ?2, ?3, ?4, ?5, 'queued', ?6, 0)";

/// Rows a second, with so many inserts a commit.
pub(super) fn rows_per_second(
    path: &Path,
    texts: &[Text],
    a_commit: usize,
    time: Duration,
) -> Result<f64> {
    let mut connection = Connection::open(path)?;
    connection.execute_batch(PREPARE)?;
    let (mut names, mut texts) = (Names::new(0), texts.iter().cycle());
    let (started, mut rows) = (Instant::now(), 0);
    while started.elapsed() < time {
        let transaction = connection.transaction()?;
        let mut insert = transaction.prepare_cached(INSERT)?;
        for text in texts.by_ref().take(a_commit) {
            let (id, now) = names.next();
            let Text { url, retailer, correlation_id } = text;
            insert.execute((id.0, url, retailer, correlation_id, CALLER, now))?;
        }
        drop(insert);
        transaction.commit()?;
        rows += a_commit;
    }
    Ok(rows as f64 / started.elapsed().as_secs_f64())
}
