//! Deadlines: a plan is told when its own has passed, and what held it up.
//!
//! What is in the window is watched here, wherever it stands: on a shelf, in a room or under way. What is
//! in the store comes out of it when its deadline passes.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use fetchwell_policy::outcome::Happened;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Site, WebUrl};

use super::conductor::{Conductor, Event};
use crate::ports::job::{Lease, LeaseId};
use crate::ports::politeness::{Politeness, RobotsRecord};
use crate::web::{Outcome, Request, Why};
use crate::workbench::JobKey;

/// The deadlines of what is in the window.
#[derive(Default)]
pub(super) struct Deadlines {
    agenda: BTreeSet<(Time, LeaseId)>,
    places: HashMap<LeaseId, Place>,
}

/// Where a lease is.
enum Place {
    /// On the shelf of this site.
    Shelf(Site),
    /// It has begun, as this job.
    Job(JobKey),
}

impl Deadlines {
    /// A lease came in.
    pub(super) fn came(&mut self, lease: &Lease) {
        if let (Some(deadline), Some(site)) = (lease.job.deadline, lease.job.site.clone()) {
            self.agenda.insert((deadline, lease.id));
            self.places.insert(lease.id, Place::Shelf(site));
        }
    }

    /// It began.
    pub(super) fn began(&mut self, lease: LeaseId, job: JobKey) {
        if let Some(place) = self.places.get_mut(&lease) {
            *place = Place::Job(job);
        }
    }

    /// It went out.
    pub(super) fn went(&mut self, lease: &Lease) {
        if let Some(deadline) = lease.job.deadline {
            self.agenda.remove(&(deadline, lease.id));
            self.places.remove(&lease.id);
        }
    }

    /// When the next one passes.
    pub(super) fn next(&self) -> Option<Time> {
        self.agenda.first().map(|(deadline, _)| *deadline)
    }

    fn pop_passed(&mut self, now: Time) -> Option<(LeaseId, Place)> {
        let (_, lease) = self.agenda.first().copied().filter(|(deadline, _)| *deadline <= now)?;
        self.agenda.pop_first();
        Some((lease, self.places.remove(&lease)?))
    }
}

/// A request that will not be made, or whose answer is not waited for any more.
struct Unanswered {
    url: WebUrl,
    obeys_robots: bool,
    /// For how long it has been under way; `None`: it has not set out.
    under_way_for: Option<Duration>,
}

impl Unanswered {
    fn of(request: &Request) -> Unanswered {
        Unanswered {
            url: request.url.clone(),
            obeys_robots: request.obeys_robots,
            under_way_for: None,
        }
    }
}

impl<R: Send + Sync + 'static> Conductor<R> {
    /// Tells those whose deadlines have passed.
    pub(super) fn tell_the_late(&mut self) {
        while let Some((lease, place)) = self.deadlines.pop_passed(self.now()) {
            match place {
                Place::Job(job) => {
                    let unanswered = self.call_off(job);
                    self.tell(job, unanswered);
                }
                Place::Shelf(site) => {
                    if let Some(parcel) = self.bench.unshelve_lease(&site, lease) {
                        let since = parcel.since;
                        self.begin(parcel.open(&site), since);
                    }
                }
            }
        }
    }

    /// Answers requests that come too late. A plan that goes on all the same is at fault.
    pub(super) fn tell_that_the_deadline_passed(&mut self, job: JobKey, requests: &[Request]) {
        let Some(work) = self.jobs.lease_mut(job) else { return };
        if std::mem::replace(&mut work.knows_that_its_deadline_passed, true) {
            return self.interrupt(job, "its plan goes on after its deadline");
        }
        self.tell(job, requests.iter().map(Unanswered::of).collect());
    }

    /// Takes back what a job asked for, waiting or under way. No site is blamed for that.
    fn call_off(&mut self, job: JobKey) -> Vec<Unanswered> {
        let Some(work) = self.jobs.lease_mut(job) else { return Vec::new() };
        work.knows_that_its_deadline_passed = true;
        let mut unanswered: Vec<Unanswered> =
            self.bench.forget(job).iter().map(|item| Unanswered::of(&item.request)).collect();
        let now = self.now();
        for flight in self.abort_flights(|flight| flight.job == job) {
            let under_way_for = Some(now.since(flight.since)).filter(|span| !span.is_zero());
            unanswered.push(Unanswered { url: flight.url, obeys_robots: true, under_way_for });
        }
        unanswered
    }

    fn tell(&mut self, job: JobKey, unanswered: Vec<Unanswered>) {
        for unanswered in unanswered {
            if let Some(span) = unanswered.under_way_for {
                let site = unanswered.url.site();
                let seconds = span.as_secs_f64();
                let cause = format!("a request to {site} had been under way for {seconds:.1} s");
                self.on_deadline_passed(job, Some(cause), true);
                continue;
            }
            let politeness = self.plant.gate.politeness.clone();
            self.spawn(async move {
                let held_up_by = what_holds_up(politeness.as_ref(), &unanswered).await;
                Event::HeldUpBy(job, held_up_by)
            });
        }
    }

    /// Tells a plan that its deadline passed; `was_sent`: while the request was under way, which is an attempt.
    pub(super) fn on_deadline_passed(
        &mut self,
        job: JobKey,
        held_up_by: Option<String>,
        was_sent: bool,
    ) {
        let Some(work) = self.jobs.lease_mut(job) else { return };
        work.outstanding -= 1;
        let why = Why { held_up_by, ..Why::default() };
        let unsent = Outcome::unsent(Happened::DeadlinePassed, why);
        self.step(job, Some(Outcome { was_sent, ..unsent }));
    }
}

/// What keeps a request from going, in words, as far as the store knows.
async fn what_holds_up(politeness: &dyn Politeness, request: &Unanswered) -> Option<String> {
    let (state, now) = politeness.look(&request.url.site()).await.ok()?;
    let robots = politeness.robots(&request.url.origin()).await.ok()?;
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
    if let Some(unreachable) = unreachable.filter(|_| request.obeys_robots) {
        return Some(format!("its robots.txt could not be read: {}", unreachable.reason));
    }
    let ahead = state.pace.used_until().since(now);
    (!ahead.is_zero()).then(|| "more was asked of the site than its pace lets through".to_owned())
}
