//! Decides what a site does next, and handles the verdicts of the gate.

use std::time::Duration;

use fetchwell_policy::breaker::Transition;
use fetchwell_policy::health::FailedProbes;
use fetchwell_policy::outcome::{FetchOutcome, WaitAskedBy};
use fetchwell_policy::pace::Rate;
use fetchwell_policy::retry::History;
use fetchwell_policy::site::{Because, HORIZON, Permit, Verdict};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};
use tracing::{info, warn};

use super::Event;
use super::dispatch::crawl_delay;
use super::intake::UNTIL_CLOSED;
use super::scheduler::Scheduler;
use super::site_log::Line;
use crate::gate::{CRAWL_DELAY, RobotsView, rule_of};
use crate::ports::error::StoreError;
use crate::ports::job::Lease;
use crate::ports::politeness::{ORDERS_TOLD_FOR, SiteAsk, SiteReport, Turn};
use crate::store_health::StoreCall;
use crate::web::{Outcome, Why};
use crate::workbench::{JobKey, PendingLease, QueuedRequest};

/// A wait of a site is logged if it is longer than this.
const WORTH_A_LINE: Duration = Duration::from_secs(1);

/// How long the store closes a paused site, unless there is an operator's order. The store reports orders for longer
/// than this, so none is missed, not even by a process that starts in that time.
const PAUSED_CLOSED_FOR: Duration = Duration::from_mins(30);
const _: () = assert!(PAUSED_CLOSED_FOR.as_secs() < ORDERS_TOLD_FOR.as_secs());

/// What a site does next.
pub(super) enum Move {
    /// Ask for a slot. `rule` is the rule of robots.txt that allows the next page, if there is one.
    Ask { rule: Option<String> },
    /// Find out the robots.txt of this origin.
    Learn(Origin),
    /// The next page must not be fetched.
    Refuse(FetchOutcome),
    /// robots.txt is unreachable: nothing is sent before `until`.
    Blocked { until: Time, since: Time },
    /// All groups with something waiting have used their turns: none may send before `until`.
    Rest { until: Time },
    /// Wait for what is in progress.
    Wait,
    /// Nothing is left.
    Leave,
}

/// What waited in the queue of a site.
struct Cleared {
    pages: Vec<QueuedRequest>,
    /// Pages whose jobs cannot be handed back without losing results.
    parked: Vec<QueuedRequest>,
    internal_fetches: Vec<QueuedRequest>,
}

/// The clocks of the store and of this process during one turn.
#[derive(Clone, Copy)]
struct Clocks {
    /// The store's time when it answered.
    store_now: Time,
    /// When the turn was sent, by the local clock.
    asked_at: Time,
    /// When the answer was received, by the local clock.
    now: Time,
}

impl Clocks {
    /// Converts a time of the store's clock to the local one. The store answered at some time between `asked_at` and
    /// `now`, so a future time is taken as late as possible and a past time as early as possible: nothing is sent too
    /// early, and no grace period is taken for longer than it is.
    fn here(self, at: Time) -> Time {
        if at > self.store_now {
            self.now + at.since(self.store_now)
        } else {
            self.asked_at - self.store_now.since(at)
        }
    }
}

