//! From the workbench through the gate to the web, and back with the outcome.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use fetchwell_policy::breaker::Transition;
use fetchwell_policy::outcome::Happened;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::retry_after::retry_after;
use fetchwell_policy::robots::Robots;
use fetchwell_policy::site::{Because, HORIZON, Mark, Permit, Report, Verdict};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};
use tracing::{info, warn};

use super::News;
use super::conductor::{Conductor, Event, Flight, SharedPlan, Work};
use crate::clock::Clock;
use crate::errands::{Errand, RobotsErrand, RobotsStep, probe};
use crate::gate::{GateLeave, RobotsView, why};
use crate::ports::{Moment, RobotsRecord, SiteAsk, SiteReport, Step, StoreFault, Turn};
use crate::web::{Answer, Exchange, Outcome, Phases, Web, Why};
use crate::workbench::{Item, JobKey, Room, Standing};

/// A site's wait is worth a line when it is longer than this…
const WORTH_A_LINE: Duration = Duration::from_secs(1);
/// …and when the last line about the site is older than this.
const LINE_EVERY: Duration = Duration::from_secs(60);

/// What came of a request.
pub(super) struct FetchEnd<R> {
    pub(super) job: JobKey,
    pub(super) site: Site,
    permit: Permit,
    end: End<R>,
}

enum End<R> {
    /// Leave was not given: the item asks anew.
    NotSent(Item),
    /// For an errand: the outcome itself.
    Errand(Outcome),
    /// For a lease: what its plan made of it.
    Stepped { step: Step<R>, happened: Happened, retry_after: Option<Duration>, phases: Phases },
}

/// What a room is to do next.
enum Move {
    /// Ask for a slot.
    Ask,
    /// Find out about this origin's robots.txt.
    Learn(Origin),
    /// The next page is not to be fetched.
    Refuse(Happened),
    /// robots.txt can't be reached: nothing goes before `until`.
    Blocked { until: Time, since: Time },
    /// Wait for what is under way.
    Wait,
    /// Nothing is left.
    Leave,
}

