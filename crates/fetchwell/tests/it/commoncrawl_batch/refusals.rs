//! An archive that asks for rest gets it from all, and one that refuses ends the run.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_testkit::range_server::{RangeBehaviour, RangeServer};
use serde_json::json;

use super::archive::TestArchive;
use super::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn a_403_ends_the_run_and_the_next_goes_on() {
    let archive = TestArchive::of(40, 2);
    let whim = Arc::new(|_: &str, number: usize| match number {
        10.. => RangeBehaviour::Status(403),
        _ => RangeBehaviour::Range,
    });
    let server = RangeServer::start(archive.all_files(), whim).await;
    let rig = Rig::at(&server.base(), &archive);
    let ended = rig.batch(&["--batch-size", "2"]).await.expect_code(4);
    assert!(ended.stderr.contains("the archive answered 403"), "{}", ended.stderr);
    assert!(server.requests() < 40, "it did not go on asking");
    let told: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&told["finished"], &told["unread_blocks"]), (&json!(false), &json!(0)));

    let sound = RangeServer::sound(archive.all_files()).await;
    let mut process = rig.program.command(&[
        "commoncrawl",
        "batch",
        "--cluster-idx",
        "cluster.idx",
        "--metrics-listen",
        "",
        "--batch-size",
        "2",
        "--base",
        &sound.base(),
    ]);
    assert!(process.status().await.unwrap().success());
    assert_eq!(rig.published().await.len(), 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_503_is_a_rest_for_all() {
    let archive = TestArchive::of(60, 2);
    let whim = Arc::new(|_: &str, number: usize| match number {
        20 => RangeBehaviour::Status(503),
        // Those under way with it are answered before it, so that none of them hides the rest.
        _ => RangeBehaviour::Range,
    });
    let server = RangeServer::start(archive.all_files(), whim).await;
    let rig = Rig::at(&server.base(), &archive);
    let told = rig.told(&[]).await;
    assert_eq!((&told["pages"], &told["errors"]), (&json!(120), &json!({})));
    let asked = server.times();
    let longest = asked.windows(2).map(|two| two[1] - two[0]).max().unwrap();
    // The archive heard nothing from any of the eight for the rest that it has, a second; a little less,
    // since requests were on their way when the answer was read.
    assert!(longest >= Duration::from_millis(800), "{longest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_than_the_bound_go_at_once() {
    let archive = TestArchive::of(30, 2);
    let whim = Arc::new(|_: &str, _: usize| RangeBehaviour::Late(Duration::from_millis(200)));
    let server = RangeServer::start(archive.all_files(), whim).await;
    let rig = Rig::at(&server.base(), &archive);
    rig.told(&[]).await;
    let asked = server.times();
    // Eight at once and 200 ms each: the ninth comes when one has ended.
    let soonest = asked.windows(9).map(|nine| nine[8] - nine[0]).min().unwrap();
    assert!(soonest >= Duration::from_millis(150), "{soonest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_said() {
    let archive = TestArchive::of(1, 1);
    let rig = Rig::in_folder(&archive);
    let no_file = rig.program.run(&["commoncrawl", "batch", "--cluster-idx", "nowhere"]).await;
    assert!(no_file.expect_code(2).stderr.contains("cc-index/collections"));
    let mut no_crawl =
        rig.program.command(&["commoncrawl", "find", "example.com", "--base", "archive"]);
    no_crawl.env_remove("FETCHWELL_COMMONCRAWL__CRAWL");
    let output = no_crawl.output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "the design's crawl is not in this archive: {said}");
    assert!(said.contains(": cc-index/collections/CC-MAIN-2024-30/indexes/cluster.idx"), "{said}");
    assert!(!said.contains("http://"), "a folder has no address: {said}");
    let no_folder =
        rig.program.run(&["commoncrawl", "find", "example.com", "--base", "nowhere"]).await;
    assert!(no_folder.expect_code(2).stderr.contains("no such folder"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_at_an_address_that_is_refused_is_our_refusal() {
    let archive = TestArchive::of(3, 1);
    let server = RangeServer::sound(archive.all_files()).await;
    let rig = Rig::at(&server.base(), &archive).with("FETCHWELL_ALLOW_PRIVATE", "10.0.0.0/8");
    let ended = rig.batch(&[]).await.expect_code(3);
    assert!(ended.stderr.contains("--allow-private"), "{}", ended.stderr);
    assert_eq!(server.requests(), 0);
}
