//! The scheduler's state, its events, and the lease of this instance.

use std::pin::Pin;
use std::time::Duration;

use fetchwell_policy::chance::Chance;
use fetchwell_policy::retry_budget::RetryBudget;
use fetchwell_policy::site::SiteState;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Origin;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::Instant;
use tracing::{error, warn};

use super::dispatch::TIMER_GRAIN;
use super::ending::Ending;
use super::flight::{FlightEnd, HeadEvent};
use super::flights::{Flight, Flights};
use super::groups::Groups;
use super::held::Held;
use super::interruptions::{Interruptions, Lack};
use super::jobs::Jobs;
use super::lateness::Deadlines;
use super::lookups::Lookups;
use super::orders::OrdersHeard;
use super::outbox::Outbox;
use super::site_log::SiteLog;
use super::supply::Supply;
use super::suspects::Suspects;
use super::turns::Turns;
use super::upkeep::Upkeep;
use super::watching::Watch;
use super::{Door, Event, Runtime};
use crate::ports::error::StoreError;
use crate::ports::finish::{Finished, Settled};
use crate::ports::plan::Moment;
use crate::ports::politeness::{RecentOrders, RobotsRecord, SiteAsk, SiteReport, Turn};
use crate::ports::source::{Demand, Renewal, Taken};
use crate::store_health::{StoreCall, StoreHealth};
use crate::workbench::{JobKey, Workbench};

/// How long after a failure a store call is retried.
const STORE_RETRY: Duration = Duration::from_millis(500);
/// Limits how long due slots wait while events are handled.
const MOST_EVENTS_A_ROUND: usize = 32;

/// The results of tasks.
pub(super) enum Input<R> {
    Taken(Demand, Result<Taken, StoreError>),
    Turned(Time, Vec<SiteReport>, Vec<SiteAsk>, Result<Turn, StoreError>),
    RobotsLookedUp(Origin, Result<Box<(Option<RobotsRecord>, SiteState)>, StoreError>),
    Fetched(Box<FlightEnd<R>>),
    Finished(Vec<Finished<R>>, Result<Vec<Settled>, StoreError>, Duration),
    Renewed(Instant, Result<Renewal, StoreError>),
    OldestFound(Duration, Result<Option<Time>, StoreError>),
    Noted(Result<(), StoreError>),
    StartNoted(Result<(), StoreError>),
    OrdersHeard(Result<RecentOrders, StoreError>),
    HeldUpBy(JobKey, Option<String>),
}

/// What wakes the scheduler.
pub(super) enum Woken<R> {
    Head(HeadEvent),
    Task(Result<(Id, Input<R>), JoinError>),
}

/// Makes all decisions. Each part keeps its own state; the methods here and in the other files of this folder combine
/// them.
pub(super) struct Scheduler<R> {
    pub(super) door: Door<R>,
    pub(super) runtime: Runtime,
    pub(super) chance: Chance,
    pub(super) bench: Workbench,
    pub(super) jobs: Jobs<R>,
    pub(super) held: Held,
    tasks: JoinSet<Input<R>>,
    pub(super) flights: Flights,
    pub(super) lookups: Lookups,
    pub(super) turns: Turns,
    pub(super) outbox: Outbox<R>,
    pub(super) supply: Supply,
    pub(super) groups: Groups,
    pub(super) deadlines: Deadlines,
    pub(super) orders: OrdersHeard,
    pub(super) watch: Watch,
    /// Retries must not become the main load.
    pub(super) retries: RetryBudget,
    pub(super) suspects: Suspects,
    pub(super) interruptions: Interruptions,
    pub(super) lack: Lack,
    pub(super) upkeep: Upkeep,
    pub(super) ending: Ending,
    pub(super) site_log: SiteLog,
}

