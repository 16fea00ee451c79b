//! The metrics of one door, and how events change them.

use fetchwell_engine::pipeline::{Event, Purpose, Requested, SettledLease, Window};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::url::Site;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::circuits::Circuits;
use super::labels::{EndingLabel, FailureLabel, StatusClass, StoreTrouble};
use super::snapshot::{DoorSnapshot, HistogramSnapshot};
use crate::metric_set;
use crate::registry::{Counters, Gauge, GaugeVec, Histogram, IntCounter, OptionalGauge};

/// Bucket bounds for the duration of requests, in seconds.
const REQUEST_S: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
/// Bucket bounds for waiting times in seconds, up to a day.
const WAIT_S: &[f64] = &[
    0.001, 0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0, 21600.0, 86400.0,
];

metric_set! {
    /// The metrics of one door, in a registry that adds the label `door`.
    pub struct DoorMetrics(registry) {
        requests: Counters<(Purpose, StatusClass)> = registry.counters_by(
            "fetchwell_requests_total", "Finished requests, by purpose and status class."),
        failures: Counters<FailureLabel> = registry.counters_by(
            "fetchwell_request_failures_total", "Failed requests, by reason."),
        rate_limited: IntCounter = registry.counter(
            "fetchwell_rate_limited_total", "Responses with status 429."),
        body_bytes: IntCounter = registry.counter(
            "fetchwell_body_bytes_total", "Body bytes received, after decoding."),
        endings: Counters<EndingLabel> = registry.counters_by(
            "fetchwell_outcomes_total", "Leases that ended, by outcome."),

        request_s: Histogram = registry.histogram(
            "fetchwell_request_duration_seconds",
            "Time from connecting to the last byte.", REQUEST_S),
        first_byte_s: Histogram = registry.histogram(
            "fetchwell_first_byte_seconds",
            "Time from the head of the request to the head of the response.", REQUEST_S),
        politeness_wait_s: Histogram = registry.histogram(
            "fetchwell_politeness_wait_seconds",
            "Time that requests waited for politeness: robots.txt, and the next slot of their \
             site.", WAIT_S),
        worker_wait_s: Histogram = registry.histogram(
            "fetchwell_worker_wait_seconds",
            "Time that requests waited for a free slot in flight.", WAIT_S),
        job_s: Histogram = registry.histogram(
            "fetchwell_job_duration_seconds", "Time from acceptance to the end of a job.", WAIT_S),

        in_flight: Gauge = registry.gauge("fetchwell_in_flight", "Requests in flight."),
        leases_held: Gauge = registry.gauge(
            "fetchwell_leases_held", "Leases that this process holds."),
        sites_waiting: Gauge = registry.gauge(
            "fetchwell_sites_waiting",
            "Sites for which this process has waiting jobs or requests in flight."),
        sites_known: Gauge = registry.gauge(
            "fetchwell_sites_known", "Sites that this process has recently sent requests to."),
        oldest_waiting_s: Gauge = registry.gauge(
            "fetchwell_oldest_waiting_seconds",
            "Age of the oldest job that waits in the store, delayed or not, or is held by this \
             process."),

        breakers_open: Gauge = registry.gauge(
            "fetchwell_breakers_open", "Open breakers, as far as this process knows."),
        breaker_longest_open_s: Gauge = registry.gauge(
            "fetchwell_breaker_longest_open_seconds",
            "How long the breaker that opened first has been open."),
        breakers_opened: IntCounter = registry.counter(
            "fetchwell_breakers_opened_total", "Breakers that opened, or opened again."),
        breakers_closed: IntCounter = registry.counter(
            "fetchwell_breakers_closed_total", "Breakers that closed."),
        robots_unreachable: IntCounter = registry.counter(
            "fetchwell_robots_unreachable_total", "How often a robots.txt was unreachable."),
        rate_breaches: IntCounter = registry.counter(
            "fetchwell_rate_breaches_total",
            "Requests sent sooner than the pace of their site allows. Should stay 0."),

        rescues: IntCounter = registry.counter(
            "fetchwell_rescues_total", "Leases rescued from instances that died."),
        stale: IntCounter = registry.counter(
            "fetchwell_stale_settlements_total",
            "Results that came too late: another instance had the lease."),
        store_faults: Counters<StoreTrouble> = registry.counters_by(
            "fetchwell_store_faults_total", "Failed store calls, by reason."),
        ledger_jobs: GaugeVec = registry.gauges(
            "fetchwell_ledger_jobs",
            "Jobs in the store; accepted is the sum of all other states.", &["state"]),
        ledger_difference: OptionalGauge = registry.optional_gauge(
            "fetchwell_ledger_difference_jobs",
            "Accepted jobs minus those that are accounted for. Should stay 0."),

        circuits: Circuits = Circuits::default(),
        latest: Mutex<Latest> = Mutex::default(),
    }
}

/// Values that are replaced, not counted.
#[derive(Clone, Copy, Default)]
struct Latest {
    window: Window,
    ledger: Option<Ledger>,
}

