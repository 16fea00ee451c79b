//! One door's counters, and what each piece of news does to them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fetchwell_engine::pipeline::{News, Purpose, Requested, SettledLease, Window};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_policy::outcome::Happened;
use fetchwell_policy::url::Site;
use tokio::time::Instant;

use super::circuits::Circuits;
use super::labels::{Ending, Failure, StatusClass, StoreTrouble};
use super::snapshot::DoorSnapshot;
use crate::prometheus::Histogram;

/// Seconds that a request may take.
const REQUEST_S: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
/// Seconds that something may wait: from no time at all to a day.
const WAIT_S: &[f64] = &[
    0.001, 0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0, 21600.0, 86400.0,
];

/// What is counted of one door.
pub struct DoorMeasures {
    counts: Mutex<Counts>,
    body_bytes: AtomicU64,
    request_s: Histogram,
    first_byte_s: Histogram,
    politeness_wait_s: Histogram,
    worker_wait_s: Histogram,
    job_s: Histogram,
    circuits: Circuits,
    circuits_opened: AtomicU64,
    circuits_closed: AtomicU64,
    robots_unreachable: AtomicU64,
    rate_breaches: AtomicU64,
    rescues: AtomicU64,
    stale: AtomicU64,
}

/// What is counted by words, and what is only ever replaced.
#[derive(Default)]
struct Counts {
    requests: BTreeMap<(Purpose, StatusClass), u64>,
    failures: BTreeMap<Failure, u64>,
    endings: BTreeMap<Ending, u64>,
    store_faults: BTreeMap<StoreTrouble, u64>,
    window: Window,
    ledger: Option<Ledger>,
}

impl Default for DoorMeasures {
    fn default() -> DoorMeasures {
        let zero = || AtomicU64::new(0);
        DoorMeasures {
            counts: Mutex::default(),
            body_bytes: zero(),
            request_s: Histogram::new(REQUEST_S),
            first_byte_s: Histogram::new(REQUEST_S),
            politeness_wait_s: Histogram::new(WAIT_S),
            worker_wait_s: Histogram::new(WAIT_S),
            job_s: Histogram::new(WAIT_S),
            circuits: Circuits::default(),
            circuits_opened: zero(),
            circuits_closed: zero(),
            robots_unreachable: zero(),
            rate_breaches: zero(),
            rescues: zero(),
            stale: zero(),
        }
    }
}

impl DoorMeasures {
    /// Counts what a pipeline tells.
    pub fn hear(&self, news: &News) {
        match news {
            News::Requested(request) => self.requested(request),
            News::Settled(settled) => self.settled(settled),
            News::CircuitOpened { site, next_probe_in } => {
                add(&self.circuits_opened, 1);
                self.circuits.opened(site, *next_probe_in, Instant::now());
            }
            News::CircuitClosed(site) => {
                add(&self.circuits_closed, 1);
                self.circuits.closed(site);
            }
            News::RobotsUnreachable(_) => add(&self.robots_unreachable, 1),
            News::RateBreach { .. } => add(&self.rate_breaches, 1),
            News::Rescued(leases) => add(&self.rescues, *leases),
            News::Stale => add(&self.stale, 1),
            News::StoreFailed(fault) => {
                self.count(|counts| one_more(&mut counts.store_faults, StoreTrouble::of(fault)));
            }
            News::Window(window) => self.count(|counts| counts.window = *window),
            News::Probing(_) | News::Marked(..) => {}
        }
    }

    /// The store says how many jobs stand where; `None`: it can't say now.
    pub fn note_ledger(&self, ledger: Option<Ledger>) {
        self.count(|counts| counts.ledger = ledger);
    }

    /// Whether a site's breaker is open, as far as this door knows.
    pub(super) fn knows_open_breaker(&self, site: &Site) -> bool {
        self.circuits.knows(site)
    }

    /// Another door knows better how a site's breaker stands.
    pub(super) fn forget_breaker(&self, site: &Site) {
        self.circuits.closed(site);
    }

    /// All of it, as it is now.
    pub(super) fn snapshot(&self) -> DoorSnapshot {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        DoorSnapshot {
            requests: counts.requests.clone(),
            failures: counts.failures.clone(),
            endings: counts.endings.clone(),
            store_faults: counts.store_faults.clone(),
            window: counts.window,
            ledger: counts.ledger,
            body_bytes: read(&self.body_bytes),
            request_s: self.request_s.spread(),
            first_byte_s: self.first_byte_s.spread(),
            politeness_wait_s: self.politeness_wait_s.spread(),
            worker_wait_s: self.worker_wait_s.spread(),
            job_s: self.job_s.spread(),
            circuits: self.circuits.look(Instant::now()),
            circuits_opened: read(&self.circuits_opened),
            circuits_closed: read(&self.circuits_closed),
            robots_unreachable: read(&self.robots_unreachable),
            rate_breaches: read(&self.rate_breaches),
            rescues: read(&self.rescues),
            stale: read(&self.stale),
        }
    }

    fn requested(&self, request: &Requested) {
        let Requested { purpose, happened, phases, answer, url, .. } = request;
        self.count(|counts| {
            one_more(&mut counts.requests, (*purpose, StatusClass::of(happened)));
            // A site without a robots.txt has answered what was asked.
            let is_an_answer =
                |failure: &Failure| *purpose == Purpose::Robots && *failure == Failure::ClientError;
            if let Some(failure) = Failure::of(happened).filter(|failure| !is_an_answer(failure)) {
                one_more(&mut counts.failures, failure);
            }
        });
        if matches!(happened, Happened::Refused(_)) {
            return; // Nobody was asked.
        }
        let on_the_wire = phases.connect + phases.first_byte + phases.body;
        self.request_s.observe(on_the_wire.as_secs_f64());
        if let Some(answer) = answer {
            add(&self.body_bytes, answer.body_bytes as u64);
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
        let ending = Ending::of(&settled.settlement);
        self.count(|counts| one_more(&mut counts.endings, ending));
        if matches!(ending, Ending::Done | Ending::Skipped | Ending::Dead) {
            self.job_s.observe(settled.age.as_secs_f64());
        }
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn one_more<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K) {
    *counts.entry(key).or_default() += 1;
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
