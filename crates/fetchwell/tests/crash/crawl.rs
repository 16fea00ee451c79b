//! Crawls that are killed: every page of the graph still ends with exactly one row, and limits stay exact.
//!
//! The short form is part of the test command; `scripts/soak` runs the long one.

use std::collections::HashSet;
use std::time::Duration;

use fetchwell_policy::chance::Chance;
use fetchwell_simweb::{SiteScript, site_name};
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::crash::{ControlSender, OutsideLedger, Process, Program, TestWeb};
use fetchwell_testkit::replay::{count_or, seed};
use serde_json::Value;
use tokio::time::sleep;

use crate::known_web::KnownWeb;

pub(crate) const SITES: usize = 12;
const PAGES_PER_SITE: usize = 25;
const MAX_IN_FLIGHT: usize = 32;
/// A page that is under way at a fourth kill is suspected of having caused them, and given up.
const KILLS_PER_CRAWL: usize = 3;

/// The pages of a site are a tree, and its root names that of the next site.
pub(crate) fn site(rank: usize) -> SiteScript {
    let links = |page: usize| {
        let below = [2 * page + 1, 2 * page + 2].into_iter().filter(|page| *page < PAGES_PER_SITE);
        let below: String = below.map(|page| format!("<a href='/{page}'>{page}</a>")).collect();
        let next = format!("<a href='http://{}/0'>next</a>", site_name(rank % SITES + 1));
        if page == 0 { below + &next } else { below }
    };
    let script = SiteScript::new(&site_name(rank)).slow(Duration::from_millis(50));
    (0..PAGES_PER_SITE).fold(script, |script, page| {
        script.text(
            &format!("/{page}"),
            "text/html",
            &format!("<p>Page {page}.</p>{}", links(page)),
        )
    })
}

pub(crate) fn urls() -> Vec<String> {
    let of_site =
        |rank| (0..PAGES_PER_SITE).map(move |page| format!("http://{}/{page}", site_name(rank)));
    (1..=SITES).flat_map(of_site).collect()
}

struct CrawlRun {
    origin: TestWeb,
    program: Program,
}

impl CrawlRun {
    fn new() -> CrawlRun {
        let origin = TestWeb::start((1..=SITES).map(site));
        let program = Program::new(env!("CARGO_BIN_EXE_fetchwell")).on(&origin).flags([
            "--rate",
            "20",
            "--max-in-flight",
            &MAX_IN_FLIGHT.to_string(),
        ]);
        CrawlRun { origin, program }
    }

    /// Crawls to this file.
    async fn kill_and_resume(
        &self,
        output: &str,
        more: &[&str],
        kills: usize,
        chance: &mut Chance,
    ) {
        for _ in 0..kills {
            let process = self.resume(output, more);
            sleep(Duration::from_millis(100 + chance.next_u64() % 900)).await;
            process.kill().await;
        }
        self.resume(output, more).wait(DEADLINE).await.expect_code(0);
    }

