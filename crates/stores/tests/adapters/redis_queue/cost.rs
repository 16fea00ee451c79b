//! What a page costs the server.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use fetchwell_engine::ports::finish::{Settle, Settlement};
use fetchwell_engine::ports::queue::Queue;
use fetchwell_engine::ports::source::{Demand, Source, Taken};
use fetchwell_testkit::conformance::servers::redis_connection;
use fetchwell_testkit::crash::OwnServer;
use redis::AsyncCommands;

use super::rig::{LIST, open, server_clock};

const JOBS: usize = 10_000;
const SITES: usize = 200;
/// A window that is refilled a quarter at a time, as the flow does it.
const PER_TAKE: usize = 64;
/// Only a busy machine takes so long that the lease must be renewed.
const RENEWED_EVERY: Duration = Duration::from_secs(1);
/// The most commands that a page may cost.
const MOST_PER_PAGE: f64 = 4.0;

/// A server of its own: others' commands would be counted, too.
#[tokio::test]
async fn a_page_costs_few_commands() {
    let Some(server) = OwnServer::start("redis").await else { return };
    let queue = open(server.url(), server_clock()).await;
    let mut line = redis_connection(server.url()).await;
    let urls: Vec<String> =
        (0..JOBS).map(|n| format!("http://site{}.test/page/{n}", n % SITES)).collect();
    line.rpush::<_, _, ()>(LIST, &urls).await.unwrap();
    let worker = queue.instance();
    worker.renew().await.unwrap();
    let before = commands(&mut line).await;
    let demand = Demand { most: PER_TAKE, most_per_site: PER_TAKE, ..Demand::default() };
    let mut renewed = Instant::now();
    let mut done = 0;
    while done < JOBS {
        if renewed.elapsed() >= RENEWED_EVERY {
            worker.renew().await.unwrap();
            renewed = Instant::now();
        }
        let Taken::Jobs(leases) = worker.take(&demand).await.unwrap() else { panic!("{done}") };
        let ids: Vec<_> = leases.iter().map(|lease| lease.id).collect();
        worker.started(&ids).await.unwrap();
        let batch: Vec<_> = leases.iter().map(|lease| (lease, &Settlement::Done)).collect();
        worker.settle(&batch).await.unwrap();
        done += leases.len();
    }
    let after = commands(&mut line).await;
    let sent = after["evalsha"] - before.get("evalsha").unwrap_or(&0.0);
    let per_page = sent / JOBS as f64;
    println!("{per_page:.3} scripts a page, {} kinds of commands", after.len());
    assert!(per_page <= MOST_PER_PAGE, "{per_page}");
    // Even where every batch has one job only, a page is moved, taken, started and settled: four.
    assert_eq!(queue.audit().await.unwrap().unwrap().done, i64::try_from(JOBS).unwrap());
}

/// How often each command was called, also from within scripts.
async fn commands(line: &mut redis::aio::MultiplexedConnection) -> HashMap<String, f64> {
    let info: String = redis::cmd("INFO").arg("commandstats").query_async(line).await.unwrap();
    let calls = info.lines().filter_map(|line| {
        let (name, stats) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_owned(), stats.split(',').next()?.parse().ok()?))
    });
    calls.collect()
}
