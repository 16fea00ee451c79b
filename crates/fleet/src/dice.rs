//! Random choices, all of which follow from the seed of a run.

use std::time::Duration;

use fetchwell_policy::chance::Chance;

/// Makes the choices for one subject, such as a machine or a site.
#[derive(Clone, Debug)]
pub(crate) struct Dice(Chance);

impl Dice {
    /// The choices for a subject. Each subject has its own sequence, and draws its numbers before it looks at the
    /// features of the run, so that a run without one fault makes the same choices for everything else.
    pub(crate) fn new(seed: u64, subject: &str) -> Dice {
        Dice(Chance::seeded(fnv1a(seed ^ 0xCBF2_9CE4_8422_2325, subject.as_bytes())))
    }

    /// A number below `end`; 0 if that is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let drawn = self.0.next_u64().checked_rem(end as u64).unwrap_or(0);
        usize::try_from(drawn).unwrap_or(0)
    }

    /// A number from `least` to `most`, both included.
    pub(crate) fn number(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// A whole number of milliseconds from `least_ms` to `most_ms`, both included.
    pub(crate) fn ms(&mut self, least_ms: usize, most_ms: usize) -> Duration {
        Duration::from_millis(self.number(least_ms, most_ms) as u64)
    }

    /// A whole number of seconds from `least_s` to `most_s`, both included.
    pub(crate) fn seconds(&mut self, least_s: usize, most_s: usize) -> Duration {
        Duration::from_secs(self.number(least_s, most_s) as u64)
    }

    /// True with this probability.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.0.unit() < probability
    }

    /// One of these; `None` if there are none.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }

    /// A seed for something that draws its own numbers.
    pub(crate) fn seed(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// Adds `bytes` to an FNV-1a hash, which is the same on every machine.
pub(crate) fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3))
}
