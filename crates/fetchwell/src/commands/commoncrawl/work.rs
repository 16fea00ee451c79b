//! `fetchwell commoncrawl work`: turns batches of captured pages into text documents.

use fetchwell_commoncrawl::ReadTime;
use fetchwell_commoncrawl::archive::JoinRule;
use fetchwell_commoncrawl::work::{
    DocumentFilter, OutputTarget, SegmentFormat, SegmentRule, WorkRules, Worker,
};
use fetchwell_engine::pipeline::Ended;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_policy::units::quantity;
use fetchwell_service::metrics_server::{self, at_once};
use fetchwell_settings::{DocumentFormat, Settings, Values};
use fetchwell_telemetry::metrics::DoorName;
use tracing::info;

use super::archive::OpenArchive;
use super::args::WorkArgs;
use crate::console::exit::Exit;
use crate::console::output::Running;
use crate::console::signals::stop_on_signal;
use crate::wiring::{connection_rules, listen_for_metrics, open_batches};

/// Works until it is stopped, or until the archive refuses access.
pub(super) fn run(settings: &Settings, args: WorkArgs) -> Running<'_> {
    Box::pin(run_inner(settings, args))
}

async fn run_inner(settings: &Settings, args: WorkArgs) -> Result<Exit, Exit> {
    let values = &settings.values;
    let listener = listen_for_metrics(values.commoncrawl_work_metrics_listen).await?;
    let stop = stop_on_signal();
    let archive = OpenArchive::open(settings).await?;
    let clock = archive.parts.clock.clone();
    let worker = Worker::open(rules(values, args)?, clock.clone()).await?;
    let queue = open_batches(settings, &clock).await?;
    if let Some(listener) = &listener {
        let address = listener.local_addr()?;
        archive.parts.own_listeners.register(address);
        info!("metrics are at http://{address}/metrics");
    }
    let folder = values.commoncrawl_output.display();
    info!("writing documents of {} to {folder}", values.commoncrawl_base);
    let metrics = worker.metrics().clone();
    let measures = archive.parts.measures.clone();
    let plant = archive.plant(settings, None, DoorName::Work);
    let (ended, ()) = tokio::join!(
        worker.run(&archive.archive, &*queue, plant, &stop),
        metrics_server::serve(
            listener,
            connection_rules(values),
            at_once(move || metrics.render() + &measures.render()),
            None,
            stop.clone()
        ),
    );
    // Even after an error: the documents written so far need not wait for the next run.
    worker.close().await?;
    let written = worker.metrics().documents();
    info!("{} written", quantity(written, "document", "documents"));
    match ended? {
        Ended::Halted(reason) => Ok(archive.exit_when_halted(&reason)),
        Ended::Stopped | Ended::Exhausted => Ok(Exit::Ok),
    }
}

fn rules(values: &Values, args: WorkArgs) -> Result<WorkRules, StoreError> {
    let WorkArgs { min_length, max_length, lang, .. } = args;
    Ok(WorkRules {
        base: values.commoncrawl_base.to_string(),
        output: OutputTarget::create(&values.commoncrawl_output)?,
        segments: segment_rule(values),
        prefetch: values.commoncrawl_prefetch,
        join: JoinRule {
            max_gap_bytes: values.commoncrawl_join_gap,
            max_range_bytes: values.commoncrawl_max_range,
        },
        max_record_bytes: usize::try_from(values.commoncrawl_max_record).unwrap_or(usize::MAX),
        reading: ReadTime(values.extract_max_time),
        filter: DocumentFilter { min_chars: min_length, max_chars: max_length, languages: lang },
    })
}

fn segment_rule(values: &Values) -> SegmentRule {
    SegmentRule {
        format: match values.commoncrawl_format {
            DocumentFormat::JsonLines => SegmentFormat::JsonLines,
            DocumentFormat::Parquet => SegmentFormat::Parquet,
        },
        max_bytes: values.commoncrawl_segment_size,
        max_age: values.commoncrawl_segment_age,
    }
}
