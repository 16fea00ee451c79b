//! The permit for one request head, from the slot that the store reserved to the moment when the head is written.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::outcome::Mark;
use fetchwell_policy::pace::{MAX_LEAD, Rate};
use fetchwell_policy::site::{Permit, Report, Spend, Verdict};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use tokio::time::Instant;
use tracing::debug;

use super::Gate;
use super::group_turns::KeptTurns;
use super::heads::Heads;
use crate::clock::Clock;
use crate::ports::error::StoreError;
use crate::ports::politeness::{Politeness, SiteAsk, SiteReport};
use crate::store_health::{StoreCall, StoreHealth};
use crate::web::{PermitTime, SendPermit};

/// A held connection waits at most this long for its slot; a longer wait goes back to the workbench.
const LONGEST_WAIT_IN_FLIGHT: Duration = Duration::from_secs(2);

/// A head that is early by less than the resolution of timers is not early.
const TIMER_GRAIN: Duration = Duration::from_millis(1);

/// The store's answer that a head may be sent is valid for a tenth of the interval: if the answer takes that long, the
/// next head comes that much too soon. There is a minimum, because no store answers at once…
const LEAST_GOOD_FOR: Duration = Duration::from_millis(20);
/// …and a maximum, because a longer answer means that the process or the store was suspended.
const MOST_GOOD_FOR: Duration = Duration::from_millis(250);

/// A head that is later than this is not written, whatever the interval…
const MOST_LATE: Duration = Duration::from_millis(100);
/// …and one that is no later than this always is, because no machine can be expected to be more precise.
const LEAST_LATE: Duration = Duration::from_millis(20);

/// How late a head may leave, so that, within these limits, at least half of the interval to the next head remains. The
/// store may have granted the permit up to `decided_before` before it arrived.
fn in_time(interval: Duration, decided_before: Duration) -> Duration {
    (interval / 2).saturating_sub(decided_before).clamp(LEAST_LATE, MOST_LATE)
}

/// How many times a permit is spent when each answer arrives too late to use; after that it is given back.
const MOST_SPENDINGS: u32 = 4;

/// The namespace for the pace of groups, among the sites.
const GROUPS: &str = "group";

/// When a request may use a turn of its group.
enum GroupTurn {
    Now,
    /// After this wait. Without a permit, nothing is reserved.
    In {
        wait: Duration,
        permit: Option<Permit>,
    },
}

/// A permit, and everything that is needed to spend it.
pub struct GatePermit {
    politeness: Arc<dyn Politeness>,
    clock: Clock,
    heads: Arc<Heads>,
    kept_turns: Arc<KeptTurns>,
    health: Arc<StoreHealth>,
    site: Site,
    permit: Permit,
    /// When to use it, by the local clock.
    at: Time,
    /// Until then, by the local clock, it need not be spent.
    free_until: Option<Time>,
    given: Option<PermitTime>,
    /// A time of the store's clock, and a local instant at or after which the clock showed it.
    word: Option<(Time, Instant)>,
    rate: Rate,
    follows_robots: bool,
    group: Option<(Site, Rate)>,
    /// Nothing more of the group may be sent before then, by the local clock, if the store said so.
    pub group_rests_until: Option<Time>,
    /// How much sooner after the previous head this one leaves than the pace allows; `None` if it keeps its distance,
    /// as it always should.
    pub early_by: Option<Duration>,
}

impl GatePermit {
    pub(super) fn new(gate: &Gate, site: Site, permit: Permit, at: Time, rate: Rate) -> GatePermit {
        let slot = permit.slot;
        let need_not_be_spent = slot.at <= slot.use_by;
        let free_until = need_not_be_spent.then(|| at + slot.use_by.since(slot.at));
        GatePermit {
            politeness: gate.politeness.clone(),
            clock: gate.clock.clone(),
            heads: gate.heads.clone(),
            kept_turns: gate.kept_turns.clone(),
            health: gate.health.clone(),
            site,
            permit,
            at,
            free_until,
            given: None,
            word: None,
            rate,
            follows_robots: false,
            group: None,
            group_rests_until: None,
            early_by: None,
        }
    }

