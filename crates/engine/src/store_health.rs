//! Which store calls fail at present. An outage is logged once per minute, with a count, however many calls fail;
//! `/readyz` and `--give-up-after` use the same record.
//!
//! An error that is not transient is not retried: it is kept here, `/readyz` reports it from then on, and every
//! pipeline of the process hands back its leases and ends.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::{debug, error, info, warn};

use crate::ports::error::{StoreError, StoreErrorKind};

/// How often a continuing outage is logged.
const LINE_EVERY: Duration = Duration::from_secs(60);
/// A call that last failed longer ago than this does not count as failing, because it has not been repeated since. This
/// is longer than several calls in a row can wait for a locked file.
const RECENT: Duration = Duration::from_secs(60);

/// A call to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoreCall {
    /// Hand out work.
    Take,
    /// Store results and settle leases.
    Finish,
    /// Renew the lease of this instance.
    Renew,
    /// Reserve or confirm a slot of a site. This and the next are calls to the politeness store.
    Pace,
    /// Read a robots.txt.
    Robots,
    /// Record that a fetch has begun, or a robots.txt; sweep old sites.
    Note,
    /// Read the age of the oldest job, or the orders of operators.
    Look,
    /// Serve a request of the API.
    Answer,
    /// Delete old messages.
    Prune,
    /// No store call: a pipeline panicked, so the process cannot continue, whatever the store does.
    Engine,
}

impl StoreCall {
    /// What a failure means for the user.
    pub fn means(self) -> &'static str {
        match self {
            StoreCall::Take => "no work can be taken",
            StoreCall::Finish => "results cannot be stored",
            StoreCall::Renew => "the lease of this instance cannot be renewed",
            StoreCall::Pace => "no request is sent, because no slot can be reserved",
            StoreCall::Robots => "robots.txt records cannot be read",
            StoreCall::Note => "a write to the store was lost",
            StoreCall::Look => "the store cannot be read",
            StoreCall::Answer => "requests to the API are answered with 503",
            StoreCall::Prune => "old messages cannot be deleted",
            StoreCall::Engine => "nothing is fetched any more",
        }
    }

    /// Whether a failure keeps work from being taken, pages from being requested, or results from being stored.
    pub fn stops_work(self) -> bool {
        let is_queue_call = matches!(self, StoreCall::Take | StoreCall::Finish | StoreCall::Renew);
        is_queue_call || self.is_politeness()
    }

    /// Whether it is a call to the politeness store.
    pub fn is_politeness(self) -> bool {
        matches!(self, StoreCall::Pace | StoreCall::Robots)
    }
}

/// A call that fails.
#[derive(Clone, Debug)]
pub struct Failing {
    pub call: StoreCall,
    /// Time from the first to the last failure without a success in between. Excludes the time since the last failure,
    /// because no call has been made since then.
    pub lasts: Duration,
    /// The last error.
    pub fault: StoreError,
}

/// The record of one pipeline. All pipelines of a process share the log lines.
#[derive(Default)]
pub struct StoreHealth {
    pipeline: u32,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    pipelines: AtomicU32,
    /// The first error that no retry can fix. Pipelines ask for it after each round, so reading it takes no lock.
    fatal: OnceLock<Failing>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By pipeline and call.
    failing: BTreeMap<(u32, StoreCall), Streak>,
    outage: Option<Outage>,
}

/// Failures of a call without a success in between.
struct Streak {
    since: Instant,
    last: Instant,
    fault: StoreError,
}

impl Streak {
    fn lasts(&self) -> Duration {
        self.last - self.since
    }
}

/// What was logged.
struct Outage {
    since: Instant,
    last_failure: Instant,
    last_line: Instant,
    failures: u64,
}

impl StoreHealth {
    /// The record of another pipeline of the same process.
    pub fn beside(&self) -> StoreHealth {
        let pipeline = self.shared.pipelines.fetch_add(1, Ordering::Relaxed) + 1;
        StoreHealth { pipeline, shared: self.shared.clone() }
    }

    /// Records a failed call. The caller retries a transient error; any other error ends the process.
    pub fn failed(&self, call: StoreCall, fault: &StoreError) {
        if !fault.is_transient() {
            return self.note_fatal(call, fault);
        }
        let now = Instant::now();
        let mut state = self.shared.state.lock();
        let streak = state.failing.entry((self.pipeline, call)).or_insert_with(|| Streak {
            since: now,
            last: now,
            fault: fault.clone(),
        });
        if now - streak.last > RECENT {
            streak.since = now;
        }
        streak.last = now;
        streak.fault = fault.clone();
        state.log(call, fault, now);
    }

