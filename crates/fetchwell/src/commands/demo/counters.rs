//! Counters of the flows while they run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use fetchwell_engine::pipeline::{Event, EventSink};
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::inbox::FetchResult;
use fetchwell_engine::web::{Exchange, Phases, Request, SendPermit, Web};
use fetchwell_service::api::ApiMetrics;
use fetchwell_telemetry::metrics::{DoorName, Metrics};

use crate::commands::fetch::{FetchProgress, Onlooker};

/// The counters of both flows. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Counters {
    pub(super) done: Arc<AtomicU64>,
    pub(super) skipped: Arc<AtomicU64>,
    pub(super) under_way: Arc<AtomicU64>,
    pub(super) process_metrics: Arc<Metrics>,
    /// The results of messages.
    pub(super) metrics: Arc<ApiMetrics>,
    progress: Arc<FetchProgress>,
}

impl Counters {
    /// An onlooker for the flow of URLs.
    pub(super) fn onlooker(&self) -> Onlooker {
        let counters = self.clone();
        Onlooker {
            event_sink: self.event_sink(DoorName::Fetch, DoorName::Serve),
            web: Box::new(move |web| counters.gauged(web)),
            progress: self.progress.clone(),
            process_metrics: self.process_metrics.clone(),
        }
    }

    /// An event handler for the flow of messages.
    pub(super) fn event_sink_of_messages(&self) -> EventSink {
        self.event_sink(DoorName::Serve, DoorName::Fetch)
    }

    /// A wrapper that counts the requests in flight.
    pub(super) fn gauged(&self, web: Arc<dyn Web>) -> Arc<dyn Web> {
        Arc::new(Gauged { web, under_way: self.under_way.clone() })
    }

    /// The number of failed URLs so far, of both flows.
    pub(super) fn failed(&self) -> u64 {
        let results = self.metrics.results();
        let no_failures = [FetchResult::SUCCESS, FetchResult::REFUSED_BY_ROBOTS];
        let failed = results.iter().filter(|(status, _)| !no_failures.contains(&status.as_str()));
        self.progress.failed() + failed.map(|(_, count)| count).sum::<u64>()
    }

    fn event_sink(&self, door: DoorName, beside: DoorName) -> EventSink {
        let counters = self.clone();
        Arc::new(move |event| {
            counters.count(&event);
            counters.process_metrics.share_breakers(door, beside, &event);
        })
    }

    fn count(&self, event: &Event) {
        let Event::Settled(settled) = event else { return };
        match settled.settlement {
            Settlement::Done | Settlement::Dead { .. } => {
                self.done.fetch_add(1, Ordering::Relaxed);
            }
            Settlement::Skipped => {
                self.skipped.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

struct Gauged {
    web: Arc<dyn Web>,
    under_way: Arc<AtomicU64>,
}

#[async_trait]
impl Web for Gauged {
    async fn exchange(
        &self,
        request: &Request,
        leave: &mut dyn SendPermit,
        phases: &mut Phases,
    ) -> Exchange {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let _landed = Landed(&self.under_way);
        self.web.exchange(request, leave, phases).await
    }
}

/// Decrements the counter on drop, so that an aborted request counts, too.
struct Landed<'a>(&'a AtomicU64);

impl Drop for Landed<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
