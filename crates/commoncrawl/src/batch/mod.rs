//! Turns the index of a crawl into batches of captured pages on a queue.
//!
//! `cluster_source` reads `cluster.idx` line by line, `block` is the plan of a line, `ahead` limits what waits,
//! `window` orders blocks and cuts them into batches, `outgoing` decides what to publish next and what to record once
//! it is confirmed, `publishing` does so, and `checkpoint` is the file that records the progress.

mod ahead;
pub mod block;
mod checkpoint;
mod cluster_source;
mod counts;
mod outgoing;
mod progress;
mod publishing;
pub(crate) mod standing;
mod window;

use std::path::PathBuf;
use std::sync::Arc;

use fetchwell_engine::pipeline::{self, Door, RunEnd, Runtime};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::archive::Archive;
use crate::error::CommonCrawlError;
use ahead::{Ahead, Bounded};
use block::Batching;
use cluster_source::ClusterSource;
use outgoing::Outgoing;
use publishing::{Publisher, State};
use window::{Cutting, Windows};

pub use checkpoint::{ACROSS_BLOCKS, Checkpoint, CheckpointFile, Cut, Position, Unread};
pub use counts::Counts;
pub use progress::BatchProgress;
pub use publishing::BatchTarget;

/// For each concurrent request, this many blocks may wait for an earlier one.
const AHEAD_BLOCKS_PER_REQUEST: usize = 4;
/// The size of the pages that may wait for their turn or for the queue.
const MAX_BYTES_AHEAD: u64 = 32 << 20;

pub struct BatchRules {
    pub cluster_idx: PathBuf,
    /// The crawl of that index.
    pub crawl: String,
    /// Which pages are selected, and whether they are sorted.
    pub batching: Batching,
    pub batch_size: usize,
    /// Pages sorted at a time.
    pub by_file_pages: usize,
    /// The maximum number of pages over all runs; `None` for no limit.
    pub limit: Option<u64>,
    /// Concurrent requests to the archive.
    pub max_concurrency: usize,
}

pub struct Batcher<'a> {
    pub rules: BatchRules,
    /// The archive that holds the index.
    pub archive: &'a Archive,
    /// Where batches go; `None` for a dry run, which only counts.
    pub target: Option<BatchTarget>,
    /// Receives the progress.
    pub progress: Arc<BatchProgress>,
}

impl Batcher<'_> {
    /// Continues from a checkpoint until everything is published or `stop`. Returns how the run ended and its last
    /// checkpoint.
    pub async fn run(
        self,
        earlier: Checkpoint,
        runtime: Runtime,
        stop: &CancellationToken,
    ) -> Result<(RunEnd, Checkpoint), CommonCrawlError> {
        let BatchRules { cluster_idx, batching, .. } = self.rules;
        let max_blocks = AHEAD_BLOCKS_PER_REQUEST * self.rules.max_concurrency;
        let ahead = Arc::new(Ahead::new(max_blocks as u64, MAX_BYTES_AHEAD));
        let indexes = self.archive.indexes(&self.rules.crawl)?;
        let from = earlier.position.index_offset;
        let clock = runtime.clock.clone();
        let source = ClusterSource::open(&cluster_idx, from, indexes, ahead.clone(), clock)?;
        let source = Arc::new(source);
        let cutting = Cutting {
            batch_size: self.rules.batch_size,
            by_file_pages: batching.by_file.then_some(self.rules.by_file_pages),
            across_windows: earlier.is_across_blocks(),
        };
        let run_ends = stop.child_token();
        let publisher = Arc::new(Publisher {
            target: self.target,
            instance: source.instance.clone(),
            ahead: ahead.clone(),
            progress: self.progress,
            stop: run_ends.clone(),
            state: Mutex::new(State {
                windows: Windows::after(&earlier, cutting),
                outgoing: Outgoing::after(&earlier, self.rules.limit),
                checkpoint: earlier,
            }),
        });
        let door = Door {
            source,
            planner: Arc::new(move |lease| {
                let plan = block::plan(&batching, lease);
                Box::new(Bounded::new(plan, ahead.clone(), lease))
            }),
            finish: publisher.clone(),
            give_up_record: Arc::new(block::give_up_record),
        };
        let ended = pipeline::run(door, runtime, run_ends).await?;
        let checkpoint = publisher.close(ended == RunEnd::Exhausted).await?;
        Ok((ended, checkpoint))
    }
}
