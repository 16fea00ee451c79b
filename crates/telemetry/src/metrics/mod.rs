//! The metrics of this process: one registry for all its doors.
//!
//! Each door has its [`DoorMetrics`], which receives the events of its pipeline. [`Metrics::render`] is for
//! Prometheus, [`Metrics::snapshot`] for the dashboard.
//!
//! | file | |
//! |---|---|
//! | `labels` | the values of labels: a fixed set of words, never a site, a URL or a caller |
//! | `door` | the metrics of one door, and how events change them |
//! | `circuits` | the open breakers that this process knows of |
//! | `snapshot` | the current values, for the dashboard |
//! | `process` | memory, CPU time and open files |

mod circuits;
mod door;
pub mod labels;
mod process;
pub mod snapshot;

use std::collections::BTreeMap;
use std::sync::Arc;

use fetchwell_engine::pipeline::{Event, EventSink};
use parking_lot::Mutex;
use tokio::time::Instant;

pub use circuits::OpenCircuits;
pub use door::DoorMetrics;
pub use labels::DoorName;
use process::ProcessMetrics;
pub use snapshot::MetricsSnapshot;

use crate::registry::{Gauge, Registry};

/// All metrics of this process.
pub struct Metrics {
    registry: Registry,
    started: Instant,
    uptime_s: Gauge,
    process: ProcessMetrics,
    doors: Mutex<BTreeMap<DoorName, Arc<DoorMetrics>>>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let registry = Registry::default();
        registry
            .labelled("version", env!("CARGO_PKG_VERSION"))
            .gauge("fetchwell_build_info", "Version of the program; always 1.")
            .set(1.0);
        // Registers the names of a door's metrics before the first door exists.
        DoorMetrics::new(&registry.heads_only());
        Metrics {
            started: Instant::now(),
            uptime_s: registry.gauge("fetchwell_uptime_seconds", "Uptime of this process."),
            process: ProcessMetrics::new(&registry),
            doors: Mutex::default(),
            registry,
        }
    }
}

impl Metrics {
    /// The metrics of a door; every call returns the same ones.
    pub fn door(&self, name: DoorName) -> Arc<DoorMetrics> {
        let mut doors = self.doors.lock();
        let door = || Arc::new(DoorMetrics::new(&self.registry.labelled("door", name.word())));
        doors.entry(name).or_insert_with(door).clone()
    }

    /// Counts the events of a door's pipeline and passes them on.
    pub fn listening(&self, name: DoorName, then: EventSink) -> EventSink {
        let door = self.door(name);
        Arc::new(move |event| {
            door.hear(&event);
            then(event);
        })
    }

    /// Counts the breakers of two doors that fetch from the same sites only once. Each door receives only its own
    /// events, and one may close a breaker that the other opened.
    pub fn share_breakers(&self, heard_by: DoorName, beside: DoorName, event: &Event) {
        match event {
            Event::CircuitOpened { site, .. } if self.door(beside).knows_open_breaker(site) => {
                self.door(heard_by).forget_breaker(site);
            }
            Event::CircuitClosed(site) => self.door(beside).forget_breaker(site),
            _ => {}
        }
    }

    /// The current values, for the dashboard.
    pub fn snapshot(&self) -> MetricsSnapshot {
        MetricsSnapshot {
            up_for: self.started.elapsed(),
            process: process::look(),
            doors: self.doors().into_iter().map(|(name, door)| (name, door.snapshot())).collect(),
        }
    }

    /// All metrics in the Prometheus text format.
    pub fn render(&self) -> String {
        let doors = self.doors();
        self.registry.render(|| {
            self.uptime_s.set(self.started.elapsed().as_secs_f64());
            self.process.refresh();
            for door in doors.values() {
                door.refresh();
            }
        })
    }

    fn doors(&self) -> BTreeMap<DoorName, Arc<DoorMetrics>> {
        self.doors.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fetchwell_engine::pipeline::Window;
    use fetchwell_engine::ports::error::StoreError;
    use fetchwell_engine::ports::queue::Ledger;
    use fetchwell_policy::url::Site;

    use super::*;

    #[test]
    fn what_is_told_of_one_door_is_counted_there_and_passed_on() {
        let process_metrics = Metrics::default();
        let heard: Arc<Mutex<usize>> = Arc::default();
        let ear = heard.clone();
        let pages = process_metrics.listening(DoorName::Pages, Arc::new(move |_| *ear.lock() += 1));
        process_metrics.door(DoorName::Serve);
        let site = Site::parse("a.test").unwrap();
        let early_by = Duration::from_millis(3);
        let oldest = Some(Duration::from_millis(1500));
        for event in [
            Event::RateBreach { site: site.clone(), early_by },
            Event::Rescued(7),
            Event::Stale,
            Event::StoreFailed(StoreError::transient("gone")),
            Event::CircuitOpened { site, next_probe_in: Duration::from_secs(30) },
            Event::Window(Window { leases: 5, in_flight: 2, sites: 3, sites_known: 9, oldest }),
        ] {
            pages(event);
        }
        let ledger = Ledger { accepted: 5, done: 2, queued: 1, ..Ledger::default() };
        process_metrics.door(DoorName::Pages).note_ledger(Some(ledger));
        let text = process_metrics.render();
        for line in [
            "fetchwell_rate_breaches_total{door=\"pages\"} 1",
            "fetchwell_rate_breaches_total{door=\"serve\"} 0",
            "fetchwell_rescues_total{door=\"pages\"} 7",
            "fetchwell_stale_settlements_total{door=\"pages\"} 1",
            "fetchwell_store_faults_total{door=\"pages\",reason=\"unavailable\"} 1",
            "fetchwell_store_faults_total{door=\"pages\",reason=\"damaged\"} 0",
            "fetchwell_breakers_open{door=\"pages\"} 1",
            "fetchwell_in_flight{door=\"pages\"} 2",
            "fetchwell_sites_known{door=\"pages\"} 9",
            "fetchwell_oldest_waiting_seconds{door=\"pages\"} 1.5",
            "fetchwell_ledger_jobs{door=\"pages\",state=\"queued\"} 1",
            "fetchwell_ledger_difference_jobs{door=\"pages\"} 2",
            "fetchwell_request_duration_seconds_bucket{door=\"pages\",le=\"+Inf\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        assert!(!text.contains("fetchwell_ledger_jobs{door=\"serve\""), "nobody has said it");
        assert_eq!(*heard.lock(), 6);
    }

    #[test]
    fn a_breaker_that_two_doors_hear_of_is_one() {
        let process_metrics = Metrics::default();
        let site = Site::parse("a.test").unwrap();
        let open_after = |door, beside, event: Event| {
            process_metrics.door(door).hear(&event);
            process_metrics.share_breakers(door, beside, &event);
            process_metrics.snapshot().doors.values().map(|door| door.circuits.count).sum::<usize>()
        };
        let fetch = DoorName::Fetch;
        let serve = DoorName::Serve;
        let next_probe_in = Duration::from_secs(30);
        let opened = Event::CircuitOpened { site: site.clone(), next_probe_in };
        assert_eq!(open_after(fetch, serve, opened.clone()), 1);
        assert_eq!(open_after(serve, fetch, opened), 1, "after its probe failed");
        assert_eq!(open_after(serve, fetch, Event::CircuitClosed(site)), 0);
    }
}
