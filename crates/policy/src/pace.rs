//! Pace: when the next request may go, as a generic cell rate algorithm.
//!
//! A slot is reserved before it is waited for, so that two askers can never be given the same one. The
//! state is one point in time, whatever the number of requests.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// The longest that a request head may be written after its slot without asking again.
const MAX_GRACE: Duration = Duration::from_millis(5);

/// How often, and how many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// The time between two requests in the long run. Zero: no pacing.
    pub interval: Duration,
    /// How many may go at once after a rest. A site always has 1.
    pub burst: u32,
}

impl Rate {
    /// One request an interval.
    pub const fn every(interval: Duration) -> Rate {
        Rate { interval, burst: 1 }
    }

    /// `per_second` requests a second, with a burst. Zero or less: no pacing.
    pub fn per_second(per_second: f64, burst: u32) -> Rate {
        let interval = Duration::try_from_secs_f64(1.0 / per_second).unwrap_or(Duration::ZERO);
        Rate { interval, burst: burst.max(1) }
    }

    /// How late a head may be written and still count as in its slot.
    ///
    /// The grace is part of what a slot occupies, so that even a request at its very end is a whole
    /// interval before the next one. One hundredth of the interval keeps the loss of rate at 1 %.
    pub fn grace(self) -> Duration {
        if self.burst > 1 { Duration::ZERO } else { (self.interval / 100).min(MAX_GRACE) }
    }
}

/// A reserved moment: the request head is to be written from `at` until `use_by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Not before this.
    pub at: Time,
    /// Later than this, the slot must be rebased first.
    pub use_by: Time,
    /// Where the pace stood after this reservation; tells whether anyone reserved after us.
    mark: Time,
}

/// The pace of one site or group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// When all that was reserved so far is used up (the theoretical arrival time).
    used_until: Time,
    /// The interval that `used_until` was computed with.
    interval: Duration,
}

impl Pace {
    /// Takes the earliest slot that is not before `not_before`.
    pub fn reserve(&mut self, not_before: Time, rate: Rate) -> Slot {
        let at = self.earliest(not_before, rate);
        let used_from = self.used_until_at(rate).max(at + rate.grace());
        self.take_until(used_from + rate.interval, at, rate)
    }

    /// The slot that [`Pace::reserve`] would take.
    pub fn earliest(&self, not_before: Time, rate: Rate) -> Time {
        let headroom = rate.interval.saturating_mul(rate.burst.saturating_sub(1));
        not_before.max(self.used_until_at(rate) - headroom)
    }

    /// Takes `at` together with the slot before it, as one: for the page that a robots.txt was read
    /// for. The next slot is an interval after `at`.
    pub fn follow(&mut self, at: Time, rate: Rate) -> Slot {
        let use_by = at + rate.grace();
        self.take_until(self.used_until_at(rate).max(use_by + rate.interval), at, rate)
    }

    fn take_until(&mut self, used_until: Time, at: Time, rate: Rate) -> Slot {
        *self = Pace { used_until, interval: rate.interval };
        Slot { at, use_by: at + rate.grace(), mark: used_until }
    }

    /// A slot was slept past: moves it to `now` when nobody reserved after it, else takes a new one.
    pub fn rebase(&mut self, slot: &Slot, now: Time, rate: Rate) -> Slot {
        if now <= slot.use_by {
            return *slot;
        }
        if self.used_until == slot.mark && self.interval == rate.interval {
            self.used_until = slot.mark - rate.interval - rate.grace();
        }
        self.reserve(now, rate)
    }

    /// When all that was reserved is used up: until then the state must not be forgotten.
    pub fn used_until(&self) -> Time {
        self.used_until
    }

    /// Cuts off what lies further ahead than `bound`: a clock that jumped back must not close a site.
    pub fn clamp(&mut self, bound: Time) {
        self.used_until = self.used_until.min(bound);
    }

