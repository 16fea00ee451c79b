//! The leases that an instance knows of, when a response of the store may be lost.

use std::collections::HashSet;

use fetchwell_engine::ports::job::{Lease, LeaseId};
use parking_lot::Mutex;

/// The leases that an instance knows it holds.
#[derive(Default)]
pub(crate) struct Held(Mutex<Known>);

#[derive(Default)]
struct Known {
    leases: HashSet<LeaseId>,
    /// The response to a take is missing, so the instance may hold leases that it does not know of.
    is_unsure: bool,
}

impl Held {
    /// Marks the start of a take: until its response arrives, its leases are unknown.
    pub(crate) fn take_begins(&self) {
        self.0.lock().is_unsure = true;
    }

    /// Records the response to a take.
    pub(crate) fn took(&self, leases: &[Lease]) {
        let mut known = self.0.lock();
        known.is_unsure = false;
        known.leases.extend(leases.iter().map(|lease| lease.id));
    }

    /// The known leases, if the store may have given us more than these.
    pub(crate) fn if_unsure(&self) -> Option<Vec<LeaseId>> {
        let known = self.0.lock();
        known.is_unsure.then(|| known.leases.iter().copied().collect())
    }

    /// Compares with the store's count of our leases. If it is higher, a response was lost: a request on a broken
    /// connection may be executed much later.
    #[cfg(feature = "redis")]
    pub(crate) fn compare(&self, by_the_store: usize) {
        let mut known = self.0.lock();
        known.is_unsure |= by_the_store > known.leases.len();
    }

    /// The unknown leases were returned.
    pub(crate) fn is_sure_again(&self) {
        self.0.lock().is_unsure = false;
    }

    pub(crate) fn let_go(&self, leases: impl Iterator<Item = LeaseId>) {
        let mut known = self.0.lock();
        for lease in leases {
            known.leases.remove(&lease);
        }
    }

    pub(crate) fn let_all_go(&self) {
        *self.0.lock() = Known::default();
    }
}
