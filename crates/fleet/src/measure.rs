//! Measures how fast the simulation is, and how well many machines use their time. No faults happen, but all checks
//! hold.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fetchwell_engine::ports::job::{Job, NewJob};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::doors::DoorKind;
use crate::machine::{Machine, live};
use crate::run::simulated_runtime;
use crate::scenario::Scenario;
use crate::sim::{Failure, INTERVAL, Limits, Sim};
use crate::trace::Tracing;
use crate::web::site_name;

/// The limits of the machines: the defaults of the program, but for the requests in flight.
const LIMITS: Limits = Limits {
    max_in_flight: 1_024,
    window: 8_192,
    max_per_site: 64,
    robots_fresh_for: Duration::from_hours(24),
};

/// A run must end this long after its shortest possible time.
const ENDS_WITHIN: Duration = Duration::from_hours(6);

/// What is fetched.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Machines that run `fetch`.
    pub machines: usize,
    pub sites: usize,
    pub urls: usize,
    /// How many URLs are queued per second; all at the start if `None`.
    pub urls_per_second: Option<u32>,
    /// The share of the site with number `k` is proportional to `1 / (k + 1)^exponent`.
    pub exponent: f64,
}

/// The result of a measurement.
#[derive(Debug)]
pub struct Measured {
    pub failure: Option<Failure>,
    /// The number of requests that reached a site.
    pub requests: u64,
    /// The number of calls to the stores.
    pub store_calls: u64,
    /// The simulated time until the last URL ended.
    pub simulated: Duration,
    /// The shortest time in which that is possible: the pages of the largest site, one per interval.
    pub shortest: Duration,
    /// The real time for that, without the time to queue the URLs.
    pub took: Duration,
}

/// Runs a load.
pub fn measure(load: &Load) -> anyhow::Result<Measured> {
    let scenario = Scenario {
        seed: 0,
        fetchers: load.machines,
        pagers: 0,
        retrievers: 0,
        sites: load.sites,
        urls: load.urls,
        troubled_for: Duration::ZERO,
        features: BTreeSet::new(),
        plant: None,
    };
    Ok(simulated_runtime()?.block_on(async {
        let sim = Arc::new(Sim::new(scenario, LIMITS, Tracing::Off));
        tokio::select! {
            biased;
            () = sim.has_failed.cancelled() => measured(&sim, load, Duration::ZERO, Duration::ZERO),
            measured = run(&sim, load) => measured,
        }
    }))
}

async fn run(sim: &Arc<Sim>, load: &Load) -> Measured {
    sim.end_of_trouble();
    let pages = pages_per_site(load);
    match load.urls_per_second {
        None => queue(sim, urls(&pages)),
        Some(per_second) => drop(tokio::spawn(queue_slowly(sim.clone(), urls(&pages), per_second))),
    }
    let is_over = CancellationToken::new();
    let began = Instant::now();
    let mut living = JoinSet::new();
    for number in 0..load.machines {
        let machine = Arc::new(Machine::new(sim, format!("m{number}")));
        living.spawn(live(sim.clone(), machine, DoorKind::Fetch, is_over.clone()));
    }
    let most = i64::try_from(load.urls).unwrap_or(i64::MAX);
    let ends_at = sim.elapsed() + shortest(load, &pages) + ENDS_WITHIN;
    while sim.fetch_queue.queue.ledger().done < most {
        if sim.elapsed() > ends_at {
            sim.fail("liveness", &format!("not over after {ENDS_WITHIN:?}"));
        }
        sleep(Duration::from_millis(100)).await;
    }
    let simulated = sim.elapsed();
    let took = began.elapsed();
    is_over.cancel();
    while living.join_next().await.is_some() {}
    if let Err(found) = sim.fetch_queue.checks.lock().at_the_end(true) {
        sim.fail("jobs", &found);
    }
    measured(sim, load, simulated, took)
}

fn measured(sim: &Sim, load: &Load, simulated: Duration, took: Duration) -> Measured {
    Measured {
        failure: sim.failure(),
        requests: sim.heads(),
        store_calls: sim.store_calls.load(Ordering::Relaxed),
        simulated,
        shortest: shortest(load, &pages_per_site(load)),
        took,
    }
}

fn shortest(load: &Load, pages: &[usize]) -> Duration {
    let largest = pages.iter().copied().max().unwrap_or_default();
    let at_the_largest = INTERVAL * u32::try_from(largest.saturating_sub(1)).unwrap_or(u32::MAX);
    let queueing =
        load.urls_per_second.map_or(0, |per_second| load.urls as u64 / u64::from(per_second));
    at_the_largest.max(Duration::from_secs(queueing))
}

/// The number of pages of each site.
fn pages_per_site(load: &Load) -> Vec<usize> {
    let share = |site: usize| (site as f64 + 1.0).powf(-load.exponent);
    let all: f64 = (0..load.sites).map(share).sum();
    let mut pages = Vec::with_capacity(load.sites);
    let mut so_far = 0.0;
    let mut given = 0;
    for site in 0..load.sites {
        so_far += share(site);
        // Rounding errors are left to the next site, so that the sum is right.
        let until = (load.urls as f64 * so_far / all).round() as usize;
        pages.push(until - given);
        given = until;
    }
    pages
}

/// The URLs in an order in which those of each site are spread evenly.
fn urls(pages: &[usize]) -> impl Iterator<Item = String> + use<> {
    let pages = pages.to_vec();
    let rounds = pages.iter().copied().max().unwrap_or_default();
    (0..rounds).flat_map(move |round| {
        let has_one = |(_, pages): &(usize, &usize)| round < **pages;
        let sites: Vec<usize> =
            pages.iter().enumerate().filter(has_one).map(|(site, _)| site).collect();
        sites.into_iter().map(move |site| format!("http://{}/a/page-{round}", site_name(site)))
    })
}

fn queue(sim: &Sim, urls: impl Iterator<Item = String>) {
    for url in urls {
        if let Err(found) = sim.fetch_queue.enqueue(NewJob::keyed(Job::new(url, Vec::new()))) {
            sim.fail("jobs", &found);
        }
    }
}

async fn queue_slowly(sim: Arc<Sim>, urls: impl Iterator<Item = String>, per_second: u32) {
    let every = Duration::from_secs(1) / per_second;
    for url in urls {
        queue(&sim, std::iter::once(url));
        sleep(every).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_spread_over_the_sites() {
        let load =
            Load { machines: 1, sites: 100, urls: 10_000, urls_per_second: None, exponent: 0.5 };
        let pages = pages_per_site(&load);
        assert_eq!(pages.iter().sum::<usize>(), 10_000);
        assert!(pages[0] > 500 && pages[99] < 60, "{pages:?}");
        let urls: BTreeSet<String> = urls(&pages).collect();
        assert_eq!(urls.len(), 10_000);
    }
}
