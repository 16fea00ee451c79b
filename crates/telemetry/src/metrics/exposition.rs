//! A snapshot in Prometheus's text format.

use std::collections::BTreeMap;
use std::fmt::Display;

use fetchwell_engine::pipeline::Purpose;
use fetchwell_engine::ports::queue::Ledger;

use super::labels::{DoorName, Ending, Failure, StatusClass, StoreTrouble};
use super::snapshot::{DoorSnapshot, ProcessSnapshot, Snapshot};
use crate::prometheus::{Spread, family, histograms, single};

/// All of it as text.
pub(super) fn render(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    about_the_program(&mut text, snapshot);
    let page = Page { doors: &snapshot.doors, text: &mut text };
    page.render();
    text
}

fn about_the_program(text: &mut String, snapshot: &Snapshot) {
    let labels = format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    let about = "Version of the program; always 1.";
    family(text, "fetchwell_build_info", "gauge", about, [(labels, 1)]);
    let up_s = snapshot.up_for.as_secs_f64();
    single(text, "fetchwell_uptime_seconds", "gauge", "Uptime of this process.", up_s);
    let ProcessSnapshot { resident_bytes, cpu, open_fds, max_fds } = snapshot.process;
    let mut known = |name: &str, kind: &str, about: &str, value: Option<f64>| {
        if let Some(value) = value {
            single(text, name, kind, about, value);
        }
    };
    let counted = |count: Option<u64>| count.map(|count| count as f64);
    let about = "Resident memory of this process.";
    known("process_resident_memory_bytes", "gauge", about, counted(resident_bytes));
    let about = "CPU time of this process, user and system.";
    known("process_cpu_seconds_total", "counter", about, cpu.map(|cpu| cpu.as_secs_f64()));
    known("process_open_fds", "gauge", "Open file descriptors.", counted(open_fds));
    known("process_max_fds", "gauge", "Maximum number of open file descriptors.", counted(max_fds));
}

/// The families that each door has a part in.
struct Page<'a> {
    doors: &'a BTreeMap<DoorName, DoorSnapshot>,
    text: &'a mut String,
}