impl<R: Send + Sync + 'static> Conductor<R> {
    /// Whether a request may go now.
    pub(super) fn may_dispatch(&self) -> bool {
        self.flights.len() < self.plant.limits.max_in_flight
            && !self.is_stopping()
            && self.holds_its_lease()
    }

    /// Whether a site may ask for a slot: no more than could be used.
    pub(super) fn may_ask(&self) -> bool {
        self.flights.len() + self.asks.len() < self.plant.limits.max_in_flight
            && !self.is_stopping()
            && self.holds_its_lease()
    }

    /// Lets the sites go whose slots have come.
    pub(super) fn dispatch_what_is_due(&mut self) {
        while self.may_dispatch() {
            let Some(site) = self.bench.pop_slot(self.now()) else { return };
            let Some(room) = self.bench.existing(&site) else { continue };
            match std::mem::take(&mut room.standing) {
                Standing::Holds { permit, waited } => self.dispatch(&site, permit, waited),
                Standing::Asks | Standing::Asking | Standing::Waits => {}
            }
        }
    }

    /// Asks for the sites that are due, and tells the store what became of requests: one step.
    pub(super) fn ask_the_gate(&mut self) {
        while self.may_ask() {
            let Some(site) = self.bench.pop_ask(self.now()) else { break };
            self.consider(&site);
        }
        let nothing_to_say = self.asks.is_empty() && self.reports.is_empty();
        if self.turning || nothing_to_say || self.now() < self.turn_at {
            return;
        }
        self.turning = true;
        let (reports, asks) = (std::mem::take(&mut self.reports), std::mem::take(&mut self.asks));
        let started = std::mem::take(&mut self.started);
        let politeness = self.plant.gate.politeness.clone();
        self.tasks.spawn(async move {
            let turn = politeness.turn(&reports, &asks).await;
            Event::Turned(reports, asks, turn)
        });
        if !started.is_empty() {
            let source = self.door.source.clone();
            self.tasks.spawn(async move { Event::Noted(source.started(&started).await) });
        }
    }

    /// Finds out what a room is to do next, and does it.
    fn consider(&mut self, site: &Site) {
        loop {
            match self.next_move(site) {
                Move::Ask => {
                    let Some(room) = self.bench.existing(site) else { return };
                    let rate = self.plant.gate.rate(site, crawl_delay(room)).0;
                    let page_is_next = room.next().is_some_and(|item| !item.is_errand);
                    let follows_robots = room.follows_robots && page_is_next;
                    self.bench.await_verdict(site);
                    self.asks.push(SiteAsk { site: site.clone(), rate, follows_robots });
                    return;
                }
                Move::Learn(origin) => {
                    self.bench.wait(site);
                    return self.look_up_robots(origin);
                }
                Move::Refuse(happened) => self.refuse_next(site, happened),
                Move::Blocked { until, since } => return self.blocked(site, until, since),
                Move::Wait => return self.bench.wait(site),
                Move::Leave => {
                    self.bench.wait(site);
                    return self.bench.tidy(site);
                }
            }
        }
    }

    fn next_move(&mut self, site: &Site) -> Move {
        let (now, concurrency) = (self.now(), self.plant.gate.concurrency(site));
        let Some(room) = self.bench.existing(site) else { return Move::Leave };
        if concurrency.is_some_and(|most| room.in_flight >= most) {
            return Move::Wait;
        }
        let Some(item) = room.next() else { return Move::Leave };
        if !item.request.obeys_robots {
            return Move::Ask;
        }
        let origin = item.request.url.origin();
        if self.learning.contains_key(&origin) {
            return Move::Wait;
        }
        match room.robots.get(&origin) {
            Some(RobotsView::Blocked { until, since }) if now < *until => {
                Move::Blocked { until: *until, since: *since }
            }
            Some(RobotsView::Known(robots, until)) if now < *until => {
                if let Some(refusal) = self.plant.gate.crawl_delay_refusal(robots) {
                    return Move::Refuse(Happened::Refused(refusal));
                }
                let verdict = robots.verdict(item.request.url.path_and_query());
                if verdict.allowed { Move::Ask } else { Move::Refuse(Happened::RobotsDisallow) }
            }
            _ => Move::Learn(origin),
        }
    }

    /// Answers the next page of a room without asking for it.
    fn refuse_next(&mut self, site: &Site, happened: Happened) {
        let Some(item) = self.bench.existing(site).and_then(Room::pop) else { return };
        let why = self.why(site, &item);
        self.answer_unsent(&item, happened, why);
    }

    fn answer_unsent(&mut self, item: &Item, happened: Happened, why: Why) {
        if let Some(Work::Lease(work)) = self.jobs.get_mut(&item.job) {
            work.outstanding -= 1;
        }
        let outcome = Outcome::unsent(item.request.tag, happened, why);
        if item.is_errand {
            self.on_errand_outcome(item.job, &outcome);
        } else {
            self.step(item.job, Some(outcome));
        }
    }

    /// A site that can't be asked for a while: what waits goes back, or is given up.
    fn blocked(&mut self, site: &Site, until: Time, since: Time) {
        let now = self.now();
        let gives_up_at = self.plant.gate.gives_up_at(since).unwrap_or(Time::FAR_FUTURE);
        let Some(room) = self.bench.existing(site) else { return };
        let near = until <= now + HORIZON && until < gives_up_at;
        if near {
            return self.bench.ask_at(site, until);
        }
        let (pages, errands) = (room.take_beyond(0), room.take_errands());
        self.bench.wait(site);
        if gives_up_at <= now {
            self.closed.insert(site.clone(), now); // The rest of the site is given up at once, too.
            for item in pages {
                let why = self.why(site, &item);
                self.answer_unsent(&item, Happened::SiteStayedDown { since }, why);
            }
        } else {
            self.hand_back_items(site, pages, until.min(gives_up_at));
        }
        for item in errands {
            let happened = Happened::SiteStayedDown { since };
            self.answer_unsent(&item, happened, Why::default());
        }
        self.bench.tidy(site);
    }

    pub(super) fn on_turned(
        &mut self,
        mut reports: Vec<SiteReport>,
        asks: Vec<SiteAsk>,
        turn: Result<Turn, StoreFault>,
    ) {
        self.turning = false;
        let turn = match turn {
            Ok(turn) => turn,
            Err(fault) => {
                warn!(%fault, "the politeness store can't be asked: no requests until it can");
                self.turn_at = self.store_retry_at();
                reports.append(&mut self.reports);
                self.reports = reports;
                self.asks.splice(0..0, asks);
                return;
            }
        };
        for (site, transition) in turn.transitions {
            self.announce(site, transition, turn.now);
        }
        for (ask, verdict) in asks.into_iter().zip(turn.verdicts) {
            self.on_verdict(&ask.site, ask.rate, verdict, turn.now);
        }
    }

    /// Verdicts are by the store's clock; what counts here is how far off they lie.
    fn on_verdict(&mut self, site: &Site, rate: Rate, verdict: Verdict, store_now: Time) {
        let now = self.now();
        let here = |at: Time| now + at.since(store_now);
        match verdict {
            Verdict::Go(permit) => {
                let at = here(permit.slot.at);
                self.log_wait(site, at.since(now));
                self.hand_back_what_is_too_much(site, rate, at);
                if at > now || !self.may_dispatch() {
                    return self.bench.hold(site, permit, at, true);
                }
                self.dispatch(site, permit, false);
            }
            Verdict::Probe(permit) => self.start_probe(site, permit, here(permit.slot.at)),
            Verdict::NotBefore { at, because } => match because {
                Because::BreakerOpen { failing_since } => {
                    self.blocked(site, here(at), failing_since);
                }
                Because::Penalty | Because::Pace => self.blocked(site, here(at), Time::FAR_FUTURE),
            },
        }
    }

    /// What can't go within the horizon at this pace goes back to the store.
    fn hand_back_what_is_too_much(&mut self, site: &Site, rate: Rate, first_at: Time) {
        let enough = self.enough_for(rate.interval);
        let Some(room) = self.bench.existing(site) else { return };
        if room.pages() > enough + enough / 2 {
            let beyond = room.take_beyond(enough);
            let half = u32::try_from(enough.div_ceil(2)).unwrap_or(u32::MAX);
            let at = first_at + rate.interval.saturating_mul(half);
            self.hand_back_items(site, beyond, at);
        }
    }

    /// Sends the next request of a room; without pacing, as many as there is room for.
    fn dispatch(&mut self, site: &Site, permit: Permit, waited: bool) {
        let concurrency = self.plant.gate.concurrency(site).unwrap_or(usize::MAX);
        loop {
            if !matches!(self.next_move(site), Move::Ask) {
                break;
            }
            let Some(room) = self.bench.existing(site) else { return };
            let Some(item) = room.pop() else { break };
            room.in_flight += 1;
            let is_errand = item.is_errand;
            let follows = !item.is_errand && std::mem::take(&mut room.follows_robots);
            let rate = self.plant.gate.rate(site, crawl_delay(room)).0;
            let unpaced = rate.interval.is_zero();
            let in_flight = room.in_flight;
            let leave = self.plant.gate.leave(site.clone(), permit, rate, waited);
            self.fly(site, item, permit, leave.following_robots(follows));
            let more = unpaced && !is_errand && in_flight < concurrency && self.may_dispatch();
            if !more {
                break;
            }
        }
        let now = self.now();
        self.bench.ask_at(site, now);
    }

    fn fly(&mut self, site: &Site, item: Item, permit: Permit, leave: GateLeave) {
        let (job, now) = (item.job, self.now());
        let mut phases = Phases::default();
        let known_at = item.robots_known_at.unwrap_or(item.since);
        phases.robots = known_at.since(item.since);
        phases.slot = now.since(known_at);
        let plan = match self.jobs.get(&job) {
            Some(Work::Lease(work)) => {
                phases.queued = work.phases.queued;
                self.started.push(work.lease.id);
                Some(work.plan.clone())
            }
            _ => None,
        };
        let mut why = self.why(site, &item);
        why.site_last_served = permit.last_served;
        let flight = Fetch {
            web: self.plant.web.clone(),
            clock: self.plant.clock.clone(),
            chance: self.chance.unit(),
            site: site.clone(),
            item,
            permit,
            leave,
            plan,
            phases,
            why,
        };
        let abort = self.tasks.spawn(async move { Event::Fetched(Box::new(flight.run().await)) });
        self.flights.insert(abort.id(), Flight { job, site: site.clone(), abort });
    }

    pub(super) fn on_fetched(&mut self, fetched: FetchEnd<R>) {
        let FetchEnd { job, site, permit, end } = fetched;
        match end {
            // The store takes a probe that was not sent for lost, and gives it out again.
            End::NotSent(_) if self.is_probe(job) => {
                self.jobs.remove(&job);
                self.landed(&site);
            }
            End::NotSent(item) => {
                let (now, group) = (self.now(), self.group_of(job));
                let room = self.bench.room(&site, now);
                room.follows_robots = false;
                room.push(item, group.as_deref(), true);
                self.landed(&site);
            }
            End::Errand(outcome) => {
                let happened = &outcome.happened;
                let mark = if self.is_probe(job) { happened.probe_mark() } else { happened.mark() };
                self.report(&site, permit, mark, &outcome.happened, outcome.retry_after);
                self.on_errand_outcome(job, &outcome);
                self.landed(&site);
            }
            End::Stepped { step, happened, retry_after, phases } => {
                self.report(&site, permit, happened.mark(), &happened, retry_after);
                if let Some(Work::Lease(work)) = self.jobs.get_mut(&job) {
                    work.outstanding -= 1;
                    work.phases = phases;
                }
                self.carry_out(job, step);
                self.landed(&site);
            }
        }
    }

    /// A request is over: its room may have waited for that.
    pub(super) fn landed(&mut self, site: &Site) {
        let Some(room) = self.bench.existing(site) else { return };
        room.in_flight = room.in_flight.saturating_sub(1);
        if room.is_empty() { self.bench.tidy(site) } else { self.wake(site) }
    }

    /// Tells the store what it does not know yet.
    fn report(
        &mut self,
        site: &Site,
        permit: Permit,
        mark: Mark,
        happened: &Happened,
        retry_after: Option<Duration>,
    ) {
        let known = match mark {
            Mark::Neutral => true,
            Mark::Served => !permit.failures_on_record,
            _ => false,
        };
        if known {
            return;
        }
        let retry_after = retry_after.filter(|_| matches!(happened.status(), Some(429 | 503)));
        let report = Report { mark, retry_after, generation: permit.generation };
        self.reports.push(SiteReport { site: site.clone(), report });
        // What this process reserved before a penalty is void here at once.
        let penalised = mark == Mark::Limited || retry_after.is_some();
        let now = self.now();
        if let (true, Some(room)) = (penalised, self.bench.existing(site)) {
            if matches!(room.standing, Standing::Holds { .. }) {
                self.bench.ask_at(site, now);
            }
        }
    }

    fn start_probe(&mut self, site: &Site, permit: Permit, at: Time) {
        let Some(room) = self.bench.existing(site) else { return };
        let Some(item) = room.next() else { return };
        let origin = item.request.url.origin();
        let url = self.plant.gate.probe_url(&origin, known_robots(room, &origin));
        let job = self.new_errand(Errand::Probe(site.clone()));
        let item = self.item(job, probe(url), true);
        let now = self.now();
        let room = self.bench.room(site, now);
        let waiting = room.take_errands(); // The probe goes first, alone.
        room.push(item, None, false);
        for errand in waiting {
            room.push(errand, None, false);
        }
        self.bench.hold(site, permit, at, true);
    }

    fn is_probe(&self, job: JobKey) -> bool {
        matches!(self.jobs.get(&job), Some(Work::Errand(Errand::Probe(_))))
    }

    fn new_errand(&mut self, errand: Errand) -> JobKey {
        let job = self.next_job;
        self.next_job += 1;
        self.jobs.insert(job, Work::Errand(errand));
        job
    }

    fn look_up_robots(&mut self, origin: Origin) {
        if self.learning.contains_key(&origin) {
            return;
        }
        self.learning.insert(origin.clone(), None);
        let politeness = self.plant.gate.politeness.clone();
        self.tasks.spawn(async move {
            let record = politeness.robots(&origin).await;
            Event::RobotsLookedUp(origin, record)
        });
    }

    pub(super) fn on_robots_looked_up(
        &mut self,
        origin: Origin,
        record: Result<Option<RobotsRecord>, StoreFault>,
    ) {
        self.learning.remove(&origin);
        let now = self.now();
        let site = origin.site();
        let record = match record {
            Ok(record) => record,
            Err(fault) => {
                warn!(%fault, %origin, "robots.txt could not be looked up; trying again");
                let again = self.store_retry_at();
                return self.bench.ask_at(&site, again);
            }
        };
        if self.bench.existing(&site).is_none_or(|room| room.is_empty()) {
            return self.bench.tidy(&site);
        }
        match self.plant.gate.view(record.as_ref()) {
            RobotsView::Fetch => {
                self.learning.insert(origin.clone(), record.clone());
                let errand = RobotsErrand::new(origin, record);
                let request = errand.request();
                let job = self.new_errand(Errand::Robots(errand));
                let item = self.item(job, request, true);
                self.bench.room(&site, now).push(item, None, false);
            }
            view => self.robots_known(&origin, view, false),
        }
        self.bench.ask_at(&site, now);
    }

    fn on_errand_outcome(&mut self, job: JobKey, outcome: &Outcome) {
        let now = self.now();
        match self.jobs.get_mut(&job) {
            Some(Work::Errand(Errand::Robots(errand))) => match errand.step(outcome, now) {
                RobotsStep::Fetch(request) => {
                    let site = request.url.site();
                    let item = self.item(job, request, true);
                    self.bench.room(&site, now).push(item, None, false);
                    self.wake(&site);
                }
                RobotsStep::Learnt(record) => {
                    let origin = errand.origin.clone();
                    self.jobs.remove(&job);
                    self.learnt(origin, record);
                }
            },
            Some(Work::Errand(Errand::Probe(site))) => {
                let site = site.clone();
                self.jobs.remove(&job);
                self.bench.ask_at(&site, now);
            }
            _ => {}
        }
    }

    pub(super) fn errand_failed(&mut self, job: JobKey, reason: String) {
        let outcome = Outcome::unsent(0, Happened::OurFault(reason), Why::default());
        self.on_errand_outcome(job, &outcome);
    }

    /// A robots.txt was read: keeps it, and lets the pages go that waited for it.
    fn learnt(&mut self, origin: Origin, record: RobotsRecord) {
        self.learning.remove(&origin);
        if let Some(unreachable) = &record.unreachable {
            warn!(%origin, reason = unreachable.reason, "robots.txt can't be reached");
        }
        let view = self.plant.gate.view(Some(&record));
        self.robots_known(&origin, view, true);
        let politeness = self.plant.gate.politeness.clone();
        let kept = origin.clone();
        self.tasks.spawn(async move { Event::Noted(politeness.keep_robots(&kept, &record).await) });
    }

    fn robots_known(&mut self, origin: &Origin, view: RobotsView, just_read: bool) {
        let (now, site) = (self.now(), origin.site());
        let Some(room) = self.bench.existing(&site) else { return };
        room.follows_robots |= just_read && matches!(view, RobotsView::Known(..));
        room.robots.insert(origin.clone(), view);
        room.mark_robots_known(origin, now);
        self.wake(&site);
    }

    /// Lets a room that waits look again.
    pub(super) fn wake(&mut self, site: &Site) {
        let now = self.now();
        let Some(room) = self.bench.existing(site) else { return };
        if matches!(room.standing, Standing::Waits) {
            self.bench.ask_at(site, now);
        }
    }

    fn why(&mut self, site: &Site, item: &Item) -> Why {
        let Some(room) = self.bench.existing(site) else { return Why::default() };
        let robots = known_robots(room, &item.request.url.origin());
        let (rate, source) = self.plant.gate.rate(site, crawl_delay(room));
        why(robots.filter(|_| item.request.obeys_robots), &item.request.url, rate, source)
    }

    fn group_of(&self, job: JobKey) -> Option<String> {
        match self.jobs.get(&job) {
            Some(Work::Lease(work)) => work.lease.job.group.clone(),
            _ => None,
        }
    }

    fn announce(&self, site: Site, transition: Transition, store_now: Time) {
        match transition {
            Transition::Opened { probe_at } => {
                let wait_s = probe_at.since(store_now).as_secs_f64().round();
                warn!("Circuit open: {site} appears down. Next probe in {wait_s}s.");
            }
            Transition::Closed => info!("Circuit closed: {site} is back."),
            Transition::None => return,
        }
        (self.plant.watcher)(News::Breaker(site, transition));
    }

    fn log_wait(&mut self, site: &Site, wait: Duration) {
        let now = self.now();
        let recent = self.last_wait_logged.get(site).is_some_and(|at| now.since(*at) < LINE_EVERY);
        if wait > WORTH_A_LINE && !recent {
            self.last_wait_logged.insert(site.clone(), now);
            info!("Waiting {:.1}s before request to {site}", wait.as_secs_f64());
        }
    }
}

