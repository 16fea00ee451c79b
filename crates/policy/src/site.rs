//! The politeness state of one site: pace, penalty and breaker, as one value that a store can keep.
//!
//! Every process that shares a store reads this value, calls one method and writes it back in one
//! transaction. So the rules stand here once, and a store only has to be atomic.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::breaker::{Breaker, BreakerRule, State, Transition};
use crate::health::{FailedProbes, SiteHealth};
use crate::orders::{Given, MAX_ORDERED_INTERVAL, Order, OrderedInterval, Orders};
use crate::outcome::SiteFault;
use crate::pace::{Pace, Rate, Slot};
use crate::recent::Recent;
use crate::retry_after::MAX_RETRY_AFTER;
use crate::time::Time;

/// Nothing is reserved further ahead than this: a URL that waits longer waits in the store.
pub const HORIZON: Duration = Duration::from_secs(10);

/// A site that answers 429 without saying for how long rests this long, doubled at each repetition.
const LIMITED_BASE: Duration = Duration::from_secs(2);
/// The longest rest after a 429 that did not say for how long.
const LIMITED_CAP: Duration = Duration::from_secs(300);
/// While another instance probes, ask again this soon: its answer comes any moment.
const ASK_AGAIN_WHILE_PROBING: Duration = Duration::from_secs(1);
/// While a site is paused, ask again this soon: a resume is to be felt at once.
const ASK_AGAIN_WHILE_PAUSED: Duration = Duration::from_secs(1);
/// A site without penalty is forgotten after this much rest.
const FORGET_AFTER: Duration = Duration::from_secs(3_600);

/// Leave to write one request head (or, without pacing, any number of them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permit {
    /// When.
    pub slot: Slot,
    /// The site's generation at that time; an older one is void.
    pub generation: u64,
    /// When the site last served a page.
    pub last_served: Option<Time>,
    /// Site failures on record: a success must be reported when there are any.
    pub failures_on_record: bool,
    /// The pace that it was given by.
    pub rate: Rate,
    /// An operator ordered that pace.
    pub rate_is_ordered: bool,
    /// What was learnt of robots.txt before another such time is not to be gone by.
    pub robots_forgotten: Option<Time>,
    /// How long the answer may be under way when the permit is spent. The others keep their distance from the latest
    /// moment at which the head can leave, so that a slow store costs time and never distance.
    #[serde(default)]
    pub lead: Duration,
    /// How often the site has recovered; see [`SiteHealth::recoveries`].
    pub recoveries: u32,
}

/// The answer to "may a request go to this site?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A request may go in this slot.
    Go(Permit),
    /// The breaker is open and a probe is due: this asker sends it, and nothing else.
    Probe(Permit),
    /// Ask again then.
    NotBefore {
        /// When to ask again.
        at: Time,
        /// What holds it up.
        because: Because,
    },
}

/// What holds a site's requests up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// An operator paused it.
    Paused,
    /// Its own pace.
    Pace,
    /// It asked for a rest (429, or 503 with Retry-After).
    Penalty,
    /// Its breaker is open.
    BreakerOpen {
        /// When the failures began.
        failing_since: Time,
        /// The probes that failed since it opened.
        failed_probes: FailedProbes,
    },
}

/// What became of a request, as far as the site is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A page was served.
    Served,
    /// The site failed.
    Failed,
    /// A robots.txt that had failed before failed again. It counts as a failure, but the next page that is
    /// served does not mean that the site has recovered.
    RobotsFailed,
    /// The site asked for less (429).
    Limited,
    /// An answer that says nothing about the site's health.
    Neutral,
    /// A probe was answered.
    ProbeAnswered,
    /// A probe failed.
    ProbeFailed(SiteFault),
    /// No result yet: the head left later than it was spent for.
    LeftLate {
        /// At the latest then, by the store's clock.
        by: Time,
    },
}

/// A result to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// What became of the request.
    pub mark: Mark,
    /// How long the site asked us to stay away, with a 429 or a 503.
    pub retry_after: Option<Duration>,
    /// The generation of the permit that the request went under.
    pub generation: u64,
}

/// The answer to "the head is about to be written: is the permit still good?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spend {
    /// Write it now.
    Go,
    /// The slot was missed; this is the new one.
    Wait(Permit),
    /// The site was penalised since: ask anew.
    Void,
}

