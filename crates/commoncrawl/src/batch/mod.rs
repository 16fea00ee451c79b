//! The index of a crawl becomes batches of captured pages on a queue.
//!
//! `cluster_source` reads `cluster.idx` line by line, `block` is the plan of a line, `ahead` keeps what waits
//! within bounds, `window` puts blocks in order and cuts them into batches, `outgoing` says what is to be
//! published next and what is so once it is confirmed, `publishing` does that, and `checkpoint` is the file
//! that says how far it has come.

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

use fetchwell_engine::pipeline::{self, Door, Ended, Plant};
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

/// For each request to the archive so many blocks may wait for one before them.
const AHEAD_BLOCKS_PER_REQUEST: usize = 4;
/// So many bytes of pages may wait for their turn or for the queue.
const MAX_BYTES_AHEAD: u64 = 32 << 20;

pub struct BatchRules {
    /// The file with the lines of `cluster.idx`.
    pub cluster_idx: PathBuf,
    /// The crawl that it is of.
    pub crawl: String,
    /// Which pages are wanted, and whether they are sorted.
    pub batching: Batching,
    pub batch_size: usize,
    /// So many pages are sorted at a time.
    pub by_file_pages: usize,
    /// Pages in all batches, over all runs; none: all that are wanted.
    pub limit: Option<u64>,
    /// Requests to the archive at once.
    pub max_concurrency: usize,
}

pub struct Batcher<'a> {
    pub rules: BatchRules,
    /// The archive that has the index.
    pub archive: &'a Archive,
    /// Where batches go. None: a dry run, which only counts.
    pub target: Option<BatchTarget>,
    /// Who hears how far it has come.
    pub progress: Arc<BatchProgress>,
}

impl Batcher<'_> {
    /// Goes on where a checkpoint stopped, until all is published or `stop`. Gives how it ended, and the checkpoint
    /// that it ended with.
    pub async fn run(
        self,
        earlier: Checkpoint,
        plant: Plant,
        stop: &CancellationToken,
    ) -> Result<(Ended, Checkpoint), CommonCrawlError> {
        let BatchRules { cluster_idx, batching, .. } = self.rules;
        let max_blocks = AHEAD_BLOCKS_PER_REQUEST * self.rules.max_concurrency;
        let ahead = Arc::new(Ahead::new(max_blocks as u64, MAX_BYTES_AHEAD));
        let indexes = self.archive.indexes(&self.rules.crawl)?;
        let from = earlier.position.index_offset;
        let clock = plant.clock.clone();
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
            instance: source.instance(),
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
            obituary: Arc::new(block::obituary),
        };
        let ended = pipeline::run(door, plant, run_ends).await?;
        let checkpoint = publisher.close(ended == Ended::Exhausted).await?;
        Ok((ended, checkpoint))
    }
}
