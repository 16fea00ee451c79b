//! Requests on their way from the workbench through the gate to the web, and their outcomes.

use std::mem::take;
use std::time::Duration;

use fetchwell_policy::outcome::{FetchOutcome, Mark};
use fetchwell_policy::pace::Rate;
use fetchwell_policy::robots::Robots;
use fetchwell_policy::site::{Permit, Report};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Site, WebUrl};

use super::flight::{Announced, End, Fetch, FlightEnd};
use super::flights::Flight;
use super::scheduler::{Input, Scheduler};
use super::verdicts::Move;
use super::{Event, LeaseTag, Purpose};
use crate::gate::{RobotsView, rule_of};
use crate::ports::politeness::SiteReport;
use crate::web::{Phases, Why};
use crate::workbench::{FlightNumber, JobKey, QueuedRequest, SiteQueue, SiteQueueState};

/// Timers fire up to this much late, so requests are started this much before their slots. Those that are early wait
/// for the rest of the time on their connections.
pub(super) const TIMER_GRAIN: Duration = Duration::from_millis(1);

/// How long the permit of an unpaced site is reused. What other processes report about the site takes effect within
/// this time; what this process reports ends the permit at once.
const OPEN_PERMIT_FOR: Duration = Duration::from_secs(1);

/// How long no process sends requests to an archive after it failed.
const ARCHIVE_REST: Duration = Duration::from_secs(1);

