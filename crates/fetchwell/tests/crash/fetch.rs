//! Real processes that are killed, stopped and joined: every URL still ends with exactly one row.
//!
//! The short form is part of the test command; `scripts/soak` runs the long one.

use std::time::Duration;

use fetchwell_policy::chance::Chance;
use fetchwell_simweb::{SiteScript, site_name};
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::crash::{ControlSender, OutsideLedger, Process, Program, TestWeb};
use fetchwell_testkit::eventually::eventually;
use fetchwell_testkit::replay::{count_or, seed};
use serde_json::Value;
use tokio::time::sleep;

const SITES: usize = 40;
const RATE: &str = "5";
const INTERVAL: Duration = Duration::from_millis(200);
const MAX_IN_FLIGHT: usize = 32;
/// A URL that is under way at a fourth kill is suspected of having caused them, and given up.
const KILLS_PER_LIST: usize = 3;
const RESUME: [&str; 5] = ["fetch", "@list", "--output", "rows.jsonl", "--resume"];

/// A web, the program let loose on it, and what it is to fetch.
struct FetchRun {
    origin: TestWeb,
    program: Program,
    ledger: OutsideLedger,
}

impl FetchRun {
    /// Each site thinks before it answers, so that at this rate some twenty requests are under way.
    fn new(pages_per_site: usize) -> FetchRun {
        let site = |rank| {
            SiteScript::new(&site_name(rank)).slow(Duration::from_millis(100)).page_bytes(1_000)
        };
        let flags = ["--rate", RATE, "--max-in-flight", &MAX_IN_FLIGHT.to_string()];
        FetchRun::of((1..=SITES).map(site), &flags, urls(1, pages_per_site))
    }

    /// Sites that answer at once, and no pace: for what is not about time.
    fn quick(pages_per_site: usize) -> FetchRun {
        let sites = (1..=SITES).map(|rank| SiteScript::new(&site_name(rank)).page_bytes(1_000));
        FetchRun::of(sites, &["--rate", "0"], urls(1, pages_per_site))
    }

    fn of(
        sites: impl IntoIterator<Item = SiteScript>,
        flags: &[&str],
        urls: Vec<String>,
    ) -> FetchRun {
        let origin = TestWeb::start(sites);
        // A stop that waits out the grace exceeds `DEADLINE`.
        let program = Program::new(env!("CARGO_BIN_EXE_fetchwell"))
            .variable("FETCHWELL_SHUTDOWN_GRACE", "1h")
            .on(&origin)
            .flags(flags.to_vec());
        let mut run = FetchRun { origin, program, ledger: OutsideLedger::of(Vec::new()) };
        run.put_in(urls);
        run
    }

    /// Another list, and no output yet.
    fn begin(&mut self, urls: Vec<String>) {
        self.put_in(urls);
        // There is none before the first list.
        drop(std::fs::remove_file(self.program.file("rows.jsonl")));
    }

    fn put_in(&mut self, urls: Vec<String>) {
        self.ledger = OutsideLedger::of(urls);
        self.ledger.write_list(&self.program.file("list"));
    }

    fn resume(&self) -> Process {
        self.program.start(&RESUME)
    }

    async fn resume_to_the_end(&self) {
        self.resume().wait(DEADLINE).await.expect_code(0);
        self.balance();
    }

    fn balance(&self) -> Vec<Value> {
        self.ledger.balance(&self.program.file("rows.jsonl"))
    }

    fn output(&self) -> Vec<u8> {
        std::fs::read(self.program.file("rows.jsonl")).unwrap_or_default()
    }

    /// How many URLs are under way, as far as the store knows.
    fn count_started(&self) -> usize {
        let store = rusqlite::Connection::open(self.program.file("fetchwell.db")).unwrap();
        let count = "SELECT count(*) FROM job WHERE started = 1";
        store.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap() as usize
    }

    async fn until_a_row_is_out(&self) {
        eventually("a row", async || !self.output().is_empty()).await;
    }
}

/// The same number of pages on each site; no two rounds have a URL in common.
fn urls(round: usize, pages_per_site: usize) -> Vec<String> {
    let page = |page| {
        (1..=SITES).map(move |rank| format!("http://{}/round-{round}/{page}", site_name(rank)))
    };
    (1..=pages_per_site).flat_map(page).collect()
}

