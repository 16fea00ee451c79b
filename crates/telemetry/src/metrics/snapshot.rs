//! What the dashboard shows of the metrics, at one moment.

use std::collections::BTreeMap;
use std::time::Duration;

use fetchwell_engine::pipeline::{Purpose, Window};
use fetchwell_engine::ports::queue::Ledger;
use prometheus::core::Metric;
use prometheus::proto::Bucket;

use super::circuits::OpenCircuits;
use super::labels::{DoorName, Ending, Failure, StatusClass, StoreTrouble};
use crate::registry::Histogram;

/// What the dashboard shows of this process, at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// How long this process has been running.
    pub up_for: Duration,
    /// What it costs the machine.
    pub process: ProcessSnapshot,
    /// Door by door; those that have been at work.
    pub doors: BTreeMap<DoorName, DoorSnapshot>,
}

/// What one door has done so far, and has in hand.
#[derive(Clone, Debug)]
pub struct DoorSnapshot {
    /// Finished requests, by purpose and status class.
    pub requests: BTreeMap<(Purpose, StatusClass), u64>,
    /// Those that failed, by why; those answered with 429 among them.
    pub failures: BTreeMap<Failure, u64>,
    /// Leases that ended, by outcome.
    pub endings: BTreeMap<Ending, u64>,
    /// Times that a store did not do what it was asked.
    pub store_faults: BTreeMap<StoreTrouble, u64>,
    /// Seconds that requests took, from connecting to the last byte.
    pub request_s: Spread,
    /// Seconds that requests waited for politeness: robots.txt and their site's turn.
    pub politeness_wait_s: Spread,
    /// Seconds that requests waited for a free place in flight.
    pub worker_wait_s: Spread,
    /// What is in hand.
    pub window: Window,
    /// Breakers.
    pub circuits: OpenCircuits,
    /// Heads that left sooner than their site's pace allows. Should stay 0.
    pub rate_breaches: u64,
    /// How many jobs stand where, as the store last said.
    pub ledger: Option<Ledger>,
}

/// What a histogram has seen.
#[derive(Clone, Debug)]
pub struct Spread {
    /// The upper bounds, in order.
    pub bounds: &'static [f64],
    /// How many values lie between a bound and the one before; the last one has no bound.
    pub counts: Vec<u64>,
}

impl Spread {
    /// `bounds` are those that the histogram was made with.
    pub(super) fn of(histogram: &Histogram, bounds: &'static [f64]) -> Spread {
        let metric = histogram.metric();
        let seen = metric.get_histogram();
        let up_to_bounds = seen.get_bucket().iter().map(Bucket::cumulative_count);
        let mut before = 0;
        let between = |up_to: u64| up_to - std::mem::replace(&mut before, up_to);
        let counts = up_to_bounds.chain([seen.get_sample_count()]).map(between).collect();
        Spread { bounds, counts }
    }
}

/// What this process costs the machine; a figure that can't be had here is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessSnapshot {
    /// Memory that is in RAM.
    pub resident_bytes: Option<u64>,
    /// Processor time of all threads.
    pub cpu: Option<Duration>,
    /// Open file descriptors.
    pub open_fds: Option<u64>,
    /// How many there may be.
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
        assert_eq!(Spread::of(&histogram, BOUNDS).counts, [2, 1, 1]);
        assert_eq!(Spread::of(&histogram, BOUNDS).counts, [2, 1, 1], "reading changes nothing");
    }
}
