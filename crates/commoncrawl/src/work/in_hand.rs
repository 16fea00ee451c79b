//! Texts that are made and not written yet, over all batches of a worker: together they have a bound.
//!
//! A batch that finds it reached ends its turn with what it has, and the rest of it waits for another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many of the largest records may wait to be written; each thread may go over it by one document.
const MAX_RECORDS: usize = 2;

/// What is in hand. All batches of a worker share it.
#[derive(Clone, Debug, Default)]
pub struct InHand {
    bytes: Arc<AtomicUsize>,
    max_bytes: usize,
}

/// What a document has of that, until it is dropped.
#[derive(Debug, Default)]
pub struct Part {
    of: InHand,
    bytes: usize,
}

impl InHand {
    /// The bound for records of at most this size.
    #[must_use]
    pub fn for_records_of(max_record_bytes: usize) -> InHand {
        let max_bytes = max_record_bytes.saturating_mul(MAX_RECORDS);
        InHand { bytes: Arc::default(), max_bytes }
    }

    /// Counts a text.
    pub(super) fn hold(&self, bytes: usize) -> Part {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Part { of: self.clone(), bytes }
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= self.max_bytes
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A copy takes as much again.
impl Clone for Part {
    fn clone(&self) -> Part {
        self.of.hold(self.bytes)
    }
}

/// Documents are alike by what they say.
impl PartialEq for Part {
    fn eq(&self, _: &Part) -> bool {
        true
    }
}

impl Eq for Part {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_counts_until_it_is_dropped_and_copies_count_too() {
        let in_hand = InHand::for_records_of(50);
        let half = in_hand.hold(50);
        assert!(!in_hand.is_full());
        let copy = half.clone();
        assert!(in_hand.is_full());
        drop(half);
        assert!(!in_hand.is_full());
        drop(copy);
        assert_eq!(in_hand.bytes.load(Ordering::Relaxed), 0);
    }
}
