//! Counts events of the last hour, approximately, with two counters.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Older events do not count.
pub const LATELY: Duration = Duration::from_hours(1);

/// Counts events per hour, and keeps only the current and the previous hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recent {
    /// The start of the current hour.
    began: Time,
    this_hour: u32,
    hour_before: u32,
}

impl Recent {
    /// Counts an event.
    pub fn count(&mut self, now: Time) {
        *self = self.seen_from(now);
        self.this_hour = self.this_hour.saturating_add(1);
    }

    /// The number of events in the last hour. The previous hour counts in proportion to its overlap with the last 60
    /// minutes, as if its events had been evenly spread.
    pub fn in_the_last_hour(&self, now: Time) -> u32 {
        let seen = self.seen_from(now);
        let left = LATELY.saturating_sub(now.since(seen.began));
        let share = left.as_secs_f64() / LATELY.as_secs_f64();
        seen.this_hour.saturating_add((f64::from(seen.hour_before) * share).ceil() as u32)
    }

    /// Converts its times to another clock; see [`Time::by_clock_ahead_by_us`].
    pub fn by_clock_ahead_by_us(self, ahead_us: i64) -> Recent {
        Recent { began: self.began.by_clock_ahead_by_us(ahead_us), ..self }
    }

    /// Whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        *self == Recent::default()
    }

    /// Moves on to the hour that contains `now`. If the clock jumped back, a new hour begins.
    fn seen_from(self, now: Time) -> Recent {
        let age = now.since(self.began);
        if age < LATELY && now >= self.began {
            return self;
        }
        let follows = age < LATELY * 2 && now >= self.began;
        let (began, hour_before) =
            if follows { (self.began + LATELY, self.this_hour) } else { (now, 0) };
        Recent { began, this_hour: 0, hour_before }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(minutes: i64) -> Time {
        Time::from_secs(1_000_000 + minutes * 60)
    }

    #[test]
    fn what_is_two_hours_old_is_forgotten_and_what_is_new_counts_in_full() {
        let mut recent = Recent::default();
        for minute in [0, 10, 20] {
            recent.count(at(minute));
        }
        for (minute, expected) in [(20, 3), (59, 3), (60, 3), (90, 2), (119, 1), (120, 0), (900, 0)]
        {
            assert_eq!(recent.in_the_last_hour(at(minute)), expected, "after {minute} min");
        }
        recent.count(at(90));
        assert_eq!(recent.in_the_last_hour(at(90)), 3);
        assert_eq!(recent.in_the_last_hour(at(-500)), 0, "a clock that jumped back");
    }

    proptest! {
        /// It never misses what happened within the last hour since the present one began, and never
        /// counts what is two hours old.
        #[test]
        fn it_counts_no_less_than_this_hour_and_no_more_than_two(
            gaps_s in prop::collection::vec(0u64..5_000, 1..60), look_s in 0u64..9_000,
        ) {
            let mut recent = Recent::default();
            let mut now = at(0);
            let mut times = Vec::new();
            for gap_s in gaps_s {
                now = now + Duration::from_secs(gap_s);
                recent.count(now);
                times.push(now);
            }
            now = now + Duration::from_secs(look_s);
            let within = |span: Duration| times.iter().filter(|at| now.since(**at) < span).count();
            let counted = recent.in_the_last_hour(now) as usize;
            prop_assert!(counted <= within(LATELY * 2));
            prop_assert!(counted > 0 || within(LATELY) == 0);
        }
    }
}