/// The politeness state of one site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteState {
    /// When requests may go.
    pub pace: Pace,
    /// Whether the site is up.
    pub breaker: Breaker,
    /// Counts the penalties: what was reserved before one is void after it.
    pub generation: u64,
    /// The site asked for a rest until then.
    pub penalty_until: Time,
    /// 429 answers in a row.
    pub limited_in_a_row: u32,
    /// When the site last served a page, as far as the store was told: that is when it had failed.
    pub last_served: Option<Time>,
    /// What an operator ordered.
    #[serde(default, skip_serializing_if = "Orders::is_empty")]
    pub orders: Orders,
    /// 429 answers lately.
    #[serde(default, skip_serializing_if = "Recent::is_empty")]
    pub limited: Recent,
    /// Failures of the site lately.
    #[serde(default, skip_serializing_if = "Recent::is_empty")]
    pub failed: Recent,
    /// Whether it answers, and which probes failed.
    #[serde(default, skip_serializing_if = "SiteHealth::is_empty")]
    pub health: SiteHealth,
}

impl SiteState {
    /// Carries out an order. What was reserved before it is void after it. Returns whether it changed
    /// anything: a site that is paused already stays so in the name of whoever paused it first.
    pub fn obey(&mut self, order: Order, by: &str, now: Time) -> bool {
        let before = self.clone();
        let given = || Given { at: now, by: by.to_owned() };
        match order {
            Order::Pause => {
                self.orders.paused.get_or_insert_with(given);
            }
            Order::Resume => self.orders.paused = None,
            Order::SetInterval(interval) => {
                let interval = interval.min(MAX_ORDERED_INTERVAL);
                self.orders.interval = Some(OrderedInterval { interval, given: given() });
            }
            Order::ClearInterval => self.orders.interval = None,
            Order::ResetBreaker => {
                if self.breaker != Breaker::default() {
                    self.breaker = Breaker::default();
                    self.health.recovered();
                }
            }
            Order::ForgetRobots => self.orders.robots_forgotten = Some(now),
        }
        let changed = *self != before;
        self.generation += u64::from(changed);
        changed
    }

    /// The pace that holds where the settings and robots.txt ask for `asked`.
    pub fn rate(&self, asked: Rate) -> Rate {
        self.orders.rate(asked)
    }

    /// When the next request could go where `asked` is the pace; `None`: not before an operator says so.
    pub fn next_slot(&self, now: Time, asked: Rate) -> Option<Time> {
        let floor = now.max(self.penalty_until).max(self.breaker.blocked_until().unwrap_or(now));
        self.orders.paused.is_none().then(|| self.pace.earliest(floor, self.rate(asked)))
    }

    /// Whether there is more to say of the site than its pace: it is paused, rests, has failed or was
    /// given a pace. What is not notable becomes so by a change only, never by time.
    pub fn is_notable(&self, now: Time) -> bool {
        self.orders.stand()
            || self.breaker != Breaker::default()
            || self.penalty_until > now
            || self.limited.in_the_last_hour(now) > 0
            || self.failed.in_the_last_hour(now) > 0
    }

    /// Reserves the next slot, or says when to ask again.
    pub fn ask(
        &mut self,
        now: Time,
        rate: Rate,
        follows_robots: bool,
        rule: &BreakerRule,
    ) -> Verdict {
        let rate = self.rate(rate);
        self.clamp(now, rate, rule);
        if self.orders.paused.is_some() {
            let at = now + ASK_AGAIN_WHILE_PAUSED;
            return Verdict::NotBefore { at, because: Because::Paused };
        }
        let floor = now.max(self.penalty_until);
        let at = if follows_robots { floor } else { self.pace.earliest(floor, rate) };
        if let Some(blocked_until) = self.breaker.blocked_until() {
            return self.ask_for_probe(now, at, blocked_until, rate, rule);
        }
        if at > now + HORIZON {
            let because = if self.penalty_until > now { Because::Penalty } else { Because::Pace };
            return Verdict::NotBefore { at, because };
        }
        let slot = if follows_robots {
            self.pace.follow(at, now, rate)
        } else {
            self.pace.reserve(at, now, rate)
        };
        Verdict::Go(self.permit(slot, rate))
    }

