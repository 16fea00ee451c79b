//! Runs that are killed, stopped, too long, or at one time.

use std::process::Stdio;
use std::time::Duration;

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::DEADLINE;
use tokio::time::timeout;

use super::door::Door;

const SITES: usize = 10;
const LINKS: usize = 200;
const IN_FLIGHT: usize = 8;

fn sites() -> Vec<SiteScript> {
    let slow = Duration::from_millis(100);
    (0..SITES).map(|n| SiteScript::new(&format!("s{n}.test")).slow(slow)).collect()
}

fn links(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("http://s{}.test/page/{n}", n % SITES)).collect()
}

async fn add(door: &Door, links: &[String]) {
    door.add("news", &links.iter().map(String::as_str).collect::<Vec<_>>()).await;
}

/// All are there, and the queue is empty.
async fn assert_all_done(door: &Door, links: &[String]) {
    let counts = door.counts().await;
    assert_eq!(counts.articles, links.len() as u64);
    assert_eq!(counts.attempted, links.len() as u64);
    assert_eq!(counts.by_category["news"], links.len() as u64);
    let ledger = door.ledger().await;
    assert_eq!(ledger.done + ledger.skipped, ledger.accepted, "{ledger:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runs_at_once_fetch_no_link_twice() {
    for door in Door::on_each_store(&sites()).await {
        let door = door
            // Neither takes more than it fetches at once, so that there is work for both.
            .variable("FETCHWELL_WINDOW", &IN_FLIGHT.to_string())
            // No run is killed in this test, and a short lease would end whenever the disk is slow.
            .variable("FETCHWELL_LEASE__TTL", "20s");
        let links = links(LINKS);
        add(&door, &links).await;
        let runs = [door.start(), door.start()];
        for run in runs {
            let said = run.wait(DEADLINE).await.expect_code(0).stderr;
            assert!(said.contains("Fetching"), "the other run did it all: {said}");
        }
        let asked = door.asked();
        assert_eq!(asked.len(), LINKS);
        let twice: Vec<_> = asked.iter().filter(|(_, times)| **times > 1).collect();
        assert!(twice.is_empty(), "{twice:?}");
        assert_all_done(&door, &links).await;
    }
}

/// `articles run 2>&1 | head -3`: nobody reads the log any more, and all links are done all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_costs_no_article() {
    for door in Door::on_each_store(&sites()).await {
        let links = links(20);
        add(&door, &links).await;
        let mut command = door.scene.program.command(&["articles", "run"]);
        let mut run = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        drop(run.stderr.take());
        let ended = timeout(DEADLINE, run.wait()).await.unwrap().unwrap();
        assert_eq!(ended.code(), Some(0));
        assert_all_done(&door, &links).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_is_ended_by_the_next() {
    for door in Door::on_each_store(&sites()).await {
        let door = door.variable("FETCHWELL_MAX_IN_FLIGHT", &IN_FLIGHT.to_string());
        let links = links(LINKS);
        add(&door, &links).await;
        let mut killed = 0;
        for pages in [40, 100] {
            let run = door.start();
            door.scene.origin.until_page_hits(pages).await;
            run.kill().await;
            killed += 1;
        }
        let left = LINKS as u64 - door.counts().await.articles;
        assert!(left > 0, "it was killed too late");
        door.run().await;
        assert_all_done(&door, &links).await;
        let repeated = door.scene.origin.repeated_pages();
        assert!(repeated <= killed * IN_FLIGHT, "{repeated} were fetched again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_stopped_hands_back_what_it_holds() {
    for door in Door::on_each_store(&sites()).await {
        // Leases do not expire during the test: the second run gets only what the first handed back.
        let door = door.variable("FETCHWELL_LEASE__TTL", "1h");
        let links = links(LINKS);
        add(&door, &links).await;
        let run = door.start();
        door.scene.origin.until_page_hits(40).await;
        run.terminate().await;
        let ended = run.wait(DEADLINE).await.expect_code(0);
        assert!(ended.stderr.contains("left for the next run"), "{}", ended.stderr);
        let ledger = door.ledger().await;
        assert_eq!(ledger.in_flight, 0, "{ledger:?}");
        door.run().await;
        assert_all_done(&door, &links).await;
        assert_eq!(door.scene.origin.repeated_pages(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_waits_only_so_long_and_what_is_left_stays() {
    let slow = SiteScript::new("slow.test").crawl_delay(Duration::from_secs(3_600));
    for door in Door::on_each_store(&[slow, SiteScript::new("fast.test")]).await {
        let door = door.variable("FETCHWELL_ARTICLES__MAX_WAIT", "6s");
        let slow = ["http://slow.test/1", "http://slow.test/2", "http://slow.test/3"];
        door.add("news", &slow).await;
        door.add("news", &["http://fast.test/1", "http://fast.test/2"]).await;
        let said = door.run().await.stderr;
        assert!(said.contains("left for the next run"), "{said}");
        // One of the slow ones may have followed its robots.txt.
        let counts = door.counts().await;
        assert!((2..=3).contains(&counts.articles), "{counts:?}");
        assert_eq!((counts.attempted, &counts.failures), (counts.articles, &[].into()));
        assert_eq!(door.asked().into_keys().filter(|url| url.contains("fast")).count(), 2);
        // The others are new to the next run, and asked for in their time.
        let hits = door.scene.origin.hits().len();
        assert!(door.run().await.stderr.contains("new links"));
        assert_eq!((door.scene.origin.hits().len(), door.counts().await), (hits, counts));
    }
}

/// The design's rule 3B: an article that is there is not fetched again, though nobody noted the attempt.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_whose_article_is_there_is_not_fetched_again() {
    for door in Door::on_each_store(&sites()).await {
        let links = links(2);
        add(&door, &links).await;
        door.run().await;
        door.forget_attempts().await;
        assert_eq!(door.counts().await.attempted, 0);
        let said = door.run().await.stderr;
        assert!(!said.contains("Fetching"), "{said}");
        assert!(door.asked().values().all(|times| *times == 1), "{:?}", door.asked());
        assert_eq!(door.counts().await.attempted, 2, "they are noted again");
    }
}
