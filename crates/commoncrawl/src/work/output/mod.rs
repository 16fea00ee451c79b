//! A folder of documents that contains each page once.
//!
//! Documents are appended to a segment, a file of JSON lines in compressed frames. `manifest` is an SQLite file in the
//! folder that records which pages are written and how long each segment is. A write is one transaction of it: the
//! bytes are synced before it commits, and bytes beyond the committed length are ignored. So a batch that is delivered
//! again writes nothing, and a crash leaves neither a partial document nor a duplicate. The manifest's write lock
//! serializes the processes that share the folder. Memory use does not grow with the folder.
//!
//! A segment that is large or old enough is sealed: it gets its final format and its final name in one step. Readers
//! take the sealed files and need to know nothing else.

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
mod target;

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
use self::segment::Segment;
pub use self::segment::SegmentFormat;
pub use self::target::OutputTarget;
use super::metrics::WorkMetrics;
use super::record::WorkRecord;

const MANIFEST: &str = "manifest.db";
/// Pages that could not be read, one JSON object per line.
const ERRORS: &str = "errors.jsonl";

/// When a segment is sealed, and in which format.
#[derive(Clone, Copy, Debug)]
pub struct SegmentRule {
    pub format: SegmentFormat,
    /// The size, compressed, at which it is sealed…
    pub max_bytes: u64,
    /// …or the age.
    pub max_age: Duration,
}

pub(super) struct Output {
    target: OutputTarget,
    db: Db,
    rule: SegmentRule,
    clock: Clock,
    metrics: Arc<WorkMetrics>,
    open: Mutex<Option<OpenSegment>>,
}

/// The segment that is being written.
struct OpenSegment {
    segment: Arc<Segment>,
    since: Time,
}

impl Output {
    /// Opens the folder, and seals segments that dead processes left behind.
    pub(super) async fn open(
        target: OutputTarget,
        rule: SegmentRule,
        clock: Clock,
        metrics: Arc<WorkMetrics>,
    ) -> Result<Output, StoreError> {
        let db = manifest::open(&target.folder.join(MANIFEST))?;
        for left in recovery::left_behind(&db, &target.folder).await? {
            warn!("{} was left open by a process that has ended: closing it", left.name);
            seal::seal(&db, &target, Arc::new(left)).await?;
        }
        Ok(Output { target, db, rule, clock, metrics, open: Mutex::default() })
    }

    /// Seals the segment if it is old: documents must not wait for others to arrive.
    pub(super) async fn seal_when_old(&self) -> Result<(), StoreError> {
        let mut open = self.open.lock().await;
        let now = self.clock.now();
        if open.as_ref().is_some_and(|open| now.since(open.since) >= self.rule.max_age) {
            self.seal(&mut open).await?;
        }
        Ok(())
    }

    /// Seals the open segment at the end of a run.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.seal(&mut *self.open.lock().await).await
    }

    async fn seal(&self, open: &mut Option<OpenSegment>) -> Result<(), StoreError> {
        if let Some(sealing) = open {
            if sealing.segment.is_begun() {
                seal::seal(&self.db, &self.target, sealing.segment.clone()).await?;
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
        let mut open = self.open.lock().await;
        let segment = open.get_or_insert_with(|| self.begin()).segment.clone();
        let target = self.target.clone();
        let write = self.db.write(move |tx| manifest::write(tx, &target.folder, &segment, &lines));
        let written = write.await?;
        self.metrics.written(&written);
        if written.segment_bytes >= self.rule.max_bytes {
            self.seal(&mut open).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
