//! The current values of the metrics, for the dashboard.

use std::collections::BTreeMap;
use std::time::Duration;

use fetchwell_engine::pipeline::{Purpose, Window};
use fetchwell_engine::ports::queue::Ledger;
use prometheus::core::Metric;
use prometheus::proto::Bucket;

use super::circuits::OpenCircuits;
use super::labels::{DoorName, EndingLabel, FailureLabel, StatusClass, StoreTrouble};
use crate::registry::Histogram;

/// The current values of the metrics of this process.
#[derive(Clone, Debug)]
pub struct MetricsSnapshot {
    /// How long this process has been running.
    pub up_for: Duration,
    /// Its resource usage.
    pub process: ProcessSnapshot,
    /// The doors that were used so far.
    pub doors: BTreeMap<DoorName, DoorSnapshot>,
}

/// The current values of the metrics of one door.
#[derive(Clone, Debug)]
pub struct DoorSnapshot {
    /// Finished requests, by purpose and status class.
    pub requests: BTreeMap<(Purpose, StatusClass), u64>,
    /// Failed requests by reason, including responses with status 429.
    pub failures: BTreeMap<FailureLabel, u64>,
    /// Leases that ended, by outcome.
    pub endings: BTreeMap<EndingLabel, u64>,
    /// Failed store calls, by reason.
    pub store_faults: BTreeMap<StoreTrouble, u64>,
    /// Seconds that requests took, from connecting to the last byte.
    pub request_s: HistogramSnapshot,
    /// Seconds that requests waited for politeness: robots.txt, and the next slot of their site.
    pub politeness_wait_s: HistogramSnapshot,
    /// Seconds that requests waited for a free slot in flight.
    pub worker_wait_s: HistogramSnapshot,
    /// The leases and requests of the pipeline.
    pub window: Window,
    /// Open breakers.
    pub circuits: OpenCircuits,
    /// Requests sent sooner than the pace of their site allows. Should stay 0.
    pub rate_breaches: u64,
    /// The last known ledger of the store.
    pub ledger: Option<Ledger>,
}

/// The values of a histogram.
#[derive(Clone, Debug)]
pub struct HistogramSnapshot {
    /// The upper bounds, in order.
    pub bounds: &'static [f64],
    /// The number of values between a bound and the one before it; the last bucket has no bound.
    pub counts: Vec<u64>,
}

impl HistogramSnapshot {
    /// `bounds` must be those of the histogram.
    pub(super) fn of(histogram: &Histogram, bounds: &'static [f64]) -> HistogramSnapshot {
        let metric = histogram.metric();
        let seen = metric.get_histogram();
        let up_to_bounds = seen.get_bucket().iter().map(Bucket::cumulative_count);
        let mut before = 0;
        let between = |up_to: u64| up_to - std::mem::replace(&mut before, up_to);
        let counts = up_to_bounds.chain([seen.get_sample_count()]).map(between).collect();
        HistogramSnapshot { bounds, counts }
    }
}

/// The resource usage of this process; `None` where it is not available.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessSnapshot {
    /// Resident memory.
    pub resident_bytes: Option<u64>,
    /// CPU time of all threads.
    pub cpu: Option<Duration>,
    /// Open file descriptors.
    pub open_fds: Option<u64>,
    /// The limit on open file descriptors.
    pub max_fds: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn a_spread_counts_between_the_bounds() {
        const BOUNDS: &[f64] = &[0.5, 1.0];
        let histogram = Registry::default().histogram("x", "X.", BOUNDS);
        for value in [0.25, 0.5, 0.75, 7.0] {
            histogram.observe(value);
        }
        assert_eq!(HistogramSnapshot::of(&histogram, BOUNDS).counts, [2, 1, 1]);
        assert_eq!(
            HistogramSnapshot::of(&histogram, BOUNDS).counts,
            [2, 1, 1],
            "reading changes nothing"
        );
    }
}
