//! Whether a connection is used, so that idle ones are closed after a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a connection was used for so far.
#[derive(Default)]
pub(super) struct Usage {
    begun: AtomicU64,
    ended: AtomicU64,
    begun_at_last_look: AtomicU64,
}

/// What a look at it shows.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Nothing was ever asked on it.
    NeverUsed,
    /// Nothing was asked since the last look, and all was answered.
    Idle,
    /// It is in use.
    InUse,
}

/// A request under way.
pub(super) struct UnderWay(Arc<Usage>);

impl Usage {
    /// A request begins.
    pub(super) fn begin(self: &Arc<Usage>) -> UnderWay {
        self.begun.fetch_add(1, Ordering::Relaxed);
        UnderWay(self.clone())
    }

    /// Whether something that was asked is not answered yet.
    pub(super) fn is_under_way(&self) -> bool {
        self.begun.load(Ordering::Relaxed) != self.ended.load(Ordering::Relaxed)
    }

    /// What there was since the last look.
    pub(super) fn look(&self) -> Look {
        let begun = self.begun.load(Ordering::Relaxed);
        let before = self.begun_at_last_look.swap(begun, Ordering::Relaxed);
        match self.ended.load(Ordering::Relaxed) {
            _ if begun == 0 => Look::NeverUsed,
            ended if begun == before && ended == begun => Look::Idle,
            _ => Look::InUse,
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_idle_when_nothing_happened_between_two_looks() {
        let usage = Arc::new(Usage::default());
        assert_eq!(usage.look(), Look::NeverUsed);
        let request = usage.begin();
        assert_eq!(usage.look(), Look::InUse);
        assert_eq!((usage.look(), usage.is_under_way()), (Look::InUse, true));
        drop(request);
        assert!(!usage.is_under_way());
        assert_eq!(usage.look(), Look::Idle);
        drop(usage.begin());
        assert_eq!((usage.look(), usage.look()), (Look::InUse, Look::Idle));
    }
}
