//! The network between a process and the stores, and what goes wrong there.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use futures::FutureExt;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::dice::Dice;
use crate::machine::Process;
use crate::scenario::Feature;
use crate::sim::Sim;

/// How long a process waits for an answer from a store.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The probability of each fault, per call.
const LOST: f64 = 0.03;
const LATE: f64 = 0.02;
const CRASH: f64 = 0.002;
/// More calls than this within [`CALLS_COUNTED_FOR`] show that a process does not wait for anything…
const MAX_CALLS: usize = 2_000;
/// …plus these, for the requests of each site.
const MAX_CALLS_PER_SITE: usize = 200;
const CALLS_COUNTED_FOR: Duration = Duration::from_secs(10);
/// A late call arrives at most this long after it was made.
const LATEST_MS: usize = 40_000;

/// The stores that processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// The queues and the sinks.
    Queues,
    Politeness,
}

/// The server of a store. It may restart, which breaks the calls that it is carrying out.
#[derive(Default)]
pub(crate) struct Server {
    state: Mutex<ServerState>,
    restarts: Notify,
}

#[derive(Default)]
struct ServerState {
    starts: u64,
    down_until: Option<Instant>,
}

impl Server {
    /// It dies, and is up again after this time.
    pub(crate) fn restart(&self, down_for: Duration) {
        let mut state = self.state.lock();
        state.starts += 1;
        state.down_until = Some(Instant::now() + down_for);
        self.restarts.notify_waiters();
    }

    fn starts(&self) -> u64 {
        self.state.lock().starts
    }

    async fn carry_out<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        if self.state.lock().down_until.is_some_and(|until| Instant::now() < until) {
            return Err(StoreError::transient("the connection was refused"));
        }
        tokio::select! {
            biased;
            answer = call => answer,
            () = self.restarts.notified() => Err(StoreError::transient("the connection broke")),
        }
    }
}

/// The connection of a process to the stores.
pub(crate) struct Link {
    pub(crate) sim: Arc<Sim>,
    pub(crate) process: Arc<Process>,
    dice: Mutex<Dice>,
    /// The number of calls since this time.
    calls: Mutex<(Instant, usize)>,
}

/// What happens to a call.
enum Fate {
    /// It arrives and is answered after these delays.
    Answered { there: Duration, back: Duration },
    /// It never arrives.
    Lost,
    /// It arrives this much later, when its caller no longer waits.
    Late(Duration),
    /// It is carried out, but its answer is lost.
    Unanswered { there: Duration },
    /// The process dies right before it is sent.
    CrashBefore,
    /// The process dies right after the store has carried it out.
    CrashAfter { there: Duration },
}

impl Link {
    pub(crate) fn new(sim: Arc<Sim>, process: Arc<Process>, dice: Dice) -> Link {
        Link { sim, process, dice: Mutex::new(dice), calls: Mutex::new((Instant::now(), 0)) }
    }

    fn count_call(&self, what: &str) {
        self.sim.store_calls.fetch_add(1, Ordering::Relaxed);
        let mut calls = self.calls.lock();
        if calls.0.elapsed() > CALLS_COUNTED_FOR {
            *calls = (Instant::now(), 0);
        }
        calls.1 += 1;
        let most = MAX_CALLS + MAX_CALLS_PER_SITE * self.sim.scenario.sites;
        if calls.1 == most {
            let name = &self.process.name;
            let found = format!("{name} makes {most} calls at once, the last one {what}");
            self.sim.fail("calls", &found);
        }
    }

    fn fate(&self) -> Fate {
        let mut dice = self.dice.lock();
        let is_troubled = self.sim.is_troubled();
        let may = |feature| is_troubled && self.sim.has(feature);
        let most_ms = match may(Feature::SlowNetwork) {
            true if dice.happens(0.05) => 3_000,
            true => 500,
            false => 2,
        };
        let there = dice.ms(0, most_ms);
        let back = dice.ms(0, most_ms);
        let lost = dice.happens(LOST) && may(Feature::LostCalls);
        let unanswered = dice.happens(LOST) && may(Feature::LostAnswers);
        let late = dice.happens(LATE) && may(Feature::LateCalls);
        let crashes = dice.happens(CRASH) && may(Feature::CrashesAtCalls);
        match (crashes, lost, unanswered, late) {
            (true, ..) if dice.happens(0.5) => Fate::CrashBefore,
            (true, ..) => Fate::CrashAfter { there },
            (_, true, ..) => Fate::Lost,
            (_, _, true, _) => Fate::Unanswered { there },
            (.., true) => Fate::Late(dice.ms(1, LATEST_MS)),
            _ => Fate::Answered { there, back },
        }
    }

    /// Calls a store, which carries out the call in one step: `serve` is called at most once, and not interrupted.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        store: Store,
        what: &'static str,
        serve: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.transact(store, what, async move { serve() }).await
    }

    /// Calls a store, which carries out the call as a transaction that takes time. If it does not end, because its
    /// caller or the store dies, it must have changed nothing.
    pub(crate) async fn transact<T: Send + 'static>(
        &self,
        store: Store,
        what: &'static str,
        serve: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.process.runs().await;
        self.count_call(what);
        let fate = if self.process.is_cut_off() { Fate::Lost } else { self.fate() };
        let server = self.sim.server(store).clone();
        match fate {
            Fate::CrashBefore => self.crash(what, "before").await,
            Fate::Lost => self.no_answer(what, "is lost").await,
            Fate::Late(by) => {
                drop(tokio::spawn(async move {
                    sleep(by).await;
                    drop(server.carry_out(serve).await);
                }));
                self.no_answer(what, "is late").await
            }
            Fate::Unanswered { there } => {
                sleep(there).await;
                drop(server.carry_out(serve).await);
                self.no_answer(what, "is carried out, and its answer lost").await
            }
            Fate::CrashAfter { there } => {
                sleep(there).await;
                drop(server.carry_out(serve).await);
                self.crash(what, "after").await
            }
            Fate::Answered { there, back } => {
                sleep(there).await;
                let answer = server.carry_out(serve).await;
                let starts = server.starts();
                sleep(back).await;
                self.process.runs().await;
                if self.process.is_cut_off() {
                    return self.no_answer(what, "is carried out, and its answer lost").await;
                }
                if server.starts() != starts {
                    return Err(StoreError::transient("the connection broke"));
                }
                answer
            }
        }
    }

    /// How long a transaction of several statements takes.
    pub(crate) fn transaction_takes(&self) -> Duration {
        let mut dice = self.dice.lock();
        let may_be_slow = self.sim.is_troubled() && self.sim.has(Feature::SlowNetwork);
        dice.ms(0, if may_be_slow { 300 } else { 3 })
    }

    async fn no_answer<T>(&self, what: &str, why: &str) -> Result<T, StoreError> {
        self.sim.note(&self.process.name, "fault", format_args!("{what} {why}"));
        sleep(TIMEOUT).await;
        self.process.runs().await;
        Err(StoreError::transient(format!("no answer to {what}")))
    }

    async fn crash<T>(&self, what: &str, when: &str) -> Result<T, StoreError> {
        self.sim.note(&self.process.name, "crash", format_args!("{when} {what}"));
        self.process.kill();
        std::future::pending().await
    }
}

/// The result of a call to a store in memory, which never waits.
pub(crate) fn at_once<T>(
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    call.now_or_never().unwrap_or_else(|| Err(StoreError::bug("a store in memory waited")))
}
