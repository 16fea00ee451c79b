//! What became of a request, and how it changes the state of its site.

use std::time::Duration;

use super::SiteState;
use crate::breaker::{BreakerRule, State, Transition};
use crate::outcome::SiteFault;
use crate::retry_after::MAX_RETRY_AFTER;
use crate::time::Time;

/// A site that answers 429 without saying for how long rests this long, doubled at each repetition.
const LIMITED_BASE: Duration = Duration::from_secs(2);
/// The longest rest after a 429 that did not say for how long.
const LIMITED_CAP: Duration = Duration::from_secs(300);

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

impl SiteState {
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
}
