//! A run: a time of faults, then calm, in which everything must end.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::clients::Client;
use crate::doors::{DoorKind, GROUP_INTERVAL};
use crate::inbox::CALLERS;
use crate::machine::{Machine, live};
use crate::queue::QueueServer;
use crate::scenario::{Feature, Scenario};
use crate::sim::{Failure, Limits, MOST_JUMPED, Sim, store_clock_jumps};
use crate::trace::{Entry, Tracing};
use crate::workload::{intervene, jump_clocks, operate, queue_urls, restart_stores, strike};

/// When there are no more faults, everything must end within this time. Back-offs of sites and of robots.txt last for
/// minutes, and a Retry-After for up to two.
const ENDS_WITHIN: Duration = Duration::from_hours(3);
/// After the last fault, a site with jobs must get a request within this time: it may be left alone for five minutes
/// after its last failure, and so may its robots.txt.
const SITES_WAIT: Duration = Duration::from_mins(12);
const WATCH_EVERY: Duration = Duration::from_secs(5);
/// A job whose deadline has passed must end within this time, even if a process died with it a moment ago.
const DEADLINES_TAKE: Duration = Duration::from_secs(120);
/// How long a process may take to stop.
const STOPS_WITHIN: Duration = Duration::from_mins(2);

/// The result of a run.
#[derive(Debug)]
pub struct Report {
    pub failure: Option<Failure>,
    /// Equal for two runs if and only if the same things happened in both. 0 without a trace, as is the number of events.
    pub trace_hash: u64,
    pub events: u64,
    /// The simulated time.
    pub lasted: Duration,
    /// The number of requests that reached a site.
    pub requests: u64,
    /// What happened, if it was kept.
    pub trace: Vec<Entry>,
}

/// Runs a scenario.
pub fn run(scenario: &Scenario, tracing: Tracing) -> anyhow::Result<Report> {
    Ok(simulated_runtime()?.block_on(simulate(scenario.clone(), tracing)))
}

/// A runtime with one thread, whose clock jumps to the next timer whenever nothing else is left to do.
pub(crate) fn simulated_runtime() -> anyhow::Result<Runtime> {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .context("the simulated fleet cannot start a runtime")
}

async fn simulate(scenario: Scenario, tracing: Tracing) -> Report {
    let limits = Limits::of(scenario.seed);
    let sim = Arc::new(Sim::new(scenario, limits, tracing));
    tokio::select! {
        biased;
        () = sim.has_failed.cancelled() => {}
        () = whole_run(&sim) => {}
    }
    let lasted = sim.elapsed();
    let requests = sim.heads();
    let failure = sim.failure();
    sim.with_trace(|trace| Report {
        failure,
        trace_hash: trace.hash(),
        events: trace.events(),
        lasted,
        requests,
        trace: trace.take_entries(),
    })
}

