//! The door at work: one flow, its metrics, its sweeps, one end.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::pipeline::{self, Door};
use fetchwell_engine::ports::dead_letters::SinkThenBury;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::source::Source;
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_engine::store_health::{StoreCall, StoreHealth};
use fetchwell_policy::retry::{Backoff, RetryRule};
use fetchwell_policy::robots::WhenUnreachable;
use fetchwell_settings::{Settings, Values};
use fetchwell_telemetry::metrics::DoorName;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::counted::Counted;
use super::exposition::{Exposition, LastBacklog, Stores};
use super::finish::{CacheThenEvent, Written};
use super::log_health::WatchedLog;
use super::metrics::PageMetrics;
use super::plan::{PageRules, obituary, plan};
use super::record::PageRecord;
use super::{PagePorts, showing};
use crate::console::exit::Exit;
use crate::console::signals::stop_on_signal;
use crate::wiring::{Parts, connection_rules, listen_for_metrics, open_pages};

/// The design's own name.
const USER_AGENT: &str = "OttoBot/1.0";
/// What is left of the grace for leaving, however long the last requests took.
const LEAVE_AT_LEAST: Duration = Duration::from_secs(2);
/// What is over is taken out so often.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Kafka is asked so often whether it is there.
const LOG_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Fetches until it is told to stop.
pub(super) async fn serve(settings: &Settings) -> Result<Exit, Exit> {
    let settings = &with_own_defaults(settings);
    let values = &settings.values;
    let listener = listen_for_metrics(values.pages_metrics_listen).await?;
    let shown_at = showing::listen(values.pages_dashboard_listen).await?;
    let stop = stop_on_signal();
    let ports = open_pages(settings).await?;
    warn_of_half_a_place(settings);
    let parts = Parts::open(settings).await?;
    if let Some(listener) = &listener {
        let address = listener.local_addr()?;
        parts.own_listeners.register(address);
        info!("listening on http://{address}; metrics are at http://{address}/metrics");
    }
    info!("taking URLs from {} in {}", values.pages_input_queue, values.store);
    let metrics = Arc::new(PageMetrics::default());
    let log = Arc::new(WatchedLog::new(ports.log.clone()));
    let telling = async {
        if let Some(listener) = listener {
            let stores = Stores {
                health: parts.health.clone(),
                events_elsewhere: values.pages_kafka_bootstrap_servers.is_some(),
            };
            let told = Exposition {
                queue: ports.queue.clone(),
                metrics: metrics.clone(),
                measures: parts.measures.clone(),
                stores,
                log: log.clone(),
                unready_after: values.pages_unready_after,
                last: LastBacklog::default(),
            };
            told.serve(listener, connection_rules(values), stop.clone()).await;
        }
    };
    let shown = showing::Showing { settings, ports: &ports, parts: &parts };
    let (ended, (), (), (), shown) = tokio::join!(
        flow(settings, &ports, &parts, (&metrics, &log), &stop),
        telling,
        sweep(&ports, values.pages_event_retention, &parts.health, &stop),
        check_log(&ports, &log, &stop),
        shown.serve(shown_at, &stop),
    );
    ended?;
    shown?;
    Ok(Exit::Ok)
}

/// Half of the design's servers is seldom meant.
fn warn_of_half_a_place(settings: &Settings) {
    let values = &settings.values;
    let path = values.store.file().unwrap_or(&values.pages_embedded).display();
    match (values.store.file(), &values.pages_kafka_bootstrap_servers) {
        (None, None) => warn!(
            "no Kafka server is set, so events are stored in {path} on this machine; read them \
             with `fetchwell pages events`, or set pages.kafka_bootstrap_servers"
        ),
        (Some(_), Some(_)) => warn!(
            "no Redis server is set, so URLs and pages are stored in {path} on this machine; add \
             URLs with `fetchwell pages add`, or use --store redis://…"
        ),
        _ => {}
    }
}

