//! Runs the door: the flow, the sweeps, and an orderly exit.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::finish::{Observed, OnSettled};
use fetchwell_engine::pipeline::{self, Door, Runtime};
use fetchwell_engine::ports::dead_letters::SinkThenBury;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::event_log::EventLog;
use fetchwell_engine::ports::finish::{Finished, Settled, Settlement};
use fetchwell_engine::ports::page_cache::PageCache;
use fetchwell_engine::ports::source::Source;
use fetchwell_engine::ports::url_queue::{DeadLetterWorker, UrlQueue};
use fetchwell_engine::store_health::{StoreCall, StoreHealth};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::PagePorts;
use super::finish::{CacheThenEvent, Written};
use super::log_health::WatchedLog;
use super::metrics::PageMetrics;
use super::plan::{PageRules, give_up_record, plan};
use super::record::PageRecord;

/// The time reserved for handing back leases, even if the last requests used up the grace period.
const LEAVE_AT_LEAST: Duration = Duration::from_secs(2);
/// How often expired pages and events are deleted.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// How often Kafka is checked.
const LOG_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The rules of this door.
#[derive(Clone, Copy, Debug)]
pub struct PageDoorRules {
    pub page: PageRules,
    pub cache_ttl: Duration,
    /// How long events are kept in a log that deletes old ones.
    pub event_retention: Duration,
}

/// The door, with its metrics and health.
pub struct PageDoor {
    pub ports: PagePorts,
    pub metrics: Arc<PageMetrics>,
    /// The event log, with its health.
    pub log: Arc<WatchedLog>,
}

impl PageDoor {
    pub fn new(ports: PagePorts) -> PageDoor {
        let log = Arc::new(WatchedLog::new(ports.log.clone()));
        PageDoor { ports, metrics: Arc::default(), log }
    }

    /// Fetches until `stop`. When the flow ends for any reason, it cancels `stop`.
    pub async fn run(
        &self,
        rules: PageDoorRules,
        runtime: Runtime,
        health: &StoreHealth,
        stop: &CancellationToken,
    ) -> Result<(), StoreError> {
        let (ended, (), ()) = tokio::join!(
            self.flow(rules, runtime, stop),
            self.sweep(rules.event_retention, health, stop),
            self.check_log(stop),
        );
        ended
    }

    async fn flow(
        &self,
        rules: PageDoorRules,
        runtime: Runtime,
        stop: &CancellationToken,
    ) -> Result<(), StoreError> {
        let instance = self.ports.queue.dead_letter_worker();
        let metrics = self.metrics.clone();
        let grace = runtime.limits.shutdown_grace;
        let cache = self.ports.cache.clone();
        let clock = runtime.clock.clone();
        let on_settled: OnSettled<PageRecord> =
            Box::new(move |finished, settled| report(finished, settled, &metrics));
        let door = door(instance.clone(), cache, self.log.clone(), rules, clock, on_settled);
        let running = async {
            let ended = pipeline::run(door, runtime, stop.clone()).await;
            stop.cancel();
            ended
        };
        let (ended, stopped_at) = tokio::join!(running, moment_of(stop));
        let left = grace.saturating_sub(stopped_at.elapsed());
        leave(&*instance, &*self.ports.queue, left).await;
        ended.map(|_| ())
    }

    /// Checks the event log regularly: with an empty queue, no publish would show that it is down.
    async fn check_log(&self, stop: &CancellationToken) {
        while timeout(LOG_CHECK_INTERVAL, stop.cancelled()).await.is_err() {
            self.log.ask(self.ports.log.check()).await;
        }
    }

    /// Deletes expired pages and events regularly.
    async fn sweep(&self, keep_events: Duration, health: &StoreHealth, stop: &CancellationToken) {
        while timeout(SWEEP_INTERVAL, stop.cancelled()).await.is_err() {
            match self.sweep_once(keep_events).await {
                Ok(()) => {}
                Err(fault) if fault.is_transient() => {
                    warn!("could not delete old pages and events: {fault}");
                }
                Err(fault) => health.failed_once(StoreCall::Prune, &fault),
            }
        }
    }

    async fn sweep_once(&self, keep_events: Duration) -> Result<(), StoreError> {
        self.ports.cache.sweep().await?;
        self.ports.log.sweep(keep_events).await.map(|_| ())
    }
}

/// The door that turns each URL into a cached page and its event, or into a dead letter.
pub fn door(
    instance: Arc<dyn DeadLetterWorker>,
    cache: Arc<dyn PageCache>,
    log: Arc<dyn EventLog>,
    rules: PageDoorRules,
    clock: Clock,
    on_settled: OnSettled<PageRecord>,
) -> Door<PageRecord> {
    let details = PageRecord::dead_letter_json;
    let ends = Arc::new(SinkThenBury { sink: Written, instance: instance.clone(), details });
    Door {
        source: instance,
        planner: Arc::new(move |lease| plan(lease, rules.page)),
        finish: Arc::new(CacheThenEvent {
            cache,
            ttl: rules.cache_ttl,
            log,
            // After cache and log: what those refused is a dead letter by then.
            then: Observed { inner: ends, on_settled },
        }),
        give_up_record: Arc::new(move |lease, cause, reason| {
            vec![give_up_record(lease, cause, reason, clock.wall())]
        }),
    }
}

/// Counts a URL once it is settled. A page that was fetched has its event; of the others only the log tells at once.
fn report(finished: &Finished<PageRecord>, settled: Settled, metrics: &PageMetrics) {
    if settled == Settled::Stale {
        return;
    }
    let url = &finished.lease.job.url;
    match &finished.settlement {
        Settlement::Skipped => info!(url, reason = "robots.txt disallows it", "skipped"),
        Settlement::Dead { reason } => info!(url, reason, "a dead letter"),
        Settlement::Done | Settlement::Retry { .. } | Settlement::HandBack { .. } => {}
    }
    let content_bytes = finished.records.iter().find_map(PageRecord::content_bytes);
    metrics.settled(finished, content_bytes);
}

/// Returns the time at which `stop` was cancelled.
async fn moment_of(stop: &CancellationToken) -> Instant {
    stop.cancelled().await;
    Instant::now()
}

/// Hands back the leases. The last instance to leave also puts the whole backlog back on the list, including expired
/// leases of dead processes. That may take long; it can be interrupted at any point.
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
