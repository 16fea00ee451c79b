//! Where results go, and what an earlier run left there.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use fetchwell_engine::adapters::sqlite::{Db, revise_length};
use fetchwell_engine::ports::{Sink, StoreFault};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::row::{Row, RowOutcome};
use crate::cli::Exit;

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

/// The rows that stand in an output, read as far as they are trusted.
#[derive(Debug)]
pub(super) struct Earlier {
    rows: BufReader<File>,
    read: u64,
    urls: HashSet<String>,
    pub(super) outcomes: Vec<RowOutcome>,
}

impl Earlier {
    /// Of a file that is there; nothing is read yet.
    pub(super) fn of(path: &Path) -> Result<Earlier, Exit> {
        let file = File::open(path).map_err(|error| cannot(path, &error))?;
        let rows = BufReader::new(file);
        Ok(Earlier { rows, read: 0, urls: HashSet::new(), outcomes: Vec::new() })
    }

    /// Whether the URL has its row.
    pub(super) fn has(&self, url: &str) -> bool {
        self.urls.contains(url)
    }

    /// Reads on, up to `trusted` bytes or the first line that is no whole row of ours. Returns where
    /// the last row ends.
    pub(super) fn read_to(&mut self, trusted: u64) -> io::Result<u64> {
        let mut line = Vec::new();
        while self.read < trusted {
            line.clear();
            let left = trusted - self.read;
            let length = io::Read::take(&mut self.rows, left).read_until(b'\n', &mut line)?;
            let row = line.strip_suffix(b"\n").map(serde_json::from_slice::<Seen>);
            let Some(Ok(row)) = row else { break };
            self.read += length as u64;
            self.urls.insert(row.url);
            self.outcomes.push(row.outcome);
        }
        Ok(self.read)
    }
}

/// The part of a row that a resumed run needs.
#[derive(Deserialize)]
struct Seen {
    url: String,
    outcome: RowOutcome,
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

/// Empties the output for a new run.
pub(super) async fn begin(db: &Db, path: &Path) -> Result<(), Exit> {
    File::create(path).map_err(|error| cannot(path, &error))?;
    revise_length(db, path, |_| Ok(0)).await?;
    Ok(())
}

/// Cuts off what was never confirmed or is torn. What another process confirms meanwhile stays.
pub(super) async fn repair(db: &Db, path: &Path) -> Result<(), Exit> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(|error| cannot(path, &error))?;
    let mut rows = Earlier::of(path)?;
    let is_foreign = Arc::new(AtomicBool::new(false));
    let found_foreign = is_foreign.clone();
    let revised = revise_length(db, path, move |confirmed| {
        let present = file.metadata()?.len();
        let whole = rows.read_to(confirmed.map_or(present, |confirmed| confirmed.min(present)))?;
        if confirmed.is_none() && whole == 0 && present > 0 {
            found_foreign.store(true, Ordering::Relaxed);
            return Err(io::Error::other("no rows of ours"));
        }
        file.set_len(whole)?;
        file.sync_all()?;
        Ok(whole)
    })
    .await;
    if is_foreign.load(Ordering::Relaxed) {
        return Err(Exit::Usage(format!(
            "{} holds no rows of ours, so it can't be resumed; name another with --output",
            path.display()
        )));
    }
    Ok(revised?)
}

pub(super) fn cannot(path: &Path, error: &io::Error) -> Exit {
    Exit::Usage(format!(
        "the output {} can't be used: {error}; name another with --output",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_of(text: &str, trusted: u64) -> (Vec<String>, u64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        std::fs::write(&path, text).unwrap();
        let mut earlier = Earlier::of(&path).unwrap();
        let whole = earlier.read_to(trusted).unwrap();
        let mut urls: Vec<String> = earlier.urls.into_iter().collect();
        urls.sort();
        (urls, whole)
    }

    #[test]
    fn torn_and_unconfirmed_rows_are_cut_off() {
        let row = |url: &str| format!("{{\"url\":\"{url}\",\"outcome\":\"fetched\",\"x\":1}}\n");
        let (a, b) = (row("a"), row("b"));
        let (one, two) = (a.len() as u64, (a.len() + b.len()) as u64);
        let both = format!("{a}{b}");
        assert_eq!(rows_of(&both, two), (vec!["a".into(), "b".into()], two));
        assert_eq!(rows_of(&both, two - 1), (vec!["a".into()], one));
        assert_eq!(rows_of(&both, one), (vec!["a".into()], one));
        assert_eq!(rows_of(&format!("{a}{{\"url\":\"b"), 1_000), (vec!["a".into()], one));
        assert_eq!(rows_of(&format!("{a}junk\n{b}"), 1_000), (vec!["a".into()], one));
        assert_eq!(rows_of("", 0), (vec![], 0));
    }
}
