//! Processes that die, and servers that do.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::finish::{Settle, Settled, Settlement};
use fetchwell_engine::ports::queue::{Ledger, Queue};
use fetchwell_engine::ports::rounds::Rounds;
use fetchwell_engine::ports::source::{Renewal, Source};
use fetchwell_testkit::conformance::servers::redis_connection;
use fetchwell_testkit::crash::OwnServer;
use fetchwell_testkit::eventually::{eventually, eventually_ok};
use fetchwell_testkit::fault_proxy::{FaultProxy, Faults};
use redis::AsyncCommands;

use super::rig::{LEASE_TTL, LIST, Rig, at_most, open, server_clock, settle, take, take_all, urls};

#[tokio::test]
async fn what_was_moved_by_a_process_that_died_before_it_filed_is_filed_by_another() {
    let Some(rig) = Rig::if_there().await else { return };
    let (host, database) = rig.address.trim_start_matches("redis://").split_once('/').unwrap();
    let proxy = FaultProxy::start(host.parse().unwrap()).await.unwrap();
    let through = format!("redis://{}/{database}", proxy.address());
    let clock = fetchwell_stores::StoreClock::ByHand(rig.clock.clock());
    let doomed = Arc::new(open(&through, clock).await.instance());
    doomed.renew().await.unwrap();
    rig.push(&["http://a.test/1", "http://b.test/", "http://a.test/2"]).await;
    // The server's answer to the move never comes.
    proxy.down(Faults::stall());
    let take_it = doomed.clone();
    let taking = tokio::spawn(async move { take_it.take(&at_most(10)).await });
    let count = format!("ZCARD {LIST}:unfiled");
    eventually("the move", async || rig.ask::<usize>(&count).await == 3).await;
    taking.abort();
    assert_eq!(rig.ledger().await, Ledger { accepted: 3, queued: 3, ..Ledger::default() });
    assert_eq!(rig.queue.waiting().await.unwrap(), 3);
    let worker = rig.worker().await;
    let mut leases = take(&worker, 10).await;
    leases.sort_by_key(|lease| lease.id);
    assert_eq!(urls(&leases), ["http://a.test/1", "http://b.test/", "http://a.test/2"]);
    rig.ledger().await;
}

#[tokio::test]
async fn a_dead_instance_loses_its_leases_and_one_that_leaves_hands_them_on_at_once() {
    let Some(rig) = Rig::if_there().await else { return };
    rig.push(&["http://a.test/1", "http://a.test/2"]).await;
    let dead = rig.worker().await;
    let leaving = rig.worker().await;
    let lost = take(&dead, 1).await;
    let started: Vec<_> = take(&leaving, 1).await.iter().map(|lease| lease.id).collect();
    leaving.started(&started).await.unwrap();
    leaving.leave().await.unwrap();
    let worker = rig.worker().await;
    let handed_on = take(&worker, 10).await;
    assert_eq!((urls(&handed_on), handed_on[0].interruptions), (vec!["http://a.test/2"], 0));
    dead.started(&[lost[0].id]).await.unwrap();
    rig.clock.advance(LEASE_TTL / 2);
    worker.renew().await.unwrap();
    rig.clock.advance(LEASE_TTL / 2);
    worker.renew().await.unwrap();
    let rescued = take(&worker, 10).await;
    assert_eq!((urls(&rescued), rescued[0].interruptions), (urls(&lost), 1));
    let late = dead.settle(&[(&lost[0], &Settlement::Done)]).await.unwrap();
    assert_eq!(late, [Settled::Stale]);
    assert_eq!(dead.renew().await.unwrap(), Renewal::Lost);
}

#[tokio::test]
async fn one_that_left_starts_nothing() {
    let Some(rig) = Rig::if_there().await else { return };
    rig.push(&["http://a.test/1", "http://a.test/2"]).await;
    let leaving = rig.worker().await;
    let other = rig.worker().await;
    let leases = take(&leaving, 1).await;
    leaving.leave().await.unwrap();
    leaving.started(&[leases[0].id, leases[0].id + 100]).await.unwrap();
    assert_eq!(take(&other, 2).await.len(), 2);
    rig.clock.advance(LEASE_TTL);
    let again = take(&rig.worker().await, 2).await;
    assert!(again.iter().all(|lease| lease.interruptions == 0), "{again:?}");
}

#[tokio::test]
async fn many_leases_of_the_dead_are_rescued_in_one_renewal() {
    let Some(rig) = Rig::if_there().await else { return };
    let many: Vec<String> = (0..2_200).map(|n| format!("http://s{}.test/{n}", n % 7)).collect();
    rig.push(&many.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let dead = rig.worker().await;
    assert_eq!(take_all(&dead).await.len(), many.len());
    rig.clock.advance(LEASE_TTL);
    rig.worker().await;
    let ledger = rig.ledger().await;
    assert_eq!((ledger.queued, ledger.in_flight), (2_200, 0));
}

#[tokio::test]
async fn a_server_that_is_killed_forgets_nothing_and_things_go_on_by_themselves() {
    let Some(server) = OwnServer::start("redis").await else { return };
    let queue = open(server.url(), server_clock()).await;
    let worker = queue.instance();
    worker.renew().await.unwrap();
    let push = ["http://a.test/1", "http://a.test/2", "http://b.test/"];
    redis_connection(server.url()).await.rpush::<_, _, ()>(LIST, &push[..]).await.unwrap();
    let leases = take(&worker, 2).await;
    settle(&worker, &leases[0], Settlement::Done).await;
    server.crash().await;
    assert!(worker.take(&at_most(1)).await.is_err());
    server.restart().await;
    // The server reads its log first.
    eventually_ok("the server", async || worker.renew().await).await;
    assert_eq!(worker.renew().await.unwrap(), Renewal::Held { ttl: LEASE_TTL });
    settle(&worker, &leases[1], Settlement::Done).await;
    for lease in take(&worker, 10).await {
        settle(&worker, &lease, Settlement::Done).await;
    }
    let ledger = queue.audit().await.unwrap().unwrap();
    assert_eq!(ledger, Ledger { accepted: 3, done: 3, ..Ledger::default() });
}

#[tokio::test]
async fn an_instance_whose_server_lost_everything_is_told() {
    let Some(rig) = Rig::if_there().await else { return };
    rig.push(&["http://a.test/"]).await;
    let worker = rig.worker().await;
    let lost = take(&worker, 1).await;
    rig.ask::<()>("FLUSHDB").await;
    let stale = worker.settle(&[(&lost[0], &Settlement::Done)]).await.unwrap();
    assert_eq!(stale, [Settled::Stale]);
    // Another comes first, a moment later, and would have the same epoch if they were only counted.
    rig.clock.advance(Duration::from_micros(1));
    let other = rig.worker().await;
    rig.push(&["http://b.test/"]).await;
    let theirs = take(&other, 1).await;
    assert_eq!(theirs[0].id, lost[0].id, "ids are counted anew");
    let stale = worker.settle(&[(&lost[0], &Settlement::Done)]).await.unwrap();
    assert_eq!(stale, [Settled::Stale]);
    assert_eq!(worker.renew().await.unwrap(), Renewal::Lost);
    settle(&other, &theirs[0], Settlement::Done).await;
}
