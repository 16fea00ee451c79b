//! Random histories that can be replayed from their seed.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use fetchwell_policy::chance::Chance;
use futures::FutureExt;

/// Runs a history for each seed; a failure also names the seed.
pub(super) async fn for_each_seed<F: Future<Output = ()>>(
    seeds: impl IntoIterator<Item = u64>,
    history: impl Fn(u64) -> F,
) {
    for seed in seeds {
        if AssertUnwindSafe(history(seed)).catch_unwind().await.is_err() {
            panic!("the history of seed {seed} went wrong, as said above");
        }
    }
}

/// The random choices of a history.
pub(super) struct Dice(Chance);

impl Dice {
    pub(super) fn seeded(seed: u64) -> Dice {
        Dice(Chance::seeded(seed))
    }

    /// A number in `0..bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        usize::try_from(self.0.next_u64() % bound).unwrap_or(0)
    }

    /// True with a probability of 1/`times`.
    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}
