//! The leases in memory: their number, and the age of the oldest.

use std::collections::BTreeMap;

use fetchwell_policy::time::Time;

use crate::ports::job::Lease;

#[derive(Default)]
pub(super) struct Held {
    count: usize,
    /// The number of leases accepted at each time.
    accepted: BTreeMap<Time, u32>,
}

impl Held {
    pub(super) fn came(&mut self, lease: &Lease) {
        self.count += 1;
        *self.accepted.entry(lease.accepted_at).or_default() += 1;
    }

    pub(super) fn went(&mut self, lease: &Lease) {
        self.count -= 1;
        if let Some(count) = self.accepted.get_mut(&lease.accepted_at) {
            *count -= 1;
            if *count == 0 {
                self.accepted.remove(&lease.accepted_at);
            }
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// When the oldest lease was accepted.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.accepted.keys().next().copied()
    }
}
