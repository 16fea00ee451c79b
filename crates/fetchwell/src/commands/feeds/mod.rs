//! `fetchwell feeds`: reads feeds and stores their links by category.
//!
//! `subscriptions` collects the feeds. `commands` and `print` manage and show them, and `trial` reads one feed as a
//! test.

pub(crate) mod args;
mod commands;
mod print;
mod subscriptions;
mod trial;

use std::sync::Arc;

use fetchwell_doors::feeds::{self, FeedRound, Ingested};
use fetchwell_engine::pipeline::Runtime;
use fetchwell_settings::Settings;
use fetchwell_telemetry::metrics::DoorName;
use tokio_util::sync::CancellationToken;

use crate::commands::feeds::args::FeedsCommand;
use crate::console::exit::Exit;
use crate::console::output::Running;
use crate::console::signals::stop_on_signal;
use crate::wiring::{MetricsTarget, Parts, gate_rules, open_feeds};
use subscriptions::subscribed;

pub(crate) fn run(settings: &Settings, command: FeedsCommand, as_json: bool) -> Running<'_> {
    Box::pin(async move {
        match command {
            FeedsCommand::Add { urls, category, interval } => {
                commands::add(settings, &urls, &category, interval.as_deref(), as_json).await
            }
            FeedsCommand::Remove { url, category } => {
                commands::remove(settings, &url, category.as_deref(), as_json).await
            }
            FeedsCommand::List => commands::list(settings, as_json).await,
            FeedsCommand::Test { url } => trial::run(settings, &url, as_json).await,
            FeedsCommand::Ingest { all } => {
                let ingested =
                    ingest(settings, all, &MetricsTarget::default(), &stop_on_signal()).await?;
                crate::console::output::print(print::ingested(&ingested, as_json))
            }
            FeedsCommand::Import { file } => commands::import(settings, &file, as_json).await,
            FeedsCommand::Export => commands::export(settings).await,
        }
    })
}

/// Reads the feeds that are due, or with `all` every feed, once. Failures of single feeds are logged and counted; they
/// are not errors.
pub(crate) async fn ingest(
    settings: &Settings,
    all: bool,
    told: &MetricsTarget,
    stop: &CancellationToken,
) -> Result<Ingested, Exit> {
    let ports = open_feeds(settings).await?;
    let feeds = subscribed(settings, &ports).await?;
    let parts = Parts::open_for_cycle(settings, told).await?;
    let rules = args::rules(&settings.values);
    let round = FeedRound::begin(ports, parts.clock.clone(), rules, feeds, all).await?;
    if round.is_empty() {
        return Ok(round.ingested());
    }
    let runtime = runtime(settings, &parts, DoorName::Feeds);
    Ok(round.run(runtime, stop.clone()).await?)
}

fn runtime(settings: &Settings, parts: &Parts, door: DoorName) -> Runtime {
    let gate = parts.gate_by(feeds::gate_rules(gate_rules(settings, None)));
    parts.runtime(settings, gate, door, Arc::new(|_| {}))
}
