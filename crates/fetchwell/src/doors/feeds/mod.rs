//! `fetchwell feeds`: what feeds list becomes links by category, which `articles` makes articles of.
//!
//! `subscribed` says which feeds there are, `plan` what is asked of one and what came back, `links` what its
//! links are, `memory` what is remembered of it and when it is due again. `round` is one pass over all that
//! are due, by the one flow, each of them `in_hand` until its last link is; `trial` is the same for one feed, of
//! which nothing is kept. `commands` and `print` are for people.

mod commands;
mod in_hand;
mod links;
mod memory;
mod plan;
mod print;
mod round;
mod subscribed;
mod trial;

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::gate::Gate;
use fetchwell_engine::pipeline;
use fetchwell_engine::ports::feeds::Feeds;
use fetchwell_engine::ports::links::CategoryLinks;
use fetchwell_settings::Settings;
use fetchwell_telemetry::metrics::DoorName;
use tokio_util::sync::CancellationToken;

use crate::commands::feeds::args::FeedsCommand;
use crate::console::exit::Exit;
use crate::console::output::Running;
use crate::console::signals::stop_on_signal;
use crate::wiring::{Parts, Told, gate_rules, open_feeds};
use round::Round;
use subscribed::Subscribed;

pub(crate) use round::Ingested;
pub(crate) use subscribed::DEFAULT_CATEGORY;

/// A site that stays down is waited for no longer: what is there is for a later reading. Sites that are slow,
/// or ask for a rest, are waited for until the deadline.
const DOWN_FOR_AT_MOST: Duration = Duration::from_secs(30);

/// What is read and written.
pub(crate) struct FeedPorts {
    pub(crate) feeds: Arc<dyn Feeds>,
    pub(crate) links: Arc<dyn CategoryLinks>,
}

/// Does what was typed.
pub(crate) fn run(settings: &Settings, command: FeedsCommand, as_json: bool) -> Running<'_> {
    Box::pin(run_inner(settings, command, as_json))
}

async fn run_inner(
    settings: &Settings,
    command: FeedsCommand,
    as_json: bool,
) -> Result<Exit, Exit> {
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
            let ingested = ingest(settings, all, &Told::default(), &stop_on_signal()).await?;
            crate::console::output::print(print::ingested(&ingested, as_json).as_bytes())
        }
        FeedsCommand::Import { file } => commands::import(settings, &file, as_json).await,
        FeedsCommand::Export => commands::export(settings).await,
    }
}

/// Reads the feeds that are due, or with `all` every one, once; and ends. What single feeds do is logged and
/// counted, and is no error.
pub(crate) async fn ingest(
    settings: &Settings,
    all: bool,
    told: &Told,
    stop: &CancellationToken,
) -> Result<Ingested, Exit> {
    let ports = open_feeds(settings).await?;
    let feeds = Subscribed::all(settings, &ports).await?;
    let parts = Parts::open_for_cycle(settings, told).await?;
    let wait = settings.values.feeds_max_wait;
    let clock = parts.clock.clone();
    let round = Arc::new(Round::new(ports, clock, wait, settings.values.http_max_redirects));
    round.claim(feeds, all).await?;
    if round.is_empty() {
        return Ok(round.ingested());
    }
    let plant = parts.plant(settings, gate(settings, &parts), DoorName::Feeds, Arc::new(|_| {}));
    let ended = tokio::select! {
        ended = pipeline::run(round.door(), plant, stop.clone()) => ended,
        fault = round.keep_claims() => Err(fault),
    };
    round.release().await?;
    ended?;
    Ok(round.ingested())
}

/// The gate of this door: a site that can't be asked for its robots.txt has failed, and is not waited for.
fn gate(settings: &Settings, parts: &Parts) -> Gate {
    let mut rules = gate_rules(settings, Some(DOWN_FOR_AT_MOST));
    rules.robots.pages_fail_with_it = true;
    Gate::new(parts.politeness.clone(), rules, parts.clock.clone())
}
