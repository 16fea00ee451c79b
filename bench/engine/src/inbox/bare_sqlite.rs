//! The least that an inbox on SQLite has to do: prepared inserts into one table, as durable as the
//! program's.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use fetchwell_sqlite::db::Durability;
use fetchwell_stores::sqlite;
use rusqlite::Connection;

use super::message::{CALLER, Names, Text};

/// The pragmas are the program's: see `fetchwell_sqlite::db::Db`.
const PREPARE: &str = "
    PRAGMA journal_mode = wal;
    PRAGMA synchronous = full;
    PRAGMA cache_size = -32768;
    PRAGMA wal_autocheckpoint = 4096;
    PRAGMA foreign_keys = off;
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

/// The row that the program needs, with all of its indexes: see `stores::sqlite::schema`.
const INSERT_OWN: &str = "
    INSERT INTO job (queue, state, key, url, payload, correlation_id, lane, due, accepted_at, created_at,
        site, deadline, kind)
    VALUES (1, 0, ?1, ?2, x'7b7d', ?4, length(?3 || ?5), ?6, ?6, ?6, 'site-0.test', ?6 + 3600000000, ?1)";

/// Which rows are put in.
#[derive(Clone, Copy)]
pub(super) enum Rows {
    /// The fields of a message, in a table with one index besides its key.
    Plain,
    /// The program's own, in its own table.
    Own,
}

/// Rows a second, with so many inserts a commit.
pub(super) fn rows_per_second(
    path: &Path,
    texts: &[Text],
    rows_of: Rows,
    a_commit: usize,
    time: Duration,
) -> Result<f64> {
    let insert = match rows_of {
        Rows::Plain => INSERT,
        Rows::Own => {
            drop(sqlite::open(path, Durability::Disk)?); // It makes the tables.
            INSERT_OWN
        }
    };
    let mut connection = Connection::open(path)?;
    connection.execute_batch(PREPARE)?;
    if matches!(rows_of, Rows::Own) {
        connection.execute("INSERT INTO queue (name) VALUES ('messages')", [])?;
    }
    let mut names = Names::new(0);
    let mut texts = texts.iter().cycle();
    let started = Instant::now();
    let mut rows = 0;
    while started.elapsed() < time {
        let transaction = connection.transaction()?;
        let mut insert_row = transaction.prepare_cached(insert)?;
        for text in texts.by_ref().take(a_commit) {
            let (id, now) = names.next();
            let Text { url, retailer, correlation_id } = text;
            insert_row.execute((id.0, url, retailer, correlation_id, CALLER, now))?;
        }
        drop(insert_row);
        transaction.commit()?;
        rows += a_commit;
    }
    Ok(rows as f64 / started.elapsed().as_secs_f64())
}
