//! The retry budget: retries are a fifth of first attempts at the most, over all sites.
//!
//! When much fails at once, retries must not become the main load. The budget delays them and never
//! cancels one.

use std::time::Duration;

use crate::time::Time;

/// What a first attempt adds to the budget.
const EARNED_BY_A_FIRST_ATTEMPT: f64 = 0.2;
/// The budget at the start, and the most that it grows to: a burst of failures is no storm yet.
const MOST_SAVED: f64 = 100.0;
/// With no first attempts at all, a retry a second may still go.
const LEAST_PER_SECOND: f64 = 1.0;

/// How many retries may go now.
#[derive(Clone, Copy, Debug)]
pub struct RetryBudget {
    /// Below zero when retries have been put off.
    saved: f64,
    counted_at: Time,
}

impl RetryBudget {
    /// A full one.
    pub fn new(now: Time) -> RetryBudget {
        RetryBudget { saved: MOST_SAVED, counted_at: now }
    }

    /// A first attempt went out.
    pub fn earn(&mut self) {
        self.saved = (self.saved + EARNED_BY_A_FIRST_ATTEMPT).min(MOST_SAVED);
    }

    /// A retry is wanted at `at`: returns when it may be.
    pub fn spend(&mut self, at: Time, now: Time) -> Time {
        let elapsed_s = now.since(self.counted_at).as_secs_f64();
        self.counted_at = self.counted_at.max(now);
        self.saved = (self.saved + elapsed_s * LEAST_PER_SECOND).min(MOST_SAVED) - 1.0;
        if self.saved >= 0.0 {
            return at;
        }
        let debt_s = -self.saved / LEAST_PER_SECOND;
        at.max(now + Duration::try_from_secs_f64(debt_s).unwrap_or(Duration::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Time {
        Time::from_secs(1_000 + secs)
    }

    #[test]
    fn a_few_retries_go_as_planned() {
        let mut budget = RetryBudget::new(at(0));
        assert!((0..100).all(|_| budget.spend(at(2), at(0)) == at(2)));
    }

    #[test]
    fn a_storm_is_spread_to_one_a_second_and_none_is_cancelled() {
        let mut budget = RetryBudget::new(at(0));
        let times: Vec<Time> = (0..1_100).map(|_| budget.spend(at(2), at(0))).collect();
        assert_eq!(times[1_099], at(1_000));
        assert!(times.is_sorted());
    }

    #[test]
    fn first_attempts_earn_a_fifth_of_a_retry() {
        let mut budget = RetryBudget::new(at(0));
        for _ in 0..100 {
            budget.spend(at(0), at(0));
        }
        for _ in 0..50 {
            budget.earn();
        }
        let in_time = (0..20).filter(|_| budget.spend(at(0), at(0)) == at(0)).count();
        assert_eq!(in_time, 10);
    }

    #[test]
    fn a_clock_that_jumps_back_neither_earns_nor_costs() {
        let mut budget = RetryBudget::new(at(500));
        assert_eq!(budget.spend(at(0), at(0)), at(0));
        assert_eq!(budget.spend(at(501), at(501)), at(501));
    }
}
