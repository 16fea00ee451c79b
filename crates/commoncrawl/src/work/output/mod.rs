//! A folder of documents, in which each page stands once.
//!
//! Documents are appended to a segment, a file of JSON lines in compressed frames. `manifest` is a SQLite
//! file in the folder: it knows which pages are written and how long each segment is. A write is one
//! transaction of it: the bytes are on the disk before it commits, and what lies beyond the length that was
//! committed does not exist. So a batch that comes again writes nothing, and a crash leaves neither a
//! half-written document nor a second one. The manifest's write lock keeps processes apart that share the
//! folder; memory does not grow with what is in it.
//!
//! A segment that is large or old enough is sealed: it gets its final form and its final name, as one
//! step. Those who read the folder take the files that are sealed and need to know nothing of this.

#[cfg(feature = "parquet")]
mod columns;
#[cfg(not(feature = "parquet"))]
#[path = "columns_off.rs"]
mod columns;
mod errors;
mod lines;
mod manifest;
mod recovery;
mod seal;
mod segment;
pub(crate) mod standing;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::Sink;
use fetchwell_policy::time::Time;
use fetchwell_sqlite::db::Db;
use tokio::sync::Mutex;
use tracing::warn;

pub(super) use self::errors::ErrorEntry;
pub use self::errors::ErrorFile;
use self::lines::Lines;
pub(super) use self::manifest::Written;
use self::segment::Segment;
pub use self::segment::SegmentFormat;
use super::metrics::WorkMetrics;
use super::record::WorkRecord;

/// The file that knows what is in the folder.
const MANIFEST: &str = "manifest.db";
/// Pages that can't be read, one JSON object a line.
const ERRORS: &str = "errors.jsonl";

/// When a segment is sealed, and what it becomes.
#[derive(Clone, Copy, Debug)]
pub struct SegmentRule {
    pub format: SegmentFormat,
    /// It is sealed when it has come to this size, compressed…
    pub max_bytes: u64,
    /// …or to this age.
    pub max_age: Duration,
}

pub(super) struct Output {
    folder: PathBuf,
    db: Db,
    rule: SegmentRule,
    clock: Clock,
    metrics: Arc<WorkMetrics>,
    open: Mutex<Option<OpenSegment>>,
}

/// The segment that is written to.
struct OpenSegment {
    segment: Arc<Segment>,
    since: Time,
}

impl Output {
    /// Opens or makes the folder. What processes left behind that are gone is sealed.
    pub(super) async fn open(
        folder: &Path,
        rule: SegmentRule,
        clock: Clock,
        metrics: Arc<WorkMetrics>,
    ) -> Result<Output, StoreError> {
        let folder = made(folder)?;
        let db = manifest::open(&folder.join(MANIFEST))?;
        for left in recovery::left_behind(&db, &folder).await? {
            warn!("{} was left open by a process that has ended: closing it", left.name);
            seal::seal(&db, &folder, Arc::new(left)).await?;
        }
        Ok(Output { folder, db, rule, clock, metrics, open: Mutex::default() })
    }

    /// Seals the segment if it is old: documents must not wait for others to come.
    pub(super) async fn seal_when_old(&self) -> Result<(), StoreError> {
        let mut open = self.open.lock().await;
        let now = self.clock.now();
        if open.as_ref().is_some_and(|open| now.since(open.since) >= self.rule.max_age) {
            self.seal(&mut open).await?;
        }
        Ok(())
    }

    /// Seals what is open: the end of a run.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.seal(&mut *self.open.lock().await).await
    }

    async fn seal(&self, open: &mut Option<OpenSegment>) -> Result<(), StoreError> {
        if let Some(sealing) = open {
            if sealing.segment.is_begun() {
                seal::seal(&self.db, &self.folder, sealing.segment.clone()).await?;
                self.metrics.segment_sealed();
            }
            *open = None;
        }
        Ok(())
    }

    fn begin(&self) -> OpenSegment {
        let segment = Segment::new(self.rule.format, self.clock.wall());
        OpenSegment { segment: Arc::new(segment), since: self.clock.now() }
    }
}

#[async_trait]
impl Sink<WorkRecord> for Output {
    async fn write(&self, records: &[&WorkRecord]) -> Result<(), StoreError> {
        let lines = Lines::of(records);
        if lines.is_empty() {
            return Ok(());
        }
        let mut open = self.open.lock().await;
        let segment = open.get_or_insert_with(|| self.begin()).segment.clone();
        let folder = self.folder.clone();
        let written =
            self.db.write(move |tx| manifest::write(tx, &folder, &segment, &lines)).await?;
        self.metrics.written(&written);
        if written.segment_bytes >= self.rule.max_bytes {
            self.seal(&mut open).await?;
        }
        Ok(())
    }
}

/// The folder, made where it is missing, by its full name.
fn made(folder: &Path) -> Result<PathBuf, StoreError> {
    let make = || {
        std::fs::create_dir_all(folder)?;
        folder.canonicalize()
    };
    make().map_err(|error| {
        StoreError::transient(format!("cannot use the folder {}", folder.display()))
            .with_source(error)
            .with_advice("use another one with --output")
    })
}

#[cfg(test)]
mod tests;
