//! `fetchwell fetch` let loose on the hostile server: every URL comes to its one row.

use std::collections::BTreeMap;

use fetchwell_testkit::alone::turn;
use fetchwell_testkit::crash::Program;
use fetchwell_testkit::hostile::{Good, HostileServer, HostileStep, Over, RobotsAre, Target};
use serde_json::Value;

/// Timeouts for behaviours that may time out.
const SHORT_TIMES: [(&str, &str); 3] = [
    ("FETCHWELL_HTTP__CONNECT_TIMEOUT", "3s"),
    ("FETCHWELL_HTTP__REQUEST_TIMEOUT", "10s"),
    ("FETCHWELL_HTTP__IDLE_READ_TIMEOUT", "4s"),
];

/// Timeouts for the others, long enough for a busy machine. Not longer, because some HTTP/2 behaviours answer only the
/// first request on a connection, which is for robots.txt; the page's request then waits for the whole timeout.
const LONG_TIMES: [(&str, &str); 3] = [
    ("FETCHWELL_HTTP__CONNECT_TIMEOUT", "40s"),
    ("FETCHWELL_HTTP__REQUEST_TIMEOUT", "40s"),
    ("FETCHWELL_HTTP__IDLE_READ_TIMEOUT", "40s"),
];

const LIMITS: [(&str, &str); 6] = [
    ("FETCHWELL_RATE", "0"),
    ("FETCHWELL_MAX_IN_FLIGHT", "24"),
    ("FETCHWELL_HTTP__MAX_BODY", "512KiB"),
    ("FETCHWELL_BREAKER__INITIAL_BACKOFF", "1s"),
    ("FETCHWELL_BREAKER__MAX_BACKOFF", "2s"),
    ("FETCHWELL_FETCH__GIVE_UP_AFTER", "2s"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_behaviour_comes_to_its_one_row() {
    let server = HostileServer::start(RobotsAre::Friendly).await.unwrap();
    let rows = fetch_all(&server, server.targets().iter()).await;
    for target in server.targets() {
        let outcome = &rows[&target.url];
        let good = &target.behaviour.good;
        let expected: Vec<&str> = good.iter().map(|good| outcome_of(*good)).collect();
        let is_deaf = !reads_requests(target);
        // Where robots.txt gets what the page gets, the page is not even asked for.
        let is_good = expected.contains(&outcome.as_str()) || is_deaf && outcome == "site_failure";
        assert!(is_good, "{}: {outcome}; good is {expected:?}", target.url);
    }
}

/// Uses only plain HTTP targets: TLS does not affect how robots.txt is read.
#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_robots_txt_costs_no_row_either() {
    let server = HostileServer::start(RobotsAre::Hostile).await.unwrap();
    let plain = server.targets().iter().filter(|target| target.url.starts_with("http:"));
    let rows = fetch_all(&server, plain).await;
    for (url, outcome) in [
        // What can't be read closes the site.
        ("http://silence.plain.test/page", "site_failure"),
        ("http://drip-body.plain.test/page", "site_failure"),
        // What can't be understood allows everything, and so does what leads nowhere.
        ("http://nul-bytes.plain.test/page", "fetched"),
        ("http://redirect-to-file.plain.test/page", "refused"),
        // Of what never ends the beginning counts.
        ("http://endless-body.plain.test/page", "url_failure"),
        ("http://gzip-bomb.plain.test/page", "url_failure"),
    ] {
        assert_eq!(rows[url], outcome, "{url}");
    }
}

/// The outcome of each URL. Each has one row, whatever happened to it.
async fn fetch_all<'t>(
    server: &HostileServer,
    targets: impl Iterator<Item = &'t Target>,
) -> BTreeMap<String, String> {
    // Two such runs at once would make each other late.
    let _turn = turn("hostile").await;
    let (short, long): (Vec<_>, Vec<_>) =
        targets.partition(|target| target.behaviour.may_time_out());
    let mut rows = fetch(server, &short, SHORT_TIMES).await;
    rows.extend(fetch(server, &long, LONG_TIMES).await);
    rows
}

async fn fetch(
    server: &HostileServer,
    targets: &[&Target],
    times: [(&str, &str); 3],
) -> BTreeMap<String, String> {
    let mut program = Program::new(env!("CARGO_BIN_EXE_fetchwell"))
        .variable("FETCHWELL_HTTP__EXTRA_CA_FILE", &server.ca_file().display().to_string())
        .flags(["--allow-private", "127.0.0.0/8"]);
    for (name, value) in LIMITS.into_iter().chain(times) {
        program = program.variable(name, value);
    }
    for target in targets {
        let rule = format!("{}={}", target.host, target.address);
        program = program.flags(["--resolve".to_owned(), rule]);
    }
    let urls: Vec<&str> = targets.iter().map(|target| target.url.as_str()).collect();
    std::fs::write(program.file("list"), urls.join("\n")).unwrap();
    let ended = program.run(&["fetch", "@list", "--output", "rows.jsonl"]).await.expect_code(4);
    assert!(!ended.stderr.contains("panic"), "{}", ended.stderr);
    rows_of(&std::fs::read_to_string(program.file("rows.jsonl")).unwrap(), &urls)
}

fn rows_of(file: &str, urls: &[&str]) -> BTreeMap<String, String> {
    let mut rows = BTreeMap::new();
    for line in file.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let [url, outcome] =
            ["url", "outcome"].map(|field| row[field].as_str().unwrap().to_owned());
        assert!(rows.insert(url, outcome).is_none(), "two rows: {line}");
    }
    assert_eq!(rows.len(), urls.len());
    assert!(urls.iter().all(|url| rows.contains_key(*url)));
    rows
}

/// Whether a target hears what it is asked for, so that robots.txt can be told from a page.
fn reads_requests(target: &Target) -> bool {
    let first_step = target.behaviour.script.first();
    target.behaviour.over == Over::Either && matches!(first_step, Some(HostileStep::Read))
}

fn outcome_of(good: Good) -> &'static str {
    match good {
        Good::Page(_) | Good::Status(200..=299 | 304) => "fetched",
        Good::Status(_) | Good::BadAnswer(_) => "url_failure",
        Good::Network(_) | Good::TimedOut => "site_failure",
        Good::Refused => "refused",
    }
}
