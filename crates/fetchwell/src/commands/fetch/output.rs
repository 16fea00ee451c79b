//! Output to standard output or to a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_doors::fetch::{EarlierRows, FetchRow, OutputFormat};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::Sink;
use fetchwell_sqlite::db::Db;
use fetchwell_stores::sqlite::{SqliteQueue, revise_length};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::console::exit::Exit;
use crate::console::output::{cannot_use, folder_of};

/// Standard output as a sink.
pub(crate) struct Stdout {
    pub(crate) render: fn(&FetchRow) -> Vec<u8>,
    /// Cancelled when the reader has gone.
    pub(crate) stop: CancellationToken,
}

#[async_trait]
impl Sink<FetchRow> for Stdout {
    async fn write(&self, rows: &[&FetchRow]) -> Result<(), StoreError> {
        // A flat map would copy byte by byte, which takes longer than rendering.
        let rendered: Vec<Vec<u8>> = rows.iter().map(|row| (self.render)(row)).collect();
        let bytes = rendered.concat();
        let mut stdout = io::stdout().lock();
        match stdout.write_all(&bytes).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.stop.cancel();
                Ok(())
            }
            written => written.map_err(|error| {
                StoreError::transient("cannot write to standard output").with_source(error)
            }),
        }
    }
}

/// The name of a command's queue for an output file: always the same for the same file.
pub(crate) fn queue_name(command: &str, path: &Path) -> Result<String, Exit> {
    let folder = folder_of(path).canonicalize().map_err(|error| cannot_use(path, &error))?;
    let name = path.file_name().unwrap_or_default();
    Ok(format!("{command}:{}", folder.join(name).display()))
}

/// Empties the output for a new run and writes the preamble of its format.
pub(super) async fn begin(db: &Db, path: &Path, preamble: Vec<u8>) -> Result<(), Exit> {
    let file = File::create(path).map_err(|error| cannot_use(path, &error))?;
    revise_length(db, path, move |_| write_preamble(&file, &preamble)).await?;
    Ok(())
}

/// Result of a repair.
#[derive(Default)]
pub(super) struct Repaired {
    /// The file holds no rows of ours, and was left unchanged.
    is_foreign: bool,
    /// The URLs whose rows were removed, if the caller wants them. They were given up because of an internal error, and are
    /// retried.
    pub(super) given_up: Vec<String>,
}

/// Cuts off unconfirmed and torn rows, and removes the rows of URLs that were given up because of an internal error.
/// `None`: nothing was done, because another process is using the output. Only `lists_given_up` takes memory for rows.
pub(super) async fn repair(
    queue: &SqliteQueue,
    path: &Path,
    format: OutputFormat,
    preamble: Vec<u8>,
    lists_given_up: bool,
) -> Result<Option<Repaired>, Exit> {
    let mut to_open = OpenOptions::new();
    to_open.create(true).truncate(false).write(true);
    to_open.open(path).map_err(|error| cannot_use(path, &error))?;
    let is_other = EarlierRows::open(path, format).and_then(|mut rows| rows.is_of_another_format());
    if is_other.map_err(|error| cannot_use(path, &error))? {
        return Err(not_ours(path));
    }
    let repaired = Arc::new(Mutex::new(Repaired::default()));
    let noted = repaired.clone();
    let output = path.to_owned();
    let revise = move |confirmed: Option<u64>| {
        // Opened only now: another process may have replaced the file before our turn came.
        let file = to_open.open(&output)?;
        let mut rows = EarlierRows::open(&output, format)?;
        let present = file.metadata()?.len();
        let trusted = confirmed.map_or(present, |confirmed| confirmed.min(present));
        let mut noted = noted.lock();
        let mut has_given_up = false;
        while let Some(row) = rows.next(trusted)? {
            has_given_up |= row.is_internal;
            if row.is_internal && lists_given_up {
                noted.given_up.push(row.url);
            }
        }
        let whole = rows.end();
        if confirmed.is_none() && whole == 0 && present > 0 {
            noted.is_foreign = true;
            return Err(io::Error::other("no rows of ours"));
        }
        if whole == 0 {
            return write_preamble(&file, &preamble);
        }
        file.set_len(whole)?;
        file.sync_all()?;
        if has_given_up { write_without_given_up(&output, format) } else { Ok(whole) }
    };
    let revised = queue.revise_length_unless_in_use(path, revise).await;
    let repaired = std::mem::take(&mut *repaired.lock());
    if repaired.is_foreign {
        return Err(not_ours(path));
    }
    Ok(revised?.then_some(repaired))
}

