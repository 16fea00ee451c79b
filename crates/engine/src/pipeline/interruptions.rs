//! Faults of our own. A step that panics goes back and is counted; lacking descriptors or memory, we rest.
//!
//! None of that is ever told to a plan, since it says nothing about the page or its site.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use fetchwell_policy::time::Time;
use tracing::{error, warn};

use super::conductor::Conductor;
use super::intake::{INTERRUPTIONS_UNTIL_ALONE, guarded};
use super::jobs::Work;
use super::{GiveUp, INTERNAL};
use crate::ports::finish::Settlement;
use crate::ports::job::Lease;
use crate::workbench::JobKey;

/// How long nothing is sent after we lacked something: requests under way end meanwhile, and give back what they
/// hold.
pub(super) const REST: Duration = Duration::from_secs(1);

/// While something is lacking, there is a line about it so often.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// How many jobs are remembered: more than can be under way or waiting for a retry. Beyond that, the job that was
/// added first is forgotten, and its count starts again at 0.
const MOST_REMEMBERED: usize = 1 << 16;

/// How often the work on a job was interrupted in this process. Crashes are counted by the store.
#[derive(Default)]
pub(super) struct Interruptions {
    by_job: HashMap<u64, Interrupted>,
    /// How many jobs were ever added.
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

    /// It came to an end.
    pub(super) fn forget(&mut self, lease: &Lease) {
        if !self.by_job.is_empty() {
            self.by_job.remove(&name(lease));
        }
    }
}

/// Names a job by what it is: a broker gives the same one another id each time it delivers it.
fn name(lease: &Lease) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&lease.job.url, &lease.job.payload).hash(&mut hasher);
    hasher.finish()
}

/// What we lack, and since when nothing is sent for that.
#[derive(Default)]
pub(super) struct Lack {
    /// Nothing is sent before then.
    rest_until: Option<Time>,
    /// Requests that failed for it since the last line in the log.
    failed: u64,
    last_line: Option<Time>,
}

impl Lack {
    /// A request failed for it. Returns how many did, when that is worth a line in the log.
    fn note(&mut self, now: Time) -> Option<u64> {
        self.rest_until = Some(now + REST);
        self.failed += 1;
        if self.last_line.is_some_and(|at| now.since(at) < LINE_EVERY) {
            return None;
        }
        self.last_line = Some(now);
        Some(std::mem::take(&mut self.failed))
    }

    /// Until when nothing is sent; `None`: requests go out.
    pub(super) fn rests_until(&self, now: Time) -> Option<Time> {
        self.rest_until.filter(|until| now < *until)
    }
}

impl<R: Send + Sync + 'static> Conductor<R> {
    /// The work on a job failed by a fault of ours, such as a panic.
    pub(super) fn interrupt(&mut self, job: JobKey, reason: &str) {
        match self.jobs.get(job) {
            Some(Work::Lease(work)) => {
                let lease = work.lease.clone();
                let (records, settlement) = self.interrupted(&lease, reason);
                self.end(job, records, settlement);
            }
            Some(Work::Errand(_)) => self.errand_failed(job, reason),
            None => {}
        }
    }

    /// What becomes of a lease whose work was interrupted: another attempt later, and in the end one alone. If even
    /// that one is interrupted, it is quarantined, with what its door records of it.
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

    /// Gives up a lease for a fault of ours.
    pub(super) fn quarantine(&self, lease: &Lease, reason: &str) -> (Vec<R>, Settlement) {
        let record = || (self.door.obituary)(lease, GiveUp::Internal, reason);
        let records = guarded(record).unwrap_or_default();
        (records, Settlement::Dead { reason: INTERNAL.to_owned() })
    }

    /// A request failed because we lack something. It asks anew, and nothing is sent for a moment.
    pub(super) fn lacks(&mut self, what: &str) {
        let now = self.now();
        if let Some(requests) = self.lack.note(now) {
            warn!(requests, "{what}; the sites are not at fault: these requests are retried");
        }
    }

    /// Whether nothing is sent just now, for want of something.
    pub(super) fn rests(&self) -> bool {
        self.lack.rests_until(self.now()).is_some()
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