impl<R: Send + Sync + 'static> Scheduler<R> {
    /// Whether a request may be sent now in its slot. Pages that are not stored yet count as in flight: a crash repeats
    /// both, and with pacing, storing keeps up.
    pub(super) fn may_dispatch(&self) -> bool {
        self.flights.count() + self.outbox.pages() < self.runtime.limits.max_in_flight
            && self.may_send()
    }

    /// Whether a site may ask for a slot, or send without pacing: no more sites ask than slots could be used. Without
    /// pacing, pages arrive faster than they can be stored one by one, so one batch may collect while another is being
    /// stored.
    pub(super) fn may_ask(&self) -> bool {
        let limits = &self.runtime.limits;
        self.flights.count() + self.turns.asks() < limits.max_in_flight
            && self.outbox.pages() < 2 * limits.max_finish_batch
            && self.may_send()
    }

    /// Whether anything may be sent: not while stopping, while a resource is short, or without a lease.
    fn may_send(&self) -> bool {
        !self.ending.is_stopping()
            && self.lack.rests_until(self.now()).is_none()
            && self.upkeep.holds_lease()
    }

    /// Sends the requests whose slots have come.
    pub(super) fn dispatch_what_is_due(&mut self) {
        while self.may_dispatch() {
            let Some(site) = self.bench.pop_slot(self.now() + TIMER_GRAIN) else { return };
            let Some(site_queue) = self.bench.existing(&site) else { continue };
            match take(&mut site_queue.standing) {
                SiteQueueState::Holds { permit, at } => self.dispatch(&site, permit, at),
                SiteQueueState::Asks | SiteQueueState::Asking | SiteQueueState::Waits => {}
            }
        }
    }

    /// Asks for slots for the sites that are due, and reports outcomes to the store, in one call.
    pub(super) fn ask_the_gate(&mut self) {
        while self.may_ask() {
            let Some(site) = self.bench.pop_ask(self.now()) else { break };
            self.consider(&site);
        }
        let asked_at = self.now();
        let Some((reports, asks)) = self.turns.begin(asked_at) else { return };
        let politeness = self.runtime.gate.politeness.clone();
        self.spawn(async move {
            let turn = politeness.turn(&reports, &asks).await;
            Input::Turned(asked_at, reports, asks, turn)
        });
    }

    /// Tells the source what is being fetched, so that a crash counts as an interruption.
    pub(super) fn note_what_started(&mut self) {
        let lease_of = |job| self.jobs.lease(job).map(|work| work.lease.id);
        let Some(started) = self.flights.begin_noting_starts(lease_of) else { return };
        let source = self.door.source.clone();
        self.spawn(async move { Input::StartNoted(source.started(&started).await) });
    }

    /// Sends the next request of a site under a permit, if it may still be sent.
    pub(super) fn dispatch(&mut self, site: &Site, permit: Permit, at: Time) {
        match self.next_move(site) {
            Move::Ask { rule } => self.dispatch_from(site, rule, permit, at),
            _ => self.bench.ask_at(site, self.now()),
        }
    }

    /// Sends the next request of a site, which `rule` allows. Without pacing, others of the site may follow at once,
    /// but sites take turns: a burst to one site would open a connection for each request.
    pub(super) fn dispatch_from(
        &mut self,
        site: &Site,
        rule: Option<String>,
        permit: Permit,
        at: Time,
    ) {
        let now = self.now();
        if !self.was_asked_for_next(site, &permit) {
            return self.bench.ask_at(site, now);
        }
        let Some(site_queue) = self.bench.existing(site) else { return };
        let may_go = self.groups.may_go(&self.runtime.gate, site_queue.turn_of.clone(), now);
        let Some(item) = site_queue.pop(may_go) else { return };
        let turn_of = if item.is_internal { None } else { site_queue.turn_of.take() };
        site_queue.in_flight += 1;
        let follows = !item.is_internal && take(&mut site_queue.follows_robots);
        let crawl_delay = crawl_delay(site_queue);
        let group = if item.is_internal { None } else { self.jobs.lane_of(item.job).group };
        let gate = &self.runtime.gate;
        let (rate, interval_source) = gate.rate_of(&permit, site, crawl_delay, group.as_deref());
        let is_paced = !rate.interval.is_zero();
        let number = self.flights.next_number();
        site_queue.unspent = is_paced.then_some(number);
        if !is_paced && !item.is_internal {
            site_queue.open_permit.get_or_insert((permit, at));
        }
        let why = Why {
            robots: rule,
            interval: rate.interval,
            interval_source,
            site_last_served: permit.last_served,
            held_up_by: None,
        };
        let group_rate = group.as_deref().and_then(|group| gate.group_rate(group));
        let send_permit = gate
            .send_permit(site.clone(), permit, at, rate)
            .following_robots(follows)
            .in_the_name_of(group.as_deref().zip(group_rate));
        if group != turn_of {
            self.groups.take_turn(group.as_deref(), &self.runtime.gate, now);
        }
        let send_permit = Announced {
            send_permit,
            number,
            site: site.clone(),
            group,
            is_waited_for: is_paced,
            heads: self.flights.heads_told(),
        };
        self.spawn_fetch(item, permit, at, why, send_permit);
        self.bench.ask_at(site, now);
    }

    /// Whether the permit of a site was requested with an interval that is long enough for its next request. If a
    /// request that needs a longer interval has come first since then, it must ask for its own permit. A probe is sent
    /// in place of the request that asked. An operator's rate applies to all requests that do not need a longer
    /// interval.
    fn was_asked_for_next(&mut self, site: &Site, permit: &Permit) -> bool {
        let Some(site_queue) = self.bench.existing(site) else { return false };
        let asked = site_queue.asked_interval;
        let internal_fetch = site_queue.next(|_| false).map(|item| item.job);
        let is_probe = internal_fetch.is_some_and(|job| self.jobs.is_probe(job));
        let rate = self.rate_of_next(site);
        let is_ordered = permit.rate_is_ordered && rate.least_interval <= permit.rate.interval;
        is_probe || is_ordered || rate.interval <= asked
    }

    /// The pace that applies to a site's next request.
    pub(super) fn rate_of_next(&mut self, site: &Site) -> Rate {
        let group = self.next_page(site).and_then(|job| self.jobs.lane_of(job).group);
        let crawl_delay = self.bench.existing(site).and_then(|site_queue| crawl_delay(site_queue));
        self.runtime.gate.rules.rate_for(site, crawl_delay, group.as_deref()).0
    }

    /// The job of a site's next request, if that is a page.
    pub(super) fn next_page(&mut self, site: &Site) -> Option<JobKey> {
        let now = self.now();
        let site_queue = self.bench.existing(site)?;
        let may_go = self.groups.may_go(&self.runtime.gate, site_queue.turn_of.clone(), now);
        site_queue.next(may_go).filter(|item| !item.is_internal).map(|item| item.job)
    }

    /// The permit of an unpaced site. It is valid for any number of requests for a while, so that the store need not be
    /// asked for each.
    pub(super) fn open_permit(&mut self, site: &Site) -> Option<(Permit, Time)> {
        let now = self.now();
        let site_queue = self.bench.existing(site)?;
        site_queue.open_permit =
            site_queue.open_permit.filter(|(_, from)| now < *from + OPEN_PERMIT_FOR);
        site_queue.open_permit
    }

    /// Starts the task of a request.
    fn spawn_fetch(
        &mut self,
        item: QueuedRequest,
        permit: Permit,
        at: Time,
        why: Why,
        send_permit: Announced,
    ) {
        let job = item.job;
        let site = send_permit.site.clone();
        let number = send_permit.number;
        let url = item.request.url.clone();
        let now = self.now();
        let mut phases = Phases::default();
        let site_queue = self.bench.existing(&site);
        let known_at = site_queue
            .and_then(|site_queue| site_queue.robots_known_at)
            .filter(|_| item.request.obeys_robots);
        let known_at = known_at.map_or(item.since, |at| at.max(item.since));
        phases.robots = known_at.since(item.since);
        phases.slot = now.since(known_at);
        // The limit on concurrent requests delayed it before it asked for a slot, and after the slot came.
        phases.place = (self.bench.overdue(&site) + now.since(at)).min(phases.slot);
        let (plan, lease) = match self.jobs.lease(job) {
            Some(work) => {
                phases.queued = work.phases.queued;
                self.flights.note_start(job);
                (Some(work.plan.clone()), Some(LeaseTag::of(&work.lease)))
            }
            None => (None, None),
        };
        let purpose = match (&plan, self.jobs.is_probe(job)) {
            (Some(_), _) => Purpose::Page,
            (None, true) => Purpose::Probe,
            (None, false) => Purpose::Robots,
        };
        let fetch = Fetch {
            web: self.runtime.web.clone(),
            clock: self.runtime.clock.clone(),
            chance: self.chance.unit(),
            item,
            send_permit,
            plan,
            phases,
            why,
            purpose,
            lease,
        };
        let abort = self.spawn(async move { Input::Fetched(Box::new(fetch.run().await)) });
        let since = now.max(at);
        self.flights.add(Flight { job, number, site, url, permit, since, abort });
    }

    pub(super) fn on_fetched(&mut self, flight: Flight, fetched: FlightEnd<R>) {
        let Flight { job, number, site, permit, .. } = flight;
        let FlightEnd { told, lack, end } = fetched;
        self.head_written(&site, number);
        let is_archive = self.runtime.gate.concurrency(&site).is_some();
        let file = told.as_deref().filter(|_| is_archive).map(|told| file_of(&told.url));
        if let Some(told) = told {
            self.emit(Event::Requested(told));
        }
        if let Some(what) = lack {
            self.lacks(&what);
        }
        match end {
            // The store treats a probe that was not sent as lost, and issues it again.
            End::NotSent(_) if self.jobs.is_probe(job) => {
                self.jobs.remove(job);
                self.on_fetch_done(&site);
            }
            // No more requests are sent, so it would wait until the grace period is over.
            End::NotSent(item) if self.ending.is_stopping() && !item.is_internal => {
                self.hand_back_item(&item, self.now());
                self.on_fetch_done(&site);
            }
            End::NotSent(item) => {
                self.forget_that_page_follows(&site);
                self.put_first(&site, [item]);
                self.on_fetch_done(&site);
            }
            End::Interrupted(reason) => {
                self.on_fetch_done(&site);
                self.interrupt(job, &reason);
            }
            End::InternalFetch(mut outcome) => {
                if self.found_no_host(job, &permit, &outcome.happened) {
                    outcome.happened = FetchOutcome::NoSuchHost;
                }
                let mark = self.internal_fetch_mark(job, &outcome.happened);
                self.report(&site, permit, mark, &outcome.happened, outcome.retry_after, None);
                self.robots_asked_for(job, &site, &permit);
                self.on_internal_outcome(job, &outcome);
                self.on_fetch_done(&site);
            }
            End::Stepped { step, happened, retry_after, phases, share } => {
                self.report(&site, permit, happened.mark(), &happened, retry_after, file);
                if let Some(work) = self.jobs.lease_mut(job) {
                    work.outstanding -= 1;
                    work.phases = phases;
                    work.share = share;
                }
                self.carry_out(job, step);
                self.on_fetch_done(&site);
            }
        }
    }

    /// A head was written, or never will be: its site may ask for the next slot.
    pub(super) fn head_written(&mut self, site: &Site, number: FlightNumber) {
        let Some(site_queue) = self.bench.existing(site) else { return };
        if site_queue.unspent == Some(number) {
            site_queue.unspent = None;
            self.wake(site);
        }
    }

    /// A request ended, which its site may have waited for.
    pub(super) fn on_fetch_done(&mut self, site: &Site) {
        let Some(site_queue) = self.bench.existing(site) else { return };
        site_queue.in_flight = site_queue.in_flight.saturating_sub(1);
        if self.bench.is_empty(site) { self.bench.tidy(site) } else { self.wake(site) }
    }

    /// Reports an outcome to the store, unless the store need not know it. `file` is the requested file of an archive.
    fn report(
        &mut self,
        site: &Site,
        permit: Permit,
        mark: Mark,
        happened: &FetchOutcome,
        retry_after: Option<Duration>,
        file: Option<String>,
    ) {
        let has_failed = self.bench.existing(site).is_some_and(|site_queue| site_queue.has_failed);
        let known = match mark {
            Mark::Neutral => true,
            // The permit may be older than a failure that was reported from here.
            Mark::Served => !permit.failures_on_record && !has_failed,
            _ => false,
        };
        if known {
            return;
        }
        if matches!(mark, Mark::Failed | Mark::RobotsFailed) {
            self.log_failure(site, happened);
        }
        self.emit(Event::Marked(site.clone(), mark));
        let retry_after = retry_after.filter(|_| matches!(happened.status(), Some(429 | 503)));
        let retry_after = self.archive_rest(site, mark, retry_after).or(retry_after);
        let mark = self.once_per_file(site, mark, happened, file);
        let report = Report { mark, retry_after, generation: permit.generation };
        self.turns.report(SiteReport { site: site.clone(), report });
        // What this process reserved before a penalty is void at once. So is what it reserved for a page of a site that
        // answers again and whose robots.txt could not be read: the robots.txt comes first.
        let penalised = mark == Mark::Limited || retry_after.is_some();
        let Some(site_queue) = self.bench.existing(site) else { return };
        site_queue.open_permit = None; // The store may decide differently now.
        let reads_robots = mark == Mark::Served && site_queue.forget_unread(None);
        let holds = matches!(site_queue.standing, SiteQueueState::Holds { .. });
        if holds && (penalised || reads_robots) {
            self.bench.ask_at(site, self.now());
        }
    }

    /// A file of an archive that keeps answering 5xx says nothing about other files, so it counts only once for the
    /// breaker as long as no other file fails. The archive still rests after each failure.
    fn once_per_file(
        &mut self,
        site: &Site,
        mark: Mark,
        happened: &FetchOutcome,
        file: Option<String>,
    ) -> Mark {
        let Some(site_queue) = self.bench.existing(site) else { return mark };
        match (mark, file.filter(|_| happened.status().is_some())) {
            (Mark::Served, _) => {
                site_queue.has_failed = false;
                self.site_log.forget_failure(site);
                site_queue.failed_files.clear();
            }
            (Mark::Failed, Some(file)) => {
                site_queue.has_failed = true;
                match site_queue.failed_files.as_slice() {
                    [only] if *only == file => return Mark::Neutral,
                    [] | [_] => site_queue.failed_files.push(file),
                    _ => {}
                }
            }
            (Mark::Failed | Mark::RobotsFailed, _) => site_queue.has_failed = true,
            _ => {}
        }
        mark
    }

    /// An archive has no interval that would delay the next failure, so it rests for a while after each failure, and at
    /// least as long if it asks for a wait.
    fn archive_rest(&self, site: &Site, mark: Mark, asked: Option<Duration>) -> Option<Duration> {
        self.runtime.gate.concurrency(site)?;
        match (mark, asked) {
            (Mark::Failed, asked) => Some(asked.unwrap_or_default().max(ARCHIVE_REST)),
            (_, asked) => asked.map(|asked| asked.max(ARCHIVE_REST)),
        }
    }

    /// Makes a site that waits ask the gate again.
    pub(super) fn wake(&mut self, site: &Site) {
        let Some(site_queue) = self.bench.existing(site) else { return };
        if matches!(site_queue.standing, SiteQueueState::Waits) {
            self.bench.ask_at(site, self.now());
        }
    }

    pub(super) fn why(&mut self, site: &Site, item: &QueuedRequest) -> Why {
        let Some(site_queue) = self.bench.existing(site) else { return Why::default() };
        let url = &item.request.url;
        let robots = known_robots(site_queue, url).filter(|_| item.request.obeys_robots);
        let rule = robots.and_then(|robots| rule_of(robots.verdict(url.path_and_query())));
        let (rate, interval_source) = self.runtime.gate.rules.rate(site, crawl_delay(site_queue));
        Why { robots: rule, interval: rate.interval, interval_source, ..Why::default() }
    }
}

/// The longest Crawl-delay among the origins of a site.
pub(super) fn crawl_delay(site_queue: &SiteQueue) -> Option<Duration> {
    site_queue
        .robots
        .values()
        .filter_map(|view| match view {
            RobotsView::Known { robots, .. } => robots.crawl_delay(),
            _ => None,
        })
        .max()
}

pub(super) fn known_robots<'a>(site_queue: &'a SiteQueue, url: &WebUrl) -> Option<&'a Robots> {
    site_queue.robots.get(url.origin_key())?.robots()
}

/// The path of the archive file that a URL requests a part of.
fn file_of(url: &WebUrl) -> String {
    let path = url.path_and_query();
    path.split_once('?').map_or(path, |(path, _)| path).to_owned()
}
