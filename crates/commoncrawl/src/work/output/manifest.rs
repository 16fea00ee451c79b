//! The manifest: which pages the folder contains, and the confirmed length of each segment.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_sqlite::db::{Db, Durability};
use fetchwell_sqlite::errors::io_fault;
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::lines::{Line, Lines};
use super::segment::{Segment, append};
use super::{ERRORS, MANIFEST};
use crate::work::record::Written;

/// A good trade-off between size and speed, and zstd's default.
const COMPRESSION_LEVEL: i32 = 3;

/// The `user_version` of the manifest. Raise it with a change that this program would misread.
const VERSION: i64 = 0;

/// Opens or creates the manifest. Refuses one of a newer version.
pub(super) fn open(path: &Path) -> Result<Db, StoreError> {
    Db::open(path, Durability::Disk, VERSION, prepare)
}

/// Opens the manifest of a folder without a lock.
pub(super) fn open_to_read(folder: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(folder.join(MANIFEST), flags)
}

/// Creates missing tables.
fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "BEGIN IMMEDIATE;
         CREATE TABLE IF NOT EXISTS file (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
         -- Pages that a line was written for; broken ones may still be read another time.
         CREATE TABLE IF NOT EXISTS page (
             file INTEGER NOT NULL,
             offset INTEGER NOT NULL,
             is_broken INTEGER NOT NULL,
             PRIMARY KEY (file, offset)
         ) STRICT, WITHOUT ROWID;
         -- Bytes beyond the length were never confirmed.
         CREATE TABLE IF NOT EXISTS segment (
             name TEXT PRIMARY KEY,
             length INTEGER NOT NULL,
             documents INTEGER NOT NULL,
             is_sealed INTEGER NOT NULL DEFAULT 0
         ) STRICT;
         CREATE INDEX IF NOT EXISTS segment_open ON segment (name) WHERE is_sealed = 0;
         COMMIT;",
    )
}

/// Appends the lines that are new and records them. The bytes are synced when this returns, and count once the
/// transaction has committed.
pub(super) fn write(
    tx: &Connection,
    folder: &Path,
    segment: &Segment,
    lines: &Lines,
) -> rusqlite::Result<Written> {
    write_errors(tx, folder, &lines.errors)?;
    forget_errors(tx, &lines.left_out)?;
    let mut fresh = Vec::new();
    for line in &lines.documents {
        if is_new(tx, line, false)? {
            fresh.push(line);
        }
    }
    let repeated = (lines.documents.len() - fresh.len()) as u64;
    let before = confirmed_bytes(tx, &segment.name)?;
    if fresh.is_empty() {
        return Ok(Written { repeated, segment_bytes: before, ..Written::default() });
    }
    let appended = || {
        let file = segment.file(folder)?;
        append(&file, &compressed(&fresh)?, before)
    };
    let length = appended().map_err(|error| io_fault(&segment.part(folder), error))?;
    let documents = fresh.len() as u64;
    note(tx, &segment.name, length, documents)?;
    Ok(Written { documents, repeated, segment_bytes: length, new_bytes: length - before })
}

/// The confirmed length of a file.
pub(super) fn confirmed_bytes(tx: &Connection, name: &str) -> rusqlite::Result<u64> {
    tx.prepare_cached("SELECT length FROM segment WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()
        .map(Option::unwrap_or_default)
}

/// Records that a segment has its final name.
pub(super) fn note_sealed(tx: &Connection, name: &str) -> rusqlite::Result<()> {
    tx.execute("UPDATE segment SET is_sealed = 1 WHERE name = ?1", [name]).map(|_| ())
}

pub(super) fn open_segments(tx: &Connection) -> rusqlite::Result<Vec<String>> {
    tx.prepare("SELECT name FROM segment WHERE is_sealed = 0")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Errors are rare, so the file is opened only when there is one.
fn write_errors(tx: &Connection, folder: &Path, errors: &[Line]) -> rusqlite::Result<()> {
    let mut fresh = Vec::new();
    for line in errors {
        if is_new(tx, line, true)? {
            fresh.extend_from_slice(&line.json);
        }
    }
    if fresh.is_empty() {
        return Ok(());
    }
    let path = folder.join(ERRORS);
    let before = confirmed_bytes(tx, ERRORS)?;
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    let appended = || append(&options.open(&path)?, &fresh, before);
    let length = appended().map_err(|error| io_fault(&path, error))?;
    note(tx, ERRORS, length, 0)?;
    note_sealed(tx, ERRORS) // It has its final name from the start.
}

/// Pages that were read later but filtered out are no longer errors. They are not recorded, because a worker with
/// other filters may want them.
fn forget_errors(tx: &Connection, pages: &[(String, u64)]) -> rusqlite::Result<()> {
    let mut forget = tx.prepare_cached(
        "DELETE FROM page
         WHERE file = (SELECT id FROM file WHERE name = ?1) AND offset = ?2 AND is_broken = 1",
    )?;
    for (file, offset) in pages {
        forget.execute((file, offset))?;
    }
    Ok(())
}

/// Records a page, and returns whether it is new. A document replaces an error.
fn is_new(tx: &Connection, line: &Line, is_broken: bool) -> rusqlite::Result<bool> {
    let Some((file, offset)) = &line.page else { return Ok(true) };
    let changed = tx
        .prepare_cached(
            "INSERT INTO page VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET is_broken = 0 WHERE is_broken > excluded.is_broken",
        )?
        .execute((file_id(tx, file)?, offset, is_broken))?;
    Ok(changed == 1)
}

fn file_id(tx: &Connection, name: &str) -> rusqlite::Result<i64> {
    tx.prepare_cached("INSERT INTO file (name) VALUES (?1) ON CONFLICT DO NOTHING")?
        .execute([name])?;
    tx.prepare_cached("SELECT id FROM file WHERE name = ?1")?.query_row([name], |row| row.get(0))
}

fn note(tx: &Connection, name: &str, length: u64, documents: u64) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO segment (name, length, documents) VALUES (?1, ?2, ?3)
         ON CONFLICT (name) DO UPDATE
         SET length = excluded.length, documents = documents + excluded.documents",
    )?
    .execute((name, length, documents))
    .map(|_| ())
}

/// A separate frame: a zstd file may consist of several.
fn compressed(lines: &[&Line]) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), COMPRESSION_LEVEL)?;
    for line in lines {
        io::Write::write_all(&mut encoder, &line.json)?;
    }
    encoder.finish()
}
