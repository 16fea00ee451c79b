//! The pipeline that every door runs. Read [`run`] first.
//!
//! ```text
//! source ──take──▶ workbench ──due──▶ gate ──go──▶ http ──▶ plan ──finish──▶ sink ──▶ settle
//! ```
//!
//! One task, the scheduler, makes all decisions and owns their state: the leases taken, the requests that wait at each
//! site and those in flight. Everything slow (the store, the web, a plan's step on a large page) runs in its own task
//! and returns an event. So the state needs no locks, and the loop never waits for a site.
//!
//! Each part of the state is private to its module: `supply` (the source), `held` and `jobs` (leases), `flights`
//! (requests), `turns` and `lookups` (the politeness store), `outbox` (results), `upkeep` and `ending` (the instance
//! and its run).

mod dispatch;
mod ending;
mod events;
mod flight;
mod flights;
mod groups;
mod held;
mod intake;
mod interruptions;
mod jobs;
mod lateness;
mod learning;
mod lookups;
mod orders;
mod outbox;
mod results;
mod scheduler;
mod site_log;
mod supply;
mod suspects;
mod turns;
mod upkeep;
mod verdicts;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use fetchwell_policy::time::Time;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::clock::Clock;
use crate::gate::Gate;
use crate::ports::error::StoreError;
use crate::ports::finish::Finish;
use crate::ports::job::Lease;
use crate::ports::plan::Plan;
use crate::ports::source::Source;
use crate::web::Web;
pub use events::{
    AnswerFacts, Event, EventSink, LeaseTag, Purpose, Requested, SettledLease, Window,
};
use scheduler::{Scheduler, engine_failed};

/// The reason recorded for a lease that is given up because of a fault in this program, such as a panic.
pub const INTERNAL: &str = "internal";

/// Creates the plan of a lease.
pub type Planner<R> = Arc<dyn Fn(&Lease) -> Box<dyn Plan<R>> + Send + Sync>;

/// Why the engine gives up a lease without asking its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveUp {
    /// A fault of this program, such as too many panics or crashes. Neither the page nor its site nor the caller is to
    /// blame.
    Internal,
    /// The store can never hold the result. This is a failure of the URL, like a body over `http.max_body`.
    TooLarge,
}

/// Creates the records of a lease that the engine gives up, from the cause and a description of it.
pub type GiveUpRecord<R> = Arc<dyn Fn(&Lease, GiveUp, &str) -> Vec<R> + Send + Sync>;

/// A door: where its work comes from, how it is processed, and where the results go.
pub struct Door<R> {
    pub source: Arc<dyn Source>,
    pub planner: Planner<R>,
    /// Stores the records and settles the leases.
    pub finish: Arc<dyn Finish<R>>,
    pub give_up_record: GiveUpRecord<R>,
}

#[derive(Clone, Copy, Debug)]
pub struct RunLimits {
    /// The maximum number of concurrent requests.
    pub max_in_flight: usize,
    /// The maximum number of leases in memory.
    pub window: usize,
    /// The maximum number of leases in memory per site and lane.
    pub max_per_site: usize,
    /// The maximum number of finished leases settled in one batch. While one batch is being stored, another may
    /// collect; a crash repeats both, besides the requests in flight.
    pub max_finish_batch: usize,
    /// How long requests in flight may continue after the stop signal.
    pub shutdown_grace: Duration,
    /// How often the instance's lease is renewed.
    pub heartbeat: Duration,
}

impl Default for RunLimits {
    fn default() -> RunLimits {
        RunLimits {
            max_in_flight: 128,
            window: 8_192,
            max_per_site: 64,
            max_finish_batch: 256,
            shutdown_grace: Duration::from_secs(25),
            heartbeat: Duration::from_secs(5),
        }
    }
}

/// What a pipeline needs besides a door.
pub struct Runtime {
    /// Decides when a request may be sent.
    pub gate: Gate,
    /// The real web, or a simulated one.
    pub web: Arc<dyn Web>,
    pub limits: RunLimits,
    pub clock: Clock,
    /// Seeds the jitter.
    pub seed: u64,
    pub event_sink: EventSink,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Nothing is left to do.
    Exhausted,
    /// The run was stopped from outside.
    Stopped,
    /// A plan halted the run, for this reason.
    Halted(String),
}

/// Runs a door until its source is exhausted or `stop` is cancelled.
///
/// Every lease that was taken is settled or handed back before this returns, or (after a crash) rescued by another
/// instance. Transient store errors are retried. Any other store error ends the run: leases are handed back within the
/// grace period, if the store accepts them. A panic of the engine ends it at once; another instance rescues the leases,
/// and the other pipelines of the process stop, too.
pub async fn run<R: Send + Sync + 'static>(
    door: Door<R>,
    runtime: Runtime,
    stop: CancellationToken,
) -> Result<RunEnd, StoreError> {
    let health = runtime.gate.health.clone();
    // A spawned task is woken on the thread that has an event for it. The caller of `run` may wait on another thread.
    let scheduling = AbortOnDropHandle::new(tokio::spawn(schedule(door, runtime, stop)));
    match scheduling.await {
        Ok(ended) => ended,
        Err(failed) => Err(engine_failed(failed, &health)),
    }
}

async fn schedule<R: Send + Sync + 'static>(
    door: Door<R>,
    runtime: Runtime,
    stop: CancellationToken,
) -> Result<RunEnd, StoreError> {
    let news = door.source.news();
    let mut scheduler = Scheduler::start(door, runtime).await;
    scheduler.give_up_on_a_store()?;
    loop {
        scheduler.renew_lease_when_due();
        scheduler.listen_for_orders_when_due();
        scheduler.tell_the_late();
        scheduler.take_when_there_is_room();
        scheduler.dispatch_what_is_due();
        scheduler.note_what_started();
        scheduler.ask_the_gate();
        scheduler.finish_what_is_done();
        scheduler.tell_what_is_in_hand();
        if scheduler.is_idle_for_good() {
            return scheduler.ending.ended();
        }
        let wake_at = scheduler.next_due();
        let now = scheduler.now();
        let stopping = scheduler.ending.is_stopping();
        // In a fixed order, so that a run depends only on its inputs. None starves another: the stop comes once, news at
        // most once per round, and what the timer is for is looked at in every round.
        tokio::select! {
            biased;
            () = stop.cancelled(), if !stopping => scheduler.stop_taking(),
            () = heard(news.as_deref()) => scheduler.hear_of_more(),
            event = scheduler.next_event() => {
                scheduler.handle_all(event)?;
                scheduler.give_up_on_a_store()?;
            }
            () = sleep_until(wake_at, now) => {}
        }
    }
}

async fn heard(news: Option<&Notify>) {
    match news {
        Some(news) => news.notified().await,
        None => std::future::pending().await,
    }
}

/// Timers are coarse: they fire a little after their time, never before it.
async fn sleep_until(at: Option<Time>, now: Time) {
    match at {
        Some(at) => tokio::time::sleep(at.since(now)).await,
        None => std::future::pending().await,
    }
}
