//! Whatever is wrong with an archive: it is counted, and the rest goes on.

use std::sync::Arc;

use fetchwell_testkit::range_server::{RangeBehaviour, RangeServer};
use serde_json::json;

use super::archive::{TestArchive, gzip, page};
use super::rig::{Rig, urls};
use crate::gzip_bomb::gzip_bomb;

/// A good block, a bad one, a good one.
fn around(bad: impl FnOnce(&mut TestArchive)) -> TestArchive {
    let mut archive = TestArchive::default();
    archive.add_block(&[page("a", Some("eng"))]);
    bad(&mut archive);
    archive.add_block(&[page("z", Some("eng"))]);
    archive
}

const KEY: &str = "com,example)/m 20240712000102";

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_block_is_counted_and_noted_and_the_others_are_published() {
    let good = gzip(b"com,example)/m 20240712000102 {\"status\":\"200\",\"languages\":\"eng\"}\n");
    let cut = good[..good.len() - 9].to_vec();
    let html = b"<html>Slow down, please.</html>".to_vec();
    let mut line_past_end = String::new();
    for (bad, kind) in [(cut, "gzip"), (html, "gzip"), (gzip_bomb(1_024), "gzip")] {
        let archive = around(|archive| archive.add_raw_block(KEY, &bad));
        expect_one_unread(&archive, kind).await;
    }
    line_past_end.push_str(&format!("{KEY}\tcdx-00000.gz\t99999999\t100\t2\n"));
    for (line, kind) in [
        (line_past_end, "status"),
        (format!("{KEY}\tcdx-77777.gz\t0\t100\t2\n"), "status"),
        (format!("{KEY}\tcdx-00000.gz\t0\t9999\t2\n"), "range"),
        (format!("{KEY}\tcdx-00000.gz\t3\t20\t2\n"), "gzip"),
    ] {
        let archive = around(|archive| archive.index.push_str(&line));
        expect_one_unread(&archive, kind).await;
    }
}

async fn expect_one_unread(archive: &TestArchive, kind: &str) {
    let rig = Rig::in_folder(archive);
    let ended = rig.batch(&[]).await.expect_code(4);
    let told: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(told["errors"], json!({kind: 1}), "{}", ended.stderr);
    assert_eq!(told["unread_blocks"], json!(1));
    assert_eq!(urls(&rig.published().await).len(), 2);
    let checkpoint = rig.checkpoint();
    let noted = checkpoint["unread"][0]["line"].as_str().unwrap();
    assert!(archive.index.contains(noted), "{noted} can be read again as it is");
    assert_eq!(checkpoint["is_finished"], json!(true));
    rig.batch(&[]).await.expect_code(4); // It is not forgotten by the next run.
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_lines_are_counted_with_their_places() {
    let archive = around(|archive| {
        archive.index.push_str("garbage\n\u{0}\u{1}\n");
        archive.index.push_str(&format!("{}\n", "x".repeat(200_000)));
        let lines = "no json\ncom,example)/m 20240712000102 {\"status\":\"200\",\"languages\":\"eng\",\"a\": \n\
                     com,example)/m 20240712000102 {not json\n\
                     com,example)/m 20240712000102 {\"url\": \"https://exam\n\
                     com,example)/n 20240712000102 {\"status\":\"200\",\"languages\":\"eng\"}\n\
                     com,example)/o 20240712000102 {\"status\":\"404\",\"languages\":\"eng\"}\n";
        archive.add_raw_block(KEY, &gzip(lines.as_bytes()));
    });
    let rig = Rig::in_folder(&archive);
    let ended = rig.batch(&[]).await.expect_code(0);
    let told: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(told["errors"], json!({"cdx_line": 4, "index_line": 3}), "{}", ended.stderr);
    assert_eq!((&told["pages"], &told["filtered"]), (&json!(3), &json!({"status": 1})));
    for line in ["line 1", "line 2", "line 3"] {
        let has_place = |said: &str| said.contains("cdx-00000.gz at") && said.contains(line);
        assert!(ended.stderr.lines().any(has_place), "{line}: {}", ended.stderr);
    }
    assert!(ended.stderr.contains("cluster.idx at byte"), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_sends_something_else_costs_its_blocks_and_no_more() {
    for (manner, kind) in [(0, "range"), (1, "status"), (2, "status")] {
        let archive = TestArchive::of(12, 2);
        let whim = Arc::new(move |path: &str, _: usize| match manner {
            _ if !path.contains("cdx-00001") => RangeBehaviour::Range,
            0 => RangeBehaviour::EndlessFile,
            1 => RangeBehaviour::Status(404),
            _ => RangeBehaviour::Status(500),
        });
        let server = RangeServer::start(archive.all_files(), whim).await;
        let rig = Rig::at(&server.base(), &archive);
        let ended = rig.batch(&[]).await.expect_code(4);
        let told: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(told["errors"], json!({kind: 4}), "{}", ended.stderr);
        assert_eq!(urls(&rig.published().await).len(), 16);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_breaks_off_is_asked_for_again() {
    let archive = TestArchive::of(6, 2);
    let whim = Arc::new(|_: &str, number: usize| match number {
        2 => RangeBehaviour::Short(10),
        _ => RangeBehaviour::Range,
    });
    let server = RangeServer::start(archive.all_files(), whim).await;
    let rig = Rig::at(&server.base(), &archive);
    let told = rig.told(&[]).await;
    assert_eq!((&told["pages"], &told["errors"]), (&json!(12), &json!({})));
    assert!(server.requests() > 6);
}
