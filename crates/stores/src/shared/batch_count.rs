//! Counts how the messages of batches end. Pure, and the same for every store.

use std::collections::BTreeMap;

use fetchwell_engine::ports::inbox::{BatchId, FetchResult};

/// How many messages of a batch ended, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchCount {
    pub(crate) completed: i64,
    pub(crate) failed: i64,
    /// Those of `failed` that were cancelled.
    pub(crate) cancelled: i64,
}

/// The counts of each batch, in the order of their ids.
#[derive(Debug, Default)]
pub(crate) struct BatchCounter(pub(crate) BTreeMap<BatchId, BatchCount>);

impl BatchCounter {
    /// Counts a message that ended with this result, or without any.
    pub(crate) fn count(&mut self, batch: BatchId, result: Option<&FetchResult>) {
        let count = self.0.entry(batch).or_default();
        match result {
            Some(result) if result.is_success() => count.completed += 1,
            _ => count.failed += 1,
        }
        count.cancelled +=
            i64::from(result.is_some_and(|one| one.status == FetchResult::CANCELLED));
    }
}

/// The result of a message that was cancelled with its batch.
pub(crate) fn cancelled_with_batch(attempts: u32) -> FetchResult {
    FetchResult {
        status: FetchResult::CANCELLED.to_owned(),
        error: Some("cancelled with its batch".to_owned()),
        attempts,
        ..FetchResult::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cancelled_counts_as_failed_too() {
        let mut counter = BatchCounter::default();
        let batch = BatchId([1; 16]);
        let page =
            FetchResult { status: FetchResult::SUCCESS.to_owned(), ..FetchResult::default() };
        for result in [Some(&page), None, Some(&cancelled_with_batch(1))] {
            counter.count(batch, result);
        }
        let expected = BatchCount { completed: 1, failed: 2, cancelled: 1 };
        assert_eq!(counter.0.into_iter().collect::<Vec<_>>(), [(batch, expected)]);
    }
}
