//! The metrics of the Page Fetcher. Names and meanings are those of its design.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::pipeline::{Event, EventSink};
use fetchwell_engine::ports::finish::{Finished, Settlement};
use fetchwell_engine::ports::url_queue::Backlog;
use fetchwell_policy::outcome::Mark;
use fetchwell_policy::url::Site;
use fetchwell_telemetry::metric_set;
use fetchwell_telemetry::registry::{Gauge, Histogram, IntCounter, OptionalGauge, Registry};
use parking_lot::Mutex;

/// Failing sites that are tracked; further ones are ignored.
const MAX_TROUBLED: usize = 10_000;
/// In seconds.
const DURATIONS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
/// In bytes.
const SIZES: &[f64] =
    &[1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 10485760.0, 67108864.0];

metric_set! {
    /// The metrics of this process.
    pub struct PageMetrics(registry) {
        registry: Registry = registry.clone(),
        fetched: IntCounter = registry.counter(
            "page_fetcher_pages_fetched_total", "Pages fetched, cached and announced."),
        failed: IntCounter = registry.counter(
            "page_fetcher_pages_failed_total", "URLs given up."),
        skipped_by_robots: IntCounter = registry.counter(
            "page_fetcher_pages_skipped_robots_total", "URLs that robots.txt disallows."),
        requeued: IntCounter = registry.counter(
            "page_fetcher_pages_requeued_total",
            "URLs requeued because their site failed."),
        retries: IntCounter = registry.counter(
            "page_fetcher_retries_total", "Attempts that will be retried."),
        dead_letters: IntCounter = registry.counter(
            "page_fetcher_dlq_enqueued_total", "URLs put on the dead-letter list."),
        circuits_opened: IntCounter = registry.counter(
            "page_fetcher_circuit_breaker_opened_total", "Circuits opened."),
        circuits_closed: IntCounter = registry.counter(
            "page_fetcher_circuit_breaker_closed_total", "Circuits closed again."),
        probes: [IntCounter; 2] = ["success", "failure"].map(|result| {
            registry.labelled("result", result).counter(
                "page_fetcher_circuit_breaker_probes_total",
                "Probes of sites whose circuit is open.")
        }),

        input_queue_size: OptionalGauge = registry.optional_gauge(
            "page_fetcher_input_queue_size",
            "URLs that wait: on the list, parked by site, delayed, or leased and not yet in \
             flight."),
        dlq_size: OptionalGauge = registry.optional_gauge(
            "page_fetcher_dlq_size", "URLs on the dead-letter list."),
        circuit_state: Gauge = registry.gauge(
            "page_fetcher_circuit_breaker_state",
            "The worst site's circuit: 0 closed, 1 open, 2 half open."),
        failures_in_a_row: Gauge = registry.gauge(
            "page_fetcher_circuit_breaker_consecutive_failures",
            "Consecutive failures of the worst site."),
        backoff_s: Gauge = registry.gauge(
            "page_fetcher_circuit_breaker_current_backoff_seconds",
            "How long the circuit of the worst site stays open."),

        fetch_duration_s: Histogram = registry.histogram(
            "page_fetcher_fetch_duration_seconds",
            "Duration of requests, from connecting to the last byte.", DURATIONS),
        content_bytes: Histogram = registry.histogram(
            "page_fetcher_content_size_bytes", "Size of cached pages.", SIZES),

        troubled: Mutex<HashMap<Site, Trouble>> = Mutex::default(),
    }
}

/// The state of a failing site, as far as this process knows.
#[derive(Clone, Copy, Default)]
struct Trouble {
    failures_in_a_row: u32,
    circuit: Circuit,
    backoff: Duration,
}

/// The discriminants are the values of the metric.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Circuit {
    #[default]
    Closed = 0,
    Open = 1,
    HalfOpen = 2,
}

impl PageMetrics {
    /// An event handler for a pipeline.
    pub fn event_sink(self: &Arc<PageMetrics>) -> EventSink {
        let metrics = self.clone();
        Arc::new(move |event| metrics.hear(&event))
    }

    /// Counts a settled lease. `content_bytes` is the size of its page, if that was stored.
    pub(super) fn settled<R>(&self, finished: &Finished<R>, content_bytes: Option<usize>) {
        let phases = &finished.phases;
        if phases.first_byte > Duration::ZERO {
            let took = phases.connect + phases.first_byte + phases.body;
            self.fetch_duration_s.observe(took.as_secs_f64());
        }
        if let Some(bytes) = content_bytes {
            self.content_bytes.observe(bytes as f64);
        }
        match &finished.settlement {
            Settlement::Done => self.fetched.inc(),
            Settlement::Skipped => self.skipped_by_robots.inc(),
            Settlement::Dead { .. } => {
                self.failed.inc();
                self.dead_letters.inc();
            }
            Settlement::Retry { history, .. } => {
                let blames_site = history.site_failures > finished.lease.history.site_failures;
                let counter = if blames_site { &self.requeued } else { &self.retries };
                counter.inc();
            }
            Settlement::HandBack { .. } => {}
        }
    }

