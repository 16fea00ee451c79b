//! Real processes in real time, judged at the origin.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_simweb::{SiteScript, site_name, zipf_urls};
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::alone::alone;
use fetchwell_testkit::crash::{ControlSender, OutsideLedger, Program, TestWeb};
use fetchwell_testkit::replay::{is_soak, seed};

fn sites(count: usize) -> impl Iterator<Item = SiteScript> {
    (1..=count).map(|rank| SiteScript::new(&site_name(rank)).page_bytes(1_000))
}

fn program(origin: &TestWeb, rate: &str) -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell")).on(origin).flags(["--rate", rate])
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_on_one_store_keep_one_pace() {
    let _turn = alone().await;
    let interval = Duration::from_millis(100);
    let origin = TestWeb::start(sites(10));
    let program = program(&origin, "10");
    let control = ControlSender::start(&origin);
    let start = |name: &str| {
        let page = |page: usize| format!("http://{}/{name}/{page}", site_name(page % 10 + 1));
        let ledger = OutsideLedger::of((0..150).map(page).collect());
        ledger.write_list(&program.file(name));
        let process =
            program.start(&["fetch", &format!("@{name}"), "-o", &format!("{name}.jsonl")]);
        (process, ledger)
    };
    let (one, one_ledger) = start("one");
    let (other, other_ledger) = start("other");
    let took =
        [one.wait(DEADLINE).await, other.wait(DEADLINE).await].map(|e| e.expect_code(0).took);
    one_ledger.balance(&program.file("one.jsonl"));
    other_ledger.balance(&program.file("other.jsonl"));

    let tolerance = control.tolerance(&origin).await;
    let verdict = origin.verdict(interval, tolerance);
    println!(
        "two processes took {took:?}, the pace asks for 3 s; {verdict}; tolerance {tolerance:?}"
    );
    assert!(verdict.is_polite(), "{verdict}");
    // 30 pages a site take 3 s; two who waited for each other's slots in vain would take longer.
    let in_time = took.iter().all(|took| *took < Duration::from_millis(4_500));
    assert!(!is_soak() || in_time, "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_who_read_a_slow_robots_txt_do_not_follow_it_with_a_page_each() {
    let _turn = alone().await;
    let interval = Duration::from_secs(1);
    let thinks = Duration::from_millis(2_500);
    let names = (1..=10).map(site_name);
    let origin = TestWeb::start(names.map(|name| SiteScript::new(&name).slow(thinks)));
    let program = program(&origin, "1");
    let control = ControlSender::start(&origin);
    let start = |name: &str| {
        let page = |page: usize| format!("http://{}/{name}/{page}", site_name(page % 10 + 1));
        OutsideLedger::of((0..30).map(page).collect()).write_list(&program.file(name));
        program.start(&["fetch", &format!("@{name}"), "-o", &format!("{name}.jsonl")])
    };
    let one = start("one");
    // It reads robots.txt too, and has it in the middle between two pages of the first.
    tokio::time::sleep(interval * 3 / 2).await;
    for process in [one, start("other")] {
        process.wait(DEADLINE).await.expect_code(0);
    }
    let tolerance = control.tolerance(&origin).await;
    let verdict = origin.verdict(interval, tolerance);
    println!("slow sites: {verdict}; tolerance {tolerance:?}");
    assert!(verdict.is_polite(), "{verdict}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skewed_run_takes_as_long_as_its_largest_site() {
    let _turn = alone().await;
    let interval = Duration::from_millis(50);
    let (site_count, url_count) = if is_soak() { (200, 2_000) } else { (100, 800) };
    let origin = TestWeb::start(sites(site_count));
    let program = program(&origin, "20");
    let ledger = OutsideLedger::of(zipf_urls(site_count, url_count, 1.0, seed()));
    ledger.write_list(&program.file("list"));
    let control = ControlSender::start(&origin);
    let process = program.start(&["fetch", "@list", "--output", "rows.jsonl"]);
    let took = process.wait(DEADLINE).await.expect_code(0).took;
    ledger.balance(&program.file("rows.jsonl"));

    let largest = largest_site(ledger.urls());
    let bound = interval * largest;
    let ratio = took.as_secs_f64() / bound.as_secs_f64();
    let tolerance = control.tolerance(&origin).await;
    let verdict = origin.verdict(interval, tolerance);
    println!(
        "{url_count} URLs over {site_count} sites, {largest} on the largest: {took:?} of {bound:?}, \
         ratio {ratio:.3}; {verdict}; tolerance {tolerance:?}"
    );
    assert!(verdict.is_polite(), "{verdict}");
    // How long it takes says as much of the machine as of us: it is printed here and judged in the soak.
    assert!(!is_soak() || ratio <= 1.05, "{ratio:.3} times the lower bound");
}

fn largest_site(urls: &[String]) -> u32 {
    let mut pages: HashMap<&str, u32> = HashMap::new();
    for url in urls {
        *pages.entry(url.split('/').nth(2).unwrap_or_default()).or_default() += 1;
    }
    pages.into_values().max().unwrap_or_default()
}
