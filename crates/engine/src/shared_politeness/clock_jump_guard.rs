//! Detects jumps of a server's clock.

use std::time::Duration;

use crate::ports::error::StoreError;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::warn;

use super::{SiteStateStore, SiteStates};

/// The tolerated difference between the clocks…
const LEEWAY: Duration = Duration::from_millis(100);
/// …plus one part in this many of the time between two readings.
const DRIFT: u32 = 1_000;

/// Compares the server's clock with the monotonic clock of this machine. After a jump, all reserved slots have the
/// wrong time, so the past is not trusted.
#[derive(Default)]
pub(super) struct ClockJumpGuard {
    last: Mutex<Option<ClockReading>>,
}

/// A reading of the server's time, and the local instants before and after it.
#[derive(Clone, Copy)]
struct ClockReading {
    asked: Instant,
    answered: Instant,
    showed: Time,
}

impl ClockJumpGuard {
    /// Reads the state of sites. After a jump, makes the store distrust its past and reads again.
    pub(super) async fn read(
        &self,
        site_states: &impl SiteStateStore,
        sites: &[Site],
    ) -> Result<SiteStates, StoreError> {
        loop {
            let asked = Instant::now();
            let reading = site_states.read(sites).await?;
            let showed = reading.now;
            let jumped = self.look(ClockReading { asked, answered: Instant::now(), showed });
            if jumped.is_zero() {
                return Ok(reading);
            }
            warn!(
                "the politeness store's clock jumped by {:.1} s: every site waits for a whole interval",
                jumped.as_secs_f64()
            );
            site_states.distrust_the_past().await?;
        }
    }

    /// How far the clock has jumped since the last reading.
    fn look(&self, reading: ClockReading) -> Duration {
        let last = self.last.lock().replace(reading);
        last.map_or(Duration::ZERO, |last| jump(last, reading))
    }
}

/// The difference that the time elapsed here does not explain. Readings may overlap and arrive in any order: each saw
/// the clock at some instant between its request and its response.
fn jump(one: ClockReading, other: ClockReading) -> Duration {
    let ahead = beyond(one, other).max(beyond(other, one));
    let between = one.asked.max(other.answered).duration_since(one.asked.min(other.asked));
    if ahead > LEEWAY + between / DRIFT { ahead } else { Duration::ZERO }
}

/// How much further the clock moved from `first` to `then` than the longest time that can have passed between them.
fn beyond(first: ClockReading, then: ClockReading) -> Duration {
    let longest = then.answered.saturating_duration_since(first.asked);
    let not_even_that = first.asked.saturating_duration_since(then.answered);
    (then.showed + not_even_that).since(first.showed + longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look from `asked_ms` to `answered_ms` by our clock that saw `showed_ms` by the server's.
    fn reading(start: Instant, asked_ms: u64, answered_ms: u64, showed_ms: i64) -> ClockReading {
        ClockReading {
            asked: start + Duration::from_millis(asked_ms),
            answered: start + Duration::from_millis(answered_ms),
            showed: Time::from_micros(1_700_000_000_000_000 + showed_ms * 1_000),
        }
    }

    #[test]
    fn only_what_the_time_between_can_not_explain_is_a_jump() {
        let start = Instant::now();
        for (first, then, jumped_ms) in [
            ((0, 1, 0), (1_000, 1_001, 1_000), 0),
            ((0, 1, 0), (1_000, 1_900, 1_850), 0),
            ((0, 1, 0), (1_000, 1_001, 1_090), 0),
            ((0, 1, 0), (1_000, 1_001, 3_601_001), 3_600_000),
            ((0, 1, 0), (1_000, 1_001, -3_599_001), 3_600_000),
            ((1_000, 1_001, 1_000), (0, 1, 0), 0),
            ((0, 900, 850), (10, 20, 15), 0),
            ((0, 1, 0), (3_600_000, 3_600_001, 3_602_000), 0),
        ] {
            let a: (u64, u64, i64) = first;
            let b: (u64, u64, i64) = then;
            let found = jump(reading(start, a.0, a.1, a.2), reading(start, b.0, b.1, b.2));
            assert_eq!(found, Duration::from_millis(jumped_ms), "{first:?} {then:?}");
        }
    }
}
