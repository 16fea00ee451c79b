//! Faults of this program. A step that panics is counted and its lease handed back; if descriptors or memory run out,
//! sending pauses.
//!
//! A plan never learns of these faults, because they say nothing about the page or its site.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use fetchwell_policy::time::Time;
use tracing::{error, warn};

use super::intake::{INTERRUPTIONS_UNTIL_ALONE, guarded};
use super::jobs::Work;
use super::scheduler::Scheduler;
use super::{GiveUp, INTERNAL};
use crate::ports::finish::Settlement;
use crate::ports::job::Lease;
use crate::workbench::JobKey;

/// How long nothing is sent after a resource ran out, so that requests in flight can end and release what they hold.
pub(super) const REST: Duration = Duration::from_secs(1);

/// How often a continuing shortage is logged.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// How many jobs are remembered: more than can be in flight or waiting for a retry. Beyond that, the job that was added
/// first is forgotten, and its count restarts at 0.
const MOST_REMEMBERED: usize = 1 << 16;

/// How often the work on a job was interrupted in this process. Crashes are counted by the store.
#[derive(Default)]
pub(super) struct Interruptions {
    by_job: HashMap<u64, Interrupted>,
    /// The number of jobs ever added.
    jobs_so_far: u64,
}

struct Interrupted {
    times: u32,
    /// Its number in the order in which jobs were added.
    place: u64,
}

impl Interruptions {
    /// How often this job was interrupted.
    pub(super) fn of(&self, lease: &Lease) -> u32 {
        if self.by_job.is_empty() {
            return 0;
        }
        self.by_job.get(&name(lease)).map_or(0, |job| job.times)
    }

    /// Counts another interruption of this job.
    fn add(&mut self, lease: &Lease) {
        let name = name(lease);
        if let Some(job) = self.by_job.get_mut(&name) {
            job.times += 1;
            return;
        }
        if self.by_job.len() >= MOST_REMEMBERED {
            let oldest = self.by_job.iter().min_by_key(|(_, job)| job.place);
            let oldest = oldest.map(|(name, _)| *name);
            oldest.map(|name| self.by_job.remove(&name));
        }
        let place = self.jobs_so_far;
        self.jobs_so_far += 1;
        self.by_job.insert(name, Interrupted { times: 1, place });
    }

    /// The job ended.
    pub(super) fn forget(&mut self, lease: &Lease) {
        if !self.by_job.is_empty() {
            self.by_job.remove(&name(lease));
        }
    }
}

/// Identifies a job by its content: a broker delivers the same job with a different id each time.
fn name(lease: &Lease) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&lease.job.url, &lease.job.payload).hash(&mut hasher);
    hasher.finish()
}

/// A shortage in this process, such as of descriptors or memory.
#[derive(Default)]
pub(super) struct Lack {
    /// Nothing is sent before this.
    rest_until: Option<Time>,
    /// Requests that failed because of it since the last log line.
    failed: u64,
    last_line: Option<Time>,
}

impl Lack {
    /// Records a failed request. If a log line is due, returns the number of failures since the last one.
    fn note(&mut self, now: Time) -> Option<u64> {
        self.rest_until = Some(now + REST);
        self.failed += 1;
        if self.last_line.is_some_and(|at| now.since(at) < LINE_EVERY) {
            return None;
        }
        self.last_line = Some(now);
        Some(std::mem::take(&mut self.failed))
    }

    /// Until when nothing is sent; `None` if requests may be sent.
    pub(super) fn rests_until(&self, now: Time) -> Option<Time> {
        self.rest_until.filter(|until| now < *until)
    }
}

impl<R: Send + Sync + 'static> Scheduler<R> {
    /// Handles a fault of this program, such as a panic, in the work on a job.
    pub(super) fn interrupt(&mut self, job: JobKey, reason: &str) {
        match self.jobs.get(job) {
            Some(Work::Lease(work)) => {
                let lease = work.lease.clone();
                let (records, settlement) = self.interrupted(&lease, reason);
                self.end(job, records, settlement);
            }
            Some(Work::Robots(_) | Work::Probe(_)) => self.internal_fetch_failed(job, reason),
            None => {}
        }
    }

    /// Decides what becomes of a lease whose work was interrupted: it is retried later, in the end with nothing else in
    /// flight. If that is interrupted, too, it is quarantined with the records that its door creates for that.
    pub(super) fn interrupted(&mut self, lease: &Lease, reason: &str) -> (Vec<R>, Settlement) {
        let url = lease.job.url.as_str();
        if lease.interruptions >= INTERRUPTIONS_UNTIL_ALONE {
            error!(
                url,
                reason,
                "internal error, again and with nothing else in flight: the URL is quarantined"
            );
            return self.quarantine(lease, reason);
        }
        error!(url, reason, "internal error: the URL is retried");
        self.interruptions.add(lease);
        let wait = REST.saturating_mul(4_u32.saturating_pow(lease.interruptions));
        (Vec::new(), Settlement::HandBack { at: self.now() + wait })
    }

    /// Gives up a lease because of a fault of this program.
    pub(super) fn quarantine(&self, lease: &Lease, reason: &str) -> (Vec<R>, Settlement) {
        let record = || (self.door.give_up_record)(lease, GiveUp::Internal, reason);
        let records = guarded(record).unwrap_or_default();
        (records, Settlement::Dead { reason: INTERNAL.to_owned() })
    }

    /// A request failed because this process lacks a resource. Nothing is sent for a moment.
    pub(super) fn lacks(&mut self, what: &str) {
        if let Some(requests) = self.lack.note(self.now()) {
            warn!(requests, "{what}; the sites are not at fault: these requests are retried");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::job::{Job, Lane};

    fn lease(number: usize) -> Lease {
        let url = format!("http://a.test/{number}");
        let payload = Vec::new();
        let job = Job { url, site: None, lane: Lane::default(), payload, deadline: None };
        let history = Default::default();
        Lease { id: 1, job, history, interruptions: 0, accepted_at: Time::from_secs(0) }
    }

    #[test]
    fn one_job_too_many_costs_the_oldest_its_count_and_no_other() {
        let mut interruptions = Interruptions::default();
        for number in 0..MOST_REMEMBERED {
            interruptions.add(&lease(number));
        }
        interruptions.add(&lease(1));
        assert_eq!(interruptions.of(&lease(0)), 1, "one more interruption is not one more job");
        interruptions.add(&lease(MOST_REMEMBERED));
        assert_eq!([0, 1, 2, MOST_REMEMBERED].map(|n| interruptions.of(&lease(n))), [0, 2, 1, 1]);
        interruptions.forget(&lease(2));
        interruptions.add(&lease(0));
        assert_eq!([0, 1, 2].map(|n| interruptions.of(&lease(n))), [1, 2, 0], "there was room");
    }
}
