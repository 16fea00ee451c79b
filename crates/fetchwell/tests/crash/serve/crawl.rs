//! Crawls through the API whose service is killed: every page of the graph still has exactly one result, and limits stay
//! exact.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use fetchwell_simweb::site_name;
use fetchwell_testkit::crash::{ControlSender, TestWeb};
use fetchwell_testkit::replay::{count_or, seed};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::fleet::{Fleet, Line, MAX_IN_FLIGHT, Troubles};
use crate::crawl::{SITES, site, urls};
use crate::known_web::KnownWeb;

const STORE: &str = "sqlite:fetchwell.db";

/// What a crawl must not exceed.
const LIMIT: usize = 100;
const LIMIT_PER_SITE: usize = 11;

async fn start(line: &Line, key: &str, crawl: &Value, troubles: &mut Troubles) -> String {
    let key = [("idempotency-key", key)];
    let started = line.ask("POST /crawl", &key, &crawl.to_string(), troubles).await;
    started["id"].as_str().unwrap().to_owned()
}

async fn state(line: &Line, id: &str, troubles: &mut Troubles) -> Value {
    line.ask(&format!("GET /crawl/{id}"), &[], "", troubles).await
}

/// The results of a crawl by URL, read to its end, and the last cursor.
async fn results(line: &Line, id: &str, troubles: &mut Troubles) -> (BTreeMap<String, Value>, i64) {
    let mut results = BTreeMap::new();
    let mut after = 0;
    loop {
        let asked = format!("GET /crawl/{id}/results?after={after}&limit=1000&wait=5");
        let page = line.ask(&asked, &[], "", troubles).await;
        for one in page["messages"].as_array().unwrap() {
            let cursor: i64 = one["cursor"].as_str().unwrap().parse().unwrap();
            assert!(cursor > after, "a result came again: {one}");
            after = cursor;
            assert_eq!(one["crawl"]["id"], id);
            let url = one["url"].as_str().unwrap().to_owned();
            assert!(results.insert(url.clone(), one.clone()).is_none(), "{url} has two results");
        }
        if page["done"] == true {
            return (results, after);
        }
    }
}

fn ended(crawl: &Value) -> u64 {
    crawl["counts"]["completed"].as_u64().unwrap() + crawl["counts"]["failed"].as_u64().unwrap()
}

/// Kills the service when a crawl has so many results, once per kill, and starts it again.
async fn kill(fleet: &mut Fleet, id: &str, pages: usize, troubles: &mut Troubles) {
    let line = fleet.line();
    let kills: usize = count_or("FETCHWELL_TEST_CRAWL_KILLS", 2).min(3);
    for kill in 1..=kills {
        let middle = (pages * kill / (kills + 1)) as u64;
        while ended(&state(&line, id, troubles).await) < middle {
            sleep(Duration::from_millis(20)).await;
        }
        fleet.kill(0).await;
        fleet.start(0).await;
    }
    let crawl = state(&line, id, troubles).await;
    assert_eq!(crawl["done"], false, "the kills came after the end: {crawl}");
    let repeated = fleet.origin.repeated_pages();
    assert!(repeated <= kills * MAX_IN_FLIGHT, "{repeated} pages fetched again");
}

