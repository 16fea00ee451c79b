//! `fetch` for those who look on: the demo.

use std::path::Path;
use std::sync::Arc;

use fetchwell_doors::fetch::OutputFormat;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::pipeline::Watcher;
use fetchwell_engine::ports::queue::{Ledger, LedgerMismatch, Queue};
use fetchwell_engine::web::Web;
use fetchwell_settings::Settings;
use fetchwell_stores::sqlite::SqliteQueue;
use fetchwell_telemetry::metrics::Measures;
use tokio_util::sync::CancellationToken;

use super::progress::Progress;
use super::{Run, output};
use crate::console::exit::Exit;
use crate::wiring::open_queue_db;

/// Makes of the web one that is looked at.
pub(crate) type Between = dyn Fn(Arc<dyn Web>) -> Arc<dyn Web> + Send + Sync;

/// Who looks on while URLs are fetched.
pub(crate) struct Onlooker {
    /// Hears the news.
    pub(crate) watcher: Watcher,
    /// Stands between the flow and the web.
    pub(crate) web: Box<Between>,
    /// Counts what came out.
    pub(crate) progress: Arc<Progress>,
    /// Counts what is done.
    pub(crate) measures: Arc<Measures>,
}

impl Default for Onlooker {
    fn default() -> Onlooker {
        let progress = Arc::default();
        let measures = Arc::default();
        Onlooker { watcher: Arc::new(|_| {}), web: Box::new(|web| web), progress, measures }
    }
}

/// Fetches URLs to a new file, as rows, while somebody looks on.
pub(crate) async fn run_to_file(
    settings: &Settings,
    urls: Vec<String>,
    path: &Path,
    stop: CancellationToken,
    onlooker: Onlooker,
) -> Result<(), Exit> {
    let signal = CancellationToken::new(); // The caller handles signals, and cancels `stop`.
    let format = OutputFormat::Json;
    let run = Run { settings, format, several: true, quiet: 1, signal, stop, onlooker };
    run.to_file(path, urls, false).await?;
    Ok(())
}

/// How many URLs of an output stand where, counted and compared with the counters.
pub(crate) async fn audit(
    settings: &Settings,
    path: &Path,
) -> Result<Result<Ledger, LedgerMismatch>, Exit> {
    let db = open_queue_db(settings).await?;
    let name = output::queue_name(path)?;
    let lease_ttl = settings.values.lease_ttl;
    let queue = SqliteQueue::open(db, &name, Clock::system(), lease_ttl, true).await?;
    Ok(queue.audit().await?)
}
