//! The requests under way, and what is heard of them before they end.

use std::collections::HashMap;

use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Site, WebUrl};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, Id};

use super::flight::HeadNews;
use crate::ports::job::LeaseId;
use crate::workbench::{FlightNumber, JobKey};

/// What a task that fetches was doing, in case it panics.
pub(super) struct Flight {
    pub(super) job: JobKey,
    pub(super) number: FlightNumber,
    pub(super) site: Site,
    /// Where its request goes.
    pub(super) url: WebUrl,
    /// When it set out; one that set out early, when its slot comes.
    pub(super) since: Time,
    pub(super) abort: AbortHandle,
}

/// All requests under way.
pub(super) struct Flights {
    by_task: HashMap<Id, Flight>,
    begun: FlightNumber,
    /// Flights tell of their heads here: two messages each at most, so it is as bounded as they are.
    heads_told: UnboundedSender<HeadNews>,
    heads: UnboundedReceiver<HeadNews>,
    /// Jobs whose source does not know yet that they are being fetched.
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

    /// The number of the next flight.
    pub(super) fn next_number(&mut self) -> FlightNumber {
        self.begun += 1;
        self.begun
    }

    /// The number that was given last.
    pub(super) fn last_number(&self) -> FlightNumber {
        self.begun
    }

    pub(super) fn add(&mut self, flight: Flight) {
        self.by_task.insert(flight.abort.id(), flight);
    }

    /// The task of a flight ended; `None`: it is no flight, or was aborted.
    pub(super) fn end(&mut self, task: Id) -> Option<Flight> {
        self.by_task.remove(&task)
    }

    /// Aborts those of which `which` is true.
    pub(super) fn abort(&mut self, which: impl Fn(&Flight) -> bool) -> Vec<Flight> {
        let flights: Vec<Flight> =
            self.by_task.extract_if(|_, flight| which(flight)).map(|(_, flight)| flight).collect();
        for flight in &flights {
            flight.abort.abort();
        }
        flights
    }

    /// Where a flight tells of its head.
    pub(super) fn heads_told(&self) -> UnboundedSender<HeadNews> {
        self.heads_told.clone()
    }

    /// Waits for the next news of a head.
    pub(super) async fn next_head(&mut self) -> Option<HeadNews> {
        self.heads.recv().await
    }

    /// The same, if there is one already.
    pub(super) fn head_at_hand(&mut self) -> Option<HeadNews> {
        self.heads.try_recv().ok()
    }

    /// A job is being fetched from now on: its source is to know.
    pub(super) fn note_start(&mut self, job: JobKey) {
        self.started.push(job);
    }

    /// The leases to tell the source of. What has ended meanwhile has none, and can't be interrupted any more.
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
