//! Converts times between the clock of a store and the clock of the engine.
//!
//! All processes that share a server use its clock. The engine uses its own clock. Each transaction or script reads
//! both, and times that pass between the two are shifted by the difference.

use fetchwell_engine::clock::Clock;
use fetchwell_policy::time::Time;

/// The clock of a store.
#[derive(Clone, Debug)]
pub enum StoreClock {
    /// The clock of the server. Holds the engine's own clock.
    Server(Clock),
    /// This clock for both, for tests that set the time.
    ByHand(Clock),
}

impl StoreClock {
    /// The time to use instead of the server's clock, if it is set by a test.
    pub(crate) fn given(&self) -> Option<i64> {
        match self {
            StoreClock::Server(_) => None,
            StoreClock::ByHand(clock) => Some(clock.now().as_micros()),
        }
    }

    /// The time from now to a time of the engine, in microseconds; negative if it has passed.
    #[cfg(feature = "redis")]
    pub(crate) fn span_us(&self, time: Time) -> i64 {
        let (StoreClock::Server(clock) | StoreClock::ByHand(clock)) = self;
        time.as_micros().saturating_sub(clock.now().as_micros())
    }

    /// The moment at which the store's clock shows `micros`.
    pub(crate) fn moment(&self, micros: i64) -> ServerTime {
        let now = Time::from_micros(micros);
        match self {
            StoreClock::Server(clock) => ServerTime { now, local: clock.now() },
            StoreClock::ByHand(_) => ServerTime { now, local: now },
        }
    }
}

/// A moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerTime {
    /// On the store's clock.
    pub(crate) now: Time,
    /// On the engine's clock.
    local: Time,
}

impl ServerTime {
    /// Converts a time of the engine to the store's clock.
    #[cfg(feature = "postgres")]
    pub(crate) fn to_store(self, local: Time) -> Time {
        move_by(local, self.local, self.now)
    }

    /// Converts a time of the store to the engine's clock.
    pub(crate) fn to_local(self, stored: Time) -> Time {
        move_by(stored, self.now, self.local)
    }
}

/// `FAR_FUTURE` is not shifted.
fn move_by(time: Time, from: Time, to: Time) -> Time {
    if time == Time::FAR_FUTURE {
        return time;
    }
    let ahead = time.as_micros().saturating_sub(from.as_micros());
    Time::from_micros(to.as_micros().saturating_add(ahead))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_move_by_the_difference_of_the_clocks() {
        let clock = Clock::new(|| Time::from_secs(100));
        let moment = StoreClock::Server(clock).moment(Time::from_secs(5_000).as_micros());
        assert_eq!(moment.to_store(Time::from_secs(103)), Time::from_secs(5_003));
        assert_eq!(moment.to_local(Time::from_secs(4_990)), Time::from_secs(90));
        assert_eq!(moment.to_store(Time::FAR_FUTURE), Time::FAR_FUTURE);
    }
}
