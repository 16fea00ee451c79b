//! What Prometheus reads from each door: our own names, and what they say after a run.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::crash::{Process, Program, Service, TestWeb};
use fetchwell_testkit::eventually::eventually_ok;
use fetchwell_testkit::plain_http::ask;

use super::program;

/// A page of metrics: each sample by its name and labels, each family with its kind.
pub(crate) struct Page {
    pub(crate) samples: BTreeMap<String, f64>,
    pub(crate) kinds: BTreeMap<String, String>,
    text: String,
}

impl Page {
    /// Reads a page, and holds it to Prometheus's rules: each family has a text and a kind, once, and no
    /// sample is there twice.
    pub(crate) fn read(text: String) -> Page {
        let mut samples = BTreeMap::new();
        let mut kinds = BTreeMap::new();
        let mut helps = Vec::new();
        for line in text.lines() {
            if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                assert_eq!(helps.last().map(String::as_str), Some(name), "its HELP comes before");
                let known = kinds.insert(name.to_owned(), kind.to_owned());
                assert_eq!(known, None, "{name} is there twice");
            } else if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, about) = help.split_once(' ').unwrap();
                assert!(about.ends_with('.') || about.ends_with(';'), "{line}");
                helps.push(name.to_owned());
            } else {
                let (sample, value) = line.rsplit_once(' ').unwrap();
                let known = samples.insert(sample.to_owned(), value.parse().unwrap());
                assert_eq!(known, None, "{sample} is there twice");
            }
        }
        Page { samples, kinds, text }
    }

    fn value(&self, sample: &str) -> f64 {
        let value = self.samples.get(sample);
        *value.unwrap_or_else(|| panic!("no {sample} in\n{}", self.text))
    }

    /// By Prometheus's naming: counters end in `_total`, and nothing else does.
    fn follows_the_naming(&self) {
        for (name, kind) in self.kinds.iter().filter(|(name, _)| name.starts_with("fetchwell_")) {
            let is_counter = kind == "counter";
            assert_eq!(name.ends_with("_total"), is_counter, "{name} is a {kind}");
            assert!(!name.ends_with("_ms") && !name.ends_with("_kb"), "{name} has no base unit");
        }
    }
}

pub(crate) async fn page_at(address: SocketAddr) -> Page {
    let answer = ask(address, "", "GET /metrics", &[], "").await.unwrap();
    assert_eq!(answer.status, 200);
    Page::read(String::from_utf8(answer.body).unwrap())
}

async fn until(address: SocketAddr, sample: &str, is: impl Fn(f64) -> bool) -> Page {
    eventually_ok(sample, async || {
        let page = page_at(address).await;
        let holds = page.samples.get(sample).is_some_and(|value| is(*value));
        if holds { Ok(page) } else { Err(page.text) }
    })
    .await
}

/// Starts a door, and waits until it says where its metrics are.
pub(crate) async fn door(program: &Program, arguments: &[&str]) -> (Process, SocketAddr) {
    let mut process = program.start(arguments);
    let address = |log: &str| {
        let (_, rest) = log.split_once("metrics are at http://")?;
        let (address, _) = rest.split_once('/')?;
        Some(address.parse().unwrap())
    };
    let address = process.until_said("the address of its metrics", address).await;
    (process, address)
}

