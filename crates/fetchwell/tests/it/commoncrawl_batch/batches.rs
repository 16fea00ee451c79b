//! What is published: in order, the same each time, and in the form that workers take.

use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::eventually::eventually_ok;
use fetchwell_testkit::range_server::{RangeBehaviour, RangeServer};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::archive::{TestArchive, page};
use super::rig::{Rig, urls};

#[tokio::test(flavor = "multi_thread")]
async fn batches_come_in_the_order_of_the_index_from_a_folder_and_from_a_server() {
    let archive = TestArchive::of(40, 7);
    let in_folder = Rig::in_folder(&archive);
    let told = in_folder.told(&["--batch-size", "3"]).await;
    assert_eq!((&told["batches"], &told["pages"]), (&json!(94), &json!(280)));
    assert_eq!(told["finished"], json!(true));
    let batches = in_folder.published().await;
    assert!(urls(&batches).is_sorted(), "in order");
    assert_eq!(urls(&batches).len(), 280);
    let (last, others) = batches.split_last().unwrap();
    assert!(others.iter().all(|batch| batch.pages().len() == 3), "full, across blocks of 7 pages");
    assert_eq!(last.pages().len(), 1);
    for batch in &batches {
        let digest = Sha256::digest(&batch.body);
        let id: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(batch.id, id);
    }

    // Blocks come back in any order, and what is published is the same.
    let whim = std::sync::Arc::new(|_: &str, number: usize| {
        RangeBehaviour::Late(std::time::Duration::from_millis((number * 37 % 60) as u64))
    });
    let server = RangeServer::start(archive.all_files(), whim).await;
    let on_server = Rig::at(&server.base(), &archive);
    on_server.told(&["--batch-size", "3"]).await;
    assert_eq!(on_server.published().await, batches);
}