fn crawl() -> Value {
    json!({"urls": ["http://site-0001.test/0"], "scope": "any", "sitemaps": "off"})
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_its_middle_a_crawl_has_one_result_per_page_and_ends_once() {
    let origin = TestWeb::start((1..=SITES).map(site));
    let mut fleet = Fleet::of(origin, STORE, 1, "20").await;
    fleet.start_all().await;
    let line = fleet.line();
    let mut troubles = Troubles::default();
    let id = start(&line, "the-crawl", &crawl(), &mut troubles).await;
    kill(&mut fleet, &id, urls().len(), &mut troubles).await;
    // A repeated request starts no other crawl.
    assert_eq!(start(&line, "the-crawl", &crawl(), &mut troubles).await, id);
    let (results, last) = results(&line, &id, &mut troubles).await;
    let expected: HashSet<String> = urls().into_iter().collect();
    assert_eq!(results.into_keys().collect::<HashSet<_>>(), expected);
    let crawl = state(&line, &id, &mut troubles).await;
    assert_eq!((&crawl["end_reason"], ended(&crawl)), (&json!("completed"), expected.len() as u64));
    assert_eq!(line.ended("crawl.completed", last).await, [id], "the crawl ends once");
    fleet.stop(0).await.expect_code(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_its_middle_a_crawl_keeps_its_limits_exactly() {
    let origin = TestWeb::start((1..=SITES).map(site));
    let mut fleet = Fleet::of(origin, STORE, 1, "20").await;
    fleet.start_all().await;
    let line = fleet.line();
    let mut troubles = Troubles::default();
    let mut limited = crawl();
    limited["limit"] = json!(LIMIT);
    limited["limit_per_site"] = json!(LIMIT_PER_SITE);
    let id = start(&line, "limited", &limited, &mut troubles).await;
    kill(&mut fleet, &id, LIMIT, &mut troubles).await;
    let (results, _) = results(&line, &id, &mut troubles).await;
    assert_eq!(results.len(), LIMIT);
    for rank in 1..=SITES {
        let site = format!("//{}/", site_name(rank));
        let pages = results.keys().filter(|url| url.contains(&site)).count();
        assert!(pages <= LIMIT_PER_SITE, "{pages} pages of {site}");
    }
    let crawl = state(&line, &id, &mut troubles).await;
    assert_eq!(crawl["end_reason"], "limit");
    let counts = &crawl["counts"];
    let known = counts["known"].as_u64().unwrap();
    assert_eq!(known, counts["waiting"].as_u64().unwrap() + LIMIT as u64, "{counts}");
    fleet.stop(0).await.expect_code(0);
}

/// The row that the command writes for such a result.
fn outcome(result: &Value) -> &'static str {
    match result["status"].as_str().unwrap() {
        "success" => "fetched",
        "refused_by_robots" => "skipped_by_robots",
        "noindex" => "noindex",
        "redirected" => "redirected",
        "http_error" => "url_failure",
        "network_error" => "site_failure",
        other => panic!("{other}: {result}"),
    }
}

/// Everything that may be crawled is fetched once, nothing else is, and traps are bounded, as with the command.
#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_by_api_covers_what_the_command_covers() {
    let sites: usize = count_or("FETCHWELL_TEST_CRAWL_SITES", 6);
    let web = KnownWeb::new(seed(), sites, 100);
    let origin = TestWeb::start(web.sites.clone());
    let mut fleet = Fleet::of(origin, STORE, 1, "100").await.give_up_after("2s");
    let control = ControlSender::start(&fleet.origin);
    fleet.start_all().await;
    let line = fleet.line();
    let mut troubles = Troubles::default();
    let crawl = json!({"urls": web.starts, "limit": 100_000});
    let id = start(&line, "known", &crawl, &mut troubles).await;
    let (results, _) = results(&line, &id, &mut troubles).await;
    let rows: Vec<Value> = results
        .iter()
        .map(|(url, result)| json!({"url": url, "outcome": outcome(result)}))
        .collect();
    web.judge(&rows);
    let hits = fleet.origin.hits();
    for forbidden in ["/private/", "/unloved/", ".pdf"] {
        let hit = hits.iter().find(|hit| hit.path.contains(forbidden));
        assert!(hit.is_none(), "{hit:?}");
    }
    assert_eq!(fleet.origin.repeated_pages(), 0);
    let crawl = state(&line, &id, &mut troubles).await;
    let reasons: HashSet<&str> = crawl["cut_off"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cut| cut["reason"].as_str().unwrap())
        .collect();
    for reason in ["calendar", "filters", "repeated_path", "same_content", "download"] {
        assert!(reasons.contains(reason), "{reason}: {reasons:?}");
    }
    let tolerance = control.tolerance(&fleet.origin).await;
    let verdict = fleet.origin.verdict(Duration::from_millis(10), tolerance);
    assert!(verdict.is_polite(), "{verdict}");
    fleet.stop(0).await.expect_code(0);
}
