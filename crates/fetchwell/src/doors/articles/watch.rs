//! Cycles: feeds are read, then what is new is fetched, and then there is a pause.

use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::place::Place;
use super::run;
use crate::cli::Exit;
use crate::doors::feeds;
use crate::settings::Settings;
use crate::signals::{sleep_unless_stopped, stop_on_signal};

/// `fetchwell articles watch`.
pub(super) async fn watch(settings: &Settings) -> Result<Exit, Exit> {
    let stop = stop_on_signal();
    let place = Place::open(settings).await?;
    while !stop.is_cancelled() {
        match cycle(settings, &place, &stop).await {
            Ok(()) => {}
            // A server that is gone comes back, and nothing is lost meanwhile.
            Err(Exit::Unreachable(fault)) => warn!("this cycle ends early: {fault}"),
            Err(exit) => return Err(exit),
        }
        sleep_unless_stopped(settings.values.articles_watch_interval, &stop).await;
    }
    Ok(Exit::Ok)
}

async fn cycle(settings: &Settings, place: &Place, stop: &CancellationToken) -> Result<(), Exit> {
    feeds::ingest(settings, false, stop).await?;
    if stop.is_cancelled() {
        return Ok(());
    }
    run::run(settings, place, stop).await
}