async fn whole_run(sim: &Arc<Sim>) {
    let is_over = CancellationToken::new();
    let scenario = &sim.scenario;
    let doors = std::iter::repeat_n(DoorKind::Fetch, scenario.fetchers)
        .chain(std::iter::repeat_n(DoorKind::Pages, scenario.pagers))
        .chain(std::iter::repeat_n(DoorKind::Serve, scenario.retrievers));
    let mut machines = Vec::new();
    let mut living = JoinSet::new();
    for (number, door) in doors.enumerate() {
        let machine = Arc::new(Machine::new(sim, format!("m{number}")));
        machines.push(machine.clone());
        living.spawn(live(sim.clone(), machine, door, is_over.clone()));
    }
    let mut troubles = JoinSet::new();
    for (machines, server) in
        [(scenario.fetchers, &sim.fetch_queue), (scenario.pagers, &sim.page_queue)]
    {
        if machines > 0 {
            troubles.spawn(queue_urls(sim.clone(), server.clone()));
        }
    }
    troubles.spawn(strike(sim.clone(), machines.clone()));
    let clients: Vec<Arc<Client>> = match scenario.retrievers {
        0 => Vec::new(),
        _ => CALLERS.map(|caller| Arc::new(Client::new(sim, caller))).into(),
    };
    for (number, client) in clients.iter().enumerate() {
        let share = (scenario.urls + number) / clients.len();
        troubles.spawn(client.clone().post_messages(share));
        living.spawn(client.clone().read_results(is_over.clone()));
    }
    if sim.has(Feature::StoreRestarts) {
        troubles.spawn(restart_stores(sim.clone()));
    }
    if sim.has(Feature::ClockJumps) {
        troubles.spawn(jump_clocks(sim.clone(), machines.clone()));
    }
    if sim.has(Feature::Interventions) {
        troubles.spawn(intervene(sim.clone()));
    }
    let watch = AbortOnDropHandle::new(tokio::spawn(watch(sim.clone())));
    if sim.has(Feature::Orders) {
        troubles.spawn(operate(sim.clone()));
    }
    sleep(scenario.troubled_for).await;
    sim.end_of_trouble();
    for machine in &machines {
        machine.repair();
    }
    while troubles.join_next().await.is_some() {}
    all_must_end(sim, &clients).await;
    drop(watch);
    is_over.cancel();
    let stopped = async { while living.join_next().await.is_some() {} };
    if tokio::time::timeout(STOPS_WITHIN, stopped).await.is_err() {
        sim.fail("liveness", &format!("a process did not stop within {STOPS_WITHIN:?}"));
    }
    for server in sim.queues() {
        // A separate sink may get a record twice.
        if let Err(found) = server.checks.lock().at_the_end(!server.delivers_first) {
            sim.fail("jobs", &format!("{}: {found}", server.name));
        }
    }
    let received = clients.iter().map(|client| client.at_the_end());
    for checked in received.chain([sim.inbox.at_the_end()]) {
        if let Err(found) = checked {
            sim.fail("messages", &found);
        }
    }
}

/// Checks regularly that nothing waits for too long.
async fn watch(sim: Arc<Sim>) {
    let mut calm = Duration::ZERO;
    let mut peace = Duration::ZERO;
    loop {
        sleep(WATCH_EVERY).await;
        calm = if sim.is_troubled() { Duration::ZERO } else { calm + WATCH_EVERY };
        peace = if sim.has_quiet_machines { peace + WATCH_EVERY } else { calm };
        for server in sim.queues() {
            if let Err(found) = check_waits(&sim, server, calm, peace) {
                sim.fail("waits", &format!("{}: {found}", server.name));
            }
        }
    }
}

/// Every job must end soon after its deadline, if no machine was in trouble and every call was answered for a time of
/// `peace`. No site may wait while others are served, if there were no faults at all for a time of `calm`.
fn check_waits(
    sim: &Sim,
    server: &QueueServer,
    calm: Duration,
    peace: Duration,
) -> Result<(), String> {
    let now = sim.clock.now();
    let jobs = server.checks.lock();
    if peace >= DEADLINES_TAKE {
        jobs.no_deadline_is_before(now - DEADLINES_TAKE)?;
    }
    let left = u32::try_from(server.queue.ledger().unfinished()).unwrap_or(u32::MAX);
    let turns_take = if sim.has(Feature::Groups) { GROUP_INTERVAL * left } else { Duration::ZERO };
    // A site's wait is by the clock of the politeness store's server.
    let jumps = if store_clock_jumps(&sim.scenario) { MOST_JUMPED } else { Duration::ZERO };
    let wait = SITES_WAIT + turns_take + jumps;
    if calm < wait {
        return Ok(());
    }
    sim.no_site_waits_for(wait, &jobs.sites_with_work(now))
}

async fn all_must_end(sim: &Sim, clients: &[Arc<Client>]) {
    let calm_since = sim.elapsed();
    loop {
        let are_queues_empty =
            sim.queues().iter().all(|server| server.queue.ledger().unfinished() == 0);
        if are_queues_empty && clients.iter().all(|client| client.has_everything()) {
            return;
        }
        if sim.elapsed() > calm_since + ENDS_WITHIN {
            let left = sim.queues().map(|server| server.queue.ledger());
            return sim.fail(
                "liveness",
                &format!("not over {ENDS_WITHIN:?} after the last fault: {left:?}"),
            );
        }
        sleep(Duration::from_secs(1)).await;
    }
}
