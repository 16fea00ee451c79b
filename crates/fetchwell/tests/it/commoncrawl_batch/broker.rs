//! At RabbitMQ: nothing counts as published before the broker has confirmed it, and a broker that has enough
//! is waited for.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::batches::BatchQueue;
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::conformance::rabbitmq::{DrainedBatch, RabbitStore};
use fetchwell_testkit::crash::OwnServer;
use fetchwell_testkit::eventually::eventually;
use fetchwell_testkit::fault_proxy::{FaultProxy, Faults};
use fetchwell_testkit::range_server::{RangeBehaviour, RangeServer};
use fetchwell_testkit::replay::count_or;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::time::sleep;

use super::archive::TestArchive;
use super::rig::{Published, Rig};

const POLL: Duration = Duration::from_millis(20);

/// A batcher of small steps that publishes at a broker.
fn at_broker(base: &str, archive: &TestArchive, url: &str, queue: &str) -> Rig {
    Rig::at(base, archive)
        .with("RABBITMQ_CONNECTION_STRING", url)
        .with("FETCHWELL_COMMONCRAWL__QUEUE", queue)
        .with("FETCHWELL_COMMONCRAWL__MAX_UNCONFIRMED", "2")
}

/// What one run publishes that nobody disturbs.
async fn undisturbed(archive: &TestArchive, arguments: &[&str]) -> Vec<Published> {
    let rig = Rig::in_folder(archive);
    rig.told(arguments).await;
    rig.published().await
}

fn published(batch: &DrainedBatch) -> Published {
    Published { id: batch.id.clone(), body: String::from_utf8(batch.body.clone()).unwrap() }
}