    /// Judges a permit at the moment the request head is about to be written.
    pub fn spend(&mut self, permit: &Permit, now: Time, rate: Rate) -> Spend {
        if permit.generation != self.generation {
            return Spend::Void;
        }
        match self.pace.spend(&permit.slot, now, self.rate(rate)) {
            Ok(()) => {
                if !permit.lead.is_zero() {
                    self.pace.head_leaves_by(now + permit.lead);
                }
                Spend::Go
            }
            Err(slot) => Spend::Wait(Permit { slot, ..*permit }),
        }
    }

    /// Records what became of a request.
    pub fn record(
        &mut self,
        report: &Report,
        now: Time,
        rule: &BreakerRule,
        chance: f64,
    ) -> Transition {
        if let Mark::LeftLate { by } = report.mark {
            self.pace.head_leaves_by(by.min(now));
            return Transition::None;
        }
        self.count(report.mark, now);
        let rested = self.rest(report, now);
        // Its own rest does not make a report old; a penalty that came while it was out does.
        let is_old = report.generation < self.generation - u64::from(rested);
        let transition = match report.mark {
            // Whenever it was asked for, it is served by now: what failed before is no row of failures.
            Mark::Served if is_old => self.served(),
            _ if is_old => Transition::None,
            mark => self.judge(mark, now, rule, chance),
        };
        if matches!(transition, Transition::Opened { .. }) {
            self.generation += 1;
        }
        transition
    }

    /// The store lost what it knew until `lost_at`: heads may have been written until then, and a
    /// little after it under permits that need not be spent.
    pub fn assume_heads_until(&mut self, lost_at: Time, rate: Rate) {
        let rate = self.rate(rate);
        self.pace.assume_head(lost_at + rate.grace(), rate);
    }

    /// The same by another clock, for a store that is moved to a server: penalties and open breakers last
    /// as long there as they would have here. See [`Time::by_clock_ahead_by_us`].
    pub fn by_clock_ahead_by_us(self, ahead_us: i64) -> SiteState {
        let SiteState { pace, breaker, generation, penalty_until, limited_in_a_row, .. } = self;
        let SiteState { last_served, orders, limited, failed, health, .. } = self;
        let moved = |time: Time| time.by_clock_ahead_by_us(ahead_us);
        SiteState {
            pace: pace.by_clock_ahead_by_us(ahead_us),
            breaker: breaker.by_clock_ahead_by_us(ahead_us),
            generation,
            penalty_until: moved(penalty_until),
            limited_in_a_row,
            last_served: last_served.map(moved),
            orders: orders.by_clock_ahead_by_us(ahead_us),
            limited: limited.by_clock_ahead_by_us(ahead_us),
            failed: failed.by_clock_ahead_by_us(ahead_us),
            health: health.by_clock_ahead_by_us(ahead_us),
        }
    }

    /// True when nothing is lost by forgetting the site.
    pub fn is_forgettable(&self, now: Time) -> bool {
        self.forgettable_at().is_some_and(|at| at <= now)
    }

    /// From when on nothing is lost by forgetting the site; `None`: as it stands, never.
    pub fn forgettable_at(&self) -> Option<Time> {
        let at_rest = self.breaker == Breaker::default()
            && self.limited_in_a_row == 0
            && !self.orders.stand();
        at_rest.then(|| self.penalty_until.max(self.pace.used_until() + FORGET_AFTER))
    }

    fn ask_for_probe(
        &mut self,
        now: Time,
        at: Time,
        blocked_until: Time,
        rate: Rate,
        rule: &BreakerRule,
    ) -> Verdict {
        let probing = matches!(self.breaker.state, State::HalfOpen { .. });
        if at <= now + HORIZON && self.breaker.take_probe(now, rule) {
            // Whoever had the probe before may only be asleep: awake again, it must not send it.
            self.generation += u64::from(probing);
            let slot = self.pace.reserve(at, now, rate);
            return Verdict::Probe(self.permit(slot, rate));
        }
        let again = if probing { now + ASK_AGAIN_WHILE_PROBING } else { blocked_until.max(at) };
        let failing_since = self.breaker.failing_since.unwrap_or(now);
        let failed_probes = self.health.failed_probes;
        let because = Because::BreakerOpen { failing_since, failed_probes };
        Verdict::NotBefore { at: again, because }
    }

    fn permit(&self, slot: Slot, rate: Rate) -> Permit {
        Permit {
            slot,
            rate,
            rate_is_ordered: self.orders.decide(rate),
            robots_forgotten: self.orders.robots_forgotten,
            recoveries: self.health.recoveries,
            generation: self.generation,
            last_served: self.last_served,
            lead: Duration::ZERO,
            failures_on_record: self.breaker.consecutive_failures > 0 || self.limited_in_a_row > 0,
        }
    }

