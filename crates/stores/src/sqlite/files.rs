//! Writes results to a file exactly once: the confirmed length of the file commits with the settlements.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settled, Settlement};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_sqlite::db::Db;
use fetchwell_sqlite::errors::io_fault;
use fetchwell_sqlite::statements::Statements;
use rusqlite::Connection;

use super::SqliteInstance;
use super::moves::Moves;
use super::queue::settle_batch;

/// A file that results are appended to.
///
/// The bytes are written at the confirmed end of the file, and are on the disk before the transaction commits. Anything
/// beyond the confirmed length was never confirmed, and is overwritten. The store's write lock serializes processes
/// that share an output.
#[derive(Clone)]
pub struct OutputFile {
    file: Arc<File>,
    path: String,
}

impl OutputFile {
    /// Opens or creates the file without reading or changing it.
    pub fn open(path: &Path) -> io::Result<OutputFile> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        let name = output_name(path).map_err(io::Error::other)?;
        Ok(OutputFile { file: Arc::new(file), path: name })
    }

    /// Appends bytes and updates the confirmed length.
    pub(super) fn append(&self, tx: &Connection, bytes: &[u8]) -> rusqlite::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let length: i64 = tx.one(
            "INSERT INTO output VALUES (?1, ?2)
             ON CONFLICT (path) DO UPDATE SET length = length + excluded.length
             RETURNING length",
            (&self.path, bytes.len()),
            |row| row.get(0),
        )?;
        let end = u64::try_from(length).unwrap_or(0);
        append(&self.file, bytes, end.saturating_sub(bytes.len() as u64))
            .map_err(|error| io_fault(self.path.as_ref(), error))
    }
}

/// Writes records to a file and settles their leases in one transaction of the queue's store.
pub struct FileFinish<R> {
    instance: Arc<SqliteInstance>,
    file: OutputFile,
    render: fn(&R) -> Vec<u8>,
}

impl<R> FileFinish<R> {
    /// Opens or creates the file without reading or changing it.
    pub fn open(
        instance: Arc<SqliteInstance>,
        path: &Path,
        render: fn(&R) -> Vec<u8>,
    ) -> io::Result<FileFinish<R>> {
        Ok(FileFinish { instance, file: OutputFile::open(path)?, render })
    }
}

/// Updates the confirmed length of a file in one transaction. `revise` gets the confirmed length (`None` if the store
/// does not know the file), and truncates or extends the file to the length that it returns. No other process writes to
/// the file meanwhile.
pub async fn revise_length(
    db: &Db,
    path: &Path,
    revise: impl FnOnce(Option<u64>) -> io::Result<u64> + Send + 'static,
) -> Result<(), StoreError> {
    let name = output_name(path)?;
    db.write(move |tx| revise_length_of(tx, &name, revise)).await
}

pub(super) fn revise_length_of(
    tx: &Connection,
    output: &str,
    revise: impl FnOnce(Option<u64>) -> io::Result<u64>,
) -> rusqlite::Result<()> {
    let length =
        revise(length_of(tx, output)?).map_err(|error| io_fault(output.as_ref(), error))?;
    tx.execute(
        "INSERT INTO output VALUES (?1, ?2)
         ON CONFLICT (path) DO UPDATE SET length = excluded.length",
        (output, length),
    )?;
    Ok(())
}

pub(super) fn length_of(tx: &Connection, output: &str) -> rusqlite::Result<Option<u64>> {
    tx.find("SELECT length FROM output WHERE path = ?1", [output], |row| row.get(0))
}

/// Maps different spellings of a path to one output.
pub(super) fn output_name(path: &Path) -> Result<String, StoreError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = folder.canonicalize().map_err(|error| {
        StoreError::transient(format!("cannot open the folder {}", folder.display()))
            .with_source(error)
    })?;
    Ok(folder.join(path.file_name().unwrap_or_default()).to_string_lossy().into_owned())
}

#[async_trait]
impl<R: Send + Sync> Finish<R> for FileFinish<R> {
    async fn finish(&self, batch: &[Finished<R>]) -> Result<Vec<Settled>, StoreError> {
        let settlements: Vec<(LeaseId, Settlement)> =
            batch.iter().map(|f| (f.lease.id, f.settlement.clone())).collect();
        let rendered: Vec<Vec<u8>> = batch
            .iter()
            .map(|f| f.records.iter().map(self.render).collect::<Vec<_>>().concat())
            .collect();
        let epoch = self.instance.epoch();
        let file = self.file.clone();
        let work = move |moves: &mut Moves<'_>| {
            let settled = settle_batch(moves, epoch, &settlements)?;
            let confirmed =
                settled.iter().zip(&rendered).filter(|(s, _)| **s == Settled::Confirmed);
            let bytes = confirmed.map(|(_, bytes)| bytes.as_slice()).collect::<Vec<_>>().concat();
            file.append(moves.tx, &bytes)?;
            Ok(settled)
        };
        self.instance.queue.transact(work).await
    }
}

/// Writes `bytes` at `offset`, truncates the file after them, and waits for the disk.
fn append(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)?;
    file.set_len(offset + bytes.len() as u64)?;
    file.sync_data()
}
