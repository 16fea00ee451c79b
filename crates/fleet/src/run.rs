//! A run: a time of faults, then calm, in which everything must end.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::machine::{DoorKind, GROUP_INTERVAL, Machine, live};
use crate::queue::QueueServer;
use crate::scenario::{Feature, Scenario};
use crate::sim::{Failure, Sim};
use crate::trace::Entry;
use crate::workload::{operate, queue_urls, strike};

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
    /// Equal for two runs if and only if the same things happened in both.
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
pub fn run(scenario: &Scenario, keeps_trace: bool) -> anyhow::Result<Report> {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .context("the simulated fleet cannot start a runtime")?;
    Ok(runtime.block_on(simulate(scenario.clone(), keeps_trace)))
}

async fn simulate(scenario: Scenario, keeps_trace: bool) -> Report {
    let sim = Arc::new(Sim::new(scenario, keeps_trace));
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
        .chain(std::iter::repeat_n(DoorKind::Pages, scenario.pagers));
    let machines: Vec<Arc<Machine>> =
        doors.enumerate().map(|(number, door)| Arc::new(Machine::new(sim, number, door))).collect();
    let mut living = JoinSet::new();
    for machine in &machines {
        living.spawn(live(sim.clone(), machine.clone(), is_over.clone()));
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
    all_must_end(sim).await;
    drop(watch);
    is_over.cancel();
    let stopped = async { while living.join_next().await.is_some() {} };
    if tokio::time::timeout(STOPS_WITHIN, stopped).await.is_err() {
        sim.fail("liveness", &format!("a process did not stop within {STOPS_WITHIN:?}"));
    }
    for (server, has_one_record) in
        [(&sim.fetch_queue, !sim.fetch_queue.delivers_first), (&sim.page_queue, false)]
    {
        if let Err(found) = server.checks.lock().at_the_end(has_one_record) {
            sim.fail("jobs", &format!("{}: {found}", server.name));
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
    let wait = SITES_WAIT + turns_take;
    if calm < wait {
        return Ok(());
    }
    sim.no_site_waits_for(wait, &jobs.sites_with_work(now))
}

async fn all_must_end(sim: &Sim) {
    let calm_since = sim.elapsed();
    while sim.queues().iter().any(|server| server.queue.ledger().unfinished() > 0) {
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
