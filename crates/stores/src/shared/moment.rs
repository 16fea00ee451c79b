//! What time it is, by a store's clock and by ours.
//!
//! All who share a server go by its clock. The engine has a clock of its own, and names times by that: each
//! transaction or script reads both, and what passes between the two is moved by the difference.

use fetchwell_engine::clock::Clock;
use fetchwell_policy::time::Time;

/// Tells the time of the store.
#[derive(Clone, Debug)]
pub enum StoreClock {
    /// The server's; the engine's own is given.
    Server(Clock),
    /// This one for both, for tests that set the time by hand.
    ByHand(Clock),
}

impl StoreClock {
    /// For what asks the server what time it is: what they are to believe instead.
    pub(crate) fn given(&self) -> Option<i64> {
        match self {
            StoreClock::Server(_) => None,
            StoreClock::ByHand(clock) => Some(clock.now().as_micros()),
        }
    }

    /// How far ahead of now a time of the engine's is, in microseconds; less than 0 for what has passed.
    #[cfg(feature = "redis")]
    pub(crate) fn span_us(&self, time: Time) -> i64 {
        let (StoreClock::Server(clock) | StoreClock::ByHand(clock)) = self;
        time.as_micros().saturating_sub(clock.now().as_micros())
    }

    /// A moment at which the store's clock shows `micros`.
    pub(crate) fn moment(&self, micros: i64) -> Moment {
        let now = Time::from_micros(micros);
        match self {
            StoreClock::Server(clock) => Moment { now, local: clock.now() },
            StoreClock::ByHand(_) => Moment { now, local: now },
        }
    }
}

/// A moment by both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// By the store's clock.
    pub(crate) now: Time,
    /// By the engine's.
    local: Time,
}

impl Moment {
    /// The engine's time, by the store's clock.
    #[cfg(feature = "postgres")]
    pub(crate) fn to_store(self, local: Time) -> Time {
        move_by(local, self.local, self.now)
    }

    /// The store's time, by the engine's clock.
    pub(crate) fn to_local(self, stored: Time) -> Time {
        move_by(stored, self.now, self.local)
    }
}

/// The end of time stays where it is.
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
