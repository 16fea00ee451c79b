//! A run that writes to a file: how it begins, and how it continues earlier ones.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fetchwell_doors::fetch::{Earlier, OutputFormat, preamble};
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::dead_letters::{DeadLetters, LETTERS_PER_PAGE, Revision};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_engine::ports::queue::Queue;
use fetchwell_policy::units::quantity;
use fetchwell_settings::Settings;
use fetchwell_sqlite::db::Db;
use fetchwell_stores::sqlite::SqliteQueue;
use parking_lot::Mutex;
use tracing::info;

use super::output;
use crate::console::exit::Exit;
use crate::console::output::cannot_use;
use crate::wiring::user_agent;

/// The output of a run.
pub(crate) struct OutputRun<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) path: &'a Path,
    pub(crate) format: OutputFormat,
}

impl OutputRun<'_> {
    /// Resumes earlier runs. URLs that failed with an internal error are retried: their rows are removed, and their
    /// jobs revived. Returns the URLs whose rows were removed.
    pub(crate) async fn resume(&self, queue: &SqliteQueue) -> Result<Vec<String>, Exit> {
        let repaired = output::repair(queue, self.path, self.format, self.preamble()).await?;
        let Some(repaired) = repaired else {
            info!("another process is working on {}; joining it", self.path.display());
            return Ok(Vec::new());
        };
        self.revive(queue).await?;
        Ok(repaired.given_up)
    }

    /// Whether the file is shorter than what was confirmed.
    pub(crate) async fn lacks_rows(&self, queue: &SqliteQueue) -> Result<bool, Exit> {
        let lacks = Arc::new(AtomicBool::new(false));
        let noted = lacks.clone();
        let path = self.path.to_owned();
        let compare = move |confirmed| {
            let present = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
            noted.store(present < confirmed, Ordering::Relaxed);
            Ok(Vec::new())
        };
        queue.enqueue_beside(self.path, compare).await?;
        Ok(lacks.load(Ordering::Relaxed))
    }

    /// Retries every URL that was given up and has no row. The letters are read before the rows, so that one that
    /// another process gives up meanwhile keeps its row and is not fetched again.
    async fn revive(&self, queue: &SqliteQueue) -> Result<(), Exit> {
        let mut dead = Vec::new();
        let mut from = None;
        loop {
            let page = queue.dead_letters(from.as_deref(), LETTERS_PER_PAGE).await?;
            dead.extend(page.letters);
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        let rows = Arc::new(Mutex::new(self.earlier()?));
        let read = rows.clone();
        let read_rows = move |confirmed| {
            read.lock().read_to(confirmed)?;
            Ok(Vec::new())
        };
        queue.enqueue_beside(self.path, read_rows).await?;
        let without_row: Vec<LeaseId> = {
            let rows = rows.lock();
            dead.iter().filter(|letter| !rows.has(&letter.url)).map(|letter| letter.id).collect()
        };
        for some in without_row.chunks(LETTERS_PER_PAGE) {
            queue.take_off(some, Revision::Retry).await?;
        }
        Ok(())
    }

    /// Prepares a new run, unless an unfinished one uses the file.
    pub(crate) async fn begin(&self, db: &Db, queue: &SqliteQueue) -> Result<(), Exit> {
        let path = self.path;
        let in_use = queue.is_in_use().await?;
        let left = queue.ledger().await?.unfinished();
        if left > 0 && !in_use && path.exists() {
            return Err(Exit::Usage(format!(
                "{} is the output of a run with {} left; use --resume to continue it, or remove \
                 the file to start over",
                path.display(),
                quantity(left, "URL", "URLs")
            )));
        }
        if in_use || !queue.reset_unless_in_use().await? {
            return Err(Exit::Usage(format!(
                "another process is writing {}; use --resume to join it",
                path.display()
            )));
        }
        output::begin(db, path, self.preamble()).await
    }

    /// The rows in the output file.
    pub(crate) fn earlier(&self) -> Result<Earlier, Exit> {
        Earlier::open(self.path, self.format).map_err(|error| cannot_use(self.path, &error))
    }

    /// The first bytes of the output.
    fn preamble(&self) -> Vec<u8> {
        preamble(self.format, self.path, &user_agent(self.settings), Clock::system().wall())
    }
}
