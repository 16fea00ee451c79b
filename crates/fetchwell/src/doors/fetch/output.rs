//! Where results go.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use fetchwell_engine::adapters::sqlite::{Db, revise_length};
use fetchwell_engine::ports::{Sink, StoreFault};
use tokio_util::sync::CancellationToken;

use super::earlier::Earlier;
use super::row::Row;
use crate::cli::{Exit, Format};

/// Standard output as a sink.
pub(super) struct Stdout {
    render: fn(&Row) -> Vec<u8>,
    /// Cancelled when nobody reads any more.
    stop: CancellationToken,
}

impl Stdout {
    pub(super) fn new(render: fn(&Row) -> Vec<u8>, stop: CancellationToken) -> Stdout {
        Stdout { render, stop }
    }
}

#[async_trait]
impl Sink<Row> for Stdout {
    async fn write(&self, rows: &[&Row]) -> Result<(), StoreFault> {
        let bytes: Vec<u8> = rows.iter().flat_map(|row| (self.render)(row)).collect();
        let mut stdout = io::stdout().lock();
        match stdout.write_all(&bytes).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.stop.cancel();
                Ok(())
            }
            written => written
                .map_err(|error| StoreFault::Unavailable(format!("standard output: {error}"))),
        }
    }
}

/// The queue of an output: the same file always has the same one.
pub(super) fn queue_name(path: &Path) -> Result<String, Exit> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = folder.canonicalize().map_err(|error| cannot(path, &error))?;
    let name = path.file_name().unwrap_or_default();
    Ok(format!("fetch:{}", folder.join(name).display()))
}

/// Empties the output for a new run, but for what every output of its format begins with.
pub(super) async fn begin(db: &Db, path: &Path, preamble: Vec<u8>) -> Result<(), Exit> {
    let file = File::create(path).map_err(|error| cannot(path, &error))?;
    revise_length(db, path, move |_| write_preamble(&file, &preamble)).await?;
    Ok(())
}

/// Cuts off what was never confirmed or is torn. What another process confirms meanwhile stays.
pub(super) async fn repair(
    db: &Db,
    path: &Path,
    format: Format,
    preamble: Vec<u8>,
) -> Result<(), Exit> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(|error| cannot(path, &error))?;
    refuse_another_format(path, format)?;
    let mut rows = Earlier::of(path, format)?;
    let is_foreign = Arc::new(AtomicBool::new(false));
    let found_foreign = is_foreign.clone();
    let revised = revise_length(db, path, move |confirmed| {
        let present = file.metadata()?.len();
        let whole = rows.read_to(confirmed.map_or(present, |confirmed| confirmed.min(present)))?;
        if confirmed.is_none() && whole == 0 && present > 0 {
            found_foreign.store(true, Ordering::Relaxed);
            return Err(io::Error::other("no rows of ours"));
        }
        if whole == 0 {
            return write_preamble(&file, &preamble);
        }
        file.set_len(whole)?;
        file.sync_all()?;
        Ok(whole)
    })
    .await;
    if is_foreign.load(Ordering::Relaxed) {
        return Err(not_ours(path));
    }
    Ok(revised?)
}

/// An output goes on in the format in which it began.
pub(super) fn refuse_another_format(path: &Path, format: Format) -> Result<(), Exit> {
    let is_other =
        Earlier::of(path, format)?.is_of_another_format().map_err(|error| cannot(path, &error))?;
    if is_other { Err(not_ours(path)) } else { Ok(()) }
}

fn write_preamble(file: &File, preamble: &[u8]) -> io::Result<u64> {
    file.set_len(0)?;
    file.write_all_at(preamble, 0)?;
    file.sync_all()?;
    Ok(preamble.len() as u64)
}

fn not_ours(path: &Path) -> Exit {
    Exit::Usage(format!(
        "{} holds no results of ours in this format, so it can't be resumed; \
         name another with --output, or its own with --format",
        path.display()
    ))
}

pub(super) fn cannot(path: &Path, error: &io::Error) -> Exit {
    Exit::Usage(format!(
        "the output {} can't be used: {error}; name another with --output",
        path.display()
    ))
}