impl<R: Send + Sync + 'static> Scheduler<R> {
    /// Registers the instance and starts without leases. If the store is unavailable, the registration is retried
    /// later.
    pub(super) async fn start(door: Door<R>, runtime: Runtime) -> Scheduler<R> {
        let now = runtime.clock.now();
        let started = Instant::now();
        let grace = runtime.limits.shutdown_grace;
        let mut scheduler = Scheduler {
            chance: Chance::seeded(runtime.seed),
            door,
            runtime,
            bench: Workbench::default(),
            jobs: Jobs::new(),
            held: Held::default(),
            tasks: JoinSet::new(),
            flights: Flights::new(),
            lookups: Lookups::default(),
            turns: Turns::new(now),
            outbox: Outbox::new(now),
            supply: Supply::new(now),
            groups: Groups::default(),
            deadlines: Deadlines::default(),
            orders: OrdersHeard::new(started),
            watch: Watch::default(),
            retries: RetryBudget::new(now),
            suspects: Suspects::default(),
            interruptions: Interruptions::default(),
            lack: Lack::default(),
            upkeep: Upkeep::new(started),
            ending: Ending::new(grace),
            site_log: SiteLog::default(),
        };
        let renewal = scheduler.door.source.renew().await;
        scheduler.on_renewed(started, renewal);
        scheduler
    }

    /// Sends an event to the watcher.
    pub(super) fn emit(&self, event: Event) {
        (self.runtime.event_sink)(event);
    }

    pub(super) fn now(&self) -> Time {
        self.runtime.clock.now()
    }

    pub(super) fn moment(&mut self) -> Moment {
        let Runtime { clock, .. } = &self.runtime;
        Moment { now: clock.now(), wall: clock.wall(), chance: self.chance.unit() }
    }

    /// Starts a task. It is boxed, so that tokio's task code is compiled once per record type. Compiled once per task
    /// and record type, that code made up a tenth of this program.
    pub(super) fn spawn(
        &mut self,
        task: impl Future<Output = Input<R>> + Send + 'static,
    ) -> AbortHandle {
        let task: Pin<Box<dyn Future<Output = Input<R>> + Send>> = Box::pin(task);
        self.tasks.spawn(task)
    }

    pub(super) fn renew_lease_when_due(&mut self) {
        self.sweep_when_due();
        if !self.upkeep.begin_renewal() {
            return;
        }
        let source = self.door.source.clone();
        self.spawn(async move {
            let asked_at = Instant::now();
            Input::Renewed(asked_at, source.renew().await)
        });
    }

    fn sweep_when_due(&mut self) {
        if !self.upkeep.begin_sweep() {
            return;
        }
        self.runtime.gate.heads.sweep();
        let now = self.now();
        self.groups.sweep(now);
        self.lookups.sweep(now);
        self.site_log.sweep(now);
        let politeness = self.runtime.gate.politeness.clone();
        self.spawn(async move { Input::Noted(politeness.sweep().await.map(|_| ())) });
    }

    /// Stops taking leases and hands back everything that is not in flight.
    pub(super) fn stop_taking(&mut self) {
        self.ending.stop();
        self.hand_back_suspects();
        self.hand_back_all_that_waits();
    }

    /// When the grace period is over, hands back what is still in flight, too.
    fn cut_short_when_grace_is_over(&mut self) {
        if self.ending.cut_short() {
            for flight in self.abort_flights(|_| true) {
                self.hand_back(flight.job, self.now());
            }
            self.hand_back_all_that_waits();
        }
    }

    /// Whether nothing is left to do, now or later.
    pub(super) fn is_idle_for_good(&mut self) -> bool {
        self.cut_short_when_grace_is_over();
        let empty_handed = self.held.is_empty()
            && self.outbox.is_empty()
            && !self.suspects.are_waiting()
            && !self.supply.is_taking();
        // The last reports must reach the store: a penalty outlives this process.
        if empty_handed && self.turns.all_is_told() {
            return self.supply.is_exhausted() || self.ending.is_stopping();
        }
        let is_too_late = self.outbox.is_refused()
            || self.ending.gives_up_at().is_some_and(|at| at <= Instant::now());
        if is_too_late {
            let left = self.held.count() + self.outbox.waiting();
            warn!(
                left,
                "stopping, although the store did not accept the remaining results: other \
                 instances will rescue the jobs"
            );
        }
        is_too_late
    }

    /// When something is due that no event announces.
    pub(super) fn next_due(&mut self) -> Option<Time> {
        let now = self.now();
        let (next_ask, next_slot) = self.bench.next_due();
        let in_clock = |at: Instant| now + at.saturating_duration_since(Instant::now());
        let grace_over = self.ending.cut_short_at();
        // What cannot be done now must not be due now, or the loop would spin.
        let due = [
            Some(in_clock(self.upkeep.next_due())),
            self.orders.next_look().map(in_clock),
            next_ask.filter(|_| self.may_ask()),
            next_slot.filter(|_| self.may_dispatch()).map(|at| at - TIMER_GRAIN),
            self.wants_to_take().then_some(self.supply.not_before()),
            self.turns.next_due(),
            self.outbox.next_due().filter(|_| self.may_store()),
            grace_over.filter(|_| !self.held.is_empty()).map(in_clock),
            self.ending.gives_up_at().map(in_clock),
            self.deadlines.next(),
            self.next_telling().map(in_clock),
            self.lack.rests_until(now),
        ];
        due.into_iter().flatten().min()
    }

    /// Waits for a report on a request head, or for a task to end.
    pub(super) async fn next_event(&mut self) -> Woken<R> {
        tokio::select! {
            biased;
            Some(event) = self.flights.next_head() => Woken::Head(event),
            Some(event) = self.tasks.join_next_with_id() => Woken::Task(event),
            else => std::future::pending().await,
        }
    }

    /// Handles an event, and those that have arrived meanwhile, so that one round serves all of them.
    pub(super) fn handle_all(&mut self, first: Woken<R>) -> Result<(), StoreError> {
        self.handle(first)?;
        for _ in 1..MOST_EVENTS_A_ROUND {
            let Some(next) = self.event_at_hand() else { break };
            self.handle(next)?;
        }
        Ok(())
    }

    fn event_at_hand(&mut self) -> Option<Woken<R>> {
        let head = self.flights.head_at_hand().map(Woken::Head);
        head.or_else(|| self.tasks.try_join_next_with_id().map(Woken::Task))
    }

    fn handle(&mut self, woken: Woken<R>) -> Result<(), StoreError> {
        let (id, event) = match woken {
            Woken::Head(event) => {
                self.on_head(event);
                return Ok(());
            }
            Woken::Task(Ok(event)) => event,
            Woken::Task(Err(failed)) => return self.on_task_failed(failed),
        };
        match event {
            Input::Taken(demand, taken) => self.on_taken(demand, taken),
            Input::Turned(asked_at, reports, asks, turn) => {
                self.on_turned(asked_at, reports, asks, turn);
            }
            Input::RobotsLookedUp(origin, known) => self.on_robots_looked_up(origin, known),
            Input::Fetched(end) => {
                let Some(flight) = self.flights.end(id) else { return Ok(()) }; // It was aborted.
                self.on_fetched(flight, *end);
            }
            Input::Finished(batch, settled, sink) => self.on_finished(batch, settled, sink),
            Input::Renewed(asked_at, renewal) => self.on_renewed(asked_at, renewal),
            Input::OldestFound(took, oldest) => self.on_oldest_found(took, oldest),
            Input::Noted(result) => self.note_call(StoreCall::Note, &result),
            Input::OrdersHeard(orders) => self.on_orders_heard(orders),
            Input::HeldUpBy(job, held_up_by) => self.on_deadline_passed(job, held_up_by, false),
            Input::StartNoted(result) => {
                self.flights.starts_noted();
                self.note_call(StoreCall::Note, &result);
            }
        }
        Ok(())
    }

    fn on_head(&mut self, event: HeadEvent) {
        match event {
            HeadEvent::Written(site, number) => self.head_written(&site, number),
            HeadEvent::GroupRests(group, until) => self.groups.heard(&group, until),
            HeadEvent::Late(report) => self.turns.report_at_once(report, self.now()),
            HeadEvent::Early(site, early_by) => self.tell_of_a_breach(site, early_by),
        }
    }

    /// A panic while fetching interrupts its URL; the process goes on.
    fn on_task_failed(&mut self, failed: JoinError) -> Result<(), StoreError> {
        let Some(flight) = self.flights.end(failed.id()) else {
            if failed.is_cancelled() {
                return Ok(());
            }
            return Err(engine_failed(failed, &self.runtime.gate.health));
        };
        self.head_written(&flight.site, flight.number);
        self.on_fetch_done(&flight.site);
        if let Ok(payload) = failed.try_into_panic() {
            let reason = format!("it made the program panic: {}", panic_text(payload.as_ref()));
            self.interrupt(flight.job, &reason);
        }
        Ok(())
    }

    fn on_renewed(&mut self, asked_at: Instant, renewal: Result<Renewal, StoreError>) {
        self.tell_of_rescues();
        self.upkeep.renewal_ended(asked_at + self.runtime.limits.heartbeat);
        self.note_call(StoreCall::Renew, &renewal);
        match renewal {
            Ok(Renewal::Held { ttl }) => {
                self.upkeep.lease_granted(asked_at, ttl);
                self.look_for_the_oldest();
            }
            Ok(Renewal::Lost) => {
                warn!(
                    "this instance was considered dead, and others took over its jobs; starting \
                     over"
                );
                self.drop_everything();
                self.upkeep.renewal_ended(Instant::now());
            }
            Err(fault) if fault.is_transient() => {
                self.upkeep.renewal_ended(Instant::now() + STORE_RETRY);
            }
            Err(_) => {}
        }
    }

    /// Drops everything, because this instance lost its leases.
    fn drop_everything(&mut self) {
        self.abort_flights(|_| true);
        self.bench = Workbench::default();
        self.deadlines = Deadlines::default();
        self.held = Held::default();
        self.jobs.forget_all();
        self.lookups.forget_all();
        self.turns.forget_asks();
        self.flights.forget_starts();
        self.outbox.forget_all();
        self.suspects = Suspects::default();
        self.groups.all_went();
        self.runtime.gate.health.forget();
        self.supply.start_over(self.now());
    }

    /// Aborts the requests in flight for which `which` is true.
    pub(super) fn abort_flights(&mut self, which: impl Fn(&Flight) -> bool) -> Vec<Flight> {
        let flights = self.flights.abort(which);
        for flight in &flights {
            self.head_written(&flight.site, flight.number);
            self.on_fetch_done(&flight.site);
        }
        flights
    }

    /// A store that is unavailable fails several calls per second; `StoreHealth` limits the log lines.
    pub(super) fn store_failed(&self, call: StoreCall, fault: &StoreError) {
        self.emit(Event::StoreFailed(fault.clone()));
        self.runtime.gate.health.failed(call, fault);
    }

    /// Records whether a store call worked.
    pub(super) fn note_call<T>(&self, call: StoreCall, result: &Result<T, StoreError>) {
        match result {
            Ok(_) => self.runtime.gate.health.worked(call),
            Err(fault) => self.store_failed(call, fault),
        }
    }

    /// Ends a run whose store has failed for longer than it may; another instance rescues the leases. After an error
    /// that no retry can fix, the run hands back its leases and ends.
    pub(super) fn give_up_on_a_store(&mut self) -> Result<(), StoreError> {
        if let Some(failing) = self.runtime.gate.health.fatal() {
            if self.ending.fail(failing.fault) {
                self.stop_taking();
            }
            return Ok(());
        }
        let Some(patience) = self.runtime.gate.rules.give_up_after else { return Ok(()) };
        match self.runtime.gate.health.failing() {
            Some(failing) if failing.lasts >= patience => Err(failing.fault),
            _ => Ok(()),
        }
    }

    pub(super) fn store_retry_at(&self) -> Time {
        self.now() + STORE_RETRY
    }
}

/// Converts the failure of a task of the engine into a store error. After a panic the whole process ends, so this is
/// recorded in `health`: `/readyz` must not wait for the exit.
pub(super) fn engine_failed(failed: JoinError, health: &StoreHealth) -> StoreError {
    match failed.try_into_panic() {
        Ok(payload) => {
            let text = panic_text(payload.as_ref());
            error!(panic = text, "the engine failed; its jobs will be rescued");
            let fault = StoreError::bug(format!("the engine panicked: {text}"));
            health.failed(StoreCall::Engine, &fault);
            fault
        }
        Err(cancelled) => {
            warn!(%cancelled, "the engine was cancelled; its jobs will be rescued");
            StoreError::bug(format!("the engine was cancelled: {cancelled}"))
        }
    }
}

/// The message of a panic.
pub(super) fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cancelled_task_is_not_called_a_panic() {
        let task = tokio::spawn(std::future::pending::<()>());
        task.abort();
        let health = StoreHealth::default();
        let fault = engine_failed(task.await.unwrap_err(), &health);
        assert!(fault.to_string().contains("the engine was cancelled"), "{fault}");
        assert!(health.fatal().is_none());
    }
}
