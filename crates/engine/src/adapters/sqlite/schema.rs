//! The tables, and how an older file becomes a newer one.

use rusqlite::{Connection, TransactionBehavior};

/// Each step brings a file from one version to the next; a step is never changed once it has shipped.
const STEPS: &[&str] = &["
    CREATE TABLE queue (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        accepted INTEGER NOT NULL DEFAULT 0,
        done INTEGER NOT NULL DEFAULT 0,
        skipped INTEGER NOT NULL DEFAULT 0,
        queued INTEGER NOT NULL DEFAULT 0,
        in_flight INTEGER NOT NULL DEFAULT 0,
        delayed INTEGER NOT NULL DEFAULT 0,
        dead INTEGER NOT NULL DEFAULT 0
    ) STRICT;

    -- state: 0 queued, 1 delayed, 2 leased, 3 dead. Times are microseconds since the Unix epoch.
    CREATE TABLE job (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        queue INTEGER NOT NULL REFERENCES queue (id),
        key BLOB,
        url TEXT NOT NULL,
        site TEXT NOT NULL,
        grp TEXT,
        payload BLOB NOT NULL,
        deadline INTEGER,
        state INTEGER NOT NULL,
        due INTEGER NOT NULL,
        accepted_at INTEGER NOT NULL,
        url_failures INTEGER NOT NULL DEFAULT 0,
        site_failures INTEGER NOT NULL DEFAULT 0,
        paced INTEGER NOT NULL DEFAULT 0,
        first_site_failure INTEGER,
        interruptions INTEGER NOT NULL DEFAULT 0,
        started INTEGER NOT NULL DEFAULT 0,
        epoch INTEGER,
        reason TEXT
    ) STRICT;
    CREATE UNIQUE INDEX job_key ON job (queue, key) WHERE key IS NOT NULL;
    CREATE INDEX job_waiting ON job (queue, site, due, id) WHERE state < 2;
    CREATE INDEX job_deadline ON job (queue, deadline) WHERE state < 2 AND deadline IS NOT NULL;
    CREATE INDEX job_leased ON job (epoch) WHERE state = 2;
    CREATE INDEX job_dead ON job (queue, id) WHERE state = 3;

    -- A site with something waiting, and when it may next give: when its first job is due, and not
    -- while it is closed. Taking looks here first, so that its cost does not grow with the number of
    -- jobs.
    CREATE TABLE room (
        queue INTEGER NOT NULL,
        site TEXT NOT NULL,
        due INTEGER NOT NULL,
        closed_until INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (queue, site)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX room_due ON room (queue, due);

    CREATE TABLE instance (
        epoch INTEGER PRIMARY KEY AUTOINCREMENT,
        queue INTEGER NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT;

    -- Output files: what lies beyond the length was never confirmed.
    CREATE TABLE output (
        path TEXT PRIMARY KEY,
        length INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE site (
        site TEXT PRIMARY KEY,
        state TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE page (
        key TEXT PRIMARY KEY,
        body BLOB NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX page_expires ON page (expires_at);

    CREATE TABLE meta (
        key TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE robots (
        origin TEXT PRIMARY KEY,
        record TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
"];

/// Brings the file to the newest version.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    if version(connection)? == STEPS.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let from = version(&transaction)?; // Another process may have been faster.
    for step in STEPS.iter().skip(from) {
        transaction.execute_batch(step)?;
    }
    if from < STEPS.len() {
        transaction.pragma_update(None, "user_version", STEPS.len())?;
    }
    transaction.commit()
}

fn version(connection: &Connection) -> rusqlite::Result<usize> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}