fn origin() -> TestWeb {
    TestWeb::start([
        SiteScript::new("a.test")
            .robots("User-agent: *\nDisallow: /private")
            .fails_first("/shaky", 1, 500)
            .status("/gone", 404)
            .page_bytes(2_000),
        SiteScript::new("down.test").fails_first("/1", 100, 503),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_counts_what_it_does() {
    let origin = origin();
    let program = program()
        .on(&origin)
        .variable("FETCHWELL_RATE", "20")
        .variable("PAGE_FETCHER_RETRY_BACKOFF_BASE_SECONDS", "0.01")
        .variable("PAGE_FETCHER_CIRCUIT_BREAKER_INITIAL_BACKOFF_SECONDS", "60");
    let paths = ["/1", "/2", "/shaky", "/gone", "/private"];
    let urls = paths.map(|path| format!("http://a.test{path}"));
    let urls: Vec<&str> = urls.iter().map(String::as_str).chain(["http://down.test/1"]).collect();
    program.run(&[&["pages", "add"], &urls[..]].concat()).await.expect_code(0);
    let (_process, address) = door(&program, &["pages", "--metrics-listen", "127.0.0.1:0"]).await;
    until(address, r#"fetchwell_outcomes_total{door="pages",outcome="done"}"#, |n| n == 3.0).await;
    until(address, r#"fetchwell_breakers_open{door="pages"}"#, |open| open == 1.0).await;
    until(address, r#"fetchwell_in_flight{door="pages"}"#, |n| n == 0.0).await;
    // The store is asked once in a while only.
    let done = r#"fetchwell_ledger_jobs{door="pages",state="done"}"#;
    let page = until(address, done, |n| n == 3.0).await;
    page.follows_the_naming();
    for (sample, value) in [
        (r#"fetchwell_requests_total{door="pages",kind="page",status_class="2xx"}"#, 3.0),
        (r#"fetchwell_requests_total{door="pages",kind="page",status_class="4xx"}"#, 1.0),
        (r#"fetchwell_requests_total{door="pages",kind="page",status_class="5xx"}"#, 6.0),
        (r#"fetchwell_requests_total{door="pages",kind="robots",status_class="2xx"}"#, 1.0),
        (r#"fetchwell_requests_total{door="pages",kind="robots",status_class="4xx"}"#, 1.0),
        (r#"fetchwell_requests_total{door="pages",kind="probe",status_class="none"}"#, 0.0),
        (r#"fetchwell_request_failures_total{door="pages",reason="client_error"}"#, 1.0),
        (r#"fetchwell_outcomes_total{door="pages",outcome="skipped"}"#, 1.0),
        (r#"fetchwell_outcomes_total{door="pages",outcome="dead"}"#, 1.0),
        (r#"fetchwell_request_duration_seconds_count{door="pages"}"#, 12.0),
        (r#"fetchwell_rate_breaches_total{door="pages"}"#, 0.0),
        (r#"fetchwell_breakers_opened_total{door="pages"}"#, 1.0),
        (r#"fetchwell_ledger_jobs{door="pages",state="done"}"#, 3.0),
        (r#"fetchwell_ledger_difference_jobs{door="pages"}"#, 0.0),
        (r#"fetchwell_store_faults_total{door="pages",reason="unavailable"}"#, 0.0),
        ("page_fetcher_pages_fetched_total", 3.0),
    ] {
        assert_eq!(page.value(sample), value, "{sample}");
    }
    assert!(page.value("process_resident_memory_bytes") > 1e6);
    assert!(page.value("process_open_fds") < page.value("process_max_fds"));
    assert!(page.value(r#"fetchwell_body_bytes_total{door="pages"}"#) >= 6_000.0);
    assert!(!page.text.contains(".test"), "no site is a label");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_instance_held_is_counted_as_rescued() {
    let origin = TestWeb::start([SiteScript::new("slow.test").slow(Duration::from_secs(600))]);
    let program = program().on(&origin).variable("FETCHWELL_LEASE__TTL", "2s");
    let program = program.variable("FETCHWELL_LEASE__HEARTBEAT", "500ms");
    program.run(&["pages", "add", "http://slow.test/1"]).await.expect_code(0);
    let listen = ["pages", "--metrics-listen", "127.0.0.1:0"];
    let (dying, address) = door(&program, &listen).await;
    until(address, r#"fetchwell_leases_held{door="pages"}"#, |held| held == 1.0).await;
    dying.kill().await;
    let (_next, address) = door(&program, &listen).await;
    until(address, r#"fetchwell_rescues_total{door="pages"}"#, |rescued| rescued == 1.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_tells_of_both_of_its_flows() {
    let origin = origin();
    let service = Service::start(program().on(&origin).variable("FETCHWELL_RATE", "20")).await;
    let body = r#"{"url":"http://a.test/1","retailer":"shop","correlation_id":"c1"}"#;
    let wait = [("prefer", "wait=30")];
    ask(service.address, &service.token, "POST /fetch", &wait, body).await.unwrap();
    let done = r#"fetchwell_outcomes_total{door="serve",outcome="done"}"#;
    let page = until(service.address, done, |done| done == 1.0).await;
    page.follows_the_naming();
    assert_eq!(
        page.value(r#"fetchwell_requests_total{door="webhooks",kind="page",status_class="2xx"}"#),
        0.0
    );
    assert_eq!(page.value(r#"fetchwell_ledger_jobs{door="serve",state="done"}"#), 1.0);
    assert_eq!(page.value(r#"fetchwell_ledger_messages{state="done"}"#), 1.0);
    assert_eq!(page.value(r#"fetchwell_job_duration_seconds_count{door="serve"}"#), 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn articles_watch_tells_where_it_is_asked_to() {
    let feed = r#"<rss version="2.0"><channel><title>News</title></channel></rss>"#;
    let news = SiteScript::new("news.test").text("/rss", "application/rss+xml", feed);
    let origin = TestWeb::start([news]);
    let program = program().on(&origin).variable("FETCHWELL_ARTICLES__WATCH_INTERVAL", "200ms");
    let feed = ["feeds", "add", "http://news.test/rss", "--category", "news"];
    program.run(&feed).await.expect_code(0);
    let (_process, address) =
        door(&program, &["articles", "watch", "--metrics-listen", "127.0.0.1:0"]).await;
    // Counted over all cycles, each of which has parts of its own.
    let read = r#"fetchwell_outcomes_total{door="feeds",outcome="done"}"#;
    until(address, read, |times| times >= 2.0).await.follows_the_naming();
}
