//! The door at work: one flow, its metrics, its segments, one end.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::pipeline::{self, Door, Ended};
use fetchwell_engine::ports::batches::BatchQueue;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::SinkThenSettle;
use fetchwell_engine::ports::source::Source;
use fetchwell_service::metrics_server::{self, at_once};
use fetchwell_settings::{Settings, Values};
use fetchwell_telemetry::metrics::DoorName;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::at_archive::AtArchive;
use super::base_check::BaseCheck;
use super::begun::Begun;
use super::counted::Counted;
use super::filter::DocumentFilter;
use super::in_hand::InHand;
use super::metrics::WorkMetrics;
use super::output::{Output, SegmentRule};
use super::plan::{WorkRules, plan};
use crate::commands::commoncrawl::archive::OpenArchive;
use crate::commands::commoncrawl::args::WorkArgs;
use crate::console::exit::Exit;
use crate::console::output::Running;
use crate::console::signals::stop_on_signal;
use crate::doors::commoncrawl::read_time::ReadTime;
use crate::wiring::{connection_rules, listen_for_metrics, open_batches};

/// Batches whose documents are written together: what they say is in memory until then.
const MAX_FINISH_BATCH: usize = 16;
/// How often it is looked whether a segment is old.
const AGE_LOOK: Duration = Duration::from_secs(1);
/// A broker that does not hear that we leave notices it by itself.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// Works until it is told to stop, or until the archive says no.
pub(crate) fn serve(settings: &Settings, args: WorkArgs) -> Running<'_> {
    Box::pin(serve_inner(settings, args))
}

async fn serve_inner(settings: &Settings, args: WorkArgs) -> Result<Exit, Exit> {
    let values = &settings.values;
    let listener = listen_for_metrics(values.commoncrawl_work_metrics_listen).await?;
    let stop = stop_on_signal();
    let archive = OpenArchive::open(settings).await?;
    let metrics = Arc::new(WorkMetrics::default());
    let clock = archive.parts.clock.clone();
    let folder = &values.commoncrawl_output;
    let output = Output::open(folder, segment_rule(values), clock.clone(), metrics.clone()).await?;
    let queue = open_batches(settings, &clock).await?;
    if let Some(listener) = &listener {
        let address = listener.local_addr()?;
        archive.parts.own_listeners.register(address);
        info!("metrics are at http://{address}/metrics");
    }
    info!("writing documents of {} to {}", values.commoncrawl_base, folder.display());
    let output = Arc::new(output);
    let told = metrics.clone();
    let measures = archive.parts.measures.clone();
    let work = Work { settings, archive: &archive, output: output.clone(), metrics };
    let (ended, (), ()) = tokio::join!(
        work.flow(&*queue, filter(args), &stop),
        metrics_server::serve(
            listener,
            connection_rules(values),
            at_once(move || told.render() + &measures.render()),
            None,
            stop.clone()
        ),
        seal_when_old(&output, &stop),
    );
    // Also after a fault: what is written need not wait for the next run.
    output.close().await?;
    info!("{} documents written", work.metrics.documents());
    match ended? {
        Ended::Halted(reason) => Ok(archive.exit_when_halted(&reason)),
        Ended::Stopped | Ended::Exhausted => Ok(Exit::Ok),
    }
}

struct Work<'a> {
    settings: &'a Settings,
    archive: &'a OpenArchive,
    output: Arc<Output>,
    metrics: Arc<WorkMetrics>,
}

impl Work<'_> {
    /// The flow. Its end, for whatever reason, is the end of all.
    async fn flow(
        &self,
        queue: &dyn BatchQueue,
        filter: DocumentFilter,
        stop: &CancellationToken,
    ) -> Result<Ended, StoreError> {
        // The metrics server and the sealing of segments end with the flow, also if it cannot begin.
        let end = stop.clone().drop_guard();
        let values = &self.settings.values;
        let worker = self.join(queue)?;
        let rules = Arc::new(self.rules(filter));
        let at_archive =
            AtArchive { inner: worker.clone(), site: self.archive.archive.root.site() };
        let written = SinkThenSettle { sink: self.output.clone(), source: worker.clone() };
        let door = Door {
            source: Arc::new(at_archive),
            planner: Arc::new(move |lease| plan(&rules, lease)),
            finish: Arc::new(Counted { inner: written, metrics: self.metrics.clone() }),
            obituary: Arc::new(|_, _| Vec::new()),
        };
        let mut plant = self.archive.plant(self.settings, None, DoorName::Work);
        plant.limits.window = values.commoncrawl_prefetch.into();
        plant.limits.max_per_site = plant.limits.window;
        plant.limits.max_finish_batch = MAX_FINISH_BATCH;
        let ended = pipeline::run(door, plant, stop.clone()).await;
        drop(end);
        leave(&*worker).await;
        ended
    }

    /// Joins as a worker. The folder counts who died over a batch: a broker does not, and the store does not
    /// know what else was under way.
    fn join(&self, queue: &dyn BatchQueue) -> Result<Arc<Begun>, StoreError> {
        let values = &self.settings.values;
        let worker = queue.worker(values.commoncrawl_prefetch);
        Ok(Arc::new(Begun::open(&values.commoncrawl_output, worker.clone(), worker)?))
    }

    fn rules(&self, filter: DocumentFilter) -> WorkRules {
        let max_record = self.settings.values.commoncrawl_max_record;
        let max_record_bytes = usize::try_from(max_record).unwrap_or(usize::MAX);
        WorkRules {
            root: self.archive.archive.root.clone(),
            max_gap_bytes: self.settings.values.commoncrawl_join_gap,
            max_range_bytes: self.settings.values.commoncrawl_max_range,
            max_record_bytes,
            reading: ReadTime(self.settings.values.extract_max_time),
            filter,
            in_hand: InHand::for_records_of(max_record_bytes),
            large: Arc::default(),
            base: Arc::new(BaseCheck::of(&self.settings.values.commoncrawl_base)),
        }
    }
}

fn segment_rule(values: &Values) -> SegmentRule {
    SegmentRule {
        format: values.commoncrawl_format,
        max_bytes: values.commoncrawl_segment_size,
        max_age: values.commoncrawl_segment_age,
    }
}

fn filter(args: WorkArgs) -> DocumentFilter {
    let WorkArgs { min_length, max_length, lang, .. } = args;
    DocumentFilter { min_chars: min_length, max_chars: max_length, languages: lang }
}

/// Hands back what is held.
async fn leave(source: &dyn Source) {
    match timeout(LEAVE_WITHIN, source.leave()).await {
        Ok(Ok(())) => {}
        Ok(Err(fault)) => {
            warn!("could not hand back batches; other workers get them later: {fault}");
        }
        Err(_) => warn!("could not hand back batches; other workers get them later: no answer"),
    }
}

/// Documents must not wait long for others to come.
async fn seal_when_old(output: &Output, stop: &CancellationToken) {
    while timeout(AGE_LOOK, stop.cancelled()).await.is_err() {
        match output.seal_when_old().await {
            Ok(()) => {}
            Err(fault) if fault.is_transient() => {
                warn!("could not complete a file of documents: {fault}");
            }
            // The end of the run closes the folder, and says what is wrong with it.
            Err(_) => stop.cancel(),
        }
    }
}
