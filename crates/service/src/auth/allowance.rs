//! Limits the requests per second of each caller, with a token bucket per caller, in memory.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// With more buckets than this, the full ones are removed.
const TIDY_ABOVE: usize = 1_024;

/// The buckets of all callers.
pub(crate) struct Allowances {
    per_second: f64,
    burst: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
}

#[derive(Clone, Copy)]
struct Bucket {
    left: f64,
    as_of: Instant,
}

impl Allowances {
    /// `per_second` 0 means no limit.
    pub(crate) fn new(per_second: f64, burst: u32) -> Allowances {
        Allowances { per_second, burst: burst.into(), buckets: Mutex::default() }
    }

    /// Takes `count` tokens from a caller's bucket, or returns how long to wait until they are available.
    pub(crate) fn take(&self, caller: &str, count: usize) -> Result<(), Duration> {
        if self.per_second <= 0.0 {
            return Ok(());
        }
        let now = Instant::now();
        let mut buckets = self.buckets.lock();
        if buckets.len() > TIDY_ABOVE {
            buckets.retain(|_, bucket| self.left(*bucket, now) < self.burst);
        }
        let full = Bucket { left: self.burst, as_of: now };
        let bucket = buckets.entry(caller.to_owned()).or_insert(full);
        let left = self.left(*bucket, now);
        let wanted = count as f64;
        // A request for more than the bucket holds would never succeed. It is granted when the bucket is full, and
        // the excess is subtracted from later tokens.
        let needed = wanted.min(self.burst);
        if left < needed {
            return Err(Duration::from_secs_f64((needed - left) / self.per_second));
        }
        *bucket = Bucket { left: left - wanted, as_of: now };
        Ok(())
    }

    /// Takes further tokens for a request that was granted before its size was known. What the bucket does not have is
    /// subtracted from later tokens: if the request failed now, it would fail in the same way each time.
    pub(crate) fn take_more(&self, caller: &str, count: usize) {
        let now = Instant::now();
        let mut buckets = self.buckets.lock();
        if let Some(bucket) = buckets.get_mut(caller) {
            *bucket = Bucket { left: self.left(*bucket, now) - count as f64, as_of: now };
        }
    }

    fn left(&self, bucket: Bucket, now: Instant) -> f64 {
        let since = now.duration_since(bucket.as_of).as_secs_f64();
        (bucket.left + since * self.per_second).min(self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_bucket_is_a_callers_own_and_fills_up_again() {
        let allowances = Allowances::new(10.0, 20);
        assert_eq!(allowances.take("a", 20), Ok(()));
        assert_eq!(allowances.take("a", 5), Err(SECOND / 2));
        assert_eq!(allowances.take("b", 1), Ok(()));
        tokio::time::advance(SECOND).await;
        assert_eq!(allowances.take("a", 10), Ok(()));
        assert!(allowances.take("a", 1).is_err());
        tokio::time::advance(SECOND * 100).await;
        assert_eq!((allowances.take("a", 20), allowances.take("a", 1).is_err()), (Ok(()), true));
    }

    #[tokio::test(start_paused = true)]
    async fn more_than_a_bucket_is_given_once_and_owed_after_that() {
        let allowances = Allowances::new(10.0, 20);
        assert_eq!(allowances.take("a", 50), Ok(()));
        tokio::time::advance(SECOND * 2).await;
        assert_eq!(allowances.take("a", 1), Err(SECOND * 11 / 10));
    }

    #[tokio::test(start_paused = true)]
    async fn full_buckets_are_forgotten() {
        let allowances = Allowances::new(10.0, 20);
        for number in 0..=TIDY_ABOVE {
            allowances.take(&number.to_string(), 1).unwrap();
        }
        tokio::time::advance(SECOND).await;
        allowances.take("last", 1).unwrap();
        assert_eq!(allowances.buckets.lock().len(), 1);
        assert_eq!(Allowances::new(0.0, 1).take("a", 1_000), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_granted_request_may_turn_out_to_be_larger_than_the_bucket() {
        let allowances = Allowances::new(1.0, 3);
        assert_eq!(allowances.take("a", 1), Ok(()));
        allowances.take_more("a", 9);
        assert_eq!(allowances.take("a", 1), Err(SECOND * 8));
        assert_eq!(allowances.take("b", 1), Ok(()));
    }
}
