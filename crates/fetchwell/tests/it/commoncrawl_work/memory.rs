//! What a worker holds in memory, whatever the archive is made of, and however long it works.

use std::time::Duration;

use fetchwell_testkit::range_server::RangeServer;
use tokio::time::sleep;

use super::archive::{TestArchive, gzip, html, record};
use super::ground::Ground;
use crate::gzip_bomb::gzip_bomb;

/// The largest record, when inflated: small, so that a test can have many of that size.
const LARGEST_RECORD_BYTES: usize = 512 << 10;
const RECORDS: usize = 255;
/// Of the largest records two may be in hand, and eight may be taken apart at once, each into about eight
/// times its size. The rest is slack: release builds were seen to grow by up to 81 MiB, also with twice as many
/// records.
const MOST_GROWTH_BYTES: u64 = ((2 + 8 * 8) * LARGEST_RECORD_BYTES + (64 << 20)) as u64;
/// What the settings allow the largest record, and a little.
const MOST_GROWTH_OF_BROKEN_BYTES: u64 = (16 << 20) + (32 << 20);
/// By how much the second half of a long run may have more than the first.
const FLAT_WITHIN_BYTES: u64 = 16 << 20;

/// Batches of pages whose texts are as large as one may be, near each other so that they come together, and
/// between them members that inflate to 1 GiB. Without a bound the texts alone would take 110 MiB, and the lines that
/// are made of them as much again.
#[tokio::test(flavor = "multi_thread")]
async fn the_largest_pages_and_bombs_are_read_within_a_bound() {
    let large = record(0, &largest_page());
    let bomb = gzip_bomb(1_024);
    let mut archive = TestArchive::default();
    for number in 0..RECORDS {
        let member = if number % 17 == 16 { &bomb } else { &large };
        archive.add("crawl-data/0.warc.gz", member);
    }
    let server = RangeServer::sound(archive.files.clone()).await;
    let mut ground = Ground::embedded(&server.base()).await;
    let largest = LARGEST_RECORD_BYTES.to_string();
    ground.program = ground.program.variable("FETCHWELL_COMMONCRAWL__MAX_RECORD", &largest);
    let (ground, grown_bytes) = growth(ground, &archive, 17).await;
    let errors = ground.errors();
    assert_eq!((ground.documents().len(), errors.len()), (RECORDS - RECORDS / 17, RECORDS / 17));
    assert!(errors.iter().all(|error| error["kind"] == "too_large"), "{errors:?}");
    println!("{RECORDS} records: grown by {} MiB", grown_bytes >> 20);
    assert!(grown_bytes <= MOST_GROWTH_BYTES, "{} MiB", grown_bytes >> 20);
}

/// Records and bodies that inflate to 1 GiB, and whatever else may be wrong with one, in eight batches that go side
/// by side; read with the settings that everybody has.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_broken_takes_no_more_than_the_largest_record_and_a_little() {
    let good = record(0, &html(0));
    let bomb = gzip_bomb(1_024);
    let wrapped_bomb = with_compressed_body(&bomb);
    // It says that it has just what is allowed, and has more.
    let boast = [&bomb[..64 << 10], &(16u32 << 20).to_le_bytes()].concat();
    let mut archive = TestArchive::default();
    for number in 0..8 {
        let file = format!("crawl-data/{number}.warc.gz");
        // Each of them once: as they are stored, they take 17 MiB in all eight batches.
        archive.add(&file, &bomb);
        archive.add(&file, &wrapped_bomb);
        archive.add(&file, &boast);
        archive.add(&file, &good[..good.len() / 2]);
        archive.add(&file, b"<html>An error page in place of a record</html>");
        archive.add(&file, &gzip(b"WARC/1.0\r\nContent-Length: 99999999999999\r\n\r\n"));
        archive.add(&file, &good);
    }
    let server = RangeServer::sound(archive.files.clone()).await;
    let ground = Ground::embedded(&server.base()).await;
    let (ground, grown_bytes) = growth(ground, &archive, 7).await;
    assert_eq!((ground.documents().len(), ground.errors().len()), (8, 48));
    let large = ground.errors().iter().filter(|error| error["kind"] == "too_large").count();
    assert_eq!(large, 24);
    println!("grown by {} MiB", grown_bytes >> 20);
    assert!(grown_bytes <= MOST_GROWTH_OF_BROKEN_BYTES, "{} MiB", grown_bytes >> 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_does_not_grow_with_what_was_done() {
    let archive = TestArchive::of(16, 500);
    let server = RangeServer::sound(archive.files.clone()).await;
    let ground = Ground::embedded(&server.base()).await;
    let batches = archive.batches(50);
    let (first, second) = batches.split_at(batches.len() / 2);
    let worker = ground.work(&[]);
    ground.publish(first).await;
    ground.wait_for(archive.pages.len() / 2).await;
    sleep(Duration::from_millis(100)).await;
    let half_bytes = worker.process.peak_bytes().unwrap();
    ground.publish(second).await;
    ground.wait_for(archive.pages.len()).await;
    let whole_bytes = worker.process.peak_bytes().unwrap();
    worker.stop().await;
    let grown_bytes = whole_bytes.saturating_sub(half_bytes);
    assert!(grown_bytes <= FLAT_WITHIN_BYTES, "{half_bytes} bytes, then {whole_bytes}");
}

/// Works on all pages of an archive, and by how much the worker's memory grew over that.
async fn growth(ground: Ground, archive: &TestArchive, batch_size: usize) -> (Ground, u64) {
    let worker = ground.work(&[]);
    worker.until_up().await;
    let before_bytes = worker.process.peak_bytes().unwrap();
    ground.publish(&archive.batches(batch_size)).await;
    ground.wait_for(archive.pages.len()).await;
    let peak_bytes = worker.process.peak_bytes().unwrap();
    worker.stop().await;
    (ground, peak_bytes - before_bytes)
}

/// A page of one long text, a little smaller than a record may be.
fn largest_page() -> Vec<u8> {
    let sentence = "This is a sentence of many that say the same, and there is no end of them. ";
    let paragraph = format!("<p>{}</p>\n", sentence.repeat(20));
    let body = paragraph.repeat((LARGEST_RECORD_BYTES - (32 << 10)) / paragraph.len());
    [&html(0)[..], body.as_bytes()].concat()
}

/// A capture, as a gzip member, of an answer that came compressed.
fn with_compressed_body(body: &[u8]) -> Vec<u8> {
    let http = [b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", body].concat();
    let head = "WARC/1.0\r\nWARC-Type: response\r\nContent-Length";
    let head = format!("{head}: {}\r\n\r\n", http.len());
    gzip(&[head.as_bytes(), &http, b"\r\n\r\n"].concat())
}
