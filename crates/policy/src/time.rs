//! Points in time. They are always arguments: this crate never reads a clock.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Microseconds since the Unix epoch, in UTC.
///
/// Microseconds are precise enough for several hundred requests per second, and are the resolution of the stores'
/// clocks.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(i64);

impl Time {
    /// The Unix epoch, which is earlier than any time in this program.
    pub const EPOCH: Time = Time(0);
    /// Later than any time in this program.
    pub const FAR_FUTURE: Time = Time(i64::MAX);

    /// Creates a time from microseconds since the Unix epoch.
    pub const fn from_micros(micros: i64) -> Time {
        Time(micros)
    }

    /// Creates a time from whole seconds since the Unix epoch.
    pub const fn from_secs(secs: i64) -> Time {
        Time(secs.saturating_mul(1_000_000))
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Converts the time to another clock that is ahead of this one by `ahead_us` (negative if it is behind). `EPOCH`
    /// and `FAR_FUTURE` stay the same.
    pub fn by_clock_ahead_by_us(self, ahead_us: i64) -> Time {
        match self {
            Time::EPOCH | Time::FAR_FUTURE => self,
            Time(micros) => Time(micros.saturating_add(ahead_us)),
        }
    }

    /// The time since `earlier`; zero if this is not later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(saturating_micros(span)))
    }
}

impl Sub<Duration> for Time {
    type Output = Time;

    fn sub(self, span: Duration) -> Time {
        Time(self.0.saturating_sub(saturating_micros(span)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0.div_euclid(1_000_000), self.0.rem_euclid(1_000_000))
    }
}

fn saturating_micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_clock_moves_what_happened_and_nothing_else() {
        let moved = |time: Time| time.by_clock_ahead_by_us(-250);
        assert_eq!(moved(Time::from_micros(1_000)), Time::from_micros(750));
        assert_eq!(moved(Time::EPOCH), Time::EPOCH);
        assert_eq!(moved(Time::FAR_FUTURE), Time::FAR_FUTURE);
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Time::FAR_FUTURE + Duration::MAX, Time::FAR_FUTURE);
        assert_eq!(Time::from_secs(i64::MAX), Time::FAR_FUTURE);
        assert_eq!(Time::EPOCH.since(Time::from_secs(5)), Duration::ZERO);
        assert_eq!(Time::from_secs(5).since(Time::EPOCH), Duration::from_secs(5));
        assert_eq!(Time::from_secs(5) - Duration::from_secs(2), Time::from_secs(3));
    }

    #[test]
    fn it_prints_seconds() {
        assert_eq!(Time::from_micros(1_500_000).to_string(), "1.500000");
    }
}
