//! What a batcher holds in memory, whatever the index is made of.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::range_server::{RangeBehaviour, RangeServer};
use serde_json::{Value, json};

use super::archive::{TestArchive, gzip};
use super::rig::Rig;
use crate::gzip_bomb::gzip_bomb;

/// The largest block, as it is when inflated.
const LARGEST_BLOCK_BYTES: usize = 16 << 20;
const BLOCKS: usize = 20;
/// What may wait (32 MiB), a block and its pages for each of two that are read at once, the window that is
/// published, the pages that fill no batch yet (up to 4,999, with their copies for the checkpoint), and what the
/// program has besides. Without a bound the pages alone would have 320 MiB.
const MOST_BYTES: u64 = 288 << 20;
/// The largest block, and a little.
const MOST_GROWTH_OF_BROKEN_BYTES: u64 = (LARGEST_BLOCK_BYTES as u64) + (32 << 20);
const POLL: Duration = Duration::from_millis(5);

/// All blocks but the first come at once, each as large as one may be and wanted to its last line; the first
/// comes when they are all there.
#[tokio::test(flavor = "multi_thread")]
async fn large_blocks_that_come_before_their_turn_are_put_off() {
    let mut archive = TestArchive::default();
    let (block, lines) = largest_block();
    for number in 0..BLOCKS {
        archive.add_raw_block(&format!("com,example)/{number:02} 20240712000102"), &block);
    }
    let whim = Arc::new(|_: &str, number: usize| match number {
        0 => RangeBehaviour::Late(Duration::from_secs(5)),
        _ => RangeBehaviour::Range,
    });
    let server = RangeServer::start(archive.all_files(), whim).await;
    let rig = Rig::at(&server.base(), &archive);
    let process = rig.start(&["--batch-size", "5000"]);
    let (peak_bytes, ended) = peak_of(process).await;
    let told: Value = serde_json::from_str(&ended.expect_code(0).stdout).unwrap();
    assert_eq!((&told["pages"], &told["errors"]), (&json!(lines * BLOCKS), &json!({})));
    assert!(peak_bytes <= MOST_BYTES, "{} MiB", peak_bytes >> 20);
}

/// Blocks of nothing but short lines that are none, and some that would have 1 GiB: beside what a batcher takes
/// that reads one small block.
#[tokio::test(flavor = "multi_thread")]
async fn garbage_takes_no_more_memory_than_the_largest_block_and_a_little() {
    let mut archive = TestArchive::default();
    let garbage = gzip(&b"x\n".repeat(LARGEST_BLOCK_BYTES / 2));
    for number in 0..2 {
        archive.add_raw_block(&format!("com,example)/{number} 20240712000102"), &garbage);
    }
    for number in 2..4 {
        let block = gzip_bomb(1_024);
        archive.add_raw_block(&format!("com,example)/{number} 20240712000102"), &block);
    }
    let (told, peak_bytes) = unfiltered(&archive, 4).await;
    let lines = 2 * LARGEST_BLOCK_BYTES / 2;
    assert_eq!(told["errors"], json!({"cdx_line": lines, "gzip": 2}));
    let mut small = TestArchive::default();
    small.add_raw_block("com,example)/0 20240712000102", &gzip(b"x\n"));
    let (_, least_bytes) = unfiltered(&small, 0).await;
    let grown_bytes = peak_bytes.saturating_sub(least_bytes);
    assert!(grown_bytes <= MOST_GROWTH_OF_BROKEN_BYTES, "{} MiB", grown_bytes >> 20);
}

/// What a batcher that wants all pages says when it ends with this code, and the most memory that it had.
async fn unfiltered(archive: &TestArchive, code: i32) -> (Value, u64) {
    let rig = Rig::in_folder(archive);
    let (peak_bytes, ended) = peak_of(rig.start(&["--lang", "any", "--status", "any"])).await;
    (serde_json::from_str(&ended.expect_code(code).stdout).unwrap(), peak_bytes)
}

async fn peak_of(
    mut process: fetchwell_testkit::crash::Process,
) -> (u64, fetchwell_testkit::crash::ProcessEnd) {
    let mut peak_bytes = 0;
    while process.is_running() {
        peak_bytes = process.peak_bytes().unwrap_or(peak_bytes);
        tokio::time::sleep(POLL).await;
    }
    (peak_bytes, process.wait(DEADLINE).await)
}

/// A member that inflates to just what is allowed, and how many lines it has.
fn largest_block() -> (Vec<u8>, usize) {
    let line = |number: usize| {
        let url = format!("https://example.com/{number:06}/{}", "x".repeat(1_000));
        let fields = json!({"url": url, "status": "200", "languages": "eng", "mime": "text/html"});
        format!("com,example)/{number:06} 20240712000102 {fields}\n")
    };
    let lines = LARGEST_BLOCK_BYTES / line(0).len();
    (gzip((0..lines).map(line).collect::<String>().as_bytes()), lines)
}