impl Page<'_> {
    fn render(mut self) {
        self.traffic();
        self.times();
        self.in_hand();
        self.politeness();
        self.promises();
    }

    fn traffic(&mut self) {
        let about = "Finished requests, by purpose and status class.";
        self.samples("fetchwell_requests_total", "counter", about, |door| {
            let purposes = [Purpose::Page, Purpose::Robots, Purpose::Probe];
            let cells = purposes
                .into_iter()
                .flat_map(|purpose| StatusClass::ALL.iter().map(move |status| (purpose, *status)));
            let label = |(purpose, status): &(Purpose, StatusClass)| {
                format!("kind=\"{}\",status_class=\"{}\"", purpose_word(*purpose), status.word())
            };
            counted(&door.requests, cells, label)
        });
        let about = "Failed requests, by reason.";
        self.samples("fetchwell_request_failures_total", "counter", about, |door| {
            let label = |failure: &Failure| format!("reason=\"{}\"", failure.word());
            counted(&door.failures, Failure::ALL.iter().copied(), label)
        });
        let about = "Responses with status 429.";
        self.values("fetchwell_rate_limited_total", "counter", about, |door| {
            door.failures.get(&Failure::RateLimited).copied().unwrap_or_default()
        });
        let about = "Body bytes received, after decoding.";
        self.values("fetchwell_body_bytes_total", "counter", about, |door| door.body_bytes);
        let about = "Leases that ended, by outcome.";
        self.samples("fetchwell_outcomes_total", "counter", about, |door| {
            let label = |ending: &Ending| format!("outcome=\"{}\"", ending.word());
            counted(&door.endings, Ending::ALL.iter().copied(), label)
        });
    }

    fn times(&mut self) {
        let about = "Time from connecting to the last byte.";
        self.spreads("fetchwell_request_duration_seconds", about, |door| &door.request_s);
        let about = "Time from the head of the request to the head of the response.";
        self.spreads("fetchwell_first_byte_seconds", about, |door| &door.first_byte_s);
        let about = "Time that requests waited for politeness: robots.txt, and the next slot of \
                     their site.";
        self.spreads("fetchwell_politeness_wait_seconds", about, |door| &door.politeness_wait_s);
        let about = "Time that requests waited for a free slot in flight.";
        self.spreads("fetchwell_worker_wait_seconds", about, |door| &door.worker_wait_s);
        let about = "Time from acceptance to the end of a job.";
        self.spreads("fetchwell_job_duration_seconds", about, |door| &door.job_s);
    }

    fn in_hand(&mut self) {
        let about = "Requests in flight.";
        self.values("fetchwell_in_flight", "gauge", about, |door| door.window.in_flight);
        let about = "Leases that this process holds.";
        self.values("fetchwell_leases_held", "gauge", about, |door| door.window.leases);
        let about = "Sites for which this process has waiting jobs or requests in flight.";
        self.values("fetchwell_sites_waiting", "gauge", about, |door| door.window.sites);
        let about = "Sites that this process has recently sent requests to.";
        self.values("fetchwell_sites_known", "gauge", about, |door| door.window.sites_known);
        let about = "Age of the oldest job that waits in the store, delayed or not, or is held by \
                     this process.";
        self.values("fetchwell_oldest_waiting_seconds", "gauge", about, |door| {
            door.window.oldest.unwrap_or_default().as_secs_f64()
        });
    }

    fn politeness(&mut self) {
        let about = "Open breakers, as far as this process knows.";
        self.values("fetchwell_breakers_open", "gauge", about, |door| door.circuits.count);
        let about = "How long the breaker that opened first has been open.";
        self.values("fetchwell_breaker_longest_open_seconds", "gauge", about, |door| {
            door.circuits.longest.as_secs_f64()
        });
        let about = "Breakers that opened, or opened again.";
        self.values("fetchwell_breakers_opened_total", "counter", about, |door| {
            door.circuits_opened
        });
        let about = "Breakers that closed.";
        self.values("fetchwell_breakers_closed_total", "counter", about, |door| {
            door.circuits_closed
        });
        let about = "How often a robots.txt was unreachable.";
        self.values("fetchwell_robots_unreachable_total", "counter", about, |door| {
            door.robots_unreachable
        });
        let about = "Requests sent sooner than the pace of their site allows. Should stay 0.";
        self.values("fetchwell_rate_breaches_total", "counter", about, |door| door.rate_breaches);
    }

    fn promises(&mut self) {
        let about = "Leases rescued from instances that died.";
        self.values("fetchwell_rescues_total", "counter", about, |door| door.rescues);
        let about = "Results that came too late: another instance had the lease.";
        self.values("fetchwell_stale_settlements_total", "counter", about, |door| door.stale);
        let about = "Failed store calls, by reason.";
        self.samples("fetchwell_store_faults_total", "counter", about, |door| {
            let label = |trouble: &StoreTrouble| format!("reason=\"{}\"", trouble.word());
            counted(&door.store_faults, StoreTrouble::ALL.iter().copied(), label)
        });
        let about = "Jobs in the store; accepted is the sum of all other states.";
        self.samples("fetchwell_ledger_jobs", "gauge", about, |door| {
            let states = door.ledger.as_ref().map(Ledger::states).into_iter().flatten();
            states.map(|(state, count)| (format!("state=\"{state}\""), count)).collect()
        });
        let about = "Accepted jobs minus those that are accounted for. Should stay 0.";
        self.samples("fetchwell_ledger_difference_jobs", "gauge", about, |door| {
            door.ledger.iter().map(|ledger| (String::new(), ledger.difference())).collect()
        });
    }

    /// A family with one sample a door.
    fn values<T: Display>(
        &mut self,
        name: &str,
        kind: &str,
        about: &str,
        value: impl Fn(&DoorSnapshot) -> T,
    ) {
        self.samples(name, kind, about, |door| vec![(String::new(), value(door))]);
    }

    /// A family with several samples a door, each with labels besides the door's.
    fn samples<T: Display>(
        &mut self,
        name: &str,
        kind: &str,
        about: &str,
        of: impl Fn(&DoorSnapshot) -> Vec<(String, T)>,
    ) {
        let samples = self.doors.iter().flat_map(|(door, snapshot)| {
            of(snapshot).into_iter().map(|(labels, value)| {
                let comma = if labels.is_empty() { "" } else { "," };
                (format!("{{door=\"{}\"{comma}{labels}}}", door.word()), value)
            })
        });
        family(self.text, name, kind, about, samples);
    }

    fn spreads(&mut self, name: &str, about: &str, of: impl Fn(&DoorSnapshot) -> &Spread) {
        let spreads = self.doors.iter();
        let spreads =
            spreads.map(|(door, snapshot)| (format!("door=\"{}\"", door.word()), of(snapshot)));
        histograms(self.text, name, about, spreads);
    }
}

/// Each cell with its count: one that is 0 is told, too, so that a first failure shows as a step.
fn counted<K: Ord>(
    counts: &BTreeMap<K, u64>,
    cells: impl Iterator<Item = K>,
    label: impl Fn(&K) -> String,
) -> Vec<(String, u64)> {
    cells.map(|cell| (label(&cell), counts.get(&cell).copied().unwrap_or_default())).collect()
}

fn purpose_word(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Page => "page",
        Purpose::Robots => "robots",
        Purpose::Probe => "probe",
    }
}
