//! The politeness state of one site: pace, penalty and breaker, as one value that a store can keep.
//!
//! Every process that shares a store reads this value, calls one method and writes it back in one
//! transaction. So the rules stand here once, and a store only has to be atomic.

mod report;
mod verdict;

use std::time::Duration;

pub use report::{Mark, Report};
use serde::{Deserialize, Serialize};
pub use verdict::{Because, Permit, Spend, Verdict};

use crate::breaker::{Breaker, BreakerRule, State};
use crate::health::SiteHealth;
use crate::orders::{Given, MAX_ORDERED_INTERVAL, Order, OrderedInterval, Orders};
use crate::pace::{Pace, Rate, Slot};
use crate::recent::Recent;
use crate::retry_after::MAX_RETRY_AFTER;
use crate::time::Time;

/// Nothing is reserved further ahead than this: a URL that waits longer waits in the store.
pub const HORIZON: Duration = Duration::from_secs(10);

/// While another instance probes, ask again this soon: its answer comes any moment.
const ASK_AGAIN_WHILE_PROBING: Duration = Duration::from_secs(1);
/// While a site is paused, ask again this soon: a resume is to be felt at once.
const ASK_AGAIN_WHILE_PAUSED: Duration = Duration::from_secs(1);
/// A site without penalty is forgotten after this much rest.
const FORGET_AFTER: Duration = Duration::from_secs(3_600);

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
mod tests;
