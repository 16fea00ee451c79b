//! The jobs in progress: leases with their plans, and requests of the engine itself.

use std::collections::HashMap;
use std::sync::Arc;

use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use parking_lot::Mutex;

use crate::budget::Share;
use crate::internal_fetch::RobotsFetch;
use crate::ports::job::{Lane, Lease};
use crate::ports::plan::Plan;
use crate::web::Phases;
use crate::workbench::JobKey;

/// A plan, shared with the task that steps it.
pub(super) type SharedPlan<R> = Arc<Mutex<Box<dyn Plan<R>>>>;

/// A lease in progress.
pub(super) struct LeaseWork<R> {
    pub(super) lease: Lease,
    pub(super) plan: SharedPlan<R>,
    /// When it entered the window. Taken when its first requests are made.
    pub(super) waits_since: Option<Time>,
    /// The number of requests that wait or are in flight.
    pub(super) outstanding: usize,
    pub(super) phases: Phases,
    /// How much of the byte budget its records hold, once it has finished.
    pub(super) share: Share,
    /// The plan was told, and must not be told twice.
    pub(super) knows_that_its_deadline_passed: bool,
}

impl<R> LeaseWork<R> {
    /// A lease that has waited since `since` and whose plan has not taken a step.
    pub(super) fn new(lease: Lease, plan: Box<dyn Plan<R>>, since: Time) -> LeaseWork<R> {
        let queued = since.since(lease.accepted_at);
        LeaseWork {
            lease,
            plan: Arc::new(Mutex::new(plan)),
            waits_since: Some(since),
            outstanding: 0,
            phases: Phases { queued, ..Phases::default() },
            share: Share::none(),
            knows_that_its_deadline_passed: false,
        }
    }
}

pub(super) enum Work<R> {
    Lease(Box<LeaseWork<R>>),
    /// Reads an origin's robots.txt.
    Robots(Box<RobotsFetch>),
    /// Finds out whether a site is back.
    Probe(Site),
}

pub(super) struct Jobs<R> {
    by_key: HashMap<JobKey, Work<R>>,
    next: JobKey,
}

impl<R> Jobs<R> {
    pub(super) fn new() -> Jobs<R> {
        Jobs { by_key: HashMap::new(), next: 0 }
    }

    pub(super) fn add(&mut self, work: Work<R>) -> JobKey {
        let job = self.next;
        self.next += 1;
        self.by_key.insert(job, work);
        job
    }

    pub(super) fn get(&self, job: JobKey) -> Option<&Work<R>> {
        self.by_key.get(&job)
    }

    pub(super) fn get_mut(&mut self, job: JobKey) -> Option<&mut Work<R>> {
        self.by_key.get_mut(&job)
    }

    pub(super) fn remove(&mut self, job: JobKey) -> Option<Work<R>> {
        self.by_key.remove(&job)
    }

    /// Keys are not reused, because requests in flight may still refer to them.
    pub(super) fn forget_all(&mut self) {
        self.by_key.clear();
    }

    /// The job, if it is a lease.
    pub(super) fn lease(&self, job: JobKey) -> Option<&LeaseWork<R>> {
        match self.by_key.get(&job) {
            Some(Work::Lease(work)) => Some(work),
            _ => None,
        }
    }

    /// The job, if it is a lease.
    pub(super) fn lease_mut(&mut self, job: JobKey) -> Option<&mut LeaseWork<R>> {
        match self.by_key.get_mut(&job) {
            Some(Work::Lease(work)) => Some(work),
            _ => None,
        }
    }

    /// A request of the job was answered, or never will be.
    pub(super) fn one_less_outstanding(&mut self, job: JobKey) {
        if let Some(work) = self.lease_mut(job) {
            work.outstanding -= 1;
        }
    }

    pub(super) fn lane_of(&self, job: JobKey) -> Lane {
        self.lease(job).map(|work| work.lease.job.lane.clone()).unwrap_or_default()
    }

    pub(super) fn is_probe(&self, job: JobKey) -> bool {
        matches!(self.by_key.get(&job), Some(Work::Probe(_)))
    }
}
