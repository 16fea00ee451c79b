//! The retry budget: retries are at most a fifth of first attempts, over all sites.
//!
//! If many requests fail at once, retries must not become the main load. The budget delays retries but never cancels
//! one.

use std::time::Duration;

use crate::time::Time;

/// What a first attempt adds to the budget.
const EARNED_BY_A_FIRST_ATTEMPT: f64 = 0.2;
/// The initial and maximum budget, so that a short burst of failures is not delayed.
const MOST_SAVED: f64 = 100.0;
/// Even without first attempts, one retry per second is allowed.
const LEAST_PER_SECOND: f64 = 1.0;

/// Limits retries relative to first attempts.
#[derive(Clone, Copy, Debug)]
pub struct RetryBudget {
    /// Negative while retries are delayed.
    saved: f64,
    counted_at: Time,
}

impl RetryBudget {
    /// A full budget.
    pub fn new(now: Time) -> RetryBudget {
        RetryBudget { saved: MOST_SAVED, counted_at: now }
    }

    /// Records a first attempt.
    pub fn earn(&mut self) {
        self.saved = (self.saved + EARNED_BY_A_FIRST_ATTEMPT).min(MOST_SAVED);
    }

    /// Records a retry that is wanted at `at`. Returns when it may be sent.
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
