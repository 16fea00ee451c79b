//! Faults of our own. A step that panics goes back and is counted; lacking descriptors or memory, we rest.
//!
//! None of that is ever told to a plan, since it says nothing about the page or its site.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use fetchwell_policy::time::Time;
use tracing::{error, warn};

use super::INTERNAL;
use super::conductor::{Conductor, Work};
use super::intake::{INTERRUPTIONS_UNTIL_ALONE, guarded};
use crate::ports::{Lease, Settlement};
use crate::workbench::JobKey;

/// How long nothing is sent after we lacked something: requests under way end meanwhile, and give back what they
/// hold.
pub(super) const REST: Duration = Duration::from_secs(1);

/// While something is lacking, there is a line about it so often.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Jobs that are remembered at once. Those of a program that panics on everything are forgotten now and then, and
/// counted anew.
const MOST_REMEMBERED: usize = 1_024;

/// How often the work on a job was interrupted in this process. Crashes are counted by the store.
#[derive(Default)]
pub(super) struct Interruptions {
    by_job: HashMap<u64, u32>,
}

impl Interruptions {
    /// How often this job was interrupted.
    pub(super) fn of(&self, lease: &Lease) -> u32 {
        if self.by_job.is_empty() {
            return 0;
        }
        self.by_job.get(&name(lease)).copied().unwrap_or(0)
    }

    /// Counts another interruption of this job.
    fn add(&mut self, lease: &Lease) {
        if self.by_job.len() >= MOST_REMEMBERED {
            self.by_job.clear();
        }
        *self.by_job.entry(name(lease)).or_insert(0) += 1;
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
    pub(super) rest_until: Option<Time>,
    /// Requests that failed for it since the last line in the log.
    failed: u64,
    last_line: Option<Time>,
}

impl<R: Send + Sync + 'static> Conductor<R> {
    /// The work on a job failed by a fault of ours, such as a panic.
    pub(super) fn interrupt(&mut self, job: JobKey, reason: &str) {
        match self.jobs.get(&job) {
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
            error!(url, reason, "a fault of this program, again and alone: the URL is quarantined");
            return self.quarantine(lease, reason);
        }
        error!(url, reason, "a fault of this program: the URL is tried again");
        self.interruptions.add(lease);
        let wait = REST.saturating_mul(4_u32.saturating_pow(lease.interruptions));
        (Vec::new(), Settlement::HandBack { at: self.now() + wait })
    }

    /// Gives up a lease for a fault of ours.
    pub(super) fn quarantine(&self, lease: &Lease, reason: &str) -> (Vec<R>, Settlement) {
        let records = guarded(|| (self.door.obituary)(lease, reason)).unwrap_or_default();
        (records, Settlement::Dead { reason: INTERNAL.to_owned() })
    }

    /// A request failed because we lack something. It asks anew, and nothing is sent for a moment.
    pub(super) fn lacks(&mut self, what: &str) {
        let now = self.now();
        self.lack.rest_until = Some(now + REST);
        self.lack.failed += 1;
        if self.lack.last_line.is_none_or(|at| now.since(at) >= LINE_EVERY) {
            let requests = std::mem::take(&mut self.lack.failed);
            warn!(requests, "{what}; no site is to blame: these requests are made again");
            self.lack.last_line = Some(now);
        }
    }

    /// Whether nothing is sent just now, for want of something.
    pub(super) fn rests(&self) -> bool {
        self.lack.rest_until.is_some_and(|until| self.now() < until)
    }
}