    /// A changed interval counts from the last slot, not from the next request on.
    fn used_until_at(&self, rate: Rate) -> Time {
        (self.used_until - self.interval) + rate.interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    const SECOND: Rate = Rate::every(Duration::from_secs(1));

    fn at_ms(ms: i64) -> Time {
        Time::from_micros(1_000_000_000 + ms * 1_000)
    }

    #[test]
    fn the_first_request_goes_at_once_and_the_next_after_the_interval() {
        let mut pace = Pace::default();
        assert_eq!(pace.reserve(at_ms(0), SECOND).at, at_ms(0));
        assert_eq!(pace.reserve(at_ms(1), SECOND).at, at_ms(1_005));
        assert_eq!(pace.reserve(at_ms(9_000), SECOND).at, at_ms(9_000));
    }

    #[test]
    fn a_longer_crawl_delay_counts_from_the_last_slot() {
        let mut pace = Pace::default();
        let first = pace.reserve(at_ms(0), SECOND);
        let five = Rate::every(Duration::from_secs(5));
        assert_eq!(pace.reserve(at_ms(1), five).at, first.use_by + five.interval);
    }

    #[test]
    fn a_page_that_follows_its_robots_txt_takes_one_slot_with_it() {
        let five = Rate::every(Duration::from_secs(5));
        let mut pace = Pace::default();
        pace.reserve(at_ms(0), SECOND);
        assert_eq!(pace.follow(at_ms(10), five).at, at_ms(10));
        assert_eq!(pace.reserve(at_ms(20), five).at, at_ms(5_015));
    }

    #[test]
    fn a_slot_slept_past_moves_to_now_when_nobody_came_after() {
        let mut pace = Pace::default();
        let late = pace.reserve(at_ms(0), SECOND);
        let moved = pace.rebase(&late, at_ms(300), SECOND);
        assert_eq!(moved.at, at_ms(300));
        assert_eq!(pace.reserve(at_ms(300), SECOND).at, at_ms(1_305));
    }

    #[test]
    fn a_slot_slept_past_goes_to_the_end_when_somebody_came_after() {
        let mut pace = Pace::default();
        let late = pace.reserve(at_ms(0), SECOND);
        let other = pace.reserve(at_ms(0), SECOND);
        let moved = pace.rebase(&late, at_ms(300), SECOND);
        assert_eq!(moved.at, other.use_by + SECOND.interval);
    }

    #[test]
    fn a_burst_is_spent_and_refills() {
        let rate = Rate::per_second(10.0, 20);
        let mut pace = Pace::default();
        let at_once = (0..40).take_while(|_| pace.reserve(at_ms(0), rate).at == at_ms(0)).count();
        assert_eq!(at_once, 20);
        let mut rested = pace;
        assert!(rested.reserve(at_ms(60_000), rate).at == at_ms(60_000));
    }

    #[test]
    fn no_pacing_never_waits() {
        let rate = Rate::per_second(0.0, 1);
        let mut pace = Pace::default();
        assert!((0..100).all(|_| pace.reserve(at_ms(0), rate).at == at_ms(0)));
    }

    /// The simple model: every head that was written, and the rule that two are an interval apart.
    #[derive(Default)]
    struct Model {
        written: Vec<Time>,
    }

    impl Model {
        fn write(&mut self, at: Time, rate: Rate) -> Result<(), String> {
            let early = self
                .written
                .iter()
                .find(|&&before| at < before + rate.interval && before < at + rate.interval)
                .copied();
            self.written.push(at);
            match early {
                Some(before) => Err(format!("{at} is too close to {before}")),
                None => Ok(()),
            }
        }
    }

    /// Several instances reserve, sleep too long or not, rebase and write, in random order.
    #[test]
    fn a_hundred_thousand_histories_keep_to_the_model() {
        for seed in 0..100_000u64 {
            run_history(seed).unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
        }
    }

    fn run_history(seed: u64) -> Result<(), String> {
        let mut chance = Chance::seeded(seed);
        let interval_ms = 1 + chance.next_u64() % 2_000;
        let rate = Rate::every(Duration::from_millis(interval_ms));
        let (mut pace, mut model) = (Pace::default(), Model::default());
        let mut held: [Option<Slot>; 3] = [None; 3];
        let mut now = at_ms(0);
        let mut last_reserved: Option<Time> = None;
        for _ in 0..24 {
            now = now + Duration::from_micros(chance.next_u64() % (interval_ms * 700));
            let who = (chance.next_u64() % 3) as usize;
            let Some(slot) = held[who] else {
                let slot = pace.reserve(now, rate);
                let spare = last_reserved.is_none_or(|last| {
                    slot.at == now || slot.at <= last + rate.interval + 2 * rate.grace()
                });
                if !spare {
                    return Err(format!("slot {slot:?} wastes time after {last_reserved:?}"));
                }
                last_reserved = Some(slot.at.max(last_reserved.unwrap_or(slot.at)));
                held[who] = Some(slot);
                continue;
            };
            if now < slot.at {
                continue;
            }
            let rebased = pace.rebase(&slot, now, rate);
            last_reserved = Some(rebased.at.max(last_reserved.unwrap_or(rebased.at)));
            if rebased.at <= now {
                model.write(now, rate)?;
                held[who] = None;
            } else {
                held[who] = Some(rebased);
            }
        }
        Ok(())
    }
}