    /// Counts what operators want to see, whatever it means for the site.
    fn count(&mut self, mark: Mark, now: Time) {
        match mark {
            Mark::Limited => self.limited.count(now),
            Mark::Failed | Mark::RobotsFailed | Mark::ProbeFailed(_) => self.failed.count(now),
            Mark::Served | Mark::Neutral | Mark::ProbeAnswered | Mark::LeftLate { .. } => {}
        }
    }

    /// A site that asks for a rest gets it, whatever else happens. True when it did ask.
    fn rest(&mut self, report: &Report, now: Time) -> bool {
        let asked = report.retry_after.map(|span| span.min(MAX_RETRY_AFTER));
        let rest = if report.mark == Mark::Limited {
            let own = LIMITED_BASE.saturating_mul(1 << self.limited_in_a_row.min(16));
            self.limited_in_a_row = self.limited_in_a_row.saturating_add(1);
            Some(asked.unwrap_or(own.min(LIMITED_CAP)))
        } else {
            asked
        };
        let Some(rest) = rest else { return false };
        self.penalty_until = self.penalty_until.max(now + rest);
        self.generation += 1;
        true
    }

    fn judge(&mut self, mark: Mark, now: Time, rule: &BreakerRule, chance: f64) -> Transition {
        match mark {
            Mark::Served => {
                self.limited_in_a_row = 0;
                self.last_served = Some(now);
                self.served()
            }
            Mark::Failed => {
                self.health.is_failing = true;
                self.breaker.failed(now, rule, chance)
            }
            Mark::RobotsFailed => self.breaker.failed(now, rule, chance),
            Mark::ProbeAnswered => {
                let transition = self.breaker.probed(true, now, rule, chance);
                if transition == Transition::Closed {
                    self.health.recovered();
                }
                transition
            }
            Mark::ProbeFailed(fault) => {
                let transition = self.breaker.probed(false, now, rule, chance);
                if transition != Transition::None {
                    self.health.failed_probes.add(fault, now);
                }
                transition
            }
            Mark::Limited | Mark::Neutral | Mark::LeftLate { .. } => Transition::None,
        }
    }

    /// A page was served. While the breaker is open that says nothing: only a probe closes it.
    fn served(&mut self) -> Transition {
        if self.breaker.state == State::Closed && self.health.is_failing {
            self.health.recovered();
        }
        self.breaker.succeeded()
    }

