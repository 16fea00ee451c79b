//! What callers and operators do during a run, and what happens to its machines.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::dead_letters::Revision;
use fetchwell_engine::ports::job::{Job, Lane, NewJob};
use fetchwell_policy::orders::Order;
use fetchwell_policy::url::Site;
use tokio::time::sleep;

use crate::dice::Dice;
use crate::inbox::CALLERS;
use crate::machine::Machine;
use crate::network::Store;
use crate::queue::{LEASE_TTL, QueueServer};
use crate::scenario::Feature;
use crate::sim::Sim;
use crate::web::{GROUPS, SECTIONS, group_of, page_kinds, site_name};

/// Queues the URLs of a scenario, in batches over the first half of the run.
pub(crate) async fn queue_urls(sim: Arc<Sim>, server: Arc<QueueServer>) {
    let mut dice = Dice::new(sim.scenario.seed, server.name);
    let mut left = sim.scenario.urls;
    let half_ms = usize::try_from(sim.scenario.troubled_for.as_millis() / 2).unwrap_or(usize::MAX);
    let mut queued = Vec::new();
    while left > 0 {
        let batch = dice.number(1, left);
        left -= batch;
        for _ in 0..batch {
            let fresh = url(&sim, queued.len(), &mut dice);
            let is_again = dice.happens(0.2) && sim.has(Feature::Duplicates);
            let again = dice.pick(&queued).cloned().filter(|_| is_again);
            let url = again.unwrap_or(fresh);
            queued.push(url.clone());
            sim.note("caller", "queue", format_args!("{} {url}", server.name));
            if let Err(found) = server.enqueue(job(&sim, url, &mut dice)) {
                sim.fail("jobs", &format!("{}: {found}", server.name));
            }
        }
        sleep(dice.ms(0, half_ms / 4)).await;
    }
}

/// A URL of the workload.
pub(crate) fn url(sim: &Sim, number: usize, dice: &mut Dice) -> String {
    let site = site_name(dice.below(sim.scenario.sites));
    let section = SECTIONS[dice.below(SECTIONS.len())];
    let kinds = page_kinds(&sim.scenario);
    let kind = dice.pick(&kinds).copied().unwrap_or("page");
    let group = GROUPS[dice.below(GROUPS.len())];
    let group = if sim.has(Feature::Groups) { group } else { "" };
    format!("http://{site}{section}{kind}-{group}{number}")
}

fn job(sim: &Sim, url: String, dice: &mut Dice) -> NewJob {
    let group = group_of(&url).map(str::to_owned);
    let mut job = Job::new(url, Vec::new());
    let deadline = sim.clock.now() + dice.seconds(1, 600);
    let has_deadline = dice.happens(0.3) && sim.has(Feature::Deadlines);
    let party = dice.pick(&CALLERS).map(|name| (*name).to_owned());
    let lane = Lane { group, party };
    if sim.has(Feature::Groups) {
        job.lane = lane;
    }
    if has_deadline {
        job.deadline = Some(deadline);
    }
    NewJob::keyed(job)
}

/// Gives orders for sites until the run is calm, and revokes pauses and rates then.
pub(crate) async fn operate(sim: Arc<Sim>) {
    let mut dice = Dice::new(sim.scenario.seed, "operator");
    let sites: Vec<Site> = sim.web.sites.keys().filter_map(|name| Site::parse(name).ok()).collect();
    while sim.is_troubled() {
        sleep(dice.ms(100, 90_000)).await;
        let Some(site) = dice.pick(&sites).filter(|_| sim.is_troubled()) else { break };
        let order = match dice.below(6) {
            0 => Order::Pause,
            1 => Order::Resume,
            2 => Order::SetInterval(dice.ms(200, 20_000)),
            3 => Order::ClearInterval,
            4 => Order::ResetBreaker,
            _ => Order::ForgetRobots,
        };
        sim.order(site, order);
    }
    for site in &sites {
        sim.order(site, Order::Resume);
        sim.order(site, Order::ClearInterval);
    }
}

/// Retries and cancels messages, and retries and drops dead letters, until the run is calm.
pub(crate) async fn intervene(sim: Arc<Sim>) {
    let mut dice = Dice::new(sim.scenario.seed, "interventions");
    loop {
        sleep(dice.ms(100, 60_000)).await;
        let choice = dice.below(4);
        let number = dice.seed();
        if !sim.is_troubled() {
            return;
        }
        // Ids count from 1.
        let accepted = sim.inbox.queue.checks.lock().accepted();
        let message = number.checked_rem(accepted as u64).map(|index| index.cast_signed() + 1);
        let letters = sim.page_queue.checks.lock().dead_letters();
        let letter = number.checked_rem(letters.len() as u64);
        let letter = letter.and_then(|index| letters.get(usize::try_from(index).ok()?).copied());
        match (choice, message, letter) {
            (0, Some(id), _) => {
                let done = sim.inbox.retry(id);
                sim.note("operator", "retry", format_args!("message {id} {done}"));
            }
            (1, Some(id), _) => match sim.inbox.clone().cancel(id).await {
                Ok(done) => sim.note("operator", "cancel", format_args!("message {id} {done}")),
                Err(found) => sim.fail("messages", &found),
            },
            (2 | 3, _, Some(id)) => {
                let revision = if choice == 2 { Revision::Retry } else { Revision::Drop };
                let is_done = sim.page_queue.revise(id, revision);
                sim.note("operator", "dlq", format_args!("{revision:?} {id}: {is_done}"));
            }
            _ => {}
        }
    }
}

