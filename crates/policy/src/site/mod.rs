//! The politeness state of one site: pace, penalty and breaker, as one value that a store can hold.
//!
//! Every process that shares a store reads this value, calls one method and writes it back in one transaction. So the
//! rules are implemented only once, and a store only has to be atomic.

mod report;
mod verdict;

use std::time::Duration;

pub use report::Report;
use serde::{Deserialize, Serialize};
pub use verdict::{Because, Permit, Spend, Verdict};

use crate::breaker::{Breaker, BreakerRule, State};
use crate::health::SiteHealth;
use crate::orders::{MAX_ORDERED_INTERVAL, Order, OrderStamp, OrderedInterval, Orders};
use crate::pace::{MAX_LEAD, Pace, Rate, Slot};
use crate::recent::Recent;
use crate::retry_after::MAX_RETRY_AFTER;
use crate::time::Time;

/// No slot is reserved further ahead than this. A URL that has to wait longer waits in the store.
pub const HORIZON: Duration = Duration::from_secs(10);

/// How soon to ask again while another instance probes, since its result may come at any moment.
const ASK_AGAIN_WHILE_PROBING: Duration = Duration::from_secs(1);
/// How soon to ask again while a site is paused, so that a resume takes effect at once.
const ASK_AGAIN_WHILE_PAUSED: Duration = Duration::from_secs(1);
/// A site without a penalty is forgotten after this much idle time.
const FORGET_AFTER: Duration = Duration::from_secs(3_600);

/// The politeness state of one site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteState {
    /// When requests may be sent.
    pub pace: Pace,
    /// Whether the site is up.
    pub breaker: Breaker,
    /// Incremented by penalties, orders, an opening breaker and a lost probe. Permits of an older generation are void.
    pub generation: u64,
    /// No requests are sent before this, because of a 429 or a `Retry-After`.
    pub penalty_until: Time,
    /// Consecutive 429 responses.
    pub limited_in_a_row: u32,
    /// When the site last served a page, as far as it was reported: successes are only reported after failures.
    pub last_served: Option<Time>,
    /// Orders of operators.
    #[serde(default, skip_serializing_if = "Orders::is_empty")]
    pub orders: Orders,
    /// Recent 429 responses.
    #[serde(default, skip_serializing_if = "Recent::is_empty")]
    pub limited: Recent,
    /// Recent site failures.
    #[serde(default, skip_serializing_if = "Recent::is_empty")]
    pub failed: Recent,
    /// Recoveries and failed probes.
    #[serde(default, skip_serializing_if = "SiteHealth::is_empty")]
    pub health: SiteHealth,
}

impl SiteState {
    /// Applies an order, and returns whether it changed anything. A change invalidates all permits given before. If a
    /// site is already paused, the name of the operator who paused it first is kept.
    pub fn obey(&mut self, order: Order, by: &str, now: Time) -> bool {
        let before = self.clone();
        let given = || OrderStamp { at: now, by: by.to_owned() };
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

    /// The rate that applies if the settings and robots.txt require `asked`.
    pub fn rate(&self, asked: Rate) -> Rate {
        self.orders.rate(asked)
    }

    /// When the next request could be sent with the rate `asked`; `None` while an operator has paused the site.
    pub fn next_slot(&self, now: Time, asked: Rate) -> Option<Time> {
        let floor = now.max(self.penalty_until).max(self.breaker.blocked_until().unwrap_or(now));
        self.orders.paused.is_none().then(|| self.pace.earliest(floor, self.rate(asked)))
    }

    /// Whether there is more to the site than its pace: it is paused, has a penalty, failures or an ordered rate. A
    /// site becomes notable only by a change, never by the passing of time.
    pub fn is_notable(&self, now: Time) -> bool {
        self.orders.stand()
            || self.breaker != Breaker::default()
            || self.penalty_until > now
            || self.limited.in_the_last_hour(now) > 0
            || self.failed.in_the_last_hour(now) > 0
    }

    /// Reserves the next slot, or returns when to ask again.
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

    /// Checks a permit immediately before the request head is written.
    pub fn spend(&mut self, permit: &Permit, now: Time, rate: Rate) -> Spend {
        if permit.generation != self.generation {
            return Spend::Void;
        }
        match self.pace.spend(&permit.slot, now, self.rate(rate)) {
            Ok(()) => {
                if !permit.lead.is_zero() {
                    self.pace.head_leaves_by(now + permit.lead.min(MAX_LEAD));
                }
                Spend::Go
            }
            Err(slot) => Spend::Wait(Permit { slot, ..*permit }),
        }
    }

    /// Called if the store lost its data up to `lost_at`: heads may have been written until then, and slightly later
    /// with permits that need not be spent.
    pub fn assume_heads_until(&mut self, lost_at: Time, rate: Rate) {
        let rate = self.rate(rate);
        self.pace.assume_head(lost_at + rate.grace(), rate);
    }

    /// Converts its times to another clock, for a store that is migrated to a server: penalties and open breakers last
    /// as long there as they would have here. See [`Time::by_clock_ahead_by_us`].
    pub fn by_clock_ahead_by_us(self, ahead_us: i64) -> SiteState {
        let moved = |time: Time| time.by_clock_ahead_by_us(ahead_us);
        SiteState {
            pace: self.pace.by_clock_ahead_by_us(ahead_us),
            breaker: self.breaker.by_clock_ahead_by_us(ahead_us),
            generation: self.generation,
            penalty_until: moved(self.penalty_until),
            limited_in_a_row: self.limited_in_a_row,
            last_served: self.last_served.map(moved),
            orders: self.orders.by_clock_ahead_by_us(ahead_us),
            limited: self.limited.by_clock_ahead_by_us(ahead_us),
            failed: self.failed.by_clock_ahead_by_us(ahead_us),
            health: self.health.by_clock_ahead_by_us(ahead_us),
        }
    }

    /// Whether nothing is lost by forgetting the site.
    pub fn is_forgettable(&self, now: Time) -> bool {
        self.forgettable_at().is_some_and(|at| at <= now)
    }

    /// When the site can be forgotten without loss; `None` if never in its current state.
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
            // The process that had the probe before may only be suspended. It must not send it when it resumes.
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

    /// Limits all times to what could have been set at `now`, in case the clock jumped back.
    fn clamp(&mut self, now: Time, rate: Rate, rule: &BreakerRule) {
        let most_ahead = rate.interval.saturating_mul(rate.burst.saturating_add(1));
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