/// The longest Crawl-delay among the origins of a site.
pub(super) fn crawl_delay(room: &Room) -> Option<Duration> {
    room.robots
        .values()
        .filter_map(|view| match view {
            RobotsView::Known(robots, _) => robots.crawl_delay(),
            _ => None,
        })
        .max()
}

fn known_robots<'a>(room: &'a Room, origin: &Origin) -> Option<&'a Robots> {
    match room.robots.get(origin)? {
        RobotsView::Known(robots, _) => Some(robots),
        _ => None,
    }
}

/// One request, from leave to outcome, in a task of its own.
struct Fetch<R> {
    web: Arc<dyn Web>,
    clock: Clock,
    chance: f64,
    site: Site,
    item: Item,
    permit: Permit,
    leave: GateLeave,
    plan: Option<SharedPlan<R>>,
    phases: Phases,
    why: Why,
}

impl<R> Fetch<R> {
    async fn run(mut self) -> FetchEnd<R> {
        let exchange =
            self.web.exchange(&self.item.request, &mut self.leave, &mut self.phases).await;
        let (job, tag, now) = (self.item.job, self.item.request.tag, self.clock.now());
        let (happened, answer) = match exchange {
            Exchange::NotSent => {
                let end = End::NotSent(self.item);
                return FetchEnd { job, site: self.site, permit: self.permit, end };
            }
            Exchange::Answered(answer) => (Happened::Answered(answer.status), Some(answer)),
            Exchange::Failed(happened) => (happened, None),
        };
        let retry_after = answer.as_ref().and_then(|answer| asked_wait(answer, now));
        let summary = happened.clone();
        let (phases, why) = (self.phases, self.why);
        let outcome = Outcome { tag, happened, answer, retry_after, why, phases };
        let end = match self.plan {
            None => End::Errand(outcome),
            Some(plan) => {
                let moment = Moment { now, chance: self.chance };
                // A panic of an earlier step ended this job; a later outcome finds it gone.
                let step =
                    plan.lock().unwrap_or_else(PoisonError::into_inner).step(Some(outcome), moment);
                End::Stepped { step, happened: summary, retry_after, phases }
            }
        };
        FetchEnd { job, site: self.site, permit: self.permit, end }
    }
}

fn asked_wait(answer: &Answer, now: Time) -> Option<Duration> {
    retry_after(answer.header("retry-after")?, now)
}