/// What may happen to a machine.
#[derive(Clone, Copy)]
enum Trouble {
    Crash,
    Restart,
    Suspension,
    Partition,
}

/// Disturbs machines until the run is calm.
pub(crate) async fn strike(sim: Arc<Sim>, machines: Vec<Arc<Machine>>) {
    let mut dice = Dice::new(sim.scenario.seed, "trouble");
    let kinds: Vec<Trouble> = [
        (Feature::Crashes, Trouble::Crash),
        (Feature::Restarts, Trouble::Restart),
        (Feature::Suspensions, Trouble::Suspension),
        (Feature::Partitions, Trouble::Partition),
    ]
    .into_iter()
    .filter(|(feature, _)| sim.has(*feature))
    .map(|(_, kind)| kind)
    .collect();
    while sim.is_troubled() {
        sleep(dice.ms(10, 60_000)).await;
        let Some(machine) = dice.pick(&machines).filter(|_| sim.is_troubled()) else { return };
        let Some(kind) = dice.pick(&kinds) else { return };
        // Around the length of a lease, where most decisions are made.
        let lasts = dice.ms(100, 3 * usize::try_from(LEASE_TTL.as_millis()).unwrap_or(0));
        strike_one(&sim, machine, *kind, lasts);
    }
}

fn strike_one(sim: &Sim, machine: &Machine, kind: Trouble, lasts: Duration) {
    let name = &machine.name;
    match kind {
        Trouble::Crash => {
            sim.note(name, "crash", format_args!(""));
            machine.crash();
        }
        Trouble::Restart => {
            sim.note(name, "stop", format_args!(""));
            machine.stop();
        }
        Trouble::Suspension => {
            sim.note(name, "suspended", format_args!("for {lasts:?}"));
            machine.suspend(lasts);
        }
        Trouble::Partition => {
            sim.note(name, "cut off", format_args!("for {lasts:?}"));
            machine.cut_off(lasts);
        }
    }
}

/// How long the server of a store is down at most, in milliseconds: longer than a lease lasts.
const DOWN_MS: usize = 40_000;

/// Restarts the servers of the stores until the run is calm.
pub(crate) async fn restart_stores(sim: Arc<Sim>) {
    let mut dice = Dice::new(sim.scenario.seed, "store restarts");
    loop {
        sleep(dice.ms(10, 180_000)).await;
        let store = if dice.happens(0.5) { Store::Queues } else { Store::Politeness };
        let is_short = dice.happens(0.5);
        let down_for = dice.ms(0, if is_short { 500 } else { DOWN_MS });
        let lost = dice.ms(0, 1_500);
        let syncs_what_must_last = dice.happens(0.5);
        if !sim.is_troubled() {
            return;
        }
        sim.note("store", "restart", format_args!("{store:?}, down for {down_for:?}"));
        sim.server(store).restart(down_for);
        if store == Store::Politeness {
            sim.forget_last_writes(lost, syncs_what_must_last);
        }
    }
}

/// Sets wall clocks forwards and backwards until the run is calm.
pub(crate) async fn jump_clocks(sim: Arc<Sim>, machines: Vec<Arc<Machine>>) {
    const HOUR_MS: usize = 3_600_000;
    let mut dice = Dice::new(sim.scenario.seed, "clock jumps");
    loop {
        sleep(dice.ms(10, 120_000)).await;
        let of_store = dice.happens(0.3);
        let is_small = dice.happens(0.3);
        let ahead_ms = dice.number(0, if is_small { 2_000 } else { 2 * HOUR_MS });
        let ahead_us = 1_000 * i64::try_from(ahead_ms).unwrap_or(0);
        let ahead_us = if is_small { ahead_us } else { ahead_us - 3_600_000_000 };
        let Some(machine) = dice.pick(&machines).filter(|_| sim.is_troubled()) else { return };
        if of_store && sim.has(Feature::SharedStates) {
            sim.set_store_clock_ahead_by_us(ahead_us);
        } else {
            sim.note(&machine.name, "clock", format_args!("is {ahead_us} us ahead"));
            machine.set_wall_clock_ahead_by_us(ahead_us);
        }
    }
}
