//! What the archive may do, and what follows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::crash::Program;
use fetchwell_testkit::eventually::eventually;
use fetchwell_testkit::range_server::{RangeBehaviour, RangeServer};

use super::archive::TestArchive;
use super::ground::{Ground, program};

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_stops_the_worker_and_loses_nothing() {
    let archive = TestArchive::of(1, 20);
    let refusing =
        RangeServer::start(archive.files.clone(), Arc::new(|_, _| RangeBehaviour::Status(403)))
            .await;
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
            0..2 => RangeBehaviour::Status(503),
            _ => RangeBehaviour::Range,
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

/// Whatever a wrong base answers, the worker stops, says so, and every batch is still there for the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_base_stops_the_worker_and_acknowledges_nothing() {
    let archive = TestArchive::of(4, 5);
    let sound = RangeServer::sound(archive.files.clone()).await;
    for (manner, said) in [
        (RangeBehaviour::Status(404), "404 for crawl-data/"),
        (RangeBehaviour::Status(200), "200 for crawl-data/"),
        (RangeBehaviour::EndlessFile, "200 for crawl-data/"),
        (RangeBehaviour::Html, "HTML in place of a record of crawl-data/"),
    ] {
        let wrong = RangeServer::start(archive.files.clone(), Arc::new(move |_, _| manner)).await;
        for ground in Ground::all(&wrong.base()).await {
            ground.publish(&archive.batches(5)).await;
            // One batch at a time, so that each has to make room for the next.
            let worker = ground.work(&["--prefetch", "1"]);
            let stderr = worker.process.wait(DEADLINE).await.expect_code(4).stderr;
            assert!(stderr.contains(said) && stderr.contains("Check --base"), "{stderr}");
            assert!(stderr.contains(&wrong.base()), "{stderr}");
            assert_eq!((ground.known_pages(), ground.errors().len()), (0, 0));
            ground.work_until(&["--base", &sound.base()], 20).await;
            assert_eq!((ground.documents().len(), ground.errors().len()), (20, 0));
        }
    }
}

/// A folder is named as it was typed.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_without_the_files_stops_the_worker() {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::embedded(folder.path().to_str().unwrap()).await;
    ground.publish(&TestArchive::of(3, 5).batches(5)).await;
    let stderr = ground.work(&[]).process.wait(DEADLINE).await.expect_code(4).stderr;
    assert!(stderr.contains(folder.path().to_str().unwrap()), "{stderr}");
    assert!(!stderr.contains("folder.invalid"), "{stderr}");
    assert_eq!(ground.queue.waiting().await.unwrap(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_cannot_open_its_record_of_batches_exits() {
    let archive = TestArchive::of(1, 5);
    let server = RangeServer::sound(archive.files.clone()).await;
    let ground = Ground::embedded(&server.base()).await;
    ground.publish(&archive.batches(5)).await;
    std::fs::create_dir_all(ground.output()).unwrap();
    std::fs::write(ground.output().join("begun.db"), "not a database".repeat(1_000)).unwrap();
    let stderr = ground.work(&[]).process.wait(DEADLINE).await.expect_code(2).stderr;
    assert!(stderr.contains("begun.db"), "{stderr}");
    assert_eq!(ground.queue.waiting().await.unwrap(), 1);
}

/// One batch, however often it is looked at, says nothing of the base. It waits, and the first record decides.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_missing_files_stops_no_worker() {
    let mut archive = TestArchive::of(2, 5);
    archive.files.remove("crawl-data/0.warc.gz");
    let server = RangeServer::sound(archive.files.clone()).await;
    for ground in Ground::all(&server.base()).await {
        let batches = archive.batches(5);
        ground.publish(&batches[..1]).await;
        let mut worker = ground.work(&[]);
        let looks = |said: &str| said.matches("batch batch-0 found no record").nth(3).map(|_| ());
        worker.process.until_said("four looks", looks).await;
        assert_eq!(ground.known_pages(), 0);
        ground.publish(&batches[1..]).await;
        ground.wait_for(10).await;
        worker.stop().await;
        assert_eq!((ground.documents().len(), ground.errors().len()), (5, 5));
    }
}

/// Some files are missing in an archive that is there: those pages are errors, and the worker goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_missing_in_an_archive_costs_its_own_pages_only() {
    let mut archive = TestArchive::of(4, 5);
    archive.files.remove("crawl-data/0.warc.gz");
    let server = RangeServer::sound(archive.files.clone()).await;
    let ground = Ground::embedded(&server.base()).await;
    ground.publish(&archive.batches(5)).await;
    let said = ground.work_until(&[], 20).await;
    assert_eq!((ground.documents().len(), ground.errors().len()), (15, 5));
    assert!(said.contains("in crawl-data/0.warc.gz at 0: skipped"), "{said}");
    assert!(said.contains("and 2 more pages of batch batch-0"), "{said}");
}

