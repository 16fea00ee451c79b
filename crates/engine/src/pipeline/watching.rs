//! What whoever watches is told besides what just happened.

use std::time::Duration;

use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use tokio::time::Instant;
use tracing::error;

use super::conductor::Conductor;
use super::{News, Window};

/// How much is in hand is told so often at the most.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// What whoever watches knows.
#[derive(Default)]
pub(super) struct LastTold {
    at: Option<Instant>,
    window: Window,
    rescued: u64,
}

impl<R: Send + Sync + 'static> Conductor<R> {
    /// Tells how much is in hand, when that is due.
    pub(super) fn tell_what_is_in_hand(&mut self) {
        if self.last_told.at.is_some_and(|at| at.elapsed() < TELL_EVERY) {
            return;
        }
        let window = self.window();
        (self.last_told.at, self.last_told.window) = (Some(Instant::now()), window);
        self.spread(News::Window(window));
    }

    /// When the watcher must hear again. With empty hands, and when it knows that, it need not.
    pub(super) fn next_telling(&self) -> Option<Instant> {
        let knows_that_all_is_done = self.leases_held == 0
            && self.last_told.window.leases == 0
            && self.last_told.window.in_flight == 0;
        self.last_told.at.filter(|_| !knows_that_all_is_done).map(|at| at + TELL_EVERY)
    }

    fn window(&self) -> Window {
        let now = self.now();
        Window {
            leases: self.leases_held,
            in_flight: self.flights.len(),
            sites: self.bench.sites_count(),
            sites_known: self.plant.gate.sites_known(),
            oldest: self.seniority.oldest().map(|accepted_at| now.since(accepted_at)),
        }
    }

    /// The source rescues while it renews, and counts.
    pub(super) fn tell_of_rescues(&mut self) {
        let rescued = self.door.source.rescued();
        let new = rescued.saturating_sub(self.last_told.rescued);
        self.last_told.rescued = rescued;
        if new > 0 {
            self.spread(News::Rescued(new));
        }
    }

    pub(super) fn tell_of_a_breach(&self, site: Site, early_by: Duration) {
        let early_us = early_by.as_micros();
        error!(%site, early_us, "a request left sooner than the site's pace allows: please report this");
        self.spread(News::RateBreach { site, early_by });
    }

    /// How long a site's next request waited for nothing but a place in flight: its question was due, or
    /// its slot had come.
    pub(super) fn waited_for_a_place(&self, site: &Site, slot_at: Time) -> Duration {
        self.bench.overdue(site) + self.now().since(slot_at)
    }
}