    /// A page of a group takes a turn of the group, too.
    pub fn in_the_name_of(mut self, group: Option<(&str, Rate)>) -> GatePermit {
        self.group = group.map(|(name, rate)| (Site::apart(GROUPS, name), rate));
        self
    }

    /// Takes a turn of the group, and waits for it if it is near. Returns false if it is too far ahead, or the store
    /// fails. A turn that is too far ahead is kept for the group's next request.
    async fn take_groups_turn(&mut self) -> bool {
        let Some((group, rate)) = self.group.clone() else { return true };
        let mut reserved = self.kept_turns.take(&group);
        let mut wait = Duration::ZERO;
        for _ in 0..MOST_SPENDINGS {
            let turn = match &reserved {
                Some(permit) => self.spend_turn(&group, permit, rate).await,
                None => self.reserve_turn(&group, rate).await,
            };
            match turn {
                Ok(GroupTurn::Now) => return true,
                Ok(GroupTurn::In { wait: due_in, permit }) => (wait, reserved) = (due_in, permit),
                Err(fault) => {
                    self.health.failed(StoreCall::Pace, &fault);
                    return false;
                }
            }
            if wait < Duration::MAX {
                self.group_rests_until = Some(self.clock.now() + wait);
            }
            if wait > LONGEST_WAIT_IN_FLIGHT {
                break;
            }
            tokio::time::sleep(wait).await;
        }
        if let Some(permit) = reserved {
            self.kept_turns.keep(&group, permit, wait);
        }
        false
    }

    async fn reserve_turn(&self, group: &Site, rate: Rate) -> Result<GroupTurn, StoreError> {
        let ask = SiteAsk { site: group.clone(), rate, follows_robots: false };
        let turn = self.politeness.turn(&[], &[ask]).await?;
        Ok(match turn.verdicts.first() {
            Some(Verdict::Go(permit)) if permit.slot.at <= turn.now => GroupTurn::Now,
            Some(Verdict::Go(permit)) => {
                GroupTurn::In { wait: permit.slot.at.since(turn.now), permit: Some(*permit) }
            }
            Some(Verdict::NotBefore { at, .. }) => {
                GroupTurn::In { wait: at.since(turn.now), permit: None }
            }
            // A group has no breaker.
            Some(Verdict::Probe(_)) | None => GroupTurn::In { wait: Duration::MAX, permit: None },
        })
    }

    async fn spend_turn(
        &self,
        group: &Site,
        permit: &Permit,
        rate: Rate,
    ) -> Result<GroupTurn, StoreError> {
        let spent = self.politeness.spend(group, permit, rate).await?;
        Ok(match spent {
            (Spend::Go, _) => GroupTurn::Now,
            (Spend::Wait(permit), now) => {
                GroupTurn::In { wait: permit.slot.at.since(now), permit: Some(permit) }
            }
            (Spend::Void, _) => GroupTurn::In { wait: Duration::ZERO, permit: None },
        })
    }

    /// Whether the page may follow its robots.txt without a pause.
    pub fn following_robots(mut self, follows: bool) -> GatePermit {
        self.follows_robots = follows;
        self
    }

    /// The report on a head that leaves only now, so that others keep their distance from it.
    pub fn late_report(&self) -> Option<SiteReport> {
        self.heads.mark(&self.site, self.rate);
        let (time, since) = self.word?;
        let mark = Mark::LeftLate { by: time + since.elapsed() };
        let report = Report { mark, retry_after: None, generation: self.permit.generation };
        Some(SiteReport { site: self.site.clone(), report })
    }

    fn permitted(&mut self, decided_before: Duration) {
        // The store counts a head with a lead as leaving that much later.
        let unaccounted = decided_before.saturating_sub(self.permit.lead);
        let in_time = in_time(self.rate.interval, unaccounted);
        self.given = Some(PermitTime { at: Instant::now(), decided_before, in_time });
    }