/// The flow. Its end, for whatever reason, is the end of all.
async fn flow(
    settings: &Settings,
    ports: &PagePorts,
    parts: &Parts,
    (metrics, log): (&Arc<PageMetrics>, &Arc<WatchedLog>),
    stop: &CancellationToken,
) -> Result<(), StoreError> {
    let values = &settings.values;
    let instance = ports.queue.dead_letter_worker();
    let details = PageRecord::dead_letter_json;
    let ends = Arc::new(SinkThenBury { sink: Written, instance: instance.clone(), details });
    let clock = parts.clock.clone();
    let door = Door {
        source: instance.clone(),
        planner: planner(values),
        finish: Arc::new(CacheThenEvent {
            cache: ports.cache.clone(),
            ttl: values.pages_cache_ttl,
            log: log.clone(),
            then: Counted { inner: ends, metrics: metrics.clone() },
        }),
        obituary: Arc::new(move |lease, reason| vec![obituary(lease, reason, clock.wall())]),
    };
    let plant =
        parts.plant(settings, parts.gate(settings, None), DoorName::Pages, metrics.watcher());
    let running = async {
        let ended = pipeline::run(door, plant, stop.clone()).await;
        stop.cancel();
        ended
    };
    let (ended, stopped_at) = tokio::join!(running, moment_of(stop));
    leave(&*instance, &*ports.queue, values.shutdown_grace.saturating_sub(stopped_at.elapsed()))
        .await;
    ended.map(|_| ())
}

/// What this door takes where nobody says otherwise, as its design asks.
fn with_own_defaults(settings: &Settings) -> Settings {
    let mut own = settings.clone();
    own.values.user_agent.get_or_insert_with(|| USER_AGENT.to_owned());
    if settings.is_default("robots.unreachable") {
        own.values.robots_unreachable = WhenUnreachable::Allow;
    }
    own
}

fn planner(values: &Values) -> pipeline::Planner<PageRecord> {
    let base = values.pages_retry_backoff_base;
    let retry = RetryRule {
        server_error_attempts: values.pages_max_retries,
        soft_refusal_attempts: values.pages_max_retries,
        backoff: Backoff { base, ..RetryRule::PAGES.backoff },
        site_backoff: Backoff { base, ..RetryRule::PAGES.site_backoff },
        ..RetryRule::PAGES
    };
    let rules = PageRules { retry, max_redirects: values.http_max_redirects };
    Arc::new(move |lease| plan(lease, rules))
}

/// When the stop was asked for.
async fn moment_of(stop: &CancellationToken) -> Instant {
    stop.cancelled().await;
    Instant::now()
}

/// Hands back what is held. The last one to leave puts a whole backlog back on its list, and what dead processes held
/// as soon as their leases have ended: that may take long, and can be broken off at any point.
async fn leave(source: &dyn Source, queue: &dyn UrlQueue, within: Duration) {
    let leaving = async {
        source.leave().await?;
        queue.unpark(true).await
    };
    match timeout(within.max(LEAVE_AT_LEAST), leaving).await {
        Ok(Ok(_)) => {}
        Ok(Err(fault)) => {
            warn!(
                "could not hand back leases; other instances take over when the leases expire: \
                 {fault}"
            );
        }
        Err(_) => warn!(
            "some waiting URLs are not back on the list; the next instance finds them, or run \
             `fetchwell pages unpark`"
        ),
    }
}

/// Asks from time to time whether events could be published: a quiet queue would not tell.
async fn check_log(ports: &PagePorts, log: &WatchedLog, stop: &CancellationToken) {
    while timeout(LOG_CHECK_INTERVAL, stop.cancelled()).await.is_err() {
        log.ask(ports.log.check()).await;
    }
}

/// Takes out what was kept long enough, from time to time.
async fn sweep(
    ports: &PagePorts,
    keep_events: Duration,
    health: &StoreHealth,
    stop: &CancellationToken,
) {
    while timeout(SWEEP_INTERVAL, stop.cancelled()).await.is_err() {
        match sweep_once(ports, keep_events).await {
            Ok(()) => {}
            Err(fault) if fault.is_transient() => {
                warn!("could not delete old pages and events: {fault}");
            }
            Err(fault) => health.failed_once(StoreCall::Prune, &fault),
        }
    }
}

async fn sweep_once(ports: &PagePorts, keep_events: Duration) -> Result<(), StoreError> {
    ports.cache.sweep().await?;
    ports.log.sweep(keep_events).await.map(|_| ())
}
