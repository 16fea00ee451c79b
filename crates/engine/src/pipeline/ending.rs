//! How and why a run ends.

use std::time::Duration;

use tokio::time::Instant;

use super::RunEnd;
use crate::ports::error::StoreError;

/// How long after the grace period a failing store is still retried. What is left then is rescued by another instance.
const LAST_TRIES: Duration = Duration::from_secs(2);

/// Whether and why a run is to end.
pub(super) struct Ending {
    /// How long requests in flight may continue.
    grace: Duration,
    stopping_since: Option<Instant>,
    /// Requests in flight were aborted, because the grace period is over.
    is_cut_short: bool,
    /// Why a plan wants the run to end.
    halted: Option<String>,
    /// The error of a store that no retry can fix: the run ends with it.
    fatal: Option<StoreError>,
}

impl Ending {
    pub(super) fn new(grace: Duration) -> Ending {
        Ending { grace, stopping_since: None, is_cut_short: false, halted: None, fatal: None }
    }

    /// From now on, nothing new is begun.
    pub(super) fn stop(&mut self) {
        self.stopping_since.get_or_insert_with(Instant::now);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping_since.is_some()
    }

    /// When requests in flight are aborted, if the run is stopping.
    pub(super) fn grace_ends_at(&self) -> Option<Instant> {
        self.stopping_since.map(|since| since + self.grace)
    }

    /// When requests in flight are to be aborted; `None` once they were.
    pub(super) fn cut_short_at(&self) -> Option<Instant> {
        self.grace_ends_at().filter(|_| !self.is_cut_short)
    }

    /// Returns whether the grace period is over: then requests in flight are to be aborted.
    pub(super) fn cut_short(&mut self) -> bool {
        self.is_cut_short = self.grace_ends_at().is_some_and(|at| at <= Instant::now());
        self.is_cut_short
    }

    /// When a stopping run no longer waits for a failing store.
    pub(super) fn gives_up_at(&self) -> Option<Instant> {
        self.grace_ends_at().map(|at| at + LAST_TRIES)
    }

    /// A plan halts the run. Returns false if another plan did before; then that reason stays.
    pub(super) fn halt(&mut self, reason: &str) -> bool {
        let is_first = self.halted.is_none();
        self.halted.get_or_insert_with(|| reason.to_owned());
        is_first
    }

    /// A store failed for good. Returns false if that is already known.
    pub(super) fn fail(&mut self, fault: StoreError) -> bool {
        let is_first = self.fatal.is_none();
        self.fatal.get_or_insert(fault);
        is_first
    }

    pub(super) fn ended(&mut self) -> Result<RunEnd, StoreError> {
        match (self.fatal.take(), self.halted.take(), self.is_stopping()) {
            (Some(fault), ..) => Err(fault),
            (None, Some(reason), _) => Ok(RunEnd::Halted(reason)),
            (None, None, true) => Ok(RunEnd::Stopped),
            (None, None, false) => Ok(RunEnd::Exhausted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_fatal_error_counts_more_than_a_halt_and_a_halt_more_than_a_stop() {
        let grace = Duration::from_secs(5);
        let mut ending = Ending::new(grace);
        assert_eq!(ending.ended().unwrap(), RunEnd::Exhausted);
        ending.stop();
        assert_eq!(ending.ended().unwrap(), RunEnd::Stopped);
        assert_eq!(ending.grace_ends_at(), Some(Instant::now() + grace));
        assert!(ending.halt("no archive") && !ending.halt("no other either"));
        assert_eq!(ending.ended().unwrap(), RunEnd::Halted("no archive".to_owned()));
        assert!(ending.halt("no archive") && ending.fail(StoreError::corrupt("a page")));
        assert!(!ending.fail(StoreError::bug("another")));
        assert!(ending.ended().unwrap_err().to_string().contains("a page"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_grace_period_is_due_once() {
        let grace = Duration::from_secs(25);
        let mut ending = Ending::new(grace);
        assert_eq!((ending.cut_short(), ending.cut_short_at()), (false, None));
        ending.stop();
        let is_over_at = Instant::now() + grace;
        assert_eq!((ending.cut_short(), ending.cut_short_at()), (false, Some(is_over_at)));
        tokio::time::advance(grace).await;
        assert_eq!(ending.cut_short_at(), Some(is_over_at));
        assert_eq!((ending.cut_short(), ending.cut_short_at()), (true, None));
    }
}
