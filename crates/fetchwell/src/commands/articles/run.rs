//! `fetchwell articles run`.

use std::sync::Arc;

use fetchwell_doors::articles::{self, ArticlePorts, ArticleRun};
use fetchwell_engine::ports::queue::Queue;
use fetchwell_settings::Settings;
use fetchwell_telemetry::metrics::DoorName;
use tokio_util::sync::CancellationToken;

use super::args;
use crate::console::exit::Exit;
use crate::console::signals::stop_on_signal;
use crate::wiring::{MetricsTarget, Parts, gate_rules, open_articles, open_claims};

pub(super) async fn once(settings: &Settings) -> Result<Exit, Exit> {
    let stop = stop_on_signal();
    let ports = open_articles(settings).await?;
    run(settings, &ports, &MetricsTarget::default(), &stop).await.map(|()| Exit::Ok)
}

/// Fetches the new links. If there are none, nothing is opened and nothing is logged.
pub(super) async fn run(
    settings: &Settings,
    ports: &ArticlePorts,
    told: &MetricsTarget,
    stop: &CancellationToken,
) -> Result<(), Exit> {
    let Some(mut run) = ArticleRun::begin(ports).await? else { return Ok(()) };
    let claims: Arc<dyn Queue> = open_claims(settings, true).await?;
    run.claim(&*claims).await?;
    let parts = Parts::open_for_cycle(settings, told).await?;
    let gate = parts.gate_by(articles::gate_rules(gate_rules(settings, None)));
    let runtime = parts.runtime(settings, gate, DoorName::Articles, Arc::new(|_| {}));
    Ok(run.fetch(&*claims, args::rules(&settings.values), runtime, stop).await?)
}
