//! A batcher that is killed at any instant goes on where it stopped: no batch is lost, and one that comes
//! again is known by its id.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::eventually::eventually;
use fetchwell_testkit::range_server::{RangeBehaviour, RangeServer};
use serde_json::json;

use super::archive::TestArchive;
use super::rig::Rig;

fn number_from_environment(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

/// So that it can die between any two of them.
fn in_small_steps(rig: Rig) -> Rig {
    rig.with("FETCHWELL_COMMONCRAWL__BY_FILE_PAGES", "50")
        .with("FETCHWELL_COMMONCRAWL__MAX_UNCONFIRMED", "2")
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_again_and_again_it_publishes_what_one_run_would() {
    for arguments in [&["--batch-size", "3"][..], &["--batch-size", "3", "--by-file"]] {
        let kills = number_from_environment("FETCHWELL_TEST_BATCHER_KILLS", 5);
        let archive = TestArchive::of(60 * kills, 7);
        let whole = in_small_steps(Rig::in_folder(&archive));
        whole.told(arguments).await;
        let wanted = whole.published().await;

        let whim = Arc::new(|_: &str, number: usize| {
            RangeBehaviour::Late(Duration::from_millis((number * 37 % 30) as u64))
        });
        let server = RangeServer::start(archive.all_files(), whim).await;
        let rig = in_small_steps(Rig::at(&server.base(), &archive));
        let mut killed_at_work = 0;
        for kill in 0..kills {
            let asked_before = server.requests();
            let mut process = rig.start(arguments);
            // It dies at another point of its work each time, by how much it has asked for.
            let until = asked_before + 20 + 7 * (kill % 5);
            eventually("enough requests", async || {
                server.requests() >= until || !process.is_running()
            })
            .await;
            killed_at_work += usize::from(process.is_running());
            process.kill().await;
        }
        assert!(killed_at_work > kills / 2, "it was over before it could be killed");
        let told = rig.told(arguments).await;
        assert_eq!((&told["finished"], &told["errors"]), (&json!(true), &json!({})));
        assert_eq!(rig.published().await, wanted, "in the same order, each id once");
        assert_eq!(told["batches"], json!(wanted.len()), "each is counted once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_stops_it_gently_and_a_finished_one_has_nothing_left_to_do() {
    let archive = TestArchive::of(200, 3);
    let whim = Arc::new(|_: &str, _: usize| RangeBehaviour::Late(Duration::from_millis(30)));
    let server = RangeServer::start(archive.all_files(), whim).await;
    let rig = Rig::at(&server.base(), &archive);
    let process = rig.start(&["--batch-size", "3"]);
    eventually("40 requests", async || server.requests() >= 40).await;
    process.terminate().await;
    let stopped = process.wait(DEADLINE).await.expect_code(0);
    assert!(stopped.stderr.contains("run the same command to continue"), "{}", stopped.stderr);
    assert_eq!(rig.checkpoint()["is_finished"], json!(false));
    rig.told(&["--batch-size", "3"]).await;
    assert_eq!(rig.published().await.len(), 200);
    let requests = server.requests();
    rig.told(&["--batch-size", "3"]).await;
    assert_eq!(server.requests(), requests, "nothing was asked for again");
}

/// As the version before this one made them: batches end with their block.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_of_an_earlier_version_is_finished_as_that_version_would() {
    let archive = TestArchive::of(6, 7);
    let rig = Rig::in_folder(&archive);
    let line_ends: Vec<usize> =
        archive.index.match_indices('\n').map(|(newline, _)| newline + 1).collect();
    // Two blocks were published, in batches of 3, 3 and 1 pages.
    let earlier = json!({
        "selection": {
            "crawl": super::archive::CRAWL, "lang": "eng", "primary": false, "status": "200",
            "mime": null, "url-prefix": null, "min-length": null, "max-length": null,
            "batch-size": 3, "by-file": null,
        },
        "position": {"index_offset": line_ends[1], "batches": 0, "digest": ""},
        "batches": 6, "pages": 14,
        "counts": {
            "blocks": 2, "bytes": 99, "lines": 14, "wanted": 14, "filtered": {}, "errors": {},
        },
        "unread_blocks": 0, "unread": [], "cut": null, "is_finished": false,
    });
    std::fs::write(rig.program.file("cluster.idx.checkpoint"), earlier.to_string()).unwrap();
    let told = rig.told(&["--batch-size", "3"]).await;
    assert_eq!((&told["batches"], &told["pages"]), (&json!(18), &json!(42)));
    assert_eq!(told["finished"], json!(true));
    let published = rig.published().await;
    let sizes: Vec<usize> = published.iter().map(|batch| batch.pages().len()).collect();
    assert_eq!(sizes, [3, 3, 1].repeat(4), "as in the blocks before");
    // Begun anew, they are full.
    let anew = Rig::in_folder(&archive);
    anew.told(&["--batch-size", "3"]).await;
    let sizes: Vec<usize> =
        anew.published().await.iter().map(|batch| batch.pages().len()).collect();
    assert_eq!(sizes, [3; 14]);
}
