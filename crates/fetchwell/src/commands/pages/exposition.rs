//! Metrics, liveness and readiness of this process.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_doors::pages::{PageMetrics, WatchedLog};
use fetchwell_engine::ports::url_queue::{Backlog, UrlQueue};
use fetchwell_engine::store_health::{Failing, StoreCall, StoreHealth};
use fetchwell_service::metrics_server::{self, Readiness, Text};
use fetchwell_service::server::ConnectionRules;
use fetchwell_telemetry::metrics::{DoorName, Metrics};
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The queue is asked at most this often, however many scrapes there are.
const BACKLOG_CACHE: Duration = Duration::from_secs(1);

/// What the metrics server reports.
pub(super) struct Exposition {
    pub(super) queue: Arc<dyn UrlQueue>,
    pub(super) metrics: Arc<PageMetrics>,
    pub(super) process_metrics: Arc<Metrics>,
    pub(super) health: Arc<StoreHealth>,
    /// Events go to Kafka, which is not part of the store.
    pub(super) events_elsewhere: bool,
    pub(super) log: Arc<WatchedLog>,
    /// How long the event log may fail before the instance counts as not ready.
    pub(super) unready_after: Duration,
    pub(super) last: LastBacklog,
}

/// The last backlog and when it was read; `None` if the queue could not be read.
pub(super) type LastBacklog = Mutex<Option<(Instant, Option<Backlog>)>>;

impl Exposition {
    /// Serves until `stop`. Without a listener it returns at once.
    pub(super) async fn serve(
        self,
        listener: Option<TcpListener>,
        rules: ConnectionRules,
        stop: CancellationToken,
    ) {
        let told = Arc::new(self);
        let asked = told.clone();
        let text: Text = Arc::new(move || -> BoxFuture<'static, String> {
            let told = told.clone();
            Box::pin(async move { told.text().await })
        });
        let readiness: Readiness = Arc::new(move || -> BoxFuture<'static, Result<(), String>> {
            let asked = asked.clone();
            Box::pin(async move { asked.ready().await })
        });
        metrics_server::serve(listener, rules, text, Some(readiness), stop).await;
    }

    /// The failing store call that makes this instance not ready. While Kafka fails, every settlement fails, too: this
    /// counts only after `unready_after`.
    fn failing(&self) -> Option<Failing> {
        let log_fails = self.log.away_for(Duration::ZERO).is_some();
        let is_of_log =
            |call: StoreCall| self.events_elsewhere && log_fails && call == StoreCall::Finish;
        let counts = |call: StoreCall| call.stops_work() && !is_of_log(call);
        self.health.fatal().or_else(|| self.health.failing_anywhere(counts))
    }

    async fn text(&self) -> String {
        self.metrics.render(self.backlog().await) + &self.process_metrics.render()
    }

    /// `Err` says why this instance is not ready.
    async fn ready(&self) -> Result<(), String> {
        if self.backlog().await.is_none() {
            return Err("the queue cannot be reached".to_owned());
        }
        if let Some(Failing { call, fault, .. }) = self.failing() {
            return Err(format!("{}: {fault}", call.means()));
        }
        match self.log.away_for(self.unready_after) {
            None => Ok(()),
            Some(reason) => Err(format!("events cannot be published: {reason}")),
        }
    }

    /// The backlog of at most [`BACKLOG_CACHE`] ago; `None` if the queue could not be read.
    async fn backlog(&self) -> Option<Backlog> {
        let mut last = self.last.lock().await;
        if let Some((at, backlog)) = *last
            && at.elapsed() < BACKLOG_CACHE
        {
            return backlog;
        }
        let backlog = self.queue.backlog().await.ok();
        self.process_metrics.door(DoorName::Pages).note_ledger(backlog.map(|urls| urls.ledger));
        *last = Some((Instant::now(), backlog));
        backlog
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use fetchwell_engine::clock::Clock;
    use fetchwell_engine::ports::error::StoreError;
    use fetchwell_engine::ports::event_log::{EventLog, LogEvent, Published};
    use fetchwell_sqlite::db::Durability;
    use fetchwell_stores::sqlite::{self, SqliteQueue};
    use fetchwell_testkit::plain_http::ask;

    use super::*;

    /// A log that takes nothing.
    struct Away;

    #[async_trait]
    impl EventLog for Away {
        async fn publish(&self, _: &[LogEvent]) -> Result<Vec<Published>, StoreError> {
            Err(StoreError::transient("Kafka's topic webpage_log at k:9092"))
        }
    }

    #[tokio::test]
    async fn it_is_not_ready_while_nothing_can_be_stored_or_published() {
        let folder = tempfile::tempdir().unwrap();
        let db = sqlite::open(&folder.path().join("a.db"), Durability::Process).unwrap();
        let ttl = Duration::from_secs(20);
        let queue = SqliteQueue::open(db, "crawler_queue", Clock::system(), ttl, false).await;
        let log = Arc::new(WatchedLog::new(Arc::new(Away)));
        let health = Arc::<StoreHealth>::default();
        let told = Exposition {
            queue: Arc::new(queue.unwrap()),
            metrics: Arc::default(),
            process_metrics: Arc::default(),
            health: health.clone(),
            events_elsewhere: true,
            log: log.clone(),
            unready_after: Duration::ZERO,
            last: LastBacklog::default(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let rules = ConnectionRules { per_address: 64, trusted_proxies: Vec::new() };
        let stop = CancellationToken::new();
        let serving = tokio::spawn(told.serve(Some(listener), rules, stop.clone()));
        let ready = async || {
            let answer = ask(address, "", "GET /readyz", &[], "").await.unwrap();
            (answer.status, String::from_utf8(answer.body).unwrap())
        };
        assert_eq!(ready().await, (200, "ok\n".to_owned()));
        health.failed(StoreCall::Take, &StoreError::transient("the disk is full"));
        let (status, why) = ready().await;
        assert!(status == 503 && why.starts_with("no work can be taken: "), "{status} {why}");
        assert!(why.contains("the disk is full"), "{why}");
        health.worked(StoreCall::Take);
        assert_eq!(ready().await, (200, "ok\n".to_owned()));
        // The cache is full, and Kafka works.
        health.failed(StoreCall::Finish, &StoreError::transient("Redis at r:6379: OOM"));
        let (status, why) = ready().await;
        assert!(status == 503 && why.starts_with("results cannot be stored: "), "{status} {why}");
        health.worked(StoreCall::Finish);
        assert_eq!(ready().await, (200, "ok\n".to_owned()));
        let event = LogEvent { id: "1".to_owned(), key: [0; 32], value: "{}".to_owned() };
        log.publish(&[event]).await.unwrap_err();
        let (status, why) = ready().await;
        assert!(status == 503 && why.contains("webpage_log at k:9092"), "{status} {why}");
        health.failed(StoreCall::Note, &StoreError::incompatible("no such table: site"));
        let (status, why) = ready().await;
        assert!(status == 503 && why.contains("no such table: site"), "{status} {why}");
        stop.cancel();
        serving.await.unwrap();
    }
}
