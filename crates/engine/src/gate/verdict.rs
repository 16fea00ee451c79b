//! What a site's next page waits for, and which rule of robots.txt a verdict is based on.

use std::time::Duration;

use fetchwell_policy::pace::Rate;
use fetchwell_policy::robots::RobotsVerdict;
use fetchwell_policy::site::SiteState;
use fetchwell_policy::time::Time;

use super::{GateRules, RobotsView};
use crate::ports::politeness::RobotsRecord;

/// What a site's next page waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// `paused`, `breaker`, `penalty`, `robots` (it cannot be read, and is retried later) or `pace`; `None` if the page
    /// can be sent now.
    pub held_up_by: Option<&'static str>,
    /// When it could be sent, as things stand; `None` if not before an operator resumes the site.
    pub next_slot_in: Option<Duration>,
}

impl GateRules {
    /// What a site's next page waits for, at this `rate` and with these records of its robots.txt. Everything that
    /// shows this uses this function. `store_now` is the time by the store's clock, `now` by the local one.
    pub fn outlook<'a>(
        &self,
        state: &SiteState,
        rate: Rate,
        robots: impl IntoIterator<Item = &'a RobotsRecord>,
        (store_now, now): (Time, Time),
    ) -> Outlook {
        let blocked = |record: &RobotsRecord| match self.view(Some(record), Some(state), now) {
            RobotsView::Blocked { until, .. } => Some(until.since(now)),
            _ => None,
        };
        let robots_wait = robots.into_iter().filter_map(blocked).max();
        let Some(slot) = state.next_slot(store_now, rate) else {
            return Outlook { held_up_by: Some("paused"), next_slot_in: None };
        };
        let slot_in = slot.since(store_now);
        let held_up_by = if state.breaker.blocked_until().is_some() {
            Some("breaker")
        } else if state.penalty_until > store_now {
            Some("penalty")
        } else if robots_wait.is_some() {
            Some("robots")
        } else {
            (!slot_in.is_zero()).then_some("pace")
        };
        Outlook { held_up_by, next_slot_in: Some(slot_in.max(robots_wait.unwrap_or_default())) }
    }
}

/// The rule that a verdict is based on, for the `why` of a row.
pub fn rule_of(verdict: RobotsVerdict) -> Option<String> {
    let line = verdict.line?;
    let rule = verdict.rule?;
    Some(format!("line {line}: {rule}"))
}
