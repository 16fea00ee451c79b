//! `fetchwell commoncrawl work`: turns batches of captured pages into text documents.

use fetchwell_commoncrawl::work::Worker;
use fetchwell_engine::pipeline::RunEnd;
use fetchwell_policy::units::quantity;
use fetchwell_settings::Settings;
use fetchwell_telemetry::metrics::DoorName;
use tracing::info;

use super::archive::OpenArchive;
use super::args::WorkArgs;
use crate::console::exit::Exit;
use crate::console::output::Running;
use crate::console::signals::stop_on_signal;
use crate::wiring::{listen_for_metrics, open_batches, with_metrics};

/// Works until it is stopped, or until the archive refuses access.
pub(super) fn run(settings: &Settings, args: WorkArgs) -> Running<'_> {
    Box::pin(async move {
        let values = &settings.values;
        let listener = listen_for_metrics(values.commoncrawl_work_metrics_listen).await?;
        let stop = stop_on_signal();
        let archive = OpenArchive::open(settings).await?;
        let clock = archive.parts.clock.clone();
        let worker = Worker::open(args.rules(values)?, clock.clone()).await?;
        let queue = open_batches(settings, &clock).await?;
        if let Some(listener) = &listener {
            let address = listener.local_addr()?;
            archive.parts.own_listeners.register(address);
            info!("metrics are at http://{address}/metrics");
        }
        let folder = values.commoncrawl_output.display();
        info!("writing documents of {} to {folder}", values.commoncrawl_base);
        let metrics = worker.metrics().clone();
        let process_metrics = archive.parts.process_metrics.clone();
        let runtime = archive.runtime(settings, None, DoorName::Work);
        let metrics = move || metrics.render() + &process_metrics.render();
        let working = worker.run(&archive.archive, &*queue, runtime, &stop);
        let ended = with_metrics(listener, values, metrics, stop.clone(), working).await;
        // Even after an error: the documents written so far need not wait for the next run.
        worker.close().await?;
        let written = worker.metrics().documents();
        info!("{} written", quantity(written, "document", "documents"));
        match ended? {
            RunEnd::Halted(reason) => Ok(archive.exit_when_halted(&reason)),
            RunEnd::Stopped | RunEnd::Exhausted => Ok(Exit::Ok),
        }
    })
}
