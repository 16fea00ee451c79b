//! Periodic events for the watcher: the window, the age of the oldest job, and rescues.

use std::time::Duration;

use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use tokio::time::Instant;
use tracing::{debug, error};

use super::scheduler::{Input, Scheduler};
use super::{Event, Window};
use crate::ports::error::StoreError;
use crate::store_health::StoreCall;

/// The window is reported at most this often.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// Queries for the oldest job in the store may take 1/`LOOKS_ARE_ONE_IN` of the time: the next one waits this many
/// times as long as the last one took.
const LOOKS_ARE_ONE_IN: u32 = 100;

/// What was last reported to the watcher, and what is queried for it.
#[derive(Default)]
pub(super) struct Watch {
    told_at: Option<Instant>,
    window: Window,
    rescued: u64,
    /// When the oldest job in the store was accepted, as of the last query.
    oldest_stored: Option<Time>,
    is_looking: bool,
    /// No query before this.
    next_look: Option<Instant>,
}

impl<R: Send + Sync + 'static> Scheduler<R> {
    /// Asks the store for its oldest job. A job that is not due soon is not in memory, so only the store knows its age.
    pub(super) fn look_for_the_oldest(&mut self) {
        let is_early = self.watch.next_look.is_some_and(|at| Instant::now() < at);
        if self.watch.is_looking || is_early {
            return;
        }
        self.watch.is_looking = true;
        let source = self.door.source.clone();
        self.spawn(async move {
            let asked_at = Instant::now();
            let found = source.oldest_waiting().await;
            Input::OldestFound(asked_at.elapsed(), found)
        });
    }

    pub(super) fn on_oldest_found(
        &mut self,
        took: Duration,
        found: Result<Option<Time>, StoreError>,
    ) {
        self.watch.is_looking = false;
        self.watch.next_look = Some(Instant::now() + took * LOOKS_ARE_ONE_IN);
        match found {
            Ok(oldest) if oldest != self.watch.oldest_stored => {
                self.watch.oldest_stored = oldest;
                // While nothing is in memory, the next report may be a heartbeat away.
                self.watch.told_at = None;
            }
            Ok(_) => {}
            Err(fault) if !fault.is_transient() => self.store_failed(StoreCall::Look, &fault),
            // Debug level is enough: every other call reports a store that is unavailable.
            Err(fault) => debug!(%fault, "could not read the age of the oldest job from the store"),
        }
    }

    /// Reports the window, if that is due.
    pub(super) fn tell_what_is_in_hand(&mut self) {
        if self.watch.told_at.is_some_and(|at| at.elapsed() < TELL_EVERY) {
            return;
        }
        let now = self.now();
        let oldest = self.held.oldest().into_iter().chain(self.watch.oldest_stored).min();
        let window = Window {
            leases: self.held.count(),
            in_flight: self.flights.count(),
            sites: self.bench.sites_count(),
            sites_known: self.runtime.gate.heads.sites_known(),
            oldest: oldest.map(|accepted_at| now.since(accepted_at)),
        };
        self.watch.told_at = Some(Instant::now());
        self.watch.window = window;
        self.emit(Event::Window(window));
    }

    /// When the window must be reported again. Not needed while nothing is in memory and that has been reported.
    pub(super) fn next_telling(&self) -> Option<Instant> {
        let knows_that_all_is_done = self.held.is_empty()
            && self.watch.window.leases == 0
            && self.watch.window.in_flight == 0;
        self.watch.told_at.filter(|_| !knows_that_all_is_done).map(|at| at + TELL_EVERY)
    }

    /// Reports new rescues: the source rescues and counts leases while it renews its own.
    pub(super) fn tell_of_rescues(&mut self) {
        let rescued = self.door.source.rescued();
        let new = rescued.saturating_sub(self.watch.rescued);
        self.watch.rescued = rescued;
        if new > 0 {
            self.emit(Event::Rescued(new));
        }
    }

    pub(super) fn tell_of_a_breach(&self, site: Site, early_by: Duration) {
        let early_us = early_by.as_micros();
        error!(%site, early_us, "a request left sooner than the site's pace allows: please report this");
        self.emit(Event::RateBreach { site, early_by });
    }
}
