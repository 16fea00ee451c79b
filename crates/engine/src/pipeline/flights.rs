//! The requests in flight, and their events before they end.

use std::collections::HashMap;

use fetchwell_policy::site::Permit;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Site, WebUrl};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, Id};

use super::flight::HeadEvent;
use crate::ports::job::LeaseId;
use crate::workbench::{FlightNumber, JobKey};

/// A request in flight: what is known of it when its task ends, panics or is aborted.
pub(super) struct Flight {
    pub(super) job: JobKey,
    pub(super) number: FlightNumber,
    pub(super) site: Site,
    pub(super) url: WebUrl,
    pub(super) permit: Permit,
    /// When it was started, or the time of its slot if that is later.
    pub(super) since: Time,
    pub(super) abort: AbortHandle,
}

pub(super) struct Flights {
    by_task: HashMap<Id, Flight>,
    begun: FlightNumber,
    /// Flights report on their request heads here. Each sends only a few messages, so the channel is bounded by the
    /// number of flights.
    heads_told: UnboundedSender<HeadEvent>,
    heads: UnboundedReceiver<HeadEvent>,
    /// Jobs whose start has not been reported to the source yet.
    started: Vec<JobKey>,
    is_noting_starts: bool,
}

impl Flights {
    pub(super) fn new() -> Flights {
        let (heads_told, heads) = unbounded_channel();
        Flights {
            by_task: HashMap::new(),
            begun: 0,
            heads_told,
            heads,
            started: Vec::new(),
            is_noting_starts: false,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.by_task.len()
    }

    pub(super) fn next_number(&mut self) -> FlightNumber {
        self.begun += 1;
        self.begun
    }

    pub(super) fn add(&mut self, flight: Flight) {
        self.by_task.insert(flight.abort.id(), flight);
    }

    /// Removes the flight of a task that ended; `None` if the task is not a flight, or was aborted.
    pub(super) fn end(&mut self, task: Id) -> Option<Flight> {
        self.by_task.remove(&task)
    }

    /// Aborts the flights for which `which` is true, and returns them in the order in which they began.
    pub(super) fn abort(&mut self, which: impl Fn(&Flight) -> bool) -> Vec<Flight> {
        let mut flights: Vec<Flight> =
            self.by_task.extract_if(|_, flight| which(flight)).map(|(_, flight)| flight).collect();
        flights.sort_unstable_by_key(|flight| flight.number);
        for flight in &flights {
            flight.abort.abort();
        }
        flights
    }

    /// The channel on which a flight reports on its head.
    pub(super) fn heads_told(&self) -> UnboundedSender<HeadEvent> {
        self.heads_told.clone()
    }

    /// Waits for the next report on a head.
    pub(super) async fn next_head(&mut self) -> Option<HeadEvent> {
        self.heads.recv().await
    }

    /// The next report on a head, if there is one already.
    pub(super) fn head_at_hand(&mut self) -> Option<HeadEvent> {
        self.heads.try_recv().ok()
    }

    /// Records that a job is being fetched, so that its source is told.
    pub(super) fn note_start(&mut self, job: JobKey) {
        self.started.push(job);
    }

    /// Returns the leases whose starts are to be reported. A job that has ended meanwhile has no lease, and can no
    /// longer be interrupted.
    pub(super) fn begin_noting_starts(
        &mut self,
        lease_of: impl Fn(JobKey) -> Option<LeaseId>,
    ) -> Option<Vec<LeaseId>> {
        if self.started.is_empty() || self.is_noting_starts {
            return None;
        }
        let started: Vec<LeaseId> = self.started.drain(..).filter_map(lease_of).collect();
        self.is_noting_starts = !started.is_empty();
        self.is_noting_starts.then_some(started)
    }

    pub(super) fn starts_noted(&mut self) {
        self.is_noting_starts = false;
    }

    pub(super) fn forget_starts(&mut self) {
        self.started.clear();
    }
}
