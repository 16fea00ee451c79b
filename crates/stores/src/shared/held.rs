//! What an instance knows of its leases, where an answer may be lost on its way from the store.

use std::collections::HashSet;

use fetchwell_engine::ports::job::{Lease, LeaseId};
use parking_lot::{Mutex, MutexGuard};

/// The leases that an instance knows to be its own.
#[derive(Default)]
pub(crate) struct Held(Mutex<Known>);

#[derive(Default)]
struct Known {
    leases: HashSet<LeaseId>,
    /// A take was not heard of again: what it leased, if anything, is ours without our knowing.
    is_unsure: bool,
}

impl Held {
    /// A take begins: until it is heard of, nobody knows what it leased.
    pub(crate) fn take_begins(&self) {
        self.known().is_unsure = true;
    }

    /// The answer to a take has come.
    pub(crate) fn took(&self, leases: &[Lease]) {
        let mut known = self.known();
        known.is_unsure = false;
        known.leases.extend(leases.iter().map(|lease| lease.id));
    }

    /// All that we know of, if the store may have us hold more than that.
    pub(crate) fn if_unsure(&self) -> Option<Vec<LeaseId>> {
        let known = self.known();
        known.is_unsure.then(|| known.leases.iter().copied().collect())
    }

    /// The store says how many are ours. Where it knows of more, an answer was lost after all: what was
    /// asked on a broken line may be done much later.
    #[cfg(feature = "redis")]
    pub(crate) fn compare(&self, by_the_store: usize) {
        let mut known = self.known();
        known.is_unsure |= by_the_store > known.leases.len();
    }

    /// What we did not know of was given back.
    pub(crate) fn is_sure_again(&self) {
        self.known().is_unsure = false;
    }

    /// These are ours no more.
    pub(crate) fn let_go(&self, leases: impl Iterator<Item = LeaseId>) {
        let mut known = self.known();
        for lease in leases {
            known.leases.remove(&lease);
        }
    }

    /// Nothing is ours any more.
    pub(crate) fn let_all_go(&self) {
        *self.known() = Known::default();
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock()
    }
}
