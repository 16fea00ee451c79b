//! The health of a site beyond its breaker: recoveries and failed probes.

use serde::{Deserialize, Serialize};

use crate::outcome::SiteFault;
use crate::time::Time;

/// The number of failed probes whose times are kept.
const PROBE_TIMES: usize = 8;

/// The health of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SiteHealth {
    /// A page or a probe failed, and no page was served since. A robots.txt that keeps failing while pages are served
    /// does not count.
    pub is_failing: bool,
    /// How often the site has recovered from failures, or an operator declared it recovered. After a recovery, a
    /// robots.txt that could not be read is read before the next page. Only compare this for equality: it restarts at 0
    /// when the site is forgotten.
    pub recoveries: u32,
    /// Failed probes since the breaker opened.
    pub failed_probes: FailedProbes,
}

impl SiteHealth {
    /// Records that the site has recovered, or that an operator declares so.
    pub fn recovered(&mut self) {
        let recoveries = self.recoveries.wrapping_add(1);
        *self = SiteHealth { recoveries, ..SiteHealth::default() };
    }

    /// Whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        *self == SiteHealth::default()
    }

    /// Converts its times to another clock; see [`Time::by_clock_ahead_by_us`].
    pub fn by_clock_ahead_by_us(self, ahead_us: i64) -> SiteHealth {
        let moved = |time: Time| time.by_clock_ahead_by_us(ahead_us);
        SiteHealth { failed_probes: self.failed_probes.with_times(moved), ..self }
    }
}

/// Consecutive failed probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailedProbes {
    /// The number of failed probes.
    pub count: u32,
    /// How the last one failed.
    pub last: Option<SiteFault>,
    /// When the last few failed, latest first.
    times: [Time; PROBE_TIMES],
}

impl FailedProbes {
    /// Records another failed probe.
    pub fn add(&mut self, fault: SiteFault, now: Time) {
        self.count = self.count.saturating_add(1);
        self.last = Some(fault);
        self.times.rotate_right(1);
        if let Some(latest) = self.times.first_mut() {
            *latest = now;
        }
    }

    /// The number of probes that failed at `time` or later. If all kept times are within that range, all probes are
    /// counted.
    pub fn since(&self, time: Time) -> u32 {
        let kept = self.times_kept();
        let later = self.times.iter().take(kept).filter(|at| **at >= time).count();
        if later == kept { self.count } else { u32::try_from(later).unwrap_or(u32::MAX) }
    }

    /// Converts the times with `moved`.
    pub fn with_times(mut self, moved: impl Fn(Time) -> Time) -> FailedProbes {
        let kept = self.times_kept();
        for at in self.times.iter_mut().take(kept) {
            *at = moved(*at);
        }
        self
    }

    fn times_kept(&self) -> usize {
        usize::try_from(self.count).map_or(PROBE_TIMES, |count| count.min(PROBE_TIMES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Time {
        Time::from_secs(1_000 + secs)
    }

    #[test]
    fn a_probe_counts_for_those_who_waited_for_it() {
        let mut probes = FailedProbes::default();
        assert_eq!(probes.since(at(0)), 0);
        for secs in [30, 90, 210] {
            probes.add(SiteFault::Network, at(secs));
        }
        probes.add(SiteFault::Answered(503), at(450));
        for (accepted, expected) in [(0, 4), (30, 4), (31, 3), (200, 2), (450, 1), (451, 0)] {
            assert_eq!(probes.since(at(accepted)), expected, "accepted at {accepted}");
        }
        assert_eq!(probes.last, Some(SiteFault::Answered(503)));
    }

    #[test]
    fn of_many_probes_the_last_times_are_kept() {
        let mut probes = FailedProbes::default();
        for n in 0..20 {
            probes.add(SiteFault::TimedOut, at(n * 300));
        }
        assert_eq!((probes.since(at(0)), probes.since(at(16 * 300))), (20, 4));
        let moved = probes.with_times(|time| time.by_clock_ahead_by_us(7_000_000));
        assert_eq!(moved.since(at(19 * 300 + 7)), 1);
        assert_eq!(moved.since(at(19 * 300 + 8)), 0);
    }

    #[test]
    fn a_recovery_is_counted_and_the_rest_is_forgotten() {
        let mut health = SiteHealth { is_failing: true, ..SiteHealth::default() };
        health.failed_probes.add(SiteFault::Network, at(0));
        health.recovered();
        assert_eq!(health, SiteHealth { recoveries: 1, ..SiteHealth::default() });
    }
}