/// It says that it is a part, and yet the file goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_range_that_comes_short_is_asked_for_again() {
    let archive = TestArchive::of(2, 3);
    let whim = |_: &str, number: usize| match number {
        // Together, and then the first page alone.
        0..2 => RangeBehaviour::Part(20),
        _ => RangeBehaviour::Range,
    };
    let server = RangeServer::start(archive.files.clone(), Arc::new(whim)).await;
    let ground = Ground::embedded(&server.base()).await;
    ground.publish(&archive.batches(3)[..1]).await;
    ground.work_until(&[], 3).await;
    assert_eq!((ground.documents().len(), ground.errors().len()), (3, 0));
}

/// What could not be read is read from an archive that has it, and is not published any more.
#[tokio::test(flavor = "multi_thread")]
async fn errors_are_published_again_until_they_are_read() {
    let mut archive = TestArchive::of(3, 5);
    archive.pages[0]["metadata"].as_object_mut().unwrap().remove("filename");
    let mut files = archive.files.clone();
    files.remove("crawl-data/1.warc.gz");
    let incomplete = RangeServer::sound(files).await;
    let complete = RangeServer::sound(archive.files.clone()).await;
    for ground in Ground::all(&incomplete.base()).await {
        let retry = async |arguments: &[&str]| -> serde_json::Value {
            let command = [&["commoncrawl", "retry-errors", "--json"], arguments].concat();
            let told = ground.program.run(&command).await.expect_code(0).stdout;
            serde_json::from_str(&told).unwrap()
        };
        ground.publish(&archive.batches(5)).await;
        ground.work_until(&[], 14).await;
        assert_eq!((ground.documents().len(), ground.errors().len()), (9, 6));
        let none = retry(&["--kind", "gzip"]).await;
        assert_eq!((&none["pages"], &none["without_a_place"]), (&0.into(), &1.into()));
        let told = retry(&["--kind", "unread,range", "--batch-size", "2"]).await;
        assert_eq!((&told["pages"], &told["batches"]), (&5.into(), &3.into()));
        let worker = ground.work(&["--base", &complete.base()]);
        let are_written = |told: &str| told.contains("commoncrawl_documents_total 5\n");
        worker.until_told("documents of what could not be read", are_written).await;
        let told = retry(&[]).await;
        assert_eq!((&told["pages"], &told["already_read"]), (&0.into(), &5.into()));
        worker.stop().await;
        let documents = ground.documents();
        assert_eq!(documents.len(), 14);
        let languages = documents.values().filter(|document| document["lang"] == "eng").count();
        assert_eq!(languages, 14, "what the index knew of them came along");
    }
    let nowhere = program("http://127.0.0.1:10009");
    let said = nowhere.run(&["commoncrawl", "retry-errors"]).await.expect_code(2).stderr;
    assert!(said.contains("documents: no worker has written there"), "{said}");
}

