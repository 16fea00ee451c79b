//! The one flow. Read [`run`] first.
//!
//! ```text
//! source ──take──▶ workbench ──due──▶ gate ──go──▶ http ──▶ plan ──finish──▶ sink ──▶ settle
//! ```
//!
//! One task, the conductor, owns all that is decided: what was taken, what waits where, what is under
//! way. Everything that takes time (the store, the web, a plan's step on a large page) runs in tasks of
//! its own and comes back as an event. So nothing here is locked, and nothing here waits for a site.
//!
//! Its parts keep their fields to themselves: `supply` (the source), `held` and `jobs` (leases), `flights` (requests),
//! `turns` and `lookups` (the politeness store), `outbox` (results), `upkeep` and `ending` (the instance and its run).

mod conductor;
mod dispatch;
mod ending;
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
mod news;
mod orders;
mod outbox;
mod results;
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
use conductor::{Conductor, engine_failed};
pub use news::{AnswerFacts, LeaseTag, News, Purpose, Requested, SettledLease, Watcher, Window};

/// The reason of a lease that was given up for a fault of this program, such as a panic.
pub const INTERNAL: &str = "internal";

/// Makes the plan of a lease.
pub type Planner<R> = Arc<dyn Fn(&Lease) -> Box<dyn Plan<R>> + Send + Sync>;

/// The cause for which the engine gives up a lease without its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveUp {
    /// A fault of this program, such as too many panics or crashes. The page, its site and its caller are innocent.
    Internal,
    /// The store can never hold the result. This is a failure of the URL, like a body over `http.max_body`.
    TooLarge,
}

/// Makes the records of a lease that the engine gives up: for which cause, and the reason in words.
pub type Obituary<R> = Arc<dyn Fn(&Lease, GiveUp, &str) -> Vec<R> + Send + Sync>;

/// A door: where work comes from, what is done with it, where it goes.
pub struct Door<R> {
    /// Where leases come from.
    pub source: Arc<dyn Source>,
    /// What is done with each.
    pub planner: Planner<R>,
    /// Where the records go, and the leases end.
    pub finish: Arc<dyn Finish<R>>,
    /// What is recorded of a lease that the engine gives up without its plan.
    pub obituary: Obituary<R>,
}

/// The bounds of a pipeline.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests under way at once.
    pub max_in_flight: usize,
    /// Leases held in memory.
    pub window: usize,
    /// Leases held for one site and lane.
    pub max_per_site: usize,
    /// Finished leases settled in one step. While one batch is stored, another may gather: a crash
    /// repeats these besides what was under way.
    pub max_finish_batch: usize,
    /// How long requests under way may go on after the signal to stop.
    pub shutdown_grace: Duration,
    /// How often the instance's lease is renewed.
    pub heartbeat: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
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
pub struct Plant {
    /// Says go, not before, or never.
    pub gate: Gate,
    /// The real web, or a simulated one.
    pub web: Arc<dyn Web>,
    /// The bounds.
    pub limits: Limits,
    /// Tells the time.
    pub clock: Clock,
    /// Seeds the jitter.
    pub seed: u64,
    /// Hears the news.
    pub watcher: Watcher,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing is left to do.
    Exhausted,
    /// It was told to stop.
    Stopped,
    /// A plan found that the door can't go on, for this reason.
    Halted(String),
}

/// Runs a door until its source is exhausted or `stop` is cancelled.
///
/// A lease that was taken is settled before this returns, or handed back, or (after a crash) rescued by
/// another instance. Transient store errors are retried. Any other store error ends the run: leases are handed back
/// within the grace period, if the store accepts them. A panic of the engine ends it at once; another instance rescues
/// the leases, and the other pipelines of the process stop, too.
pub async fn run<R: Send + Sync + 'static>(
    door: Door<R>,
    plant: Plant,
    stop: CancellationToken,
) -> Result<Ended, StoreError> {
    let health = plant.gate.health.clone();
    // As a task it is woken by the thread that has news for it; whoever waits here sits on another one.
    let conducting = AbortOnDropHandle::new(tokio::spawn(conduct(door, plant, stop)));
    match conducting.await {
        Ok(ended) => ended,
        Err(failed) => Err(engine_failed(failed, &health)),
    }
}

async fn conduct<R: Send + Sync + 'static>(
    door: Door<R>,
    plant: Plant,
    stop: CancellationToken,
) -> Result<Ended, StoreError> {
    let news = door.source.news();
    let mut conductor = Conductor::start(door, plant).await;
    conductor.give_up_on_a_store()?;
    loop {
        conductor.renew_lease_when_due();
        conductor.listen_for_orders_when_due();
        conductor.tell_the_late();
        conductor.take_when_there_is_room();
        conductor.dispatch_what_is_due();
        conductor.note_what_started();
        conductor.ask_the_gate();
        conductor.finish_what_is_done();
        conductor.tell_what_is_in_hand();
        if conductor.is_idle_for_good() {
            return conductor.ended();
        }
        let wake_at = conductor.next_due();
        let now = conductor.now();
        let stopping = conductor.is_stopping();
        tokio::select! {
            event = conductor.next_event() => {
                conductor.handle_all(event)?;
                conductor.give_up_on_a_store()?;
            }
            () = sleep_until(wake_at, now) => {}
            () = heard(news.as_deref()) => conductor.hear_of_more(),
            () = stop.cancelled(), if !stopping => conductor.stop_taking(),
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
