//! `fetchwell articles watch`: reads the feeds, fetches the new links, pauses, and starts over.

use std::sync::Arc;

use fetchwell_doors::articles::ArticlePorts;
use fetchwell_settings::Settings;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::run;
use crate::commands::feeds;
use crate::console::exit::Exit;
use crate::console::signals::{sleep_unless_stopped, stop_on_signal};
use crate::wiring::{MetricsTarget, listen_for_metrics, open_articles, with_metrics};

/// `fetchwell articles watch`.
pub(super) async fn watch(settings: &Settings) -> Result<Exit, Exit> {
    let listener = listen_for_metrics(settings.values.articles_metrics_listen).await?;
    let stop = stop_on_signal();
    let ports = open_articles(settings).await?;
    let at = listener.as_ref().map(TcpListener::local_addr).transpose()?;
    if let Some(address) = at {
        info!("metrics are at http://{address}/metrics");
    }
    let told = MetricsTarget { process_metrics: Arc::default(), at };
    let process_metrics = told.process_metrics.clone();
    let metrics = move || process_metrics.render();
    let watching = cycles(settings, &ports, &told, &stop);
    with_metrics(listener, &settings.values, metrics, stop.clone(), watching).await
}

async fn cycles(
    settings: &Settings,
    ports: &ArticlePorts,
    told: &MetricsTarget,
    stop: &CancellationToken,
) -> Result<Exit, Exit> {
    while !stop.is_cancelled() {
        match cycle(settings, ports, told, stop).await {
            Ok(()) => {}
            // The server may come back, and nothing is lost meanwhile.
            Err(Exit::Unreachable(fault)) => warn!("this cycle ends early: {fault}"),
            Err(exit) => return Err(exit),
        }
        sleep_unless_stopped(settings.values.articles_watch_interval, stop).await;
    }
    Ok(Exit::Ok)
}

async fn cycle(
    settings: &Settings,
    ports: &ArticlePorts,
    told: &MetricsTarget,
    stop: &CancellationToken,
) -> Result<(), Exit> {
    feeds::ingest(settings, false, told, stop).await?;
    if stop.is_cancelled() {
        return Ok(());
    }
    run::run(settings, ports, told, stop).await
}
