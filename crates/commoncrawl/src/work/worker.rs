//! Runs the worker: the flow, the sealing of segments, and an orderly exit.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::finish::{Observed, SinkThenSettle};
use fetchwell_engine::pipeline::{self, Door, RunEnd, Runtime};
use fetchwell_engine::ports::batches::BatchQueue;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::source::Source;
use fetchwell_engine::wrapped_source::WrappedSource;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::at_archive::AtArchive;
use super::base_check::BaseCheck;
use super::begun::Begun;
use super::filter::DocumentFilter;
use super::in_hand::InHand;
use super::metrics::WorkMetrics;
use super::output::{Output, OutputTarget, SegmentRule};
use super::plan::{BatchPlanRules, plan};
use super::report::report;
use crate::archive::{Archive, JoinRule};
use crate::read_time::ReadTime;

/// Batches whose documents are written together. Their texts stay in memory until then.
const MAX_FINISH_BATCH: usize = 16;
/// How often the age of the open segment is checked.
const AGE_LOOK: Duration = Duration::from_secs(1);
/// If leaving takes longer, the broker notices by itself that the worker is gone.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

pub struct WorkRules {
    /// The archive, as given by the user.
    pub base: String,
    pub output: OutputTarget,
    /// When a segment is sealed, and in which format.
    pub segments: SegmentRule,
    /// The maximum number of batches in progress.
    pub prefetch: u16,
    /// Which ranges of a file are joined.
    pub join: JoinRule,
    /// The maximum size of a record, inflated.
    pub max_record_bytes: usize,
    /// The time limit for reading a page.
    pub reading: ReadTime,
    pub filter: DocumentFilter,
}

/// A worker, with its output folder.
pub struct Worker {
    rules: WorkRules,
    output: Arc<Output>,
    metrics: Arc<WorkMetrics>,
}

impl Worker {
    /// Opens the output folder.
    pub async fn open(rules: WorkRules, clock: Clock) -> Result<Worker, StoreError> {
        let metrics = Arc::new(WorkMetrics::default());
        let target = rules.output.clone();
        let output = Output::open(target, rules.segments, clock, metrics.clone()).await?;
        Ok(Worker { rules, output: Arc::new(output), metrics })
    }

    pub fn metrics(&self) -> &Arc<WorkMetrics> {
        &self.metrics
    }

    /// Works until `stop`, or until the archive refuses access. When the flow ends for any reason, it cancels `stop`.
    pub async fn run(
        &self,
        archive: &Archive,
        queue: &dyn BatchQueue,
        runtime: Runtime,
        stop: &CancellationToken,
    ) -> Result<RunEnd, StoreError> {
        let (ended, ()) = tokio::join!(
            self.flow(archive, queue, runtime, stop),
            seal_when_old(&self.output, stop)
        );
        ended
    }

    /// Seals the open segment at the end of a run.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.output.close().await
    }

    /// Runs the pipeline, and cancels `stop` when it ends for any reason.
    async fn flow(
        &self,
        archive: &Archive,
        queue: &dyn BatchQueue,
        mut runtime: Runtime,
        stop: &CancellationToken,
    ) -> Result<RunEnd, StoreError> {
        // The metrics server and the sealing of segments end with the flow, even if it cannot start.
        let end = stop.clone().drop_guard();
        let worker = queue.worker(self.rules.prefetch);
        // The folder counts who died over a batch: a broker does not, and the store does not know what else was
        // under way.
        let begun = Arc::new(Begun::open(&self.rules.output.folder, worker.clone())?);
        let batches = Arc::new(WrappedSource::new(worker, begun.clone()));
        let at_archive = Arc::new(AtArchive(archive.root.site()));
        let source = Arc::new(WrappedSource::new(batches, at_archive));
        let rules = Arc::new(self.plan_rules(archive));
        let written = SinkThenSettle { sink: self.output.clone(), source: begun };
        let metrics = self.metrics.clone();
        let door = Door {
            source: source.clone(),
            planner: Arc::new(move |lease| plan(&rules, lease)),
            finish: Arc::new(Observed {
                inner: Arc::new(written),
                on_settled: Box::new(move |finished, settled| report(finished, settled, &metrics)),
            }),
            // A batch that is given up goes to the dead batches, with the reason.
            give_up_record: Arc::new(|_, _, _| Vec::new()),
        };
        runtime.limits.window = self.rules.prefetch.into();
        runtime.limits.max_per_site = runtime.limits.window;
        runtime.limits.max_finish_batch = MAX_FINISH_BATCH;
        let ended = pipeline::run(door, runtime, stop.clone()).await;
        drop(end);
        leave(&*source).await;
        ended
    }

    fn plan_rules(&self, archive: &Archive) -> BatchPlanRules {
        let rules = &self.rules;
        BatchPlanRules {
            root: archive.root.clone(),
            join: rules.join,
            max_record_bytes: rules.max_record_bytes,
            reading: rules.reading,
            filter: rules.filter.clone(),
            in_hand: InHand::for_records_of(rules.max_record_bytes),
            large: Arc::default(),
            base: Arc::new(BaseCheck::of(&rules.base)),
        }
    }
}

/// Hands back the leases.
async fn leave(source: &dyn Source) {
    match timeout(LEAVE_WITHIN, source.leave()).await {
        Ok(Ok(())) => {}
        Ok(Err(fault)) => {
            warn!("could not hand back batches; other workers get them later: {fault}");
        }
        Err(_) => warn!("could not hand back batches; other workers get them later: no answer"),
    }
}

/// Documents must not wait long for others to arrive.
async fn seal_when_old(output: &Output, stop: &CancellationToken) {
    while timeout(AGE_LOOK, stop.cancelled()).await.is_err() {
        match output.seal_when_old().await {
            Ok(()) => {}
            Err(fault) if fault.is_transient() => {
                warn!("could not close a file of documents: {fault}");
            }
            // The end of the run closes the folder and reports what is wrong with it.
            Err(_) => stop.cancel(),
        }
    }
}
