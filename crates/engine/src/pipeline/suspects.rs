//! URLs that were being fetched when a process died, again and again: each runs alone.

use crate::ports::job::{Lease, LeaseId};

#[derive(Default)]
pub(super) struct Suspects {
    waiting: Vec<Lease>,
    /// The one that is at work: nothing else is taken until it ends or goes back.
    at_work: Option<LeaseId>,
}

impl Suspects {
    pub(super) fn add(&mut self, lease: Lease) {
        self.waiting.push(lease);
    }

    pub(super) fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether none waits and none is at work.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.at_work.is_none()
    }

    /// The next one goes to work.
    pub(super) fn begin(&mut self) -> Option<Lease> {
        let suspect = self.waiting.pop()?;
        self.at_work = Some(suspect.id);
        Some(suspect)
    }

    /// A lease went out, whether it was a suspect or not.
    pub(super) fn went(&mut self, lease: LeaseId) {
        self.at_work.take_if(|at_work| *at_work == lease);
    }

    /// Those that have not run.
    pub(super) fn take_waiting(&mut self) -> Vec<Lease> {
        std::mem::take(&mut self.waiting)
    }
}