impl<R: Send + Sync + 'static> Scheduler<R> {
    /// Decides what a site does next, and does it.
    pub(super) fn consider(&mut self, site: &Site) {
        loop {
            match self.next_move(site) {
                Move::Ask { rule } => {
                    let rate = self.rate_of_next(site);
                    // Everything accepted here must also pass `was_asked_for_next`; otherwise this loops.
                    if let Some((permit, from)) = self.open_permit(site)
                        && (rate.interval.is_zero()
                            || (permit.rate_is_ordered && rate.least_interval.is_zero()))
                    {
                        return self.dispatch_from(site, rule, permit, self.now().max(from));
                    }
                    let page_is_next = self.take_turn_for_next(site);
                    let Some(site_queue) = self.bench.existing(site) else { return };
                    site_queue.asked_interval = rate.interval;
                    // If reading robots.txt took long, another process may have sent a request since: then this is a
                    // page like any other.
                    site_queue.follows_robots &=
                        !page_is_next || self.runtime.gate.heads.is_last(site);
                    let follows_robots = site_queue.follows_robots && page_is_next;
                    self.bench.await_verdict(site);
                    self.turns.ask(SiteAsk { site: site.clone(), rate, follows_robots });
                    return;
                }
                Move::Learn(origin) => {
                    self.bench.wait(site);
                    return self.look_up_robots(origin);
                }
                Move::Refuse(happened) => self.refuse_next(site, happened),
                Move::Blocked { until, since } => return self.blocked(site, until, since),
                Move::Rest { until } => return self.bench.ask_at(site, until),
                Move::Wait => return self.bench.wait(site),
                Move::Leave => {
                    self.bench.wait(site);
                    return self.bench.tidy(site);
                }
            }
        }
    }

    pub(super) fn next_move(&mut self, site: &Site) -> Move {
        self.begin_next(site);
        let now = self.now();
        let concurrency = self.runtime.gate.concurrency(site);
        let Some(site_queue) = self.bench.existing(site) else { return self.rest_or_leave(site) };
        if site_queue.unspent.is_some()
            || concurrency.is_some_and(|most| site_queue.in_flight >= most)
        {
            return Move::Wait;
        }
        let may_go = self.groups.may_go(&self.runtime.gate, site_queue.turn_of.clone(), now);
        let Some(item) = site_queue.next(may_go) else { return self.rest_or_leave(site) };
        if !item.request.obeys_robots {
            return Move::Ask { rule: None };
        }
        let url = &item.request.url;
        if self.lookups.is_under_way(url.origin_key()) {
            return Move::Wait;
        }
        match site_queue.robots.get(url.origin_key()) {
            Some(RobotsView::Blocked { until, since, is_asked_for, .. }) if now < *until => {
                let gate = &self.runtime.gate;
                let wait = until.since(now);
                let too_long = is_asked_for
                    .then(|| gate.wait_too_long(WaitAskedBy::RetryAfter, wait))
                    .flatten();
                match too_long {
                    Some(happened) => Move::Refuse(happened),
                    None => Move::Blocked { until: *until, since: *since },
                }
            }
            Some(RobotsView::Known { robots, until, .. }) if now < *until => {
                if let Some(refusal) = self.runtime.gate.crawl_delay_refusal(robots) {
                    return Move::Refuse(FetchOutcome::Refused(refusal));
                }
                let verdict = robots.verdict(url.path_and_query());
                if verdict.allowed {
                    Move::Ask { rule: rule_of(verdict) }
                } else {
                    Move::Refuse(FetchOutcome::RobotsDisallow)
                }
            }
            Some(RobotsView::Refused(happened)) => Move::Refuse(happened.clone()),
            _ => Move::Learn(url.origin()),
        }
    }

    /// What waits for a site but may not be sent waits for the turns of its groups.
    fn rest_or_leave(&self, site: &Site) -> Move {
        let now = self.now();
        let groups = self.bench.lanes(site).filter_map(|lane| lane.group.as_deref());
        match groups.map(|group| self.groups.opens_at(group, &self.runtime.gate, now)).min() {
            Some(until) => Move::Rest { until },
            None => Move::Leave,
        }
    }

    /// Takes the turn of the next page's group. Returns whether a page is next.
    fn take_turn_for_next(&mut self, site: &Site) -> bool {
        let Some(job) = self.next_page(site) else { return false };
        let now = self.now();
        let group = self.jobs.lane_of(job).group;
        if let Some(site_queue) = self.bench.existing(site)
            && site_queue.turn_of != group
        {
            self.groups.take_turn(group.as_deref(), &self.runtime.gate, now);
            site_queue.turn_of = group;
        }
        true
    }

    /// Answers the next page of a site without sending its request.
    pub(super) fn refuse_next(&mut self, site: &Site, happened: FetchOutcome) {
        let now = self.now();
        let Some(site_queue) = self.bench.existing(site) else { return };
        let may_go = self.groups.may_go(&self.runtime.gate, site_queue.turn_of.clone(), now);
        let Some(item) = site_queue.pop(may_go) else { return };
        let why = self.why(site, &item);
        if matches!(happened, FetchOutcome::NoSuchHost | FetchOutcome::WaitTooLong { .. }) {
            self.supply.close(site, now); // Opens the site, so that its other URLs end, too.
        }
        let was_tried = happened == FetchOutcome::NoSuchHost;
        self.answer(&item, happened, why, was_tried);
    }

    pub(super) fn answer_unsent(&mut self, item: &QueuedRequest, happened: FetchOutcome, why: Why) {
        self.answer(item, happened, why, false);
    }

    /// Answers a request in place of the web. `was_tried`: it counts as an attempt.
    pub(super) fn answer(
        &mut self,
        item: &QueuedRequest,
        happened: FetchOutcome,
        why: Why,
        was_tried: bool,
    ) {
        self.jobs.one_less_outstanding(item.job);
        let outcome = Outcome { was_sent: was_tried, ..Outcome::unsent(happened, why) };
        if item.is_internal {
            self.on_internal_outcome(item.job, &outcome);
        } else {
            self.step(item.job, Some(outcome));
        }
    }

    /// A site cannot be used for a while: what waits is handed back or given up.
    pub(super) fn blocked(&mut self, site: &Site, until: Time, since: Time) {
        let now = self.now();
        let gives_up_at = self.runtime.gate.gives_up_at(since).unwrap_or(Time::FAR_FUTURE);
        if gives_up_at <= now {
            let happened = self.stayed_down(site, since);
            return self.give_up_site(site, &happened, until);
        }
        if self.bench.existing(site).is_none() {
            return;
        }
        let near = until <= now + HORIZON && until < gives_up_at;
        if near {
            return self.bench.ask_at(site, until);
        }
        let Some(Cleared { pages, parked, internal_fetches }) = self.clear(site) else { return };
        let pending_leases = self.bench.take_pending_beyond(site, 0);
        self.close(site, pending_leases, pages, until.min(gives_up_at));
        for item in internal_fetches {
            // A robots.txt that could not be requested was not tried. It is requested when its pages come again.
            if !self.forget_own_fetch(site, item.job) {
                let happened = self.stayed_down(site, since);
                self.answer_unsent(&item, happened, Why::default());
            }
        }
        self.park(site, parked, until);
        self.bench.tidy(site);
    }

    /// The breaker of a site is open. If the door wants that, each failed probe counts as an attempt of every URL that
    /// waited for it: URLs without attempts left end, and the rest waits for the next probe. As long as some end, the
    /// source is asked for more of the site, so that nothing in the store has to be counted or rewritten.
    fn down(&mut self, site: &Site, until: Time, since: Time, failed_probes: &FailedProbes) {
        let some_ended = self.end_what_waited_enough(site, failed_probes);
        self.blocked(site, until, since);
        if some_ended {
            self.supply.open(site, self.now());
        }
    }

    /// Ends the pages of a site whose own failures, together with the probes that failed since they were accepted, use
    /// up their attempts. Returns whether there were any.
    fn end_what_waited_enough(&mut self, site: &Site, failed_probes: &FailedProbes) -> bool {
        let (Some(most), Some(last)) = (self.runtime.gate.rules.site_attempts, failed_probes.last)
        else {
            return false;
        };
        // How many of the failed probes used up its attempts; `None` if it has some left.
        let waited_enough = |lease: &Lease| {
            let History { url_failures, site_failures, .. } = lease.history;
            let left = most.saturating_sub(url_failures.saturating_add(site_failures)).max(1);
            (failed_probes.since(lease.accepted_at) >= left).then_some(left)
        };
        let now = self.now();
        for pending_lease in self.bench.take_pending_beyond(site, 0).into_iter().rev() {
            let since = pending_lease.since;
            let lease = pending_lease.open(site);
            match waited_enough(&lease) {
                Some(_) => self.begin(lease, since), // Its request is answered below.
                None => self.bench.add_pending(site, PendingLease::of(lease, since), now),
            }
        }
        let mut stay = Vec::new();
        let mut some_ended = false;
        for item in self.bench.take_pages_beyond(site, 0) {
            let work = self.jobs.lease(item.job);
            match work.and_then(|work| waited_enough(&work.lease)) {
                Some(count) => {
                    some_ended = true;
                    let why = self.why(site, &item);
                    self.answer_unsent(&item, FetchOutcome::ProbesFailed { count, last }, why);
                }
                None => stay.push(item),
            }
        }
        self.put_first(site, stay);
        some_ended
    }

    /// Gives up everything that waits for a site. The rest of the site is taken from the store and given up, too. Jobs
    /// with results in hand ask again at `ask_again_at`.
    fn give_up_site(&mut self, site: &Site, happened: &FetchOutcome, ask_again_at: Time) {
        self.begin_all(site); // Their requests are answered below.
        let Some(Cleared { pages, parked, internal_fetches }) = self.clear(site) else { return };
        self.supply.close(site, self.now());
        for item in pages {
            let why = self.why(site, &item);
            self.answer_unsent(&item, happened.clone(), why);
        }
        for item in internal_fetches {
            self.answer_unsent(&item, happened.clone(), Why::default());
        }
        self.park(site, parked, ask_again_at);
        self.bench.tidy(site);
    }

    /// The outcome for the URLs of a site whose Crawl-delay makes them wait for longer than the run allows.
    fn crawl_delay_too_long(&mut self, site: &Site, wait: Duration) -> Option<FetchOutcome> {
        let crawl_delay = crawl_delay(self.bench.existing(site)?)?;
        let gate = &self.runtime.gate;
        let (_, source) = gate.rules.rate(site, Some(crawl_delay));
        let asked_by = WaitAskedBy::CrawlDelay;
        (source == CRAWL_DELAY).then(|| gate.wait_too_long(asked_by, wait)).flatten()
    }

    /// An operator paused a site: everything that can goes back to the store, which closes the site until there is an
    /// order. What must stay asks again at `ask_again_at`.
    fn paused(&mut self, site: &Site, ask_again_at: Time) {
        let pending_leases = self.bench.take_pending_beyond(site, 0);
        let Some(Cleared { pages, mut parked, internal_fetches }) = self.clear(site) else {
            return;
        };
        info!("{site} is paused by an operator: its URLs wait");
        self.close(site, pending_leases, pages, self.now() + PAUSED_CLOSED_FOR);
        parked.extend(
            internal_fetches.into_iter().filter(|item| !self.forget_own_fetch(site, item.job)),
        );
        self.park(site, parked, ask_again_at);
        self.bench.tidy(site);
    }

    /// Takes everything out of the queue of a site, which then waits.
    fn clear(&mut self, site: &Site) -> Option<Cleared> {
        let site_queue = self.bench.existing(site)?;
        let pages = site_queue.take_beyond(0);
        let internal_fetches = site_queue.take_internal_fetches();
        self.bench.wait(site);
        let (parked, pages) =
            pages.into_iter().partition(|item| self.has_results_in_hand(item.job));
        Some(Cleared { pages, parked, internal_fetches })
    }

    /// Applies what else a permit says. Returns false if what is known of robots.txt is no longer valid: then it must
    /// be looked up first, and the permit goes unused.
    fn heed(&mut self, site: &Site, permit: &Permit) -> bool {
        let Some(site_queue) = self.bench.existing(site) else { return true };
        site_queue.ordered_interval = permit.rate_is_ordered.then_some(permit.rate.interval);
        let known_as_of = site_queue.robots_forgotten.replace(permit.robots_forgotten);
        let is_ordered = known_as_of.is_some_and(|as_of| as_of != permit.robots_forgotten);
        if is_ordered {
            site_queue.robots.clear();
        }
        let is_forgotten = site_queue.forget_robots(permit.robots_forgotten);
        let is_unread = site_queue.forget_unread(Some(permit.recoveries));
        let is_outdated = is_ordered || is_forgotten || is_unread;
        site_queue.follows_robots &= !is_outdated;
        !is_outdated
    }

    /// Keeps jobs that cannot be handed back without losing results, until their site is open again.
    pub(super) fn park(&mut self, site: &Site, items: Vec<QueuedRequest>, until: Time) {
        if !items.is_empty() {
            self.put_first(site, items);
            self.bench.ask_at(site, until);
        }
    }

    /// Queues requests again, before all others of their lanes.
    pub(super) fn put_first(
        &mut self,
        site: &Site,
        items: impl IntoIterator<Item = QueuedRequest>,
    ) {
        let now = self.now();
        for item in items {
            let lane = self.jobs.lane_of(item.job);
            self.bench.site_queue(site, now).push(item, &lane, true);
        }
    }

    pub(super) fn has_results_in_hand(&self, job: JobKey) -> bool {
        self.jobs.lease(job).is_some_and(|work| work.plan.lock().has_results_in_hand())
    }

    pub(super) fn on_turned(
        &mut self,
        asked_at: Time,
        reports: Vec<SiteReport>,
        mut asks: Vec<SiteAsk>,
        turn: Result<Turn, StoreError>,
    ) {
        self.turns.ended();
        self.note_call(StoreCall::Pace, &turn);
        let turn = match turn {
            Ok(turn) => turn,
            // No retry can fix this and the run ends, so neither requests nor reports are queued again.
            Err(fault) if !fault.is_transient() => {
                return self.turns.rest_until(self.store_retry_at());
            }
            Err(_) => {
                for ask in asks.iter_mut().filter(|ask| ask.follows_robots) {
                    ask.follows_robots = false;
                    self.forget_that_page_follows(&ask.site);
                }
                let retry_at = self.store_retry_at();
                return self.turns.put_back(reports, asks, self.now(), retry_at);
            }
        };
        for (site, transition) in turn.transitions {
            // Pages that wait for an unread robots.txt wait for the first probe instead, which may be sooner.
            let waits_otherwise = match transition {
                Transition::Closed => true,
                Transition::Opened { .. } => self
                    .bench
                    .existing(&site)
                    .is_none_or(|site_queue| site_queue.forget_unread(None)),
                Transition::None => false,
            };
            if waits_otherwise {
                self.look_again_at(&site);
                self.hear_of_more();
            }
            self.announce(site, transition, turn.now);
        }
        for (ask, verdict) in asks.into_iter().zip(turn.verdicts) {
            let clocks = Clocks { store_now: turn.now, asked_at, now: self.now() };
            let is_too_late = ask.follows_robots
                && matches!(verdict, Verdict::Go(_))
                && !self.runtime.gate.heads.is_last(&ask.site);
            if is_too_late {
                self.forget_that_page_follows(&ask.site);
                self.bench.ask_at(&ask.site, clocks.now);
            } else {
                self.on_verdict(&ask.site, verdict, clocks);
            }
        }
    }

    /// Another process may have sent a request since the robots.txt, so the page that it was read for is one like any
    /// other.
    pub(super) fn forget_that_page_follows(&mut self, site: &Site) {
        if let Some(site_queue) = self.bench.existing(site) {
            site_queue.follows_robots = false;
        }
    }

    fn on_verdict(&mut self, site: &Site, verdict: Verdict, clocks: Clocks) {
        let now = clocks.now;
        let here = |at: Time| clocks.here(at);
        let of_ours =
            |permit: Permit| Permit { last_served: permit.last_served.map(here), ..permit };
        match verdict {
            Verdict::Go(permit) if !self.heed(site, &permit) => self.bench.ask_at(site, now),
            Verdict::Go(permit) => {
                let rate = permit.rate;
                let at = here(permit.slot.at);
                let permit = of_ours(permit);
                if let Some(happened) = self.crawl_delay_too_long(site, at.since(now)) {
                    return self.give_up_site(site, &happened, at);
                }
                self.log_wait(site, at.since(now));
                self.hand_back_what_is_too_much(site, rate, at);
                let may_go =
                    if rate.interval.is_zero() { self.may_ask() } else { self.may_dispatch() };
                if at > now || !may_go {
                    return self.bench.hold(site, permit, at);
                }
                self.dispatch(site, permit, at);
            }
            Verdict::Probe(permit) => {
                self.start_probe(site, of_ours(permit), here(permit.slot.at));
            }
            Verdict::NotBefore { at, because } => match because {
                Because::BreakerOpen { failing_since, failed_probes } => {
                    let failed_probes = failed_probes.with_times(here);
                    self.down(site, here(at), here(failing_since), &failed_probes);
                }
                Because::Paused => self.paused(site, here(at)),
                Because::Penalty | Because::Pace => {
                    let until = here(at);
                    let wait = until.since(now);
                    let too_long = match because {
                        Because::Penalty => {
                            self.runtime.gate.wait_too_long(WaitAskedBy::Penalty, wait)
                        }
                        _ => self.crawl_delay_too_long(site, wait),
                    };
                    if let Some(happened) = too_long {
                        return self.give_up_site(site, &happened, until);
                    }
                    self.log_wait(site, wait);
                    self.blocked(site, until, Time::FAR_FUTURE);
                }
            },
        }
    }

    /// Hands back what cannot be sent within the horizon at this pace.
    pub(super) fn hand_back_what_is_too_much(&mut self, site: &Site, rate: Rate, first_at: Time) {
        if rate.interval.is_zero() {
            return; // Without pacing, everything can be sent within the horizon.
        }
        // Where groups share a site, the quickest of them decides how much is worth keeping.
        let interval = rate.interval.min(self.interval_of(site));
        let enough = self.enough_for(interval);
        if self.bench.pages(site) > enough + enough / 2 {
            let half = u32::try_from(enough.div_ceil(2)).unwrap_or(u32::MAX);
            let mut at = first_at + interval.saturating_mul(half);
            let wait = at.since(self.now());
            if self.crawl_delay_too_long(site, wait).is_some() {
                at = self.now() + UNTIL_CLOSED; // It is given up when it comes back.
            } else if enough == 1 {
                self.log_wait(site, wait); // Even the next page waits in the store.
            }
            let pending_leases = self.bench.take_pending_beyond(site, enough);
            let items = self.bench.take_pages_beyond(site, enough);
            self.supply.close(site, at);
            self.hand_back_each(site, pending_leases, items, at);
        }
    }

    pub(super) fn announce(&self, site: Site, transition: Transition, store_now: Time) {
        match transition {
            Transition::Opened { probe_at } => {
                let next_probe_in = probe_at.since(store_now);
                let wait_s = next_probe_in.as_secs_f64().round();
                warn!("Circuit open: {site} appears down. Next probe in {wait_s}s.");
                self.emit(Event::CircuitOpened { site, next_probe_in });
            }
            Transition::Closed => {
                info!("Circuit closed: {site} is back.");
                self.emit(Event::CircuitClosed(site));
            }
            Transition::None => {}
        }
    }

    fn stayed_down(&self, site: &Site, since: Time) -> FetchOutcome {
        FetchOutcome::SiteStayedDown { since, last_failure: self.site_log.last_failure(site) }
    }

    pub(super) fn log_failure(&mut self, site: &Site, happened: &FetchOutcome) {
        let now = self.now();
        self.site_log.note_failure(site, happened, now);
        if self.site_log.is_worth_a_line(site, Line::Failure, now) {
            warn!("{site} failed: {happened}");
        }
    }

    pub(super) fn log_wait(&mut self, site: &Site, wait: Duration) {
        if wait > WORTH_A_LINE && self.site_log.is_worth_a_line(site, Line::Wait, self.now()) {
            info!("Waiting {:.1}s before request to {site}", wait.as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_far_apart_the_clocks_are_nothing_is_put_too_early_and_no_grace_too_late() {
        let ms = |ms: i64| Time::from_micros(1_700_000_000_000_000 + ms * 1_000);
        for apart_ms in [0, 40, -40, 3_600_000, -3_600_000] {
            let store = |at_ms: i64| ms(at_ms + apart_ms);
            // Asked at 100, answered at some time before 130.
            let clocks = Clocks { store_now: store(115), asked_at: ms(100), now: ms(130) };
            assert_eq!(clocks.here(store(1_115)), ms(1_130), "a second ahead, {apart_ms} ms apart");
            assert_eq!(clocks.here(store(115)), ms(100), "now, {apart_ms} ms apart");
            assert_eq!(clocks.here(store(105)), ms(90), "just past, {apart_ms} ms apart");
        }
    }
}