    /// After a clock jumped back nothing may lie further ahead than it could have been set.
    fn clamp(&mut self, now: Time, rate: Rate, rule: &BreakerRule) {
        let most_ahead = rate.interval.saturating_mul(rate.burst.saturating_add(2));
        self.pace.clamp(now, now + HORIZON + most_ahead);
        self.penalty_until = self.penalty_until.min(now + MAX_RETRY_AFTER);
        match &mut self.breaker.state {
            State::Closed => {}
            State::Open { probe_at, .. } => *probe_at = (*probe_at).min(now + rule.max_backoff),
            State::HalfOpen { lost_at, .. } => *lost_at = (*lost_at).min(now + rule.probe_ttl),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RATE: Rate = Rate::every(Duration::from_secs(1));

    fn rule() -> BreakerRule {
        BreakerRule { jitter_share: 0.0, ..BreakerRule::default() }
    }

    fn at(secs: i64) -> Time {
        Time::from_secs(1_000 + secs)
    }

    fn report(mark: Mark, retry_after_s: Option<u64>, generation: u64) -> Report {
        Report { mark, retry_after: retry_after_s.map(Duration::from_secs), generation }
    }

    fn go(state: &mut SiteState, now: Time) -> Permit {
        match state.ask(now, RATE, false, &rule()) {
            Verdict::Go(permit) => permit,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_page_may_follow_its_robots_txt_at_once_and_the_next_may_not() {
        let mut state = SiteState::default();
        go(&mut state, at(0));
        let Verdict::Go(page) = state.ask(at(0), RATE, true, &rule()) else { panic!() };
        assert_eq!(page.slot.at, at(0));
        assert!(go(&mut state, at(0)).slot.at >= at(1));
    }

    #[test]
    fn a_shorter_rest_does_not_end_a_longer_one() {
        let mut state = SiteState::default();
        for (secs, rest) in [(0, 60), (1, 5), (2, 70)] {
            let generation = state.generation;
            state.record(&report(Mark::Neutral, Some(rest), generation), at(secs), &rule(), 0.0);
        }
        assert_eq!(state.penalty_until, at(72));
        state.record(&report(Mark::Limited, Some(1), state.generation), at(3), &rule(), 0.0);
        assert_eq!(state.penalty_until, at(72));
    }

    #[test]
    fn a_late_head_counts_from_when_it_left_however_late_that_is_told() {
        let late = |by: Time, told: Time| {
            let mut state = SiteState::default();
            let permit = go(&mut state, at(0));
            assert_eq!(state.spend(&permit, at(1), RATE), Spend::Go);
            state.record(&report(Mark::LeftLate { by }, None, 0), told, &rule(), 0.0);
            go(&mut state, told).slot.at
        };
        let ms = |ms: u64| at(1) + Duration::from_millis(ms);
        assert_eq!(late(ms(30), ms(400)), ms(1_030));
        // What is not told before it can have happened has happened by then.
        assert_eq!(late(ms(30), ms(20)), ms(1_020));
    }

    #[test]
    fn a_429_rests_the_site_voids_what_was_reserved_and_leaves_the_breaker_alone() {
        let mut state = SiteState::default();
        let sent = go(&mut state, at(0));
        let reserved = go(&mut state, at(0));
        state.record(&report(Mark::Limited, Some(60), sent.generation), at(0), &rule(), 0.0);
        assert_eq!(state.spend(&reserved, at(1), RATE), Spend::Void);
        let Verdict::NotBefore { at: again, because } = state.ask(at(1), RATE, false, &rule())
        else {
            panic!()
        };
        assert_eq!((again, because), (at(60), Because::Penalty));
        assert_eq!(state.breaker, Breaker::default());
    }

    #[test]
    fn silent_429s_rest_longer_each_time_until_a_page_is_served() {
        let mut state = SiteState::default();
        let mut rests = Vec::new();
        for _ in 0..3 {
            let generation = state.generation;
            state.record(&report(Mark::Limited, None, generation), at(0), &rule(), 0.0);
            rests.push(state.penalty_until.since(at(0)).as_secs());
        }
        assert_eq!(rests, [2, 4, 8]);
        let generation = state.generation;
        state.record(&report(Mark::Served, None, generation), at(9), &rule(), 0.0);
        assert_eq!(state.limited_in_a_row, 0);
    }

    #[test]
    fn results_from_before_a_penalty_say_nothing_about_the_site_after_it() {
        let mut state = SiteState::default();
        let old = state.generation;
        for _ in 0..5 {
            let now = state.generation;
            state.record(&report(Mark::Failed, None, now), at(0), &rule(), 0.0);
        }
        let opened = state.breaker;
        assert!(matches!(opened.state, State::Open { .. }));
        state.record(&report(Mark::Failed, None, old), at(1), &rule(), 0.0);
        state.record(&report(Mark::Served, None, old), at(1), &rule(), 0.0);
        assert_eq!(state.breaker, opened);
    }

    /// Requests to an archive go side by side, and each failure is a rest: the pages that are served meanwhile
    /// were all asked for before it.
    #[test]
    fn a_page_that_was_asked_for_before_a_rest_and_served_after_it_ends_the_row_of_failures() {
        let mut state = SiteState::default();
        for round in 0..20 {
            let asked_before = state.generation;
            let failed = report(Mark::Failed, Some(1), asked_before);
            assert_eq!(state.record(&failed, at(round), &rule(), 0.0), Transition::None);
            state.record(&report(Mark::Served, None, asked_before), at(round), &rule(), 0.0);
            assert_eq!(state.breaker, Breaker::default(), "round {round}");
        }
    }

    #[test]
    fn a_site_that_answers_again_has_recovered_once() {
        let served = |state: &mut SiteState| {
            let generation = state.generation;
            state.record(&report(Mark::Served, None, generation), at(9), &rule(), 0.0);
            state.health.recoveries
        };
        let mut state = SiteState::default();
        assert_eq!(served(&mut state), 0, "it never failed");
        state.record(&report(Mark::Failed, None, 0), at(0), &rule(), 0.0);
        assert_eq!((served(&mut state), served(&mut state)), (1, 1));
        // Pages are served all along: that the robots.txt keeps failing is no reason to ask for it each time.
        state.record(&report(Mark::RobotsFailed, None, 0), at(1), &rule(), 0.0);
        assert_eq!(state.breaker.consecutive_failures, 1);
        assert_eq!(served(&mut state), 1);
        assert_eq!(go(&mut state, at(20)).recoveries, 1);
    }

    #[test]
    fn a_probe_that_is_answered_and_a_reset_are_recoveries() {
        let open = || {
            let mut state = SiteState::default();
            for _ in 0..5 {
                state.record(&report(Mark::RobotsFailed, None, 0), at(0), &rule(), 0.0);
            }
            state
        };
        let mut probed = open();
        let Verdict::Probe(probe) = probed.ask(at(30), RATE, false, &rule()) else { panic!() };
        let late = report(Mark::Served, None, probe.generation);
        probed.record(&late, at(31), &rule(), 0.0);
        assert_eq!(probed.health.recoveries, 0, "only a probe tells");
        let answered = report(Mark::ProbeAnswered, None, probe.generation);
        probed.record(&answered, at(31), &rule(), 0.0);
        assert_eq!(probed.health.recoveries, 1);
        let mut reset = open();
        assert!(reset.obey(Order::ResetBreaker, "ann", at(1)));
        assert!(!reset.obey(Order::ResetBreaker, "ann", at(2)), "there is nothing to reset");
        assert_eq!(reset.health.recoveries, 1);
    }

    #[test]
    fn whoever_waits_is_told_which_probes_failed() {
        let mut state = SiteState::default();
        for _ in 0..5 {
            state.record(&report(Mark::Failed, None, 0), at(0), &rule(), 0.0);
        }
        for secs in [30, 90] {
            let Verdict::Probe(probe) = state.ask(at(secs), RATE, false, &rule()) else { panic!() };
            let mark = Mark::ProbeFailed(SiteFault::Answered(503));
            state.record(&report(mark, None, probe.generation), at(secs), &rule(), 0.0);
        }
        let Verdict::NotBefore { because, .. } = state.ask(at(91), RATE, false, &rule()) else {
            panic!()
        };
        let Because::BreakerOpen { failed_probes, .. } = because else { panic!("{because:?}") };
        assert_eq!((failed_probes.count, failed_probes.since(at(31))), (2, 1));
        assert_eq!(failed_probes.last, Some(SiteFault::Answered(503)));
        state.obey(Order::ResetBreaker, "ann", at(92));
        assert_eq!(state.health.failed_probes, FailedProbes::default());
    }

    #[test]
    fn a_503_with_retry_after_counts_and_rests() {
        let mut state = SiteState::default();
        state.record(&report(Mark::Failed, Some(120), 0), at(0), &rule(), 0.0);
        assert_eq!(state.breaker.consecutive_failures, 1);
        assert_eq!(state.penalty_until, at(120));
    }

    #[test]
    fn an_open_breaker_lets_one_probe_through_when_it_is_due() {
        let mut state = SiteState::default();
        for _ in 0..5 {
            state.record(&report(Mark::Failed, None, 0), at(0), &rule(), 0.0);
        }
        assert!(matches!(
            state.ask(at(1), RATE, false, &rule()),
            Verdict::NotBefore { at: again, because: Because::BreakerOpen { .. } } if again == at(30)
        ));
        let Verdict::Probe(probe) = state.ask(at(30), RATE, false, &rule()) else { panic!() };
        assert!(matches!(state.ask(at(30), RATE, false, &rule()), Verdict::NotBefore { .. }));
        let answered = report(Mark::ProbeAnswered, None, probe.generation);
        assert_eq!(state.record(&answered, at(31), &rule(), 0.0), Transition::Closed);
        assert!(matches!(state.ask(at(32), RATE, false, &rule()), Verdict::Go(_)));
    }

    #[test]
    fn a_probe_that_was_taken_for_lost_is_not_sent_any_more() {
        let mut state = SiteState::default();
        for _ in 0..5 {
            state.record(&report(Mark::Failed, None, 0), at(0), &rule(), 0.0);
        }
        let Verdict::Probe(asleep) = state.ask(at(30), RATE, false, &rule()) else { panic!() };
        let Verdict::Probe(other) = state.ask(at(90), RATE, false, &rule()) else { panic!() };
        assert_eq!(state.spend(&asleep, at(91), RATE), Spend::Void);
        let late = report(Mark::ProbeAnswered, None, asleep.generation);
        assert_eq!(state.record(&late, at(91), &rule(), 0.0), Transition::None);
        assert_eq!(state.spend(&other, at(91), RATE), Spend::Go);
    }

    #[test]
    fn a_clock_that_jumps_back_does_not_close_a_site() {
        let mut state = SiteState::default();
        go(&mut state, at(3_600));
        let Verdict::NotBefore { at: again, .. } = state.ask(at(0), RATE, false, &rule()) else {
            panic!()
        };
        assert!(again <= at(13));
    }

    #[test]
    fn a_burst_of_more_than_the_horizon_is_spent_once() {
        let rate = Rate::per_second(10.0, 500);
        let mut state = SiteState::default();
        let at_once = (0..2_000)
            .filter(|_| {
                let verdict = state.ask(at(0), rate, false, &rule());
                matches!(verdict, Verdict::Go(permit) if permit.slot.at == at(0))
            })
            .count();
        assert_eq!(at_once, 500);
    }

    #[test]
    fn a_penalty_an_open_breaker_and_an_order_bind_a_burst_too() {
        let rate = Rate::per_second(10.0, 20);
        let mut resting = SiteState::default();
        resting.record(&report(Mark::Limited, Some(60), 0), at(0), &rule(), 0.0);
        let verdict = resting.ask(at(1), rate, false, &rule());
        assert!(matches!(verdict, Verdict::NotBefore { because: Because::Penalty, .. }));
        let mut down = SiteState::default();
        for _ in 0..5 {
            down.record(&report(Mark::Failed, None, 0), at(0), &rule(), 0.0);
        }
        let verdict = down.ask(at(1), rate, false, &rule());
        assert!(matches!(verdict, Verdict::NotBefore { because: Because::BreakerOpen { .. }, .. }));
        let mut ordered = SiteState::default();
        ordered.obey(Order::SetInterval(Duration::from_secs(2)), "somebody", at(0));
        for turn in 0..3 {
            let Verdict::Go(permit) = ordered.ask(at(0), rate, false, &rule()) else { panic!() };
            assert!(permit.slot.at >= at(2 * turn), "{turn}: {permit:?}");
        }
    }

    #[test]
    fn a_site_in_penalty_is_never_forgettable() {
        let mut state = SiteState::default();
        go(&mut state, at(0));
        assert!(!state.is_forgettable(at(3_000)));
        assert!(state.is_forgettable(at(3_700)));
        // Each of these alone is reason enough.
        for (mark, rest_s) in
            [(Mark::Neutral, Some(80_000)), (Mark::Limited, None), (Mark::Failed, None)]
        {
            let mut state = state.clone();
            state.record(&report(mark, rest_s, 0), at(0), &rule(), 0.0);
            assert!(!state.is_forgettable(at(3_700)), "{mark:?}");
        }
    }

    proptest! {
        /// Whatever happens, two heads that were written under good permits are an interval apart.
        #[test]
        fn heads_keep_their_distance(steps in prop::collection::vec((0u8..6, 0u64..1_500), 1..80)) {
            let mut state = SiteState::default();
            let mut now = at(0);
            let mut held: Option<Permit> = None;
            let mut last: Option<Time> = None;
            for (what, wait_ms) in steps {
                now = now + Duration::from_millis(wait_ms);
                match (what, held) {
                    (0..=2, None) => {
                        if let Verdict::Go(permit) | Verdict::Probe(permit) =
                            state.ask(now, RATE, false, &rule())
                        {
                            held = Some(permit);
                        }
                    }
                    (0..=2, Some(permit)) if now >= permit.slot.at => {
                        held = None;
                        match state.spend(&permit, now, RATE) {
                            Spend::Go => {
                                prop_assert!(last.is_none_or(|l| now >= l + RATE.interval));
                                last = Some(now);
                            }
                            Spend::Wait(later) => held = Some(later),
                            Spend::Void => {}
                        }
                    }
                    (3, _) => {
                        let r = report(Mark::Limited, None, state.generation);
                        state.record(&r, now, &rule(), 0.5);
                    }
                    (4, _) => {
                        let r = report(Mark::Failed, None, state.generation);
                        state.record(&r, now, &rule(), 0.5);
                    }
                    (5, _) => {
                        let r = report(Mark::ProbeAnswered, None, state.generation);
                        state.record(&r, now, &rule(), 0.5);
                    }
                    _ => {}
                }
            }
        }
    }
}