/// Replaces a file with a copy that lacks the rows of URLs that were given up because of an internal error, and returns
/// the new length. After a crash, either the old or the new file is there, complete.
fn write_without_given_up(path: &Path, format: OutputFormat) -> io::Result<u64> {
    // Replace the target of a symbolic link, not the link.
    let path = path.canonicalize()?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".resume");
    let beside = path.with_file_name(name);
    let mut rows = EarlierRows::open(&path, format)?;
    let mut old = File::open(&path)?;
    let mut new = File::create(&beside)?;
    let end = old.metadata()?.len();
    let mut from = 0;
    while let Some(row) = rows.next(end)? {
        if row.is_internal {
            copy(&mut old, from..row.bytes.start, &mut new)?;
            from = row.bytes.end;
        }
    }
    copy(&mut old, from..end, &mut new)?;
    new.set_permissions(old.metadata()?.permissions())?;
    new.sync_all()?;
    std::fs::rename(&beside, &path)?;
    // The rename must be on disk before the store records the new length.
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(new.metadata()?.len())
}

/// Appends a part of a file to another.
fn copy(from: &mut File, part: Range<u64>, to: &mut File) -> io::Result<()> {
    from.seek(SeekFrom::Start(part.start))?;
    io::copy(&mut from.take(part.end - part.start), to)?;
    Ok(())
}

fn write_preamble(file: &File, preamble: &[u8]) -> io::Result<u64> {
    file.set_len(0)?;
    file.write_all_at(preamble, 0)?;
    file.sync_all()?;
    Ok(preamble.len() as u64)
}

fn not_ours(path: &Path) -> Exit {
    Exit::Usage(format!(
        "{} has no results of Fetchwell in this format, so it cannot be resumed; use another \
         --output, or the --format it was written with",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use fetchwell_doors::fetch::{Archived, preamble};
    use fetchwell_policy::time::Time;

    use super::*;

    fn row(url: &str, outcome: &str) -> String {
        format!("{{\"url\":\"{url}\",\"outcome\":\"{outcome}\"}}\n")
    }

    #[test]
    fn rows_of_urls_that_were_given_up_for_our_fault_are_taken_out_and_all_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        let lines = [
            row("a", "fetched"),
            row("b", "internal"),
            row("c", "url_failure"),
            // As an earlier version wrote it.
            row("d", "url_failure\",\"reason\":\"internal: a panic"),
        ];
        let lines = lines.map(String::into_bytes);
        let archived = lines.clone().map(|line| Archived::default().with_row("x", "y", &line));
        let info = preamble(OutputFormat::Warc, &path, "agent", Time::EPOCH);
        for (format, first, [a, b, c, d]) in
            [(OutputFormat::Json, Vec::new(), lines), (OutputFormat::Warc, info, archived)]
        {
            let before = [&first, &a, &b, &c, &d].map(Vec::as_slice).concat();
            std::fs::write(&path, &before).unwrap();
            let mut rows = EarlierRows::open(&path, format).unwrap();
            let mut given_up = Vec::new();
            while let Some(row) = rows.next(u64::MAX).unwrap() {
                if row.is_internal {
                    given_up.push(row.url);
                }
            }
            assert_eq!((given_up, rows.end()), (vec!["b".into(), "d".into()], before.len() as u64));
            let after = [&first, &a, &c].map(Vec::as_slice).concat();
            assert_eq!(write_without_given_up(&path, format).unwrap(), after.len() as u64);
            assert_eq!(std::fs::read(&path).unwrap(), after);
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}
