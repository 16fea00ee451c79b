//! How long the oldest lease in hand has waited.

use std::collections::BTreeMap;

use fetchwell_policy::time::Time;

use crate::ports::job::Lease;

/// When the leases in hand were accepted, in order.
#[derive(Default)]
pub(super) struct Seniority {
    /// How many were accepted at each time.
    accepted: BTreeMap<Time, u32>,
}

impl Seniority {
    pub(super) fn came(&mut self, lease: &Lease) {
        *self.accepted.entry(lease.accepted_at).or_default() += 1;
    }

    pub(super) fn went(&mut self, lease: &Lease) {
        if let Some(count) = self.accepted.get_mut(&lease.accepted_at) {
            *count -= 1;
            if *count == 0 {
                self.accepted.remove(&lease.accepted_at);
            }
        }
    }

    /// When the oldest one was accepted.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.accepted.keys().next().copied()
    }
}
