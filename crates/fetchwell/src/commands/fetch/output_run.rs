//! A run that writes to a file: how it begins, and how it continues earlier ones.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fetchwell_doors::fetch::{EarlierRows, OutputFormat, preamble};
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

/// The maximum number of given-up URLs to look for in the output at once.
const MAX_GIVEN_UP_AT_ONCE: usize = 10_000;

/// The output of a run.
pub(crate) struct OutputRun<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) path: &'a Path,
    pub(crate) format: OutputFormat,
}

impl OutputRun<'_> {
    /// Resumes earlier runs. URLs that failed with an internal error are retried: their rows are removed, and their
    /// jobs revived. Memory use does not depend on the size of the output.
    pub(crate) async fn resume(&self, queue: &SqliteQueue) -> Result<(), Exit> {
        self.resume_and_list(queue, false).await.map(drop)
    }

    /// The same. Returns the URLs whose rows were removed.
    pub(crate) async fn resume_list(&self, queue: &SqliteQueue) -> Result<Vec<String>, Exit> {
        self.resume_and_list(queue, true).await
    }

    async fn resume_and_list(
        &self,
        queue: &SqliteQueue,
        lists_given_up: bool,
    ) -> Result<Vec<String>, Exit> {
        let preamble = self.preamble();
        let repaired =
            output::repair(queue, self.path, self.format, preamble, lists_given_up).await?;
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

    /// Retries every URL that was given up and has no row.
    async fn revive(&self, queue: &SqliteQueue) -> Result<(), Exit> {
        let mut from = None;
        loop {
            let mut given_up: BTreeMap<String, Vec<LeaseId>> = BTreeMap::new();
            while given_up.len() < MAX_GIVEN_UP_AT_ONCE {
                let page = queue.dead_letters(from.as_deref(), LETTERS_PER_PAGE).await?;
                for letter in page.letters {
                    given_up.entry(letter.url).or_default().push(letter.id);
                }
                from = page.next;
                if from.is_none() {
                    break;
                }
            }
            self.revive_some(queue, given_up).await?;
            if from.is_none() {
                return Ok(());
            }
        }
    }

    /// Retries these URLs, except for those that have a row. The dead letters were read before the rows, so that a URL
    /// that another process gives up on in the meantime keeps its row and is not fetched again.
    async fn revive_some(
        &self,
        queue: &SqliteQueue,
        given_up: BTreeMap<String, Vec<LeaseId>>,
    ) -> Result<(), Exit> {
        if given_up.is_empty() {
            return Ok(());
        }
        let mut rows = self.rows()?;
        let without_row = Arc::new(Mutex::new(given_up));
        let left = without_row.clone();
        let read_rows = move |confirmed| {
            let mut left = left.lock();
            while let Some(row) = rows.next(confirmed)? {
                left.remove(&row.url);
            }
            Ok(Vec::new())
        };
        queue.enqueue_beside(self.path, read_rows).await?;
        let without_row = std::mem::take(&mut *without_row.lock());
        let without_row: Vec<LeaseId> = without_row.into_values().flatten().collect();
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
    pub(crate) fn rows(&self) -> Result<EarlierRows, Exit> {
        EarlierRows::open(self.path, self.format).map_err(|error| cannot_use(self.path, &error))
    }

    /// The first bytes of the output.
    fn preamble(&self) -> Vec<u8> {
        preamble(self.format, self.path, &user_agent(self.settings), Clock::system().wall())
    }
}