    fn resume(&self, output: &str, more: &[&str]) -> Process {
        let start = ["crawl", "http://site-0001.test/0", "--scope", "any", "--sitemaps", "off"];
        self.program.start(&[&start[..], &["--output", output, "--resume"], more].concat())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_instant_a_crawl_has_every_page_once() {
    let mut chance = Chance::seeded(seed());
    let kills: usize = count_or("FETCHWELL_TEST_CRAWL_KILLS", 2);
    let run = CrawlRun::new();
    let ledger = OutsideLedger::of(urls());
    let crawls = kills.div_ceil(KILLS_PER_CRAWL);
    for crawl in 0..crawls {
        let output = format!("{crawl}.jsonl");
        let some = KILLS_PER_CRAWL.min(kills - crawl * KILLS_PER_CRAWL);
        run.kill_and_resume(&output, &[], some, &mut chance).await;
        ledger.balance(&run.program.file(&output));
    }
    let beyond = run.origin.page_hits() - crawls * urls().len();
    println!("{kills} kills, {crawls} crawls: {beyond} pages fetched again");
    assert!(beyond <= kills * MAX_IN_FLIGHT, "{beyond} pages fetched again");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_instant_a_crawl_keeps_its_limits_exactly() {
    let mut chance = Chance::seeded(seed());
    let kills: usize = count_or("FETCHWELL_TEST_CRAWL_KILLS", 2).min(KILLS_PER_CRAWL);
    let run = CrawlRun::new();
    let limits = ["--limit", "100", "--limit-per-site", "11"];
    run.kill_and_resume("rows.jsonl", &limits, kills, &mut chance).await;
    let rows = std::fs::read_to_string(run.program.file("rows.jsonl")).unwrap();
    let urls: Vec<String> = rows
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["url"].to_string())
        .collect();
    assert_eq!(urls.len(), 100);
    assert_eq!(urls.iter().collect::<HashSet<_>>().len(), 100);
    for rank in 1..=SITES {
        let site = format!("//{}/", site_name(rank));
        let pages = urls.iter().filter(|url| url.contains(&site)).count();
        assert!(pages <= 11, "{pages} pages of {site}");
    }
}

/// In every other crawl, a second process takes over while the first one is stopped.
#[tokio::test(flavor = "multi_thread")]
async fn stopped_for_longer_than_its_lease_a_crawl_has_every_page_once() {
    let mut chance = Chance::seeded(seed());
    let stops: usize = count_or("FETCHWELL_TEST_STOPS", 1);
    let mut run = CrawlRun::new();
    run.program = run
        .program
        .variable("FETCHWELL_LEASE__TTL", "2s")
        .variable("FETCHWELL_LEASE__HEARTBEAT", "400ms");
    let ledger = OutsideLedger::of(urls());
    let mut leases_lost = 0;
    for crawl in 0..stops {
        let output = format!("{crawl}.jsonl");
        let before = run.origin.page_hits();
        let stopped = run.resume(&output, &[]);
        run.origin.until_page_hits(before + 1).await;
        sleep(Duration::from_millis(chance.next_u64() % 500)).await;
        stopped.stop().await;
        let other = (crawl % 2 == 0).then(|| run.resume(&output, &[]));
        sleep(Duration::from_millis(3_000 + chance.next_u64() % 2_000)).await;
        stopped.go_on().await;
        for process in [Some(stopped), other].into_iter().flatten() {
            leases_lost += process.wait(DEADLINE).await.expect_code(0).leases_lost();
        }
        ledger.balance(&run.program.file(&output));
    }
    let beyond = run.origin.page_hits() - stops * urls().len();
    println!("{stops} stops, {leases_lost} leases lost: {beyond} pages fetched again");
    assert!(leases_lost > 0, "no instance lost its lease");
    assert!(beyond <= leases_lost.max(stops) * MAX_IN_FLIGHT, "{beyond} pages fetched again");
}

/// Everything that may be crawled is fetched once, nothing else is, and traps are bounded.
#[tokio::test(flavor = "multi_thread")]
async fn a_web_with_every_kind_of_page_is_covered_politely() {
    let sites: usize = count_or("FETCHWELL_TEST_CRAWL_SITES", 6);
    let web = KnownWeb::new(seed(), sites, 100);
    let origin = TestWeb::start(web.sites.clone());
    let rate = ["--rate", "100", "--give-up-after", "2s"];
    let program = Program::new(env!("CARGO_BIN_EXE_fetchwell")).on(&origin);
    std::fs::write(program.file("starts.txt"), web.starts.join("\n")).unwrap();
    let control = ControlSender::start(&origin);
    let crawl = ["crawl", "@starts.txt", "--output", "rows.jsonl", "--limit", "1000000"];
    let ended = program.start(&[&crawl[..], &rate].concat()).wait(4 * DEADLINE).await;
    let stderr = ended.expect_code(4).stderr;
    let text = std::fs::read_to_string(program.file("rows.jsonl")).unwrap();
    let rows: Vec<Value> = text.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    println!("{} rows of {sites} sites in {} requests", rows.len(), origin.page_hits());
    web.judge(&rows);
    for forbidden in ["/private/", "/unloved/", ".pdf"] {
        let hits = origin.hits();
        let hit = hits.iter().find(|hit| hit.path.contains(forbidden));
        assert!(hit.is_none(), "{hit:?}");
    }
    assert_eq!(origin.repeated_pages(), 0, "{stderr}");
    for trap in ["a calendar", "a list with more than 300", "repeat folders", "the same content"] {
        assert!(stderr.contains(trap), "{trap}: {stderr}");
    }
    let tolerance = control.tolerance(&origin).await;
    let verdict = origin.verdict(Duration::from_millis(10), tolerance);
    assert!(verdict.is_polite(), "{verdict}");
}
