//! URLs that were repeatedly being fetched when a process died: each runs alone.

use crate::ports::job::{Lease, LeaseId};

#[derive(Default)]
pub(super) struct Suspects {
    waiting: Vec<Lease>,
    /// The one that is running. Nothing else is taken until it ends or is handed back.
    at_work: Option<LeaseId>,
}

impl Suspects {
    pub(super) fn add(&mut self, lease: Lease) {
        self.waiting.push(lease);
    }

    pub(super) fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether none waits and none is running.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.at_work.is_none()
    }

    /// Takes out the next one to run.
    pub(super) fn begin(&mut self) -> Option<Lease> {
        let suspect = self.waiting.pop()?;
        self.at_work = Some(suspect.id);
        Some(suspect)
    }

    /// A lease left the window, whether it was a suspect or not.
    pub(super) fn went(&mut self, lease: LeaseId) {
        self.at_work.take_if(|at_work| *at_work == lease);
    }

    /// Takes out those that have not run.
    pub(super) fn take_waiting(&mut self) -> Vec<Lease> {
        std::mem::take(&mut self.waiting)
    }
}