    /// All metrics in Prometheus's text format. `backlog` is `None` if the queue cannot be asked now.
    pub fn render(&self, backlog: Option<Backlog>) -> String {
        let worst = self.worst();
        self.registry.render(|| {
            self.input_queue_size.set(backlog.map(|urls| urls.waiting as f64));
            self.dlq_size.set(backlog.map(|urls| urls.dead as f64));
            self.circuit_state.set(f64::from(worst.circuit as u8));
            self.failures_in_a_row.set(worst.failures_in_a_row.into());
            self.backoff_s.set(worst.backoff.as_secs_f64());
        })
    }

    /// The maximum of each value over all sites. A half-open circuit ranks below an open one.
    fn worst(&self) -> Trouble {
        let troubled = self.troubled.lock();
        let worst_circuit = |circuit: Circuit| (circuit == Circuit::Open, circuit);
        troubled.values().fold(Trouble::default(), |worst, site| Trouble {
            failures_in_a_row: worst.failures_in_a_row.max(site.failures_in_a_row),
            circuit: if worst_circuit(site.circuit) > worst_circuit(worst.circuit) {
                site.circuit
            } else {
                worst.circuit
            },
            backoff: worst.backoff.max(site.backoff),
        })
    }

    fn hear(&self, event: &Event) {
        let [probes_answered, probes_failed] = &self.probes;
        match event {
            Event::CircuitOpened { site, next_probe_in } => {
                self.circuits_opened.inc();
                self.trouble(site, |trouble| {
                    trouble.circuit = Circuit::Open;
                    trouble.backoff = *next_probe_in;
                });
            }
            Event::CircuitClosed(site) => {
                self.circuits_closed.inc();
                self.healthy(site);
            }
            Event::Probing(site) => self.trouble(site, |site| site.circuit = Circuit::HalfOpen),
            Event::Marked(site, Mark::Served) => self.healthy(site),
            Event::Marked(
                site,
                mark @ (Mark::Failed | Mark::RobotsFailed | Mark::ProbeFailed(_)),
            ) => {
                if matches!(mark, Mark::ProbeFailed(_)) {
                    probes_failed.inc();
                }
                self.trouble(site, |site| site.failures_in_a_row += 1);
            }
            Event::Marked(_, Mark::ProbeAnswered) => probes_answered.inc(),
            Event::Marked(..)
            | Event::RobotsUnreachable(_)
            | Event::Requested(_)
            | Event::Settled(_)
            | Event::Stale
            | Event::Rescued(_)
            | Event::RateBreach { .. }
            | Event::StoreFailed(_)
            | Event::Window(_) => {}
        }
    }

    fn trouble(&self, site: &Site, change: impl FnOnce(&mut Trouble)) {
        let mut troubled = self.troubled.lock();
        if troubled.len() < MAX_TROUBLED || troubled.contains_key(site) {
            change(troubled.entry(site.clone()).or_default());
        }
    }

    fn healthy(&self, site: &Site) {
        self.troubled.lock().remove(site);
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::ports::queue::Ledger;

    use super::*;

    fn value(metrics: &PageMetrics, name: &str) -> f64 {
        let ledger = Ledger::default();
        let text = metrics.render(Some(Backlog { ledger, on_list: None, waiting: 3, dead: 2 }));
        let line =
            text.lines().find_map(|line| line.strip_prefix(&format!("page_fetcher_{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().unwrap()
    }

    #[test]
    fn the_worst_site_is_told() {
        let metrics = PageMetrics::default();
        let a = Site::parse("a.test").unwrap();
        let b = Site::parse("b.test").unwrap();
        let expect = |state: f64, failures: f64, backoff: f64| {
            assert_eq!(value(&metrics, "circuit_breaker_state"), state);
            assert_eq!(value(&metrics, "circuit_breaker_consecutive_failures"), failures);
            assert_eq!(value(&metrics, "circuit_breaker_current_backoff_seconds"), backoff);
        };
        expect(0.0, 0.0, 0.0);
        metrics.hear(&Event::Marked(a.clone(), Mark::Failed));
        metrics.hear(&Event::Marked(a.clone(), Mark::Failed));
        metrics.hear(&Event::Marked(b.clone(), Mark::Failed));
        expect(0.0, 2.0, 0.0);
        let next_probe_in = Duration::from_secs(30);
        metrics.hear(&Event::CircuitOpened { site: a.clone(), next_probe_in });
        expect(1.0, 2.0, 30.0);
        metrics.hear(&Event::Probing(a.clone()));
        expect(2.0, 2.0, 30.0);
        metrics.hear(&Event::CircuitOpened { site: b.clone(), next_probe_in });
        expect(1.0, 2.0, 30.0);
        metrics.hear(&Event::Marked(a.clone(), Mark::ProbeAnswered));
        metrics.hear(&Event::CircuitClosed(a));
        metrics.hear(&Event::CircuitClosed(b));
        expect(0.0, 0.0, 0.0);
        assert_eq!(value(&metrics, "circuit_breaker_opened_total"), 2.0);
        assert_eq!(value(&metrics, "circuit_breaker_closed_total"), 2.0);
        assert_eq!(value(&metrics, "circuit_breaker_probes_total{result=\"success\"}"), 1.0);
    }

    #[test]
    fn sizes_are_told_as_the_queue_knows_them() {
        let metrics = PageMetrics::default();
        assert_eq!((value(&metrics, "input_queue_size"), value(&metrics, "dlq_size")), (3.0, 2.0));
    }
}