fn between_ms(chance: &mut Chance, from: u64, to: u64) -> Duration {
    Duration::from_millis(from + chance.next_u64() % (to - from))
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_instant_no_url_is_lost_and_none_has_two_rows() {
    let mut chance = Chance::seeded(seed());
    let kills: usize = count_or("FETCHWELL_TEST_KILLS", 2);
    let mut run = FetchRun::new(0);
    let control = ControlSender::start(&run.origin);
    let mut killed = 0;
    let mut round = 0;
    while killed < kills {
        round += 1;
        run.begin(urls(round, 10));
        for _ in 0..KILLS_PER_LIST.min(kills - killed) {
            let process = run.resume();
            sleep(between_ms(&mut chance, 20, 700)).await;
            process.kill().await;
            killed += 1;
        }
        run.resume_to_the_end().await;
    }

    let repeated = run.origin.repeated_pages();
    let tolerance = control.tolerance(&run.origin).await;
    let verdict = run.origin.verdict(INTERVAL, tolerance);
    println!("{killed} kills, {round} lists: {repeated} pages fetched again");
    println!("{verdict}; tolerance {tolerance:?}");
    assert!(repeated <= killed * MAX_IN_FLIGHT, "{repeated} pages fetched again");
    assert!(verdict.is_polite(), "{verdict}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stopped_for_longer_than_its_lease_overwrites_nothing() {
    let mut chance = Chance::seeded(seed());
    let stops: usize = count_or("FETCHWELL_TEST_STOPS", 1);
    let mut run = FetchRun::new(0);
    run.program = run
        .program
        .variable("FETCHWELL_LEASE__TTL", "2s")
        .variable("FETCHWELL_LEASE__HEARTBEAT", "400ms");
    let control = ControlSender::start(&run.origin);
    let mut leases_lost = 0;
    for round in 1..=stops {
        run.begin(urls(round, 20));
        let before = run.origin.page_hits();
        let stopped = run.resume();
        run.origin.until_page_hits(before + 1).await;
        sleep(between_ms(&mut chance, 0, 500)).await;
        stopped.stop().await;
        let other = run.resume();
        // The other takes over after 2 s, and needs 4 s for the rest.
        sleep(between_ms(&mut chance, 2_200, 5_000)).await;
        stopped.go_on().await;
        for process in [other, stopped] {
            leases_lost += process.wait(DEADLINE).await.expect_code(0).leases_lost();
        }
        run.balance();
    }

    let repeated = run.origin.repeated_pages();
    let tolerance = control.tolerance(&run.origin).await;
    let verdict = run.origin.verdict(INTERVAL, tolerance);
    println!(
        "{stops} stops, {leases_lost} leases lost: {repeated} pages fetched again; {verdict}; tolerance \
         {tolerance:?}"
    );
    assert!(leases_lost > 0, "no instance lost its lease");
    assert!(repeated <= leases_lost * MAX_IN_FLIGHT, "{repeated} pages fetched again");
    assert!(verdict.is_polite(), "{verdict}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gentle_stop_finishes_what_is_under_way_and_nothing_is_fetched_twice() {
    let run = FetchRun::new(10);
    let process = run.resume();
    run.origin.until_page_hits(100).await;
    process.terminate().await;
    let ended = process.wait(DEADLINE).await.expect_code(130);
    assert!(ended.stderr.contains("--resume"), "{}", ended.stderr);
    let rows = run.output().iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(rows, run.origin.page_hits(), "what was asked for has its row");
    assert!(rows < run.ledger.urls().len());
    run.resume_to_the_end().await;
    // On a busy machine, a request may exceed its time limit and be repeated.
    let rows = run.balance();
    let retries = rows.iter().map(|row| row["attempts"].as_u64().unwrap() - 1).sum::<u64>();
    assert!(run.origin.repeated_pages() as u64 <= retries, "{retries} retries");
}

/// Whatever became of the others, the code says that it was stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_stopped_says_so_though_a_page_failed() {
    let site = SiteScript::new("shop.test").status("/missing", 404).slow(Duration::from_millis(50));
    let urls = (0..500).map(|page| format!("http://shop.test/{page}"));
    let urls = std::iter::once("http://shop.test/missing".to_owned()).chain(urls).collect();
    let run = FetchRun::of([site], &["--rate", "20"], urls);
    let process = run.resume();
    run.origin.until_page_hits(5).await;
    process.terminate().await;
    let ended = process.wait(DEADLINE).await.expect_code(130);
    let rows = String::from_utf8(run.output()).unwrap();
    assert!(rows.contains("url_failure") && ended.stderr.contains("--resume"), "{rows}");
    assert!(
        run.origin.page_hits() < run.ledger.urls().len(),
        "it fetched the whole list after SIGTERM"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_it_at_once_and_nothing_is_lost() {
    let answers_after = Duration::from_secs(5);
    let site = SiteScript::new("slow.test").slow(answers_after);
    let run = FetchRun::of([site], &["--rate", "0"], vec!["http://slow.test/page".to_owned()]);
    let mut process = run.resume();
    run.origin.until_page_hits(1).await;
    process.terminate().await;
    // Two signals that arrive together are one.
    process.until_said("a message that it is stopping", |said| said.find("stopping")).await;
    process.terminate().await;
    process.wait(answers_after).await.expect_code(130);
    run.resume_to_the_end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_url_that_was_alone_at_a_fourth_kill_is_given_up_and_has_its_row() {
    let site = SiteScript::new("slow.test").slow(Duration::from_secs(5));
    let urls = ["a", "b"].map(|page| format!("http://slow.test/{page}")).to_vec();
    let run = FetchRun::of([site], &["--rate", "0"], urls);
    // Both URLs are under way at the first three kills, one at the fourth.
    for under_way in [2, 2, 2, 1] {
        let before = run.origin.page_hits();
        let process = run.resume();
        run.origin.until_page_hits(before + under_way).await;
        eventually("the store to mark the URLs as started", async || {
            run.count_started() == under_way
        })
        .await;
        process.kill().await;
    }
    assert_eq!(run.origin.page_hits(), 7);
    run.resume().wait(DEADLINE).await.expect_code(4);
    let rows = run.balance();
    let given_up: Vec<_> = rows.iter().filter(|row| row["outcome"] != "fetched").collect();
    assert_eq!(given_up.len(), 1, "{given_up:?}");
    assert_eq!(given_up[0]["outcome"], "internal", "{given_up:?}");
    assert!(given_up[0]["reason"].to_string().contains("quarantined"), "{given_up:?}");

    // An internal error is not a result: a resumed run retries the URL.
    let before = run.origin.page_hits();
    run.resume().wait(DEADLINE).await.expect_code(0);
    let rows = run.balance();
    assert!(rows.iter().all(|row| row["outcome"] == "fetched"), "{rows:?}");
    assert_eq!(run.origin.page_hits(), before + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_begin_at_once_share_the_work() {
    let mut chance = Chance::seeded(seed());
    let starts: usize = count_or("FETCHWELL_TEST_STARTS", 3);
    let mut run = FetchRun::quick(0);
    for round in 1..=starts {
        // The list grows: the longer the output is, the longer the two look at it side by side.
        run.put_in((1..=round).flat_map(|round| urls(round, 5)).collect());
        let one = run.resume();
        sleep(between_ms(&mut chance, 0, 150)).await;
        let other = run.resume();
        one.wait(DEADLINE).await.expect_code(0);
        other.wait(DEADLINE).await.expect_code(0);
        run.balance();
    }
    assert_eq!(run.origin.repeated_pages(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_joins_brings_its_own_urls() {
    let mut run = FetchRun::new(5);
    let first = run.resume();
    run.until_a_row_is_out().await;
    run.put_in(urls(1, 6));
    let joining = run.resume();
    joining.wait(DEADLINE).await.expect_code(0);
    first.wait(DEADLINE).await.expect_code(0);
    run.balance();
    assert_eq!(run.origin.repeated_pages(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_resume_an_output_in_use_is_left_alone() {
    let run = FetchRun::new(5);
    let first = run.resume();
    run.until_a_row_is_out().await;
    let refused = run.program.run(&RESUME[..4]).await.expect_code(2);
    assert!(refused.stderr.contains("use --resume to join it"), "{}", refused.stderr);
    first.wait(DEADLINE).await.expect_code(0);
    run.balance();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_last_line_is_cut_off() {
    let run = FetchRun::quick(2);
    run.resume_to_the_end().await;
    let whole = run.output();
    for torn in ["{\"url\":\"http://site-0001.test/rou", "\0\0\0\0", "{}\n"] {
        let path = run.program.file("rows.jsonl");
        std::fs::write(&path, [&whole, torn.as_bytes()].concat()).unwrap();
        run.resume_to_the_end().await;
        assert_eq!(run.output(), whole, "after {torn:?}");
    }
    assert_eq!(run.origin.repeated_pages(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_cut_within_a_row_gets_back_what_it_lost() {
    let mut chance = Chance::seeded(seed());
    let run = FetchRun::quick(2);
    run.resume_to_the_end().await;
    let whole = run.output();
    let keep = chance.next_u64() as usize % whole.len();
    std::fs::write(run.program.file("rows.jsonl"), &whole[..keep]).unwrap();
    run.resume_to_the_end().await;
    let kept_rows = whole[..keep].iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(run.origin.repeated_pages(), run.ledger.urls().len() - kept_rows);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_store_the_output_says_what_is_missing() {
    let run = FetchRun::new(10);
    let process = run.resume();
    run.origin.until_page_hits(100).await;
    process.terminate().await;
    process.wait(DEADLINE).await.expect_code(130);
    for entry in std::fs::read_dir(run.program.folder()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_string_lossy().starts_with("fetchwell.db") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    run.resume_to_the_end().await;
    assert_eq!(run.origin.repeated_pages(), 0);
}
