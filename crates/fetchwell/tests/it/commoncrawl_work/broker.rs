//! What RabbitMQ keeps.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fetchwell_engine::ports::batches::{Batch, BatchQueue};
use fetchwell_testkit::conformance::rabbitmq::RabbitStore;
use fetchwell_testkit::eventually::eventually;
use fetchwell_testkit::range_server::{RangeBehaviour, RangeServer};

use super::archive::TestArchive;
use super::ground::{Ground, reopened};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_batch_is_kept_beside_the_queue() {
    let Some(store) = RabbitStore::if_there() else { return };
    let archive = TestArchive::of(1, 2);
    let server = RangeServer::sound(archive.files.clone()).await;
    let ground = Ground::on(&store, &server.base()).await;
    let bodies = ["{\"no\": \"array\"}", "\u{1}", "[{\"surt_url\": 7}"];
    for (number, body) in bodies.iter().enumerate() {
        let batch = Batch { id: format!("odd-{number}"), body: Bytes::from(*body) };
        ground.publish(&[batch]).await;
    }
    ground.publish(&archive.batches(2)).await;
    ground.work_until(&[], 2).await;
    let dead = store.drain_dead().await;
    let kept: Vec<_> = dead.iter().map(|dead| String::from_utf8_lossy(&dead.body)).collect();
    assert_eq!(kept, bodies);
    assert!(dead.iter().all(|dead| dead.reason.contains("cannot read the batch")), "{dead:?}");
    assert_eq!(reopened(&store).await.unwrap().waiting().await.unwrap(), 0);
}

/// As most programs write the address of a broker: a slash, and nothing behind it.
#[tokio::test(flavor = "multi_thread")]
async fn the_default_vhost_may_be_written_as_a_slash() {
    let Some(store) = RabbitStore::if_there() else { return };
    let store = RabbitStore { url: store.url.replace("/%2f", "/"), ..store };
    let archive = TestArchive::of(1, 2);
    let server = RangeServer::sound(archive.files.clone()).await;
    let ground = Ground::on(&store, &server.base()).await;
    ground.publish(&archive.batches(2)).await;
    ground.work_until(&[], 2).await;
    assert_eq!(ground.documents().len(), 2);
}

/// A batch over which three workers died runs alone; where a fourth dies as well, it is kept beside the queue.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_kills_its_workers_is_kept_beside_the_queue() {
    let Some(store) = RabbitStore::if_there() else { return };
    let archive = TestArchive::of(3, 2);
    // Whoever asks for this file hears nothing, and is killed.
    let whim = |path: &str, _: usize| match path.starts_with("crawl-data/1") {
        true => RangeBehaviour::Late(Duration::from_secs(3_600)),
        false => RangeBehaviour::Range,
    };
    let server = RangeServer::start(archive.files.clone(), Arc::new(whim)).await;
    let ground = Ground::on(&store, &server.base()).await;
    let batches = archive.batches(2);
    ground.publish(&batches).await;
    for death in 1..=4 {
        let worker = ground.work(&[]);
        // Once the other batches are settled, the kill counts only against this one.
        eventually(&format!("worker {death} to begin the batch"), async || {
            let marks = ground.marks_of(&batches[1]);
            marks >= death && ground.known_pages() >= 4 && ground.marks() == marks
        })
        .await;
        worker.process.kill().await;
    }
    let worker = ground.work(&[]);
    let queue = reopened(&store).await.unwrap();
    let is_dead = async || queue.dead().await.unwrap() > 0;
    eventually("a batch that no fifth worker takes", is_dead).await;
    ground.wait_for(4).await;
    worker.stop().await;
    let dead = store.drain_dead().await;
    assert_eq!((dead.len(), dead[0].id.as_str()), (1, "batch-1"), "{dead:?}");
    assert_eq!((ground.documents().len(), ground.marks()), (4, 0));
}

/// A batch that fails three times by itself is given up, and kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_fails_three_times_is_kept_beside_the_queue() {
    let Some(store) = RabbitStore::if_there() else { return };
    let archive = TestArchive::of(2, 2);
    let whim = |path: &str, _: usize| match path.starts_with("crawl-data/0") {
        true => RangeBehaviour::Status(500),
        false => RangeBehaviour::Range,
    };
    let server = RangeServer::start(archive.files.clone(), Arc::new(whim)).await;
    let ground = Ground::on(&store, &server.base()).await;
    ground.publish(&archive.batches(2)).await;
    let worker = ground.work(&[]);
    ground.wait_for(2).await;
    let queue = reopened(&store).await.unwrap();
    eventually("a batch that is given up", async || queue.dead().await.unwrap() > 0).await;
    worker.stop().await;
    let dead = store.drain_dead().await;
    assert_eq!((dead.len(), dead[0].id.as_str()), (1, "batch-0"), "{dead:?}");
    assert!(dead[0].reason.contains("500"), "{dead:?}");
    assert_eq!(server.requests(), 1 + 3);
}
