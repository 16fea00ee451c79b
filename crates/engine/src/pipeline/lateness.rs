//! Deadlines: a plan is told when its deadline has passed, and what delayed it.
//!
//! This covers all leases in the window: pending, in a queue or in flight. The store hands out a job when its
//! deadline passes.

use std::collections::{BTreeSet, HashMap};

use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Site, WebUrl};

use super::scheduler::{Input, Scheduler};
use crate::ports::job::{Lease, LeaseId};
use crate::ports::politeness::{Politeness, RobotsRecord};
use crate::web::{Outcome, Request, Why};
use crate::workbench::{JobKey, QueuedRequest};

/// The deadlines of the leases in the window.
#[derive(Default)]
pub(super) struct Deadlines {
    agenda: BTreeSet<(Time, LeaseId)>,
    places: HashMap<LeaseId, Place>,
}

/// Where a lease is.
enum Place {
    /// Pending at this site.
    Pending(Site),
    /// It has begun, as this job.
    Job(JobKey),
}

impl Deadlines {
    /// A lease entered the window.
    pub(super) fn came(&mut self, lease: &Lease) {
        if let (Some(deadline), Some(site)) = (lease.job.deadline, lease.job.site.clone()) {
            self.agenda.insert((deadline, lease.id));
            self.places.insert(lease.id, Place::Pending(site));
        }
    }

    /// The lease began as a job.
    pub(super) fn began(&mut self, lease: LeaseId, job: JobKey) {
        if let Some(place) = self.places.get_mut(&lease) {
            *place = Place::Job(job);
        }
    }

    /// The lease left the window.
    pub(super) fn went(&mut self, lease: &Lease) {
        if let Some(deadline) = lease.job.deadline {
            self.agenda.remove(&(deadline, lease.id));
            self.places.remove(&lease.id);
        }
    }

    /// The next deadline.
    pub(super) fn next(&self) -> Option<Time> {
        self.agenda.first().map(|(deadline, _)| *deadline)
    }

    fn pop_passed(&mut self, now: Time) -> Option<(LeaseId, Place)> {
        let (_, lease) = self.agenda.first().copied().filter(|(deadline, _)| *deadline <= now)?;
        self.agenda.pop_first();
        Some((lease, self.places.remove(&lease)?))
    }
}

impl<R: Send + Sync + 'static> Scheduler<R> {
    /// Tells the plans whose deadlines have passed.
    pub(super) fn tell_the_late(&mut self) {
        while let Some((lease, place)) = self.deadlines.pop_passed(self.now()) {
            match place {
                Place::Job(job) => self.call_off(job),
                Place::Pending(site) => {
                    if let Some(pending_lease) = self.bench.take_pending_lease(&site, lease) {
                        let since = pending_lease.since;
                        self.begin(pending_lease.open(&site), since);
                    }
                }
            }
        }
    }

    /// Answers requests that are made after the deadline. A plan that continues after that is faulty.
    pub(super) fn tell_that_the_deadline_passed(&mut self, job: JobKey, requests: Vec<Request>) {
        let Some(work) = self.jobs.lease_mut(job) else { return };
        if std::mem::replace(&mut work.knows_that_its_deadline_passed, true) {
            return self.interrupt(job, "its plan goes on after its deadline");
        }
        for request in requests {
            self.tell_what_holds_up(job, request.url, request.obeys_robots);
        }
    }

    /// Cancels the requests of a job, waiting or in flight, and tells its plan. This does not count against any site.
    fn call_off(&mut self, job: JobKey) {
        let Some(work) = self.jobs.lease_mut(job) else { return };
        work.knows_that_its_deadline_passed = true;
        for QueuedRequest { request, .. } in self.bench.forget(job) {
            self.tell_what_holds_up(job, request.url, request.obeys_robots);
        }
        let now = self.now();
        for flight in self.abort_flights(|flight| flight.job == job) {
            let under_way_for = now.since(flight.since);
            if under_way_for.is_zero() {
                self.tell_what_holds_up(job, flight.url, true);
                continue;
            }
            let site = flight.site;
            let seconds = under_way_for.as_secs_f64();
            let cause = format!("a request to {site} had been under way for {seconds:.1} s");
            self.on_deadline_passed(job, Some(cause), true);
        }
    }

    /// Finds out what delayed a request that was not sent, and tells its plan.
    fn tell_what_holds_up(&mut self, job: JobKey, url: WebUrl, obeys_robots: bool) {
        let politeness = self.runtime.gate.politeness.clone();
        self.spawn(async move {
            let held_up_by = what_holds_up(politeness.as_ref(), &url, obeys_robots).await;
            Input::HeldUpBy(job, held_up_by)
        });
    }

    /// Tells a plan that its deadline passed. `was_sent`: a request was in flight, which counts as an attempt.
    pub(super) fn on_deadline_passed(
        &mut self,
        job: JobKey,
        held_up_by: Option<String>,
        was_sent: bool,
    ) {
        let Some(work) = self.jobs.lease_mut(job) else { return };
        work.outstanding -= 1;
        let why = Why { held_up_by, ..Why::default() };
        let unsent = Outcome::unsent(FetchOutcome::DeadlinePassed, why);
        self.step(job, Some(Outcome { was_sent, ..unsent }));
    }
}

/// Describes what delays a request, as far as the store knows.
async fn what_holds_up(
    politeness: &dyn Politeness,
    url: &WebUrl,
    obeys_robots: bool,
) -> Option<String> {
    let (state, now) = politeness.look(&url.site()).await.ok()?;
    let robots = politeness.robots(&url.origin()).await.ok()?;
    let state = state.unwrap_or_default();
    if let Some(given) = &state.orders.paused {
        let paused_for_s = now.since(given.at).as_secs();
        return Some(format!("the site is paused by an operator, for {paused_for_s} s now"));
    }
    if state.breaker.blocked_until().is_some() {
        let failing_for_s = now.since(state.breaker.failing_since.unwrap_or(now)).as_secs();
        return Some(format!(
            "the site is down: its circuit is open, it has failed for {failing_for_s} s"
        ));
    }
    if state.penalty_until > now {
        let left = state.penalty_until.since(now).as_secs();
        return Some(format!("the site asked us to stay away for another {left} s"));
    }
    let unreachable = robots.as_ref().and_then(|record: &RobotsRecord| record.unreachable.as_ref());
    if let Some(unreachable) = unreachable.filter(|_| obeys_robots) {
        return Some(format!("its robots.txt could not be read: {}", unreachable.reason));
    }
    let ahead = state.pace.used_until().since(now);
    (!ahead.is_zero()).then(|| "more requests wait for the site than its pace allows".to_owned())
}