    /// When the head may be written, by the store's clock, which is now. `None` if it may not.
    async fn settle_time(&mut self) -> Option<Time> {
        let now = self.clock.now();
        match self.free_until {
            Some(until) if now <= until => {
                self.permitted(Duration::ZERO);
                self.word = Some((self.permit.slot.at + now.since(self.at), Instant::now()));
                Some(self.permit.slot.at)
            }
            _ => self.spend().await,
        }
    }

    /// Asks the store, and waits for the slot if it is near. `None` if the permit is void or the slot is too far ahead.
    async fn spend(&mut self) -> Option<Time> {
        let good_for = (self.rate.interval / 10).clamp(LEAST_GOOD_FOR, MOST_GOOD_FOR);
        let lead_for = |took: Duration| {
            if took > good_for { (took * 2).min(MAX_LEAD) } else { Duration::ZERO }
        };
        // If the store was slow a moment ago, it is assumed to be slow still.
        self.permit.lead = lead_for(self.heads.last_answer_took());
        let mut spendings_left = MOST_SPENDINGS;
        loop {
            let asked = Instant::now();
            let answer = self.politeness.spend(&self.site, &self.permit, self.rate).await;
            let took = asked.elapsed();
            self.heads.answer_took(took);
            match answer {
                // Another process may have sent a request meanwhile, a whole interval after the store's answer.
                Ok((Spend::Go, _)) if took > good_for.max(self.permit.lead) => {
                    spendings_left -= 1;
                    if spendings_left == 0 {
                        return None;
                    }
                    self.permit.lead = lead_for(took);
                }
                Ok((Spend::Go, now)) => {
                    self.permitted(asked.elapsed());
                    self.word = Some((now, asked));
                    return Some(now);
                }
                Ok((Spend::Void, _)) => return None,
                Ok((Spend::Wait(permit), now)) => {
                    let wait = permit.slot.at.since(now);
                    self.permit = permit;
                    if wait > LONGEST_WAIT_IN_FLIGHT {
                        return None;
                    }
                    tokio::time::sleep(wait).await;
                }
                Err(fault) => {
                    self.health.failed(StoreCall::Pace, &fault);
                    return None;
                }
            }
        }
    }
}

#[async_trait]
impl SendPermit for GatePermit {
    async fn to_write(&mut self) -> bool {
        let early = self.at.since(self.clock.now());
        if self.rate.interval.is_zero() {
            // Only a site that rests has a slot in the future, and it must rest until then.
            if !early.is_zero() {
                tokio::time::sleep(early).await;
            }
            return self.take_groups_turn().await;
        }
        let gap_left = match self.follows_robots {
            true => Duration::ZERO,
            false => self.heads.gap_left(&self.site, self.rate),
        };
        if gap_left > LONGEST_WAIT_IN_FLIGHT {
            return false;
        }
        tokio::time::sleep(gap_left.max(early)).await;
        if !self.take_groups_turn().await {
            return false;
        }
        let Some(at) = self.settle_time().await else { return false };
        if !self.follows_robots {
            let gap_left = self.heads.gap_left(&self.site, self.rate);
            self.early_by = (gap_left > TIMER_GRAIN).then_some(gap_left);
        }
        self.heads.mark(&self.site, self.rate);
        let at_us = at.as_micros();
        let interval_us = self.rate.interval.as_micros();
        let site = &self.site;
        let follows_robots = self.follows_robots;
        debug!(target: "fetchwell::dispatch", %site, at_us, interval_us, follows_robots);
        true
    }

    fn given(&self) -> Option<PermitTime> {
        self.given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_interval_remains_after_a_late_head() {
        for (interval, decided_before, expected) in [
            (5_000, 0, 100),
            (1_000, 100, 100),
            (150, 0, 75),
            (100, 20, 30),
            (100, 40, 20),
            (1, 0, 20),
        ] {
            let found =
                in_time(Duration::from_millis(interval), Duration::from_millis(decided_before));
            assert_eq!(found, Duration::from_millis(expected), "{interval} {decided_before}");
        }
    }
}
