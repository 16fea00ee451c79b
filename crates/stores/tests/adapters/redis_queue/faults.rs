//! A line to the server that breaks at any moment: nothing is lost, doubled or stuck.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fetchwell_engine::ports::finish::{Settle, Settlement};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_engine::ports::source::{Source, Taken};
use fetchwell_policy::chance::Chance;
use fetchwell_stores::redis::{RedisInstance, RedisQueue};
use fetchwell_testkit::fault_proxy::{Cut, FaultProxy, Faults};

use super::rig::{POLL, Rig, at_most, names, server_clock};

const JOBS: i64 = 600;
const SEED: u64 = 11;
/// Some hundred are enough, with many that were broken off.
const MOST_TAKES: usize = 5_000;
/// Longer than the test: what is stuck stays so, and shows.
const LEASE_TTL: Duration = Duration::from_secs(600);

#[tokio::test]
async fn a_line_that_breaks_at_any_moment_loses_nothing() {
    let Some(rig) = Rig::if_there().await else { return };
    let (host, database) = rig.address.trim_start_matches("redis://").split_once('/').unwrap();
    let proxy = FaultProxy::start(host.parse().unwrap()).await.unwrap();
    let through = format!("redis://{}/{database}", proxy.address());
    let queue = RedisQueue::open(&through, &names(), server_clock(), LEASE_TTL, true, POLL).await;
    let worker = queue.unwrap().instance();
    let urls: Vec<String> = (0..JOBS).map(|n| format!("http://s{}.test/{n}", n % 20)).collect();
    rig.push(&urls.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let is_over = AtomicBool::new(false);
    tokio::join!(break_the_line(&proxy, &is_over), work(&worker, &is_over));
    assert_eq!(rig.ledger().await, Ledger { accepted: JOBS, done: JOBS, ..Ledger::default() });
}

async fn break_the_line(proxy: &FaultProxy, is_over: &AtomicBool) {
    let mut chance = Chance::seeded(SEED);
    while !is_over.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(5 + chance.next_u64() % 40)).await;
        match chance.next_u64() % 3 {
            0 => proxy.cut(Cut::Reset),
            1 => proxy.down(Faults::cut_after(chance.next_u64() % 3_000, Cut::Close)),
            _ => proxy.up(Faults::cut_after(chance.next_u64() % 3_000, Cut::Reset)),
        }
        tokio::time::sleep(Duration::from_millis(chance.next_u64() % 20)).await;
        proxy.heal();
    }
    proxy.heal();
}

/// Takes and settles until nothing is left. A settlement that is not heard of is told again.
async fn work(worker: &RedisInstance, is_over: &AtomicBool) {
    while worker.renew().await.is_err() {}
    for takes in 0.. {
        assert!(takes < MOST_TAKES, "something is stuck");
        tokio::time::sleep(Duration::from_millis(2)).await;
        match worker.take(&at_most(7)).await {
            Err(_) => drop(worker.renew().await),
            Ok(Taken::Exhausted) => break,
            Ok(Taken::Idle { .. }) => drop(worker.renew().await),
            Ok(Taken::Jobs(leases)) => {
                let batch: Vec<_> = leases.iter().map(|lease| (lease, &Settlement::Done)).collect();
                while worker.settle(&batch).await.is_err() {}
            }
        }
    }
    is_over.store(true, Ordering::Relaxed);
}
