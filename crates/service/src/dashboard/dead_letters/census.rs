//! Counts dead letters by reason and site. Counting a long list is slow, so the result is cached for a short time and
//! shown with the time of the count.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::dead_letters::{DeadGroup, DeadLetters, GroupSize};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_policy::time::Time;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use super::MOST_GROUPS;

/// How long a count is cached.
const KEEPS: Duration = Duration::from_secs(2);
/// How long a page waits for a new count before it shows the last one.
const PATIENCE: Duration = Duration::from_millis(120);

/// The cached count.
#[derive(Default)]
pub(in super::super) struct Census {
    last: Mutex<Option<(Instant, Arc<Counted>)>>,
    /// Held while counting, so that there is one count at a time.
    counting: tokio::sync::Mutex<()>,
}

/// The groups, largest first.
pub(super) struct Counted {
    pub(super) as_of: Time,
    pub(super) letters: u64,
    pub(super) groups: Vec<(DeadGroup, GroupSize)>,
}

impl Counted {
    /// The groups that the page shows.
    pub(super) fn shown(&self) -> &[(DeadGroup, GroupSize)] {
        &self.groups[..self.groups.len().min(MOST_GROUPS)]
    }

    /// The number of groups that the page does not show.
    pub(super) fn more(&self) -> usize {
        self.groups.len() - self.shown().len()
    }
}

impl Census {
    /// The latest count; `None` while the first one is not finished.
    pub(super) async fn look(
        self: &Arc<Census>,
        letters: &Arc<dyn DeadLetters>,
        clock: &Clock,
    ) -> Result<Option<Arc<Counted>>, StoreError> {
        if let Some((at, counted)) = self.last()
            && at.elapsed() < KEEPS
        {
            return Ok(Some(counted));
        }
        let census = self.clone();
        let letters = letters.clone();
        let as_of = clock.wall();
        let counting = tokio::spawn(async move { census.count(&*letters, as_of).await });
        match timeout(PATIENCE, counting).await {
            Ok(Ok(Err(fault))) => Err(fault),
            _ => Ok(self.last().map(|(_, counted)| counted)),
        }
    }

    /// Discards the cached count.
    pub(super) fn is_over(&self) {
        *self.last.lock() = None;
    }

    fn last(&self) -> Option<(Instant, Arc<Counted>)> {
        self.last.lock().clone()
    }

    async fn count(&self, letters: &dyn DeadLetters, as_of: Time) -> Result<(), StoreError> {
        let Ok(_alone) = self.counting.try_lock() else { return Ok(()) };
        let mut groups: Vec<_> = letters.dead_groups().await?.into_iter().collect();
        groups.sort_by_key(|(_, size)| std::cmp::Reverse(size.letters));
        let letters = groups.iter().map(|(_, size)| size.letters).sum();
        let counted = Arc::new(Counted { as_of, letters, groups });
        let mut last = self.last.lock();
        *last = Some((Instant::now(), counted));
        Ok(())
    }
}