/// Permanent errors and filtered pages are published only if named.
#[tokio::test(flavor = "multi_thread")]
async fn errors_that_another_attempt_would_not_mend_are_published_only_by_name() {
    let mut archive = TestArchive::of(2, 5);
    archive.pages[0]["metadata"].as_object_mut().unwrap().remove("url");
    let mut files = archive.files.clone();
    files.remove("crawl-data/1.warc.gz");
    let incomplete = RangeServer::sound(files).await;
    let complete = RangeServer::sound(archive.files.clone()).await;
    let ground = Ground::embedded(&incomplete.base()).await;
    let retry = async |arguments: &[&str]| {
        let command = [&["commoncrawl", "retry-errors", "--json"], arguments].concat();
        let told = ground.program.run(&command).await.expect_code(0).stdout;
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        (told["pages"].as_u64().unwrap(), told["only_by_kind"].as_u64().unwrap())
    };
    ground.publish(&archive.batches(5)).await;
    ground.work_until(&[], 10).await;
    assert_eq!((ground.documents().len(), ground.errors().len()), (4, 6));
    assert_eq!(retry(&[]).await, (5, 1));
    let worker = ground.work(&["--base", &complete.base(), "--min-length", "1000000"]);
    let line = "commoncrawl_filtered_total{filter=\"too_short\"} 5\n";
    worker.until_told("pages that are left out", |told| told.contains(line)).await;
    worker.stop().await;
    assert_eq!(retry(&[]).await, (0, 6));
    assert_eq!(retry(&["--kind", "unread"]).await, (0, 0), "they could be read");
    assert_eq!(retry(&["--kind", "left_out,url"]).await, (6, 0));
    let worker = ground.work(&["--base", &complete.base()]);
    let are_written = |told: &str| told.contains("commoncrawl_documents_total 5\n");
    worker.until_told("documents of what was left out", are_written).await;
    worker.stop().await;
    assert_eq!(ground.documents().len(), 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_that_were_not_published_for_a_signal_are_told_and_so_is_a_wrong_kind() {
    let archive = TestArchive::of(2, 3);
    let mut files = archive.files.clone();
    files.remove("crawl-data/1.warc.gz");
    let server = RangeServer::sound(files).await;
    let mut ground = Ground::embedded(&server.base()).await;
    ground.publish(&archive.batches(3)).await;
    ground.work_until(&[], 6).await;
    ground.program = ground.program.variable("FETCHWELL_COMMONCRAWL__MAX_QUEUE", "1");
    let retry = ["commoncrawl", "retry-errors", "--batch-size", "1"];
    let wrong = [&retry[..], &["--kind", "unread,rnage"]].concat();
    let said = ground.program.run(&wrong).await.expect_code(2).stderr;
    assert!(said.contains("rnage") && said.contains("unread, range, truncated"), "{said}");
    assert_eq!(ground.queue.waiting().await.unwrap(), 0);
    let mut process = ground.program.start(&retry);
    let is_full = |said: &str| said.contains("the queue has 1 batch:").then_some(());
    process.until_said("a full queue", is_full).await;
    process.terminate().await;
    let told = process.wait(DEADLINE).await.expect_code(130).stdout;
    assert_eq!(told, "published 1 page in 1 batch\n");
    assert_eq!(ground.queue.waiting().await.unwrap(), 1);
}

/// At both queues: what was given up is listed with its reason, and put back.
#[tokio::test(flavor = "multi_thread")]
async fn dead_batches_are_logged_listed_and_put_back() {
    let archive = TestArchive::of(2, 2);
    let is_well = Arc::new(AtomicUsize::new(0));
    let whim = {
        let is_well = is_well.clone();
        move |path: &str, _: usize| match path.starts_with("crawl-data/0") {
            true if is_well.load(Ordering::Relaxed) == 0 => RangeBehaviour::Status(500),
            _ => RangeBehaviour::Range,
        }
    };
    let server = RangeServer::start(archive.files.clone(), Arc::new(whim)).await;
    for ground in Ground::all(&server.base()).await {
        is_well.store(0, Ordering::Relaxed);
        let dead = async |arguments: &[&str], code: i32| {
            let command = [&["commoncrawl", "dead"], arguments].concat();
            ground.program.run(&command).await.expect_code(code)
        };
        assert_eq!(dead(&["list"], 0).await.stdout, "there are no dead batches\n");
        ground.publish(&archive.batches(2)).await;
        let worker = ground.work(&[]);
        let is_dead = |told: &str| told.contains("batches_dead_total 1\n");
        worker.until_told("a batch that is given up", is_dead).await;
        let said = worker.stop().await;
        assert!(said.contains("batch batch-0 was given up: "), "{said}");
        for _ in 0..2 {
            let listed = dead(&["list", "--json"], 0).await.stdout;
            let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
            assert_eq!(listed["id"], "batch-0");
            assert!(listed["reason"].as_str().unwrap().contains("500"), "{listed}");
        }
        assert!(
            dead(&["retry", "batch-9"], 4).await.stderr.contains("no such dead batch: batch-9")
        );
        dead(&["retry"], 2).await;
        is_well.store(1, Ordering::Relaxed);
        // A name twice and a wrong one keep no batch from going back.
        let retried = dead(&["retry", "batch-9", "batch-0", "batch-0"], 4).await;
        assert_eq!(retried.stdout, "retried 1\n");
        assert!(retried.stderr.contains("no such dead batch: batch-9;"), "{}", retried.stderr);
        ground.work_until(&[], 4).await;
        assert_eq!(ground.documents().len(), 4);
        assert_eq!(dead(&["retry", "--all"], 0).await.stdout, "retried 0\n");
    }
}

/// However often a worker is killed from outside, its batches are not to blame while several are under way.
#[tokio::test(flavor = "multi_thread")]
async fn workers_that_are_killed_from_outside_cost_no_batch() {
    let archive = TestArchive::of(4, 2);
    let is_stuck = Arc::new(AtomicUsize::new(1));
    let whim = {
        let is_stuck = is_stuck.clone();
        move |_: &str, _: usize| match is_stuck.load(Ordering::Relaxed) {
            1 => RangeBehaviour::Late(Duration::from_secs(3_600)),
            _ => RangeBehaviour::Range,
        }
    };
    let server = RangeServer::start(archive.files.clone(), Arc::new(whim)).await;
    for ground in Ground::all(&server.base()).await {
        is_stuck.store(1, Ordering::Relaxed);
        ground.publish(&archive.batches(2)).await;
        for death in 1..=3 {
            let worker = ground.work(&[]);
            eventually("all batches to be begun", async || ground.marks() >= 4 * death).await;
            worker.process.kill().await;
        }
        // Each is a suspect by now, and runs alone. One more kill from outside quarantines none.
        let worker = ground.work(&[]);
        eventually("a batch that runs alone", async || ground.marks() > 12).await;
        worker.process.kill().await;
        is_stuck.store(0, Ordering::Relaxed);
        ground.work_until(&[], 8).await;
        assert_eq!((ground.documents().len(), ground.marks()), (8, 0));
        let listed = ground.program.run(&["commoncrawl", "dead", "list"]).await.expect_code(0);
        assert_eq!(listed.stdout, "there are no dead batches\n");
    }
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