impl DoorMetrics {
    /// Counts an event of the pipeline.
    pub fn hear(&self, event: &Event) {
        match event {
            Event::Requested(request) => self.requested(request),
            Event::Settled(settled) => self.settled(settled),
            Event::CircuitOpened { site, next_probe_in } => {
                self.breakers_opened.inc();
                self.circuits.opened(site, *next_probe_in, Instant::now());
            }
            Event::CircuitClosed(site) => {
                self.breakers_closed.inc();
                self.circuits.closed(site);
            }
            Event::RobotsUnreachable(_) => self.robots_unreachable.inc(),
            Event::RateBreach { .. } => self.rate_breaches.inc(),
            Event::Rescued(leases) => self.rescues.inc_by(*leases),
            Event::Stale => self.stale.inc(),
            Event::StoreFailed(fault) => self.store_faults.inc(StoreTrouble::of(fault)),
            Event::Window(window) => self.latest(|latest| latest.window = *window),
            Event::Probing(_) | Event::Marked(..) => {}
        }
    }

    /// Sets the ledger of the store; `None` if it is unknown.
    pub fn note_ledger(&self, ledger: Option<Ledger>) {
        self.latest(|latest| latest.ledger = ledger);
    }

    /// Whether this door knows that the breaker of a site is open.
    pub(super) fn knows_open_breaker(&self, site: &Site) -> bool {
        self.circuits.knows(site)
    }

    /// Stops tracking a breaker, because another door tracks it or has closed it.
    pub(super) fn forget_breaker(&self, site: &Site) {
        self.circuits.closed(site);
    }

    /// Updates the gauges.
    pub(super) fn refresh(&self) {
        let Latest { window, ledger } = self.latest(|latest| *latest);
        self.in_flight.set(window.in_flight as f64);
        self.leases_held.set(window.leases as f64);
        self.sites_waiting.set(window.sites as f64);
        self.sites_known.set(window.sites_known as f64);
        self.oldest_waiting_s.set(window.oldest.unwrap_or_default().as_secs_f64());
        let circuits = self.circuits.look(Instant::now());
        self.breakers_open.set(circuits.count as f64);
        self.breaker_longest_open_s.set(circuits.longest.as_secs_f64());
        self.ledger_jobs.reset();
        for (state, count) in ledger.iter().flat_map(Ledger::states) {
            self.ledger_jobs.with_label_values(&[state]).set(count as f64);
        }
        self.ledger_difference.set(ledger.map(|ledger| ledger.difference() as f64));
    }

    /// The current values, for the dashboard.
    pub(super) fn snapshot(&self) -> DoorSnapshot {
        let Latest { window, ledger } = self.latest(|latest| *latest);
        DoorSnapshot {
            requests: self.requests.counts(),
            failures: self.failures.counts(),
            endings: self.endings.counts(),
            store_faults: self.store_faults.counts(),
            request_s: HistogramSnapshot::of(&self.request_s, REQUEST_S),
            politeness_wait_s: HistogramSnapshot::of(&self.politeness_wait_s, WAIT_S),
            worker_wait_s: HistogramSnapshot::of(&self.worker_wait_s, WAIT_S),
            window,
            circuits: self.circuits.look(Instant::now()),
            rate_breaches: self.rate_breaches.get(),
            ledger,
        }
    }

    fn requested(&self, request: &Requested) {
        let Requested { purpose, happened, phases, answer, url, .. } = request;
        self.requests.inc((*purpose, StatusClass::of(happened)));
        // A 4xx for robots.txt is a valid answer: there is none.
        let is_an_answer = |failure: &FailureLabel| {
            *purpose == Purpose::Robots && *failure == FailureLabel::ClientError
        };
        if let Some(failure) = FailureLabel::of(happened).filter(|failure| !is_an_answer(failure)) {
            self.failures.inc(failure);
            if failure == FailureLabel::RateLimited {
                self.rate_limited.inc();
            }
        }
        if matches!(happened, FetchOutcome::Refused(_)) {
            return; // No request was sent.
        }
        let on_the_wire = phases.connect + phases.first_byte + phases.body;
        self.request_s.observe(on_the_wire.as_secs_f64());
        if let Some(answer) = answer {
            self.body_bytes.inc_by(answer.body_bytes as u64);
            self.first_byte_s.observe(phases.first_byte.as_secs_f64());
        }
        let politely = phases.robots + phases.slot.saturating_sub(phases.place);
        self.politeness_wait_s.observe(politely.as_secs_f64());
        self.worker_wait_s.observe(phases.place.as_secs_f64());
        if *purpose != Purpose::Probe
            && let Some(set_out) = Instant::now().checked_sub(on_the_wire)
        {
            self.circuits.asked(&url.site(), set_out);
        }
    }

    fn settled(&self, settled: &SettledLease) {
        let ending = EndingLabel::of(&settled.settlement);
        self.endings.inc(ending);
        if matches!(ending, EndingLabel::Done | EndingLabel::Skipped | EndingLabel::Dead) {
            self.job_s.observe(settled.age.as_secs_f64());
        }
    }

    fn latest<T>(&self, look: impl FnOnce(&mut Latest) -> T) -> T {
        look(&mut self.latest.lock())
    }
}