/// What stands for it inside is seen by nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_no_site() {
    let archive = TestArchive::of(3, 2);
    let rig = Rig::in_folder(&archive);
    let ended = rig.batch(&["-vv"]).await.expect_code(0);
    assert!(!ended.stderr.contains(".invalid") && !ended.stdout.contains(".invalid"), "{ended:?}");
    assert!(!rig.published().await.is_empty());
    for look in [&["sites", "list"][..], &["top", "--once"]] {
        let seen = rig.program.run(look).await.expect_code(0).stdout;
        assert!(!seen.contains(".invalid") && !seen.contains("archive-folder"), "{seen}");
    }
    let listed = rig.program.run(&["--json", "sites", "list"]).await.expect_code(0).stdout;
    assert_eq!(listed, "", "a folder is read, and no site is asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_three_fields_and_its_metadata_are_strings() {
    let mut archive = TestArchive::default();
    let mut odd = page("odd", Some("eng"));
    odd.fields.push(("digest", json!("ABC")));
    odd.fields.push(("number", json!(7)));
    odd.fields.push(("status", json!(200)));
    archive.add_block(&[odd]);
    let rig = Rig::in_folder(&archive);
    rig.told(&[]).await;
    let pages = rig.published().await[0].pages();
    assert_eq!(pages.len(), 1);
    assert_eq!(pages[0]["surt_url"], json!("com,example)/odd"));
    assert_eq!(pages[0]["timestamp"], json!("20240712000102"));
    let metadata = pages[0]["metadata"].as_object().unwrap();
    assert!(metadata.values().all(serde_json::Value::is_string), "{metadata:?}");
    assert_eq!((&metadata["number"], &metadata["status"]), (&json!("7"), &json!("200")));
    assert_eq!(pages[0].as_object().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn by_file_neighbours_stand_together() {
    let archive = TestArchive::of(12, 10);
    let rig = Rig::in_folder(&archive);
    rig.told(&["--by-file", "--batch-size", "5"]).await;
    let batches = rig.published().await;
    let place = |page: &serde_json::Value| {
        let metadata = &page["metadata"];
        let offset: u64 = metadata["offset"].as_str().unwrap().parse().unwrap();
        (metadata["filename"].as_str().unwrap().to_owned(), offset)
    };
    let places: Vec<_> = batches
        .iter()
        .flat_map(|batch| batch.pages().iter().map(place).collect::<Vec<_>>())
        .collect();
    assert_eq!(places.len(), 120);
    assert!(places.is_sorted(), "by file and offset");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_kept_to_the_page_and_may_be_raised() {
    let archive = TestArchive::of(10, 10);
    let whole = Rig::in_folder(&archive);
    whole.told(&["--batch-size", "4"]).await;
    let all = urls(&whole.published().await);

    let rig = Rig::in_folder(&archive);
    let told = rig.told(&["--batch-size", "4", "--limit", "33"]).await;
    assert_eq!((&told["pages"], &told["finished"]), (&json!(33), &json!(false)));
    assert_eq!(urls(&rig.published().await), all[..33]);
    let again = rig.told(&["--batch-size", "4", "--limit", "33"]).await;
    assert_eq!(again["pages"], json!(33));
    let more = rig.told(&["--batch-size", "4"]).await;
    assert_eq!((&more["pages"], &more["finished"]), (&json!(100), &json!(true)));
    let mut published = urls(&rig.published().await);
    published.sort();
    published.dedup();
    assert_eq!(published, all, "the batch that was cut came whole");
}

/// Few pages are wanted, and they fill no batch: what is found is published, and no more is read.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_below_the_size_of_a_batch_does_not_read_the_whole_index() {
    let archive = TestArchive::of(400, 1);
    let server = RangeServer::sound(archive.all_files()).await;
    let rig = Rig::at(&server.base(), &archive);
    let told = rig.told(&["--limit", "3"]).await;
    assert_eq!((&told["pages"], &told["batches"]), (&json!(3), &json!(1)));
    assert_eq!(urls(&rig.published().await).len(), 3);
    assert!(server.requests() < 200, "{} of 400 blocks were read", server.requests());
    let told = rig.told(&["--limit", "120"]).await;
    assert_eq!(told["pages"], json!(120));
    let mut published = urls(&rig.published().await);
    published.sort();
    published.dedup();
    assert_eq!(published.len(), 120);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_counts_and_leaves_nothing() {
    let archive = TestArchive::of(3, 5);
    let rig = Rig::in_folder(&archive);
    let told = rig.told(&["--dry-run"]).await;
    assert_eq!((&told["pages"], &told["lines"]), (&json!(15), &json!(15)));
    assert!(!rig.program.file("cluster.idx.checkpoint").exists());
    assert!(rig.published().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_told_under_the_names_of_the_design() {
    let archive = TestArchive::of(400, 3);
    let server = RangeServer::sound(archive.all_files()).await;
    let rig = Rig::at(&server.base(), &archive);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let program = &rig.program;
    // It is held up by a full queue, so that there is time to ask.
    let process = program.start_with(
        &[
            "commoncrawl",
            "batch",
            "--cluster-idx",
            "cluster.idx",
            "--metrics-listen",
            &address.to_string(),
        ],
        &[
            ("FETCHWELL_COMMONCRAWL__MAX_QUEUE", "10"),
            ("FETCHWELL_COMMONCRAWL__MAX_UNCONFIRMED", "5"),
        ],
    );
    let text = eventually_ok("ten batches", async || {
        let asked = fetchwell_testkit::plain_http::ask(address, "-", "GET /metrics", &[], "").await;
        let text = asked.map_or(String::new(), |answer| String::from_utf8(answer.body).unwrap());
        if text.contains("\nbatcher_batches 10\n") { Ok(text) } else { Err(text) }
    })
    .await;
    assert!(text.contains("# TYPE fetchwell_commoncrawl_records_total counter"), "{text}");
    process.terminate().await;
    process.wait(DEADLINE).await.expect_code(0);
    assert_eq!(rig.published().await.len(), 10, "no more than the queue may hold");
}