    /// Records a failed call that is not retried. It is only logged, unless the error shows that the store is unusable.
    /// A bug triggered by one API request, or a message that is too large, affects only that request.
    pub fn failed_once(&self, call: StoreCall, fault: &StoreError) {
        let is_fatal = match fault.kind() {
            StoreErrorKind::Corrupt | StoreErrorKind::Incompatible => true,
            StoreErrorKind::Bug => call != StoreCall::Answer,
            StoreErrorKind::Transient | StoreErrorKind::TooLarge => false,
        };
        match is_fatal {
            true => self.note_fatal(call, fault),
            false => self.shared.state.lock().log(call, fault, Instant::now()),
        }
    }

    /// The first error of any pipeline of the process that no retry can fix. It stays.
    pub fn fatal(&self) -> Option<Failing> {
        self.shared.fatal.get().cloned()
    }

    fn note_fatal(&self, call: StoreCall, fault: &StoreError) {
        let failing = Failing { call, lasts: Duration::ZERO, fault: fault.clone() };
        if self.shared.fatal.set(failing).is_err() {
            return debug!(%fault, "{}", call.means());
        }
        error!(%fault, "{}; a retry cannot fix this: handing back leases, then stopping", call.means());
    }

    pub fn worked(&self, call: StoreCall) {
        let mut state = self.shared.state.lock();
        if state.failing.remove(&(self.pipeline, call)).is_some() {
            state.end_outage();
        }
    }

    /// Forgets the failures of this pipeline, because the calls will not be repeated.
    pub fn forget(&self) {
        let mut state = self.shared.state.lock();
        state.failing.retain(|(pipeline, _), _| *pipeline != self.pipeline);
        state.end_outage();
    }

    /// The call of this pipeline that has failed for the longest time.
    pub fn failing(&self) -> Option<Failing> {
        self.longest(|pipeline, _| pipeline == self.pipeline)
    }

    /// The call that has failed for the longest time in any pipeline of the process, of those for which `which` is
    /// true.
    pub fn failing_anywhere(&self, which: impl Fn(StoreCall) -> bool) -> Option<Failing> {
        self.longest(|_, call| which(call))
    }

    fn longest(&self, which: impl Fn(u32, StoreCall) -> bool) -> Option<Failing> {
        let now = Instant::now();
        let state = self.shared.state.lock();
        let recent = state.failing.iter().filter(|((pipeline, call), streak)| {
            which(*pipeline, *call) && now - streak.last <= RECENT
        });
        let (key, streak) = recent.max_by_key(|(_, streak)| streak.lasts())?;
        Some(Failing { call: key.1, lasts: streak.lasts(), fault: streak.fault.clone() })
    }
}

impl State {
    /// Logs the end of the outage, if no call fails any more.
    fn end_outage(&mut self) {
        if !self.failing.is_empty() {
            return;
        }
        if let Some(outage) = self.outage.take() {
            let lasted_s = outage.since.elapsed().as_secs();
            info!(failures = outage.failures, lasted_s, "the store works again");
        }
    }

    fn log(&mut self, call: StoreCall, fault: &StoreError, now: Instant) {
        match self.note(now) {
            Line::First if !fault.is_transient() => error!(%fault, "{}", call.means()),
            Line::First => warn!(%fault, "{}; trying again until it works", call.means()),
            Line::Again { failures, lasts } => {
                let lasts_s = lasts.as_secs();
                warn!(%fault, failures, lasts_s, "the store still fails: {}", call.means());
            }
            Line::None => debug!(%fault, "{}", call.means()),
        }
    }

    /// Counts a failure, and decides which log line it gets.
    fn note(&mut self, now: Instant) -> Line {
        let outage = self.outage.take().filter(|outage| now - outage.last_failure <= RECENT);
        let Some(mut outage) = outage else {
            let last_failure = now;
            let last_line = now;
            self.outage = Some(Outage { since: now, last_failure, last_line, failures: 1 });
            return Line::First;
        };
        outage.failures += 1;
        outage.last_failure = now;
        let mut line = Line::None;
        if now - outage.last_line >= LINE_EVERY {
            outage.last_line = now;
            line = Line::Again { failures: outage.failures, lasts: now - outage.since };
        }
        self.outage = Some(outage);
        line
    }
}

