//! Histograms of durations, and their quantiles.

use std::time::Duration;

use fetchwell_telemetry::metrics::snapshot::HistogramSnapshot;

/// The counts in each bucket of a histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seconds {
    bounds: &'static [f64],
    counts: Vec<u64>,
}

impl Seconds {
    /// The sum of these histograms.
    pub(super) fn of<'a>(snapshots: impl Iterator<Item = &'a HistogramSnapshot>) -> Seconds {
        let mut sum = Seconds::default();
        for snapshot in snapshots {
            sum.bounds = snapshot.bounds;
            sum.counts.resize(snapshot.counts.len(), 0);
            for (sum, count) in sum.counts.iter_mut().zip(&snapshot.counts) {
                *sum += count;
            }
        }
        sum
    }

    /// The counts since an earlier sample.
    pub(super) fn since(&self, earlier: &Seconds) -> Seconds {
        let before = earlier.counts.iter().copied().chain(std::iter::repeat(0));
        let counts = self.counts.iter().zip(before).map(|(now, before)| now.saturating_sub(before));
        Seconds { bounds: self.bounds, counts: counts.collect() }
    }

    /// A quantile, interpolated linearly between two bounds.
    pub(super) fn quantile(&self, share: f64) -> Option<Duration> {
        let all: u64 = self.counts.iter().sum();
        if all == 0 {
            return None;
        }
        let wanted = share * all as f64;
        let mut so_far = 0.0;
        let mut low = 0.0;
        for (place, count) in self.counts.iter().enumerate() {
            // The last bucket has no upper bound, so its lower bound is used.
            let high = self.bounds.get(place).copied().unwrap_or(low);
            let after = so_far + *count as f64;
            if *count > 0 && after >= wanted {
                let within = (wanted - so_far) / *count as f64;
                return Some(Duration::from_secs_f64(low + (high - low) * within));
            }
            (so_far, low) = (after, high);
        }
        Some(Duration::from_secs_f64(low))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(counts: &[u64]) -> Seconds {
        Seconds { bounds: &[0.1, 1.0, 10.0], counts: counts.to_vec() }
    }

    #[test]
    fn quantiles_lie_between_the_bounds() {
        for (counts, share, expected) in [
            (&[0, 0, 0, 0][..], 0.5, None),
            (&[10, 0, 0, 0], 0.5, Some(0.05)),
            (&[0, 10, 0, 0], 1.0, Some(1.0)),
            (&[5, 5, 0, 0], 0.95, Some(0.91)),
            (&[0, 0, 0, 3], 0.5, Some(10.0)),
        ] {
            let found = seconds(counts).quantile(share).map(|found| found.as_secs_f64());
            let close = match (found, expected) {
                (Some(found), Some(expected)) => (found - expected).abs() < 1e-6,
                (found, expected) => found == expected,
            };
            assert!(close, "{counts:?}: {found:?} for {expected:?}");
        }
    }

    #[test]
    fn what_came_in_between_is_a_difference() {
        assert_eq!(seconds(&[3, 5, 0, 1]).since(&seconds(&[1, 5, 0, 0])), seconds(&[2, 0, 0, 1]));
        assert_eq!(seconds(&[3, 5, 0, 1]).since(&Seconds::default()), seconds(&[3, 5, 0, 1]));
    }
}
