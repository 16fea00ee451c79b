//! Leases on their way from the source to the workbench, and back if they are not due soon.

use std::time::Duration;

use fetchwell_policy::retry::History;
use fetchwell_policy::site::HORIZON;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use tracing::error;

use super::groups::enough_for;
use super::jobs::{LeaseWork, Work};
use super::scheduler::{Input, Scheduler};
use crate::budget::Share;
use crate::ports::error::StoreError;
use crate::ports::finish::{Finished, Settlement};
use crate::ports::job::Lease;
use crate::ports::plan::Step;
use crate::ports::source::{Demand, Taken};
use crate::store_health::StoreCall;
use crate::web::{Outcome, Phases};
use crate::workbench::{JobKey, PendingLease, QueuedRequest};

/// Leases handed back to a site that is about to be closed are not due before this, so that a take in progress does not
/// return them before the site is closed.
pub(super) const UNTIL_CLOSED: Duration = Duration::from_millis(500);

/// A job that was redirected to a closed site waits under the site where it started, which is open. It is not due
/// before this, so that the first site is not requested over and over.
const REDIRECTED_WAITS: Duration = Duration::from_mins(1);

/// A take is one transaction that blocks others, so it takes at most this many leases.
const MOST_PER_TAKE: usize = 2_048;

/// A URL that was being fetched this many times when the process died runs alone from then on…
pub(super) const INTERRUPTIONS_UNTIL_ALONE: u32 = 3;
/// …and one more crash shows that the URL is the cause.
const QUARANTINE: &str =
    "quarantined: the process died four times while fetching it, the last time alone";

