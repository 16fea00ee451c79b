//! Hooks into a run of `fetch`, for the demo.

use std::path::Path;
use std::sync::Arc;

use fetchwell_doors::fetch::OutputFormat;
use fetchwell_engine::pipeline::EventSink;
use fetchwell_engine::ports::queue::{Ledger, LedgerMismatch, Queue};
use fetchwell_engine::web::Web;
use fetchwell_settings::Settings;
use fetchwell_telemetry::metrics::Metrics;
use tokio_util::sync::CancellationToken;

use super::progress::FetchProgress;
use super::{Run, open_queue, queue_name};
use crate::console::exit::Exit;
use crate::wiring::open_queue_db;

/// Wraps the web.
pub(crate) type Between = dyn Fn(Arc<dyn Web>) -> Arc<dyn Web> + Send + Sync;

/// Observes a run.
pub(crate) struct Onlooker {
    /// Receives the events of the pipeline.
    pub(crate) event_sink: EventSink,
    /// Wraps the web that the flow uses.
    pub(crate) web: Box<Between>,
    /// Counts the results.
    pub(crate) progress: Arc<FetchProgress>,
    /// The metrics of the pipeline.
    pub(crate) process_metrics: Arc<Metrics>,
}

impl Default for Onlooker {
    fn default() -> Onlooker {
        let progress = Arc::default();
        let process_metrics = Arc::default();
        Onlooker {
            event_sink: Arc::new(|_| {}),
            web: Box::new(|web| web),
            progress,
            process_metrics,
        }
    }
}

/// Fetches URLs to a new file, as JSON rows, with an onlooker.
pub(crate) async fn run_to_file(
    settings: &Settings,
    urls: Vec<String>,
    path: &Path,
    stop: CancellationToken,
    onlooker: Onlooker,
) -> Result<(), Exit> {
    let signal = CancellationToken::new(); // The caller handles signals and cancels `stop`.
    let format = OutputFormat::Json;
    let run =
        Run { settings, format, links: false, several: true, quiet: 1, signal, stop, onlooker };
    run.to_file(path, urls, false).await.map(drop)
}

/// Counts the URLs of an output by state, and compares them with the ledger.
pub(crate) async fn audit(
    settings: &Settings,
    path: &Path,
) -> Result<Result<Ledger, LedgerMismatch>, Exit> {
    let db = open_queue_db(settings).await?;
    let name = queue_name("fetch", path)?;
    Ok(open_queue(settings, db, &name).await?.audit().await?)
}
