//! One byte budget for all pages in memory: their bodies, what a step needs to read them, and the resulting records
//! until they are stored.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The budget is counted in units of this size, since a semaphore counts in 32 bits.
const UNIT_BYTES: usize = 1_024;

/// The memory that all pages together may take.
///
/// A page grows into its share piece by piece. When the budget is used up, one page at a time may exceed it, so that
/// pages that wait for each other cannot deadlock: the memory used is at most the budget plus one page.
#[derive(Clone, Debug)]
pub struct Budget {
    units: Arc<Semaphore>,
    overdraft: Arc<Semaphore>,
    /// The total number of units.
    most: usize,
}

/// The part of the budget that a page holds. It is returned on drop.
#[derive(Debug, Default)]
pub struct Share {
    /// `None` until the share first grows.
    budget: Option<Budget>,
    held: Option<OwnedSemaphorePermit>,
    units: usize,
    overdrawn: Option<OwnedSemaphorePermit>,
}

impl Share {
    /// An empty share, for bodies that were not read from the network.
    pub fn none() -> Share {
        Share::default()
    }

    /// The size of the share, in whole units.
    pub fn bytes(&self) -> usize {
        self.units.saturating_mul(UNIT_BYTES)
    }

    /// Grows or shrinks the share to `bytes`; waits while the budget is used up. A share that never grew stays empty.
    pub async fn change_to(&mut self, bytes: usize) {
        if let Some(budget) = self.budget.clone() {
            self.shrink_to(bytes);
            budget.grow(self, bytes).await;
        }
    }

    /// Returns what exceeds `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        let wanted = bytes.div_ceil(UNIT_BYTES);
        if wanted >= self.units {
            return;
        }
        self.units = wanted;
        let held = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if let Some(surplus) = held.checked_sub(wanted) {
            drop(self.held.as_mut().and_then(|held| held.split(surplus)));
            self.overdrawn = None;
        }
    }
}

impl Budget {
    pub fn of_bytes(bytes: usize) -> Budget {
        let most = (bytes / UNIT_BYTES).clamp(1, Semaphore::MAX_PERMITS >> 1);
        let units = Arc::new(Semaphore::new(most));
        Budget { units, overdraft: Arc::new(Semaphore::new(1)), most }
    }

    /// Grows `share` to `bytes`; waits while the budget is used up.
    pub async fn grow(&self, share: &mut Share, bytes: usize) {
        let wanted = bytes.div_ceil(UNIT_BYTES);
        let Some(more) = wanted.checked_sub(share.units).filter(|more| *more > 0) else { return };
        share.budget.get_or_insert_with(|| self.clone());
        if share.overdrawn.is_none() {
            let units = u32::try_from(more).unwrap_or(u32::MAX);
            let can_be_had = wanted <= self.most;
            tokio::select! {
                biased;
                granted = self.units.clone().acquire_many_owned(units), if can_be_had => {
                    // Neither semaphore is ever closed, so an error can't happen; if it did, the body
                    // would go uncounted rather than be lost.
                    if let Ok(granted) = granted {
                        match &mut share.held {
                            Some(held) => held.merge(granted),
                            None => share.held = Some(granted),
                        }
                    }
                }
                overdraft = self.overdraft.clone().acquire_owned() => {
                    share.overdrawn = overdraft.ok();
                }
            }
        }
        share.units = wanted;
    }

    pub fn free_bytes(&self) -> usize {
        self.units.available_permits() * UNIT_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn shares_come_back_when_dropped() {
        let budget = Budget::of_bytes(10 * UNIT_BYTES);
        let mut share = Share::none();
        budget.grow(&mut share, 4 * UNIT_BYTES).await;
        budget.grow(&mut share, 6 * UNIT_BYTES - 1).await;
        assert_eq!(budget.free_bytes(), 4 * UNIT_BYTES);
        drop(share);
        assert_eq!(budget.free_bytes(), 10 * UNIT_BYTES);
    }

    #[tokio::test]
    async fn shares_grow_and_shrink() {
        let budget = Budget::of_bytes(10 * UNIT_BYTES);
        let mut share = Share::none();
        budget.grow(&mut share, 4 * UNIT_BYTES).await;
        share.change_to(9 * UNIT_BYTES).await;
        assert_eq!((share.bytes(), budget.free_bytes()), (9 * UNIT_BYTES, UNIT_BYTES));
        share.change_to(UNIT_BYTES + 1).await;
        assert_eq!((share.bytes(), budget.free_bytes()), (2 * UNIT_BYTES, 8 * UNIT_BYTES));
        share.shrink_to(5 * UNIT_BYTES);
        assert_eq!(share.bytes(), 2 * UNIT_BYTES, "it does not grow by that");
        drop(share);
        assert_eq!(budget.free_bytes(), 10 * UNIT_BYTES);
        let mut nothing = Share::none();
        nothing.change_to(100 * UNIT_BYTES).await;
        assert_eq!(nothing.bytes(), 0);
    }

    /// Whoever goes over the budget does so alone, and until it has shrunk.
    #[tokio::test]
    async fn more_than_there_is_can_be_had_once_at_a_time() {
        let budget = Budget::of_bytes(10 * UNIT_BYTES);
        let [mut large, mut other] = [Share::none(), Share::none()];
        budget.grow(&mut other, UNIT_BYTES).await;
        budget.grow(&mut large, 100 * UNIT_BYTES).await;
        let mut waiting = Box::pin(other.change_to(50 * UNIT_BYTES));
        assert!(futures::poll!(&mut waiting).is_pending());
        large.shrink_to(0);
        waiting.await;
        drop(other);
        drop(large);
        assert_eq!(budget.free_bytes(), 10 * UNIT_BYTES);
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_that_wait_for_each_other_still_end() {
        let budget = Budget::of_bytes(10 * UNIT_BYTES);
        let bodies: Vec<_> = (0..20)
            .map(|_| {
                let budget = budget.clone();
                tokio::spawn(async move {
                    let mut share = Share::none();
                    for units in 1..=8 {
                        budget.grow(&mut share, units * UNIT_BYTES).await;
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        for body in bodies {
            body.await.unwrap();
        }
        assert_eq!(budget.free_bytes(), 10 * UNIT_BYTES);
    }
}