impl<R: Send + Sync + 'static> Scheduler<R> {
    /// Asks the source for more when the window has room.
    pub(super) fn take_when_there_is_room(&mut self) {
        self.run_a_suspect_when_alone();
        if !self.wants_to_take() || self.now() < self.supply.not_before() {
            return;
        }
        let closed = self.supply.begin();
        let gate = &self.runtime.gate;
        let demand = Demand {
            most: (self.runtime.limits.window - self.held.count()).min(MOST_PER_TAKE),
            most_per_site: self.runtime.limits.max_per_site,
            most_per_group: gate.fastest_group_rate().map_or(0, enough_for),
            closed,
            resting: self.groups.resting(gate),
        };
        let source = self.door.source.clone();
        self.spawn(async move {
            let taken = source.take(&demand).await;
            Input::Taken(demand, taken)
        });
    }

    /// Handles a notification that the source has more work.
    pub(super) fn hear_of_more(&mut self) {
        self.supply.more_came(self.now());
    }

    /// Whether to take more leases: not while stopping, while the sink fails, or while a suspect waits or runs.
    pub(super) fn wants_to_take(&self) -> bool {
        !self.supply.is_taking()
            && !self.ending.is_stopping()
            && self.suspects.is_empty()
            && !self.outbox.is_resting(self.now())
            && !self.outbox.has_unanswered()
            && self.upkeep.holds_lease()
            && has_room(self.runtime.limits.window, self.held.count(), self.outbox.waiting())
    }

    pub(super) fn on_taken(&mut self, demand: Demand, taken: Result<Taken, StoreError>) {
        self.supply.ended();
        let now = self.now();
        self.note_call(StoreCall::Take, &taken);
        match taken {
            Ok(Taken::Jobs(leases)) => {
                self.supply.found_some(now);
                for lease in leases {
                    self.accept(lease);
                }
            }
            Ok(Taken::Idle { until }) => self.supply.found_nothing(now, until),
            Ok(Taken::Exhausted) => self.supply.found_the_end(),
            Err(_) => self.supply.failed(demand.closed, self.store_retry_at()),
        }
    }

    fn accept(&mut self, mut lease: Lease) {
        self.on_handed_out(&lease);
        lease.interruptions = lease.interruptions.saturating_add(self.interruptions.of(&lease));
        if self.ending.is_stopping() {
            return self.finished(lease, Vec::new(), Settlement::HandBack { at: self.now() });
        }
        if lease.interruptions > INTERRUPTIONS_UNTIL_ALONE {
            let (records, settlement) = self.quarantine(&lease, QUARANTINE);
            return self.finished(lease, records, settlement);
        }
        if lease.interruptions == INTERRUPTIONS_UNTIL_ALONE {
            self.suspects.add(lease);
            return self.hand_back_all_that_waits();
        }
        let now = self.now();
        if self.groups.has_enough(&lease.job.lane, &self.runtime.gate) {
            let at = now + HORIZON / 2;
            return self.finished(lease, Vec::new(), Settlement::HandBack { at });
        }
        self.lease_came(&lease);
        match lease.job.site.clone() {
            Some(site) if lease.job.deadline.is_none_or(|deadline| now < deadline) => {
                self.bench.add_pending(&site, PendingLease::of(lease, now), now);
                self.wake(&site);
                self.keep_within_bounds(&site);
            }
            _ => self.begin(lease, now),
        }
    }

    fn lease_came(&mut self, lease: &Lease) {
        self.held.came(lease);
        self.groups.came(&lease.job.lane);
        self.deadlines.came(lease);
    }

    fn lease_went(&mut self, lease: &Lease) {
        self.held.went(lease);
        self.suspects.went(lease.id);
        self.groups.went(&lease.job.lane);
        self.deadlines.went(lease);
    }

    /// Begins leases of a site until one of them has a request to send there, unless a request already waits.
    pub(super) fn begin_next(&mut self, site: &Site) {
        let now = self.now();
        loop {
            let gate = &self.runtime.gate;
            let turn_of =
                self.bench.existing(site).and_then(|site_queue| site_queue.turn_of.clone());
            let may_go = self.groups.may_go(gate, turn_of, now);
            let waits = self
                .bench
                .existing(site)
                .is_some_and(|site_queue| site_queue.next(&may_go).is_some());
            if waits {
                return;
            }
            let Some(pending_lease) = self.bench.take_pending(site, may_go) else { return };
            let since = pending_lease.since;
            self.begin(pending_lease.open(site), since);
        }
    }

    pub(super) fn begin_all(&mut self, site: &Site) {
        for pending_lease in self.bench.take_pending_beyond(site, 0).into_iter().rev() {
            let since = pending_lease.since;
            self.begin(pending_lease.open(site), since);
        }
    }

    /// Runs a suspect when nothing else is in memory, so that a crash identifies it as the cause.
    fn run_a_suspect_when_alone(&mut self) {
        let alone = self.held.is_empty() && self.outbox.is_empty() && !self.supply.is_taking();
        if alone
            && !self.ending.is_stopping()
            && let Some(suspect) = self.suspects.begin()
        {
            self.lease_came(&suspect);
            self.begin(suspect, self.now());
        }
    }

    /// Creates the plan of a lease that has waited since `since`, and takes its first step.
    pub(super) fn begin(&mut self, lease: Lease, since: Time) {
        if lease.history == History::default() {
            self.retries.earn();
        }
        let plan = match guarded(|| (self.door.planner)(&lease)) {
            Ok(plan) => plan,
            Err(reason) => {
                let (records, settlement) = self.interrupted(&lease, &reason);
                self.lease_went(&lease);
                return self.finished(lease, records, settlement);
            }
        };
        let id = lease.id;
        let job = self.jobs.add(Work::Lease(Box::new(LeaseWork::new(lease, plan, since))));
        self.deadlines.began(id, job);
        self.step(job, None);
    }

    /// Steps a plan on this task, for outcomes without a body to process.
    pub(super) fn step(&mut self, job: JobKey, outcome: Option<Outcome>) {
        let moment = self.moment();
        let Some(work) = self.jobs.lease(job) else { return };
        let plan = work.plan.clone();
        let step = guarded(move || plan.lock().step(outcome, moment));
        match step {
            Ok(step) => self.carry_out(job, step),
            Err(reason) => self.interrupt(job, &reason),
        }
    }

    pub(super) fn carry_out(&mut self, job: JobKey, step: Step<R>) {
        match step {
            Step::Finish(records, settlement) => self.end(job, records, settlement),
            Step::Halt(reason) => {
                if self.ending.halt(&reason) {
                    error!(reason, "the run cannot continue");
                }
                self.hand_back(job, self.now());
                self.stop_taking();
            }
            // No more requests are sent, so the lease is left to its next owner.
            Step::Fetch(requests) if self.ending.is_stopping() && !requests.is_empty() => {
                self.hand_back(job, self.now());
            }
            Step::Fetch(requests) => {
                let now = self.now();
                let Some(work) = self.jobs.lease_mut(job) else { return };
                let lane = work.lease.job.lane.clone();
                let waits_since = work.waits_since.take();
                // The target of a redirect has already waited for its turn.
                let first = work.outstanding == 0 && work.phases.first_byte > Duration::ZERO;
                work.outstanding += requests.len();
                if work.outstanding == 0 {
                    return self.interrupt(job, "its plan neither fetches nor finishes");
                }
                if work.lease.job.deadline.is_some_and(|deadline| deadline <= now) {
                    return self.tell_that_the_deadline_passed(job, requests);
                }
                for request in requests {
                    let site = request.url.site();
                    let since = waits_since.unwrap_or(now);
                    let item = QueuedRequest { job, request, since, is_internal: false };
                    self.bench.site_queue(&site, now).push(item, &lane, first);
                    self.wake(&site);
                    self.keep_within_bounds(&site);
                }
            }
        }
    }

    /// Closes a site in the source for a while once enough of its pages are in memory.
    fn keep_within_bounds(&mut self, site: &Site) {
        let interval = self.interval_of(site);
        let enough = self.enough_for(interval);
        if self.bench.pages(site) >= enough {
            let half = u32::try_from(enough.div_ceil(2)).unwrap_or(u32::MAX);
            self.supply.close(site, self.now() + interval.saturating_mul(half));
        }
    }

    /// How many pages of a site can be sent within the horizon.
    pub(super) fn enough_for(&self, interval: Duration) -> usize {
        let most = self.runtime.limits.max_per_site;
        if interval.is_zero() {
            return most;
        }
        let within = HORIZON.as_micros() / interval.as_micros().max(1);
        usize::try_from(within).unwrap_or(most).clamp(1, most)
    }

    /// The shortest interval that applies to what waits for a site.
    pub(super) fn interval_of(&mut self, site: &Site) -> Duration {
        let site_queue = self.bench.existing(site);
        let ordered = site_queue.as_ref().and_then(|site_queue| site_queue.ordered_interval);
        let crawl_delay =
            site_queue.and_then(|site_queue| super::dispatch::crawl_delay(site_queue));
        ordered.unwrap_or_else(|| {
            let groups = self.bench.lanes(site).map(|lane| lane.group.as_deref());
            self.runtime.gate.shortest_interval(site, crawl_delay, groups)
        })
    }

    /// Hands back a lease unchanged, due at `at`.
    pub(super) fn hand_back(&mut self, job: JobKey, at: Time) {
        self.end(job, Vec::new(), Settlement::HandBack { at });
    }

    /// Hands back these pages of a site and closes the site in the source until `until`, or until an operator's order.
    /// The pages themselves are due almost at once, so that they wait only for the site to open.
    pub(super) fn close(
        &mut self,
        site: &Site,
        pending_leases: Vec<PendingLease>,
        items: Vec<QueuedRequest>,
        until: Time,
    ) {
        let (own, redirected): (Vec<QueuedRequest>, Vec<QueuedRequest>) =
            items.into_iter().partition(|item| self.waits_under(site, item.job));
        let goes_back = !pending_leases.is_empty() || !own.is_empty();
        match goes_back {
            true => self.supply.close_when_settled(site, until),
            false => self.supply.close(site, until),
        }
        let now = self.now();
        self.hand_back_each(site, pending_leases, own, until.min(now + UNTIL_CLOSED));
        for item in redirected {
            self.hand_back_item(&item, until.min(now + REDIRECTED_WAITS));
        }
    }

    /// Whether the job is stored under this site.
    fn waits_under(&self, site: &Site, job: JobKey) -> bool {
        self.jobs.lease(job).is_some_and(|work| work.lease.job.site.as_ref() == Some(site))
    }

    /// Hands back these pages of a site, due at `at`.
    pub(super) fn hand_back_each(
        &mut self,
        site: &Site,
        pending_leases: Vec<PendingLease>,
        items: Vec<QueuedRequest>,
        at: Time,
    ) {
        for pending_lease in pending_leases {
            let lease = pending_lease.open(site);
            self.lease_went(&lease);
            self.finished(lease, Vec::new(), Settlement::HandBack { at });
        }
        for item in items {
            self.hand_back_item(&item, at);
        }
    }

    pub(super) fn hand_back_item(&mut self, item: &QueuedRequest, at: Time) {
        self.jobs.one_less_outstanding(item.job);
        self.hand_back(item.job, at);
    }

    /// Hands back everything that is not in flight.
    pub(super) fn hand_back_all_that_waits(&mut self) {
        let now = self.now();
        for site in self.bench.sites() {
            let pending_leases = self.bench.take_pending_beyond(&site, 0);
            let items = self.bench.take_pages_beyond(&site, 0);
            self.hand_back_each(&site, pending_leases, items, now);
            self.bench.tidy(&site);
        }
    }

    /// Hands back the suspects that have not run, because nothing new is begun.
    pub(super) fn hand_back_suspects(&mut self) {
        let at = self.now();
        for suspect in self.suspects.take_waiting() {
            self.finished(suspect, Vec::new(), Settlement::HandBack { at });
        }
    }

    /// Ends a job, so that its lease can be settled.
    pub(super) fn end(&mut self, job: JobKey, records: Vec<R>, mut settlement: Settlement) {
        if let Settlement::Retry { at, .. } = &mut settlement {
            *at = self.retries.spend(*at, self.runtime.clock.now());
        }
        if let Some(Work::Lease(work)) = self.jobs.remove(job) {
            self.lease_went(&work.lease);
            let LeaseWork { lease, phases, share, outstanding, .. } = *work;
            if outstanding > 0 {
                self.bench.forget(job); // Nothing waits for its other requests.
            }
            self.outbox.push(Finished { lease, records, settlement, phases, share });
        }
    }

    fn finished(&mut self, lease: Lease, records: Vec<R>, settlement: Settlement) {
        let phases = Phases::default();
        let share = Share::none();
        self.outbox.push(Finished { lease, records, settlement, phases, share });
    }
}

/// Whether a quarter of the window is free, so that takes are few and large. A window of less than four has no quarter,
/// but a take needs room for at least one lease.
fn has_room(window: usize, held: usize, unsettled: usize) -> bool {
    held < window && held + unsettled <= window - window / 4
}

/// A plan that panics interrupts its own URL, not the run.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    caught.map_err(|payload| {
        format!("it made the program panic: {}", super::scheduler::panic_text(payload.as_ref()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_window_has_no_room_however_small_it_is() {
        for window in 1..=8 {
            assert!(has_room(window, 0, 0), "{window}");
            assert!(!has_room(window, window, 0), "{window}");
        }
    }

    #[test]
    fn a_window_has_room_when_a_quarter_of_it_is_free() {
        assert!(has_room(8, 6, 0) && has_room(8, 2, 4));
        assert!(!has_room(8, 7, 0) && !has_room(8, 3, 4));
        assert!(has_room(1, 0, 1), "a result that is being stored does not block the next take");
    }
}
