//! The result of a request, and how it changes the state of its site.

use std::time::Duration;

use super::SiteState;
use crate::breaker::{BreakerRule, State, Transition};
use crate::outcome::Mark;
use crate::retry_after::MAX_RETRY_AFTER;
use crate::time::Time;

/// The first penalty after a 429 without a `Retry-After`, doubled at each repetition.
const LIMITED_BASE: Duration = Duration::from_secs(2);
/// The longest penalty after a 429 without a `Retry-After`.
const LIMITED_CAP: Duration = Duration::from_secs(300);

/// A result to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// What the result means.
    pub mark: Mark,
    /// The `Retry-After` of a 429 or a 503.
    pub retry_after: Option<Duration>,
    /// The generation of the request's permit.
    pub generation: u64,
}

impl SiteState {
    /// Records the result of a request.
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
        // A report is not old because of its own penalty, but because of one that came while the request was in flight.
        let is_old = report.generation < self.generation - u64::from(rested);
        let transition = match report.mark {
            // However old the request is, the site has served it now, so earlier failures are no longer consecutive.
            Mark::Served if is_old => self.served(),
            _ if is_old => Transition::None,
            mark => self.judge(mark, now, rule, chance),
        };
        if matches!(transition, Transition::Opened { .. }) {
            self.generation += 1;
        }
        transition
    }

    /// Updates the counters for operators, which do not affect the site.
    fn count(&mut self, mark: Mark, now: Time) {
        match mark {
            Mark::Limited => self.limited.count(now),
            Mark::Failed | Mark::RobotsFailed | Mark::ProbeFailed(_) => self.failed.count(now),
            Mark::Served | Mark::Neutral | Mark::ProbeAnswered | Mark::LeftLate { .. } => {}
        }
    }

    /// Applies a penalty if the site asks for one. Returns whether it did.
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

    /// Records that a page was served. This does not close an open breaker; only a probe does.
    fn served(&mut self) -> Transition {
        if self.breaker.state == State::Closed && self.health.is_failing {
            self.health.recovered();
        }
        self.breaker.succeeded()
    }
}
