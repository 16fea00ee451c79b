//! What a plan is told whose deadline passed, and what held it up.

use fetchwell_policy::outcome::Happened;
use fetchwell_policy::time::Time;

use super::conductor::{Conductor, Event, Work};
use crate::ports::{Politeness, RobotsRecord};
use crate::web::{Outcome, Request, Why};
use crate::workbench::JobKey;

impl<R: Send + Sync + 'static> Conductor<R> {
    /// Answers requests that come too late. A plan that goes on all the same is given up.
    pub(super) fn tell_that_the_deadline_passed(&mut self, job: JobKey, requests: Vec<Request>) {
        let Some(Work::Lease(work)) = self.jobs.get_mut(&job) else { return };
        if std::mem::replace(&mut work.knows_that_its_deadline_passed, true) {
            return self.give_up(job, "its plan goes on after its deadline".to_owned());
        }
        for request in requests {
            let politeness = self.plant.gate.politeness.clone();
            self.tasks.spawn(async move {
                let held_up_by = what_holds_up(politeness.as_ref(), &request).await;
                Event::HeldUpBy(job, request.tag, held_up_by)
            });
        }
    }

    pub(super) fn on_held_up_by(&mut self, job: JobKey, tag: u32, held_up_by: Option<String>) {
        let Some(Work::Lease(work)) = self.jobs.get_mut(&job) else { return };
        work.outstanding -= 1;
        let why = Why { held_up_by, ..Why::default() };
        self.step(job, Some(Outcome::unsent(tag, Happened::DeadlinePassed, why)));
    }
}

/// What keeps a request from going, in words, as far as the store knows.
async fn what_holds_up(politeness: &dyn Politeness, request: &Request) -> Option<String> {
    let (state, now) = politeness.look(&request.url.site()).await.ok()?;
    let robots = politeness.robots(&request.url.origin()).await.ok()?;
    let state = state.unwrap_or_default();
    let for_s = |since: Time| now.since(since).as_secs();
    if state.breaker.blocked_until().is_some() {
        let since = state.breaker.failing_since.unwrap_or(now);
        return Some(format!(
            "the site is down: its circuit is open, it has failed for {} s",
            for_s(since)
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