/// The log line for a failure.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    First,
    Again { failures: u64, lasts: Duration },
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault() -> StoreError {
        StoreError::transient("database or disk is full")
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_one_line_a_minute_with_a_count() {
        let mut state = State::default();
        assert_eq!(state.note(Instant::now()), Line::First);
        for _ in 1..120 {
            tokio::time::advance(Duration::from_millis(500)).await;
            assert_eq!(state.note(Instant::now()), Line::None);
        }
        tokio::time::advance(Duration::from_millis(500)).await;
        let again = Line::Again { failures: 121, lasts: Duration::from_secs(60) };
        assert_eq!(state.note(Instant::now()), again);
        tokio::time::advance(RECENT + Duration::from_secs(1)).await;
        assert_eq!(state.note(Instant::now()), Line::First, "it is another outage");
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_over_when_every_call_works() {
        let health = StoreHealth::default();
        let other = health.beside();
        health.failed(StoreCall::Finish, &fault());
        other.failed(StoreCall::Finish, &fault());
        other.worked(StoreCall::Finish);
        assert!(health.shared.state.lock().outage.is_some());
        health.worked(StoreCall::Finish);
        assert!(health.shared.state.lock().outage.is_none());
        other.failed(StoreCall::Finish, &fault());
        other.failed(StoreCall::Pace, &fault());
        health.forget();
        assert!(other.failing().is_some());
        other.forget();
        assert!(health.shared.state.lock().outage.is_none() && other.failing().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_no_retry_fixes_is_known_to_all_pipelines_for_good() {
        let health = StoreHealth::default();
        let flow = health.beside();
        flow.failed(StoreCall::Take, &fault());
        health.failed_once(StoreCall::Answer, &StoreError::bug("a message without a lane"));
        health.failed_once(StoreCall::Answer, &StoreError::too_large("a message"));
        assert!(health.fatal().is_none());
        flow.failed(StoreCall::Take, &StoreError::incompatible("no such table: job"));
        health.failed_once(StoreCall::Prune, &StoreError::corrupt("a page"));
        flow.worked(StoreCall::Take);
        flow.forget();
        tokio::time::advance(RECENT * 2).await;
        for record in [&health, &flow, &flow.beside()] {
            let failing = record.fatal().unwrap();
            assert_eq!(failing.call, StoreCall::Take);
            assert_eq!(failing.fault.kind(), StoreErrorKind::Incompatible);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_silence_after_a_failure_is_not_a_failure() {
        let health = StoreHealth::default();
        health.failed(StoreCall::Note, &fault());
        tokio::time::advance(RECENT / 2).await;
        assert_eq!(health.failing().unwrap().lasts, Duration::ZERO);
        health.failed(StoreCall::Finish, &fault());
        tokio::time::advance(RECENT / 6).await;
        health.failed(StoreCall::Finish, &fault());
        let failing = health.failing().unwrap();
        assert_eq!((failing.call, failing.lasts), (StoreCall::Finish, RECENT / 6));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_fails_until_it_works_or_until_nobody_repeats_it() {
        let health = StoreHealth::default();
        let flow = health.beside();
        assert!(health.failing_anywhere(|_| true).is_none());
        flow.failed(StoreCall::Finish, &fault());
        tokio::time::advance(Duration::from_secs(9)).await;
        flow.worked(StoreCall::Renew);
        health.worked(StoreCall::Finish);
        flow.failed(StoreCall::Finish, &fault());
        let failing = flow.failing().unwrap();
        assert_eq!((failing.call, failing.lasts), (StoreCall::Finish, Duration::from_secs(9)));
        assert!(health.failing().is_none(), "it is the other pipeline's");
        assert!(health.failing_anywhere(StoreCall::stops_work).is_some());
        assert!(health.failing_anywhere(StoreCall::is_politeness).is_none());
        tokio::time::advance(RECENT + Duration::from_secs(1)).await;
        assert!(flow.failing().is_none(), "nobody has tried since");
        flow.failed(StoreCall::Finish, &fault());
        assert_eq!(flow.failing().unwrap().lasts, Duration::ZERO);
        flow.worked(StoreCall::Finish);
        assert!(health.failing_anywhere(|_| true).is_none());
    }

    #[test]
    fn only_calls_that_work_needs_stop_it() {
        use StoreCall::{Answer, Finish, Look, Note, Pace, Prune, Renew, Robots, Take};
        assert!([Take, Finish, Renew, Pace, Robots].into_iter().all(StoreCall::stops_work));
        assert!(![Note, Look, Answer, Prune].into_iter().any(StoreCall::stops_work));
    }
}
