//! Limits the total size of texts that are not written yet, over all batches of a worker.
//!
//! A batch that reaches the limit ends its turn with what it has; the rest is done in another turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The limit, in records of the maximum size. Each thread may exceed it by one document.
const MAX_RECORDS: usize = 2;

/// The size of the texts in memory. All batches of a worker share it.
#[derive(Clone, Debug, Default)]
pub struct InHand {
    bytes: Arc<AtomicUsize>,
    max_bytes: usize,
}

/// The share of a document, released on drop.
#[derive(Debug, Default)]
pub struct Part {
    of: InHand,
    bytes: usize,
}

impl InHand {
    /// The limit for records of at most this size.
    #[must_use]
    pub fn for_records_of(max_record_bytes: usize) -> InHand {
        let max_bytes = max_record_bytes.saturating_mul(MAX_RECORDS);
        InHand { bytes: Arc::default(), max_bytes }
    }

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

/// A copy takes the same amount again.
impl Clone for Part {
    fn clone(&self) -> Part {
        self.of.hold(self.bytes)
    }
}

/// Documents are compared by content only.
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