async fn waiting(store: &RabbitStore) -> u64 {
    store.open(Clock::system()).await.waiting().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_come_in_order_and_their_ids_are_their_contents() {
    let Some(store) = RabbitStore::if_there() else { return };
    let archive = TestArchive::of(30, 7);
    let whim = Arc::new(|_: &str, number: usize| {
        RangeBehaviour::Late(Duration::from_millis((number * 37 % 60) as u64))
    });
    let server = RangeServer::start(archive.all_files(), whim).await;
    let rig = at_broker(&server.base(), &archive, &store.url, &store.queue);
    rig.told(&["--batch-size", "3"]).await;
    let batches: Vec<Published> = store.drain().await.iter().map(published).collect();
    assert_eq!(batches, undisturbed(&archive, &["--batch-size", "3"]).await);
    for batch in &batches {
        let digest = Sha256::digest(&batch.body);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(batch.id, hex);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_again_and_again_it_loses_no_batch_and_repeats_them_under_their_ids() {
    let Some(store) = RabbitStore::if_there() else { return };
    let kills: usize = count_or("FETCHWELL_TEST_BATCHER_KILLS", 2);
    let archive = TestArchive::of(40 * kills, 7);
    let wanted = undisturbed(&archive, &["--batch-size", "3"]).await;
    let whim = Arc::new(|_: &str, number: usize| {
        RangeBehaviour::Late(Duration::from_millis((number * 37 % 30) as u64))
    });
    let server = RangeServer::start(archive.all_files(), whim).await;
    let rig = at_broker(&server.base(), &archive, &store.url, &store.queue);
    let mut by_id: BTreeMap<String, String> = BTreeMap::new();
    let collect = async |by_id: &mut BTreeMap<String, String>| {
        for batch in store.drain().await.iter().map(published) {
            let body = batch.body.clone();
            let earlier = by_id.insert(batch.id, batch.body);
            assert!(earlier.is_none_or(|earlier| earlier == body), "another body under its id");
        }
    };
    for kill in 0..kills {
        let asked_before = server.requests();
        let mut process = rig.start(&["--batch-size", "3"]);
        let until = asked_before + 20 + 7 * (kill % 5);
        eventually("enough requests", async || server.requests() >= until || !process.is_running())
            .await;
        process.kill().await;
        collect(&mut by_id).await;
        let noted = rig.checkpoint()["batches"].as_u64().unwrap_or(0);
        assert!(noted <= by_id.len() as u64, "{noted} are noted, the broker has {}", by_id.len());
    }
    rig.told(&["--batch-size", "3"]).await;
    collect(&mut by_id).await;
    let ids: BTreeSet<&String> = by_id.keys().collect();
    assert_eq!(ids, wanted.iter().map(|batch| &batch.id).collect());
}

/// Whatever the broker sends comes late. What it has and has not confirmed is not noted.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_noted_before_it_is_confirmed() {
    let Some(store) = RabbitStore::if_there() else { return };
    let archive = TestArchive::of(4, 7);
    // Nothing can be published before the broker's words are held up.
    let whim = Arc::new(|_: &str, _: usize| RangeBehaviour::Late(Duration::from_secs(3)));
    let server = RangeServer::start(archive.all_files(), whim).await;
    let (user, rest) = store.url.split_once('@').unwrap();
    let (address, vhost) = rest.split_once('/').unwrap();
    let proxy = FaultProxy::start(address.parse::<SocketAddr>().unwrap()).await.unwrap();
    let url = format!("{user}@{}/{vhost}", proxy.address());
    let rig = at_broker(&server.base(), &archive, &url, &store.queue);
    let process = rig.start(&["--batch-size", "7"]);
    eventually("the batcher to ask for a block", async || server.requests() > 0).await;
    proxy.down(Faults::delay(Duration::from_secs(5)));
    eventually("a batch at the broker", async || waiting(&store).await > 0).await;
    process.kill().await;
    assert_eq!(rig.checkpoint()["batches"].as_u64().unwrap_or(0), 0);
    proxy.heal();
    rig.told(&["--batch-size", "7"]).await;
    let ids: BTreeSet<String> = store.drain().await.into_iter().map(|batch| batch.id).collect();
    assert_eq!(ids.len(), 4, "what was not noted is published again, under its id");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_wait_than_the_bound_and_it_goes_on_when_some_are_taken() {
    let Some(store) = RabbitStore::if_there() else { return };
    let archive = TestArchive::of(40, 1);
    let server = RangeServer::sound(archive.all_files()).await;
    let rig = at_broker(&server.base(), &archive, &store.url, &store.queue)
        .with("FETCHWELL_COMMONCRAWL__MAX_QUEUE", "10");
    let mut process = rig.start(&["--batch-size", "1"]);
    let mut taken = Vec::new();
    let mut is_full = 0;
    while process.is_running() {
        let depth = waiting(&store).await;
        assert!(depth <= 10, "{depth} wait");
        if depth == 10 || !process.is_running() {
            is_full += 1;
            taken.extend(store.drain().await);
        }
        sleep(POLL).await;
    }
    process.wait(DEADLINE).await.expect_code(0);
    taken.extend(store.drain().await);
    assert_eq!(taken.len(), 40);
    assert!(is_full >= 3, "it was full {is_full} times");
}

/// A broker that is short of memory says so, and takes nothing: the batcher waits, says so, and goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_short_of_memory_is_waited_for() {
    let Some(broker) = OwnServer::start("rabbitmq").await else { return };
    let store = RabbitStore::on(broker.url().to_owned());
    let archive = TestArchive::of(40, 1);
    let server = RangeServer::sound(archive.all_files()).await;
    let rig = at_broker(&server.base(), &archive, &store.url, &store.queue);
    broker.rabbitmqctl(&["set_vm_memory_high_watermark", "0.000001"]).await;
    let mut process = rig.start(&["--batch-size", "1"]);
    eventually("the batcher to say that it waits", async || {
        process.said_so_far().contains("accepts no messages for now")
    })
    .await;
    // Longer than the broker's answers may take: that it is blocked is no reason to give up.
    sleep(Duration::from_secs(12)).await;
    assert!(process.is_running(), "{}", process.said_so_far());
    assert_eq!(rig.checkpoint()["batches"].as_u64().unwrap_or(0), 0);
    broker.rabbitmqctl(&["set_vm_memory_high_watermark", "0.9"]).await;
    let ended = process.wait(DEADLINE).await.expect_code(0);
    assert!(ended.stderr.contains("accepts messages again"), "{}", ended.stderr);
    assert_eq!(rig.checkpoint()["batches"], json!(40));
    let ids: BTreeSet<String> = store.drain().await.into_iter().map(|batch| batch.id).collect();
    assert_eq!(ids.len(), 40);
}
