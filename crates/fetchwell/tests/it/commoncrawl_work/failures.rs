//! What the archive may do, and what follows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fetchwell_testkit::crash::Program;
use fetchwell_testkit::range_server::{Manner, RangeServer};

use super::archive::TestArchive;
use super::ground::{DEADLINE, Ground, program};

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_stops_the_worker_and_loses_nothing() {
    let archive = TestArchive::of(1, 20);
    let refusing =
        RangeServer::start(archive.files.clone(), Arc::new(|_, _| Manner::Status(403))).await;
    for ground in Ground::all(&refusing.base()).await {
        ground.publish(&archive.batches(5)).await;
        let said = ground.work(&[]).process.wait(DEADLINE).await.expect_code(4).stderr;
        assert!(said.contains("403"), "{said}");
        assert_eq!(ground.known_pages(), 0);
        let server = RangeServer::sound(archive.files.clone()).await;
        ground.work_until(&["--base", &server.base()], 20).await;
        assert_eq!(ground.documents().len(), 20);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_is_busy_is_waited_for() {
    let archive = TestArchive::of(4, 10);
    let times = Arc::new(AtomicUsize::new(0));
    let whim = {
        let times = times.clone();
        move |_: &str, _: usize| match times.fetch_add(1, Ordering::Relaxed) {
            0..2 => Manner::Status(503),
            _ => Manner::Range,
        }
    };
    let server = RangeServer::start(archive.files.clone(), Arc::new(whim)).await;
    for ground in Ground::all(&server.base()).await {
        times.store(0, Ordering::Relaxed);
        ground.publish(&archive.batches(10)).await;
        ground.work_until(&[], 40).await;
        assert_eq!(ground.documents().len(), 40);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_file_in_place_of_a_range_is_not_read() {
    let archive = TestArchive::of(1, 3);
    let server =
        RangeServer::start(archive.files.clone(), Arc::new(|_, _| Manner::Status(200))).await;
    let ground = Ground::embedded(&server.base()).await;
    ground.publish(&archive.batches(3)).await;
    ground.work_until(&[], 3).await;
    assert!(ground.documents().is_empty());
    let errors = ground.errors();
    assert_eq!(errors.len(), 3);
    assert!(errors.iter().all(|line| line["kind"] == "range"), "{errors:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_told_under_the_designs_name_and_ours() {
    let archive = TestArchive::of(1, 4);
    let server = RangeServer::sound(archive.files.clone()).await;
    let ground = Ground::embedded(&server.base()).await;
    ground.publish(&archive.batches(2)).await;
    let worker = ground.work(&[]);
    ground.wait_for(4).await;
    let told = worker.until_told("2 batches", |told| told.contains("worker_batches 2\n")).await;
    for line in
        ["fetchwell_commoncrawl_records_total 4\n", "fetchwell_commoncrawl_documents_total 4\n"]
    {
        assert!(told.contains(line), "{told}");
    }
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_needed_and_missing_is_told() {
    let away =
        || program("http://127.0.0.1:10009").variable("FETCHWELL_COMMONCRAWL__OUTPUT", "out");
    let run = async |program: Program, code: i32| {
        let work = ["commoncrawl", "work", "--metrics-listen", ""];
        program.run(&work).await.expect_code(code).stderr
    };
    let url = "amqp://guest:secret-word@127.0.0.1:9/%2f";
    let said = run(away().variable("RABBITMQ_CONNECTION_STRING", url), 5).await;
    assert!(said.contains("127.0.0.1:9") && said.contains("check that the broker runs"), "{said}");
    assert!(!said.contains("secret-word"), "{said}");
    let said = run(away().variable("RABBITMQ_CONNECTION_STRING", "http://x"), 2).await;
    assert!(said.contains("RABBITMQ_CONNECTION_STRING") && said.contains("amqp://"), "{said}");
    let url = "amqp://guest:secret-word@127.0.0.1:badport/";
    let said = run(away().variable("RABBITMQ_CONNECTION_STRING", url), 2).await;
    assert!(said.contains("RABBITMQ_CONNECTION_STRING") && said.contains("port"), "{said}");
    assert!(!said.contains("secret-word"), "{said}");
    let said = run(away().flags(["--store", "redis://127.0.0.1:9"]), 5).await;
    assert!(said.contains("127.0.0.1:9"), "{said}");
}
