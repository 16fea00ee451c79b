//! One byte budget for all bodies together.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The budget is counted in units of this size, since a semaphore counts in 32 bits.
const UNIT_BYTES: usize = 1_024;

/// Bytes that all bodies in memory may take together.
///
/// A body grows into its share piece by piece. When the budget is used up, one body at a time may go
/// over it, so that bodies that wait for each other can't stand still: the memory used is at most the
/// budget and one body more.
#[derive(Clone, Debug)]
pub struct Budget {
    units: Arc<Semaphore>,
    overdraft: Arc<Semaphore>,
}

/// What a body holds of the budget. Returned when it is dropped.
#[derive(Debug, Default)]
pub struct Share {
    held: Option<OwnedSemaphorePermit>,
    units: usize,
    overdrawn: Option<OwnedSemaphorePermit>,
}

impl Share {
    /// Of nothing: for bodies that were never read from the network.
    pub fn none() -> Share {
        Share::default()
    }
}

impl Budget {
    /// A budget of so many bytes.
    pub fn of_bytes(bytes: usize) -> Budget {
        let units = (bytes / UNIT_BYTES).clamp(1, Semaphore::MAX_PERMITS >> 1);
        Budget { units: Arc::new(Semaphore::new(units)), overdraft: Arc::new(Semaphore::new(1)) }
    }

    /// Lets `share` grow to `bytes`; waits while the budget is used up.
    pub async fn grow(&self, share: &mut Share, bytes: usize) {
        let wanted = bytes.div_ceil(UNIT_BYTES);
        let Some(more) = wanted.checked_sub(share.units).filter(|more| *more > 0) else { return };
        if share.overdrawn.is_none() {
            let units = u32::try_from(more).unwrap_or(u32::MAX);
            tokio::select! {
                biased;
                granted = self.units.clone().acquire_many_owned(units) => {
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

    /// Bytes that are free.
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
