//! When this process last wrote a request head to each site.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fetchwell_policy::pace::Rate;
use fetchwell_policy::url::Site;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The last head of each site, by the monotonic clock: unlike the store's clock, it cannot jump.
#[derive(Debug)]
pub(crate) struct Heads {
    since: Instant,
    last: Mutex<HashMap<Site, Head>>,
    /// How long the store's last answer about a head took.
    answer_took_us: AtomicU64,
}

/// In microseconds, to save memory: there may be a million sites.
#[derive(Clone, Copy, Debug)]
struct Head {
    written_us: u64,
    interval_us: u64,
    /// When all that was used of a burst is available again.
    used_until_us: u64,
}

impl Head {
    /// The same, if the last head had been sent at this rate.
    fn used_until_us_at(self, rate: Rate) -> u64 {
        let last_us = self.used_until_us.saturating_sub(self.interval_us);
        last_us.saturating_add(micros(rate.interval))
    }
}

impl Heads {
    pub(super) fn new() -> Heads {
        Heads {
            since: Instant::now(),
            last: Mutex::default(),
            answer_took_us: AtomicU64::default(),
        }
    }

    pub(super) fn answer_took(&self, took: Duration) {
        self.answer_took_us.store(micros(took), Ordering::Relaxed);
    }

    pub(super) fn last_answer_took(&self) -> Duration {
        Duration::from_micros(self.answer_took_us.load(Ordering::Relaxed))
    }

    /// How long until another head may be sent: an interval after the last one, or when a burst has room for it.
    pub(super) fn gap_left(&self, site: &Site, rate: Rate) -> Duration {
        self.last.lock().get(site).map_or(Duration::ZERO, |last| {
            let free_us = match rate.burst {
                0 | 1 => last.written_us.saturating_add(micros(rate.interval)),
                burst => {
                    let headroom = rate.interval.saturating_mul(burst - 1);
                    last.used_until_us_at(rate).saturating_sub(micros(headroom))
                }
            };
            Duration::from_micros(free_us.saturating_sub(self.now_us()))
        })
    }

    /// Whether the last head to a site is so recent that no other process can have sent one since, because all keep an
    /// interval from it. Half of the interval is left for the call to the store.
    pub(crate) fn is_last(&self, site: &Site) -> bool {
        self.last.lock().get(site).is_some_and(|last| {
            self.now_us() < last.written_us.saturating_add(last.interval_us / 2)
        })
    }

    pub(super) fn mark(&self, site: &Site, rate: Rate) {
        let written_us = self.now_us();
        let interval_us = micros(rate.interval);
        let mut heads = self.last.lock();
        let used_from_us = match heads.get(site) {
            Some(last) if rate.burst > 1 => last.used_until_us_at(rate).max(written_us),
            _ => written_us,
        };
        let used_until_us = used_from_us.saturating_add(interval_us);
        heads.insert(site.clone(), Head { written_us, interval_us, used_until_us });
    }

    /// The number of sites whose pace this process tracks.
    pub(crate) fn sites_known(&self) -> usize {
        self.last.lock().len()
    }

    /// Forgets heads that are too old to matter.
    pub(crate) fn sweep(&self) {
        let now_us = self.now_us();
        let mut last = self.last.lock();
        last.retain(|_, head| {
            head.written_us.saturating_add(head.interval_us).max(head.used_until_us) > now_us
        });
        last.shrink_to_fit();
    }

    fn now_us(&self) -> u64 {
        micros(self.since.elapsed())
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_a_burst_keep_no_distance_and_what_follows_it_does() {
        let heads = Heads::new();
        let site = Site::parse("a.test").unwrap();
        let rate = Rate::per_second(10.0, 3);
        for head in 0..3 {
            assert_eq!(heads.gap_left(&site, rate), Duration::ZERO, "{head}");
            heads.mark(&site, rate);
        }
        let left = heads.gap_left(&site, rate);
        assert!(left > Duration::from_millis(50) && left <= Duration::from_millis(100), "{left:?}");
        // A request without a burst waits a full interval after the last of them.
        let left = heads.gap_left(&site, Rate::every(Duration::from_secs(1)));
        assert!(left > Duration::from_millis(900), "{left:?}");
    }
}
