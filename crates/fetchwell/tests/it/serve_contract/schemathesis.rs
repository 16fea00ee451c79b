//! Schemathesis: requests that are made from the OpenAPI document, good ones and bad ones.
//!
//! The test command makes hundreds of them; `scripts/soak` makes thousands.
//!
//! It is another's program, so it needs `FETCHWELL_TEST_PYTHON`: the Python of an environment that has
//! it, such as `scripts/setup --test` makes. Without it this says that it skips.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::crash::{Program, Service, TestWeb};
use fetchwell_testkit::python::python;
use fetchwell_testkit::replay::{count_or, is_soak};
use futures::future::join_all;
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use super::place::metrics;

/// How much of it.
struct Size {
    /// All runs together make no fewer. How many one makes depends on its seed.
    fewest_cases: u64,
    runs_at_once: u64,
    /// Of each run, for each operation and each way to make requests.
    examples: &'static str,
    fewest_accepted: f64,
    fewest_successes: f64,
}

const SHORT: Size = Size {
    fewest_cases: 150,
    runs_at_once: 1,
    examples: "5",
    fewest_accepted: 5.0,
    fewest_successes: 1.0,
};
const LONG: Size = Size {
    fewest_cases: 5_000,
    runs_at_once: 2,
    examples: "320",
    fewest_accepted: 300.0,
    fewest_successes: 50.0,
};

const MOST_RUNS: u64 = 6;
const PATIENCE: Duration = Duration::from_secs(900);

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_requests_are_answered_as_the_document_says() {
    let Some(python) = python() else { return };
    let origin = TestWeb::start([SiteScript::new("shop.test")]);
    let service = Service::start(on_loopback(&origin)).await;
    let seed = count_or("FETCHWELL_TEST_SEED", 1_u64);
    let began = Instant::now();
    let size = if is_soak() { LONG } else { SHORT };
    let mut cases = 0;
    let mut runs = 0;
    while cases < size.fewest_cases {
        assert!(runs < MOST_RUNS, "only {cases} cases in {runs} runs");
        let seeds = (0..size.runs_at_once).map(|more| seed + runs + more);
        let reports = join_all(seeds.map(|seed| run(&python, &service, &size, seed))).await;
        cases += reports.iter().map(cases_of).sum::<u64>();
        runs += size.runs_at_once;
    }
    println!("{cases} cases in {runs} runs and {:?}", began.elapsed());

    let metrics = metrics(&service).await;
    let accepted = metrics["fetchwell_messages_accepted_total"];
    assert!(accepted >= size.fewest_accepted, "{accepted} were accepted");
    let successes = metrics.get("fetchwell_results_total{status=\"success\"}");
    assert!(successes.is_some_and(|count| *count >= size.fewest_successes), "{successes:?}");
    let failed: Vec<_> = metrics.keys().filter(|name| name.contains("status=\"5")).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

/// Every host, for messages and for webhooks, is the origin.
fn on_loopback(origin: &TestWeb) -> Program {
    let [resolve, rule, allow, range] = origin.flags();
    let rule = rule.replacen("*.test=", "*=", 1);
    let flags = [resolve, rule, allow, range];
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
        .flags(flags)
        .flags(["--rate", "0", "--i-own-these-sites"])
        .variable("FETCHWELL_RETRIEVER__DEFAULT_RATE_LIMIT", "10000")
        .variable("FETCHWELL_RETRIEVER__DEFAULT_BURST_SIZE", "10000")
        .variable("FETCHWELL_RETRIEVER__MAX_CRAWL_PAGES", "1000000000")
        .variable("FETCHWELL_RETRIEVER__MAX_CRAWLS", "256")
}

/// Runs Schemathesis with all its checks, which must all hold, and returns its report.
async fn run(python: &Path, service: &Service, size: &Size, seed: u64) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/serve_contract");
    let report = folder.path().join("report.json");
    let mut command = Command::new(python);
    command
        .args(["-m", "schemathesis.cli", "--config-file"])
        .arg(beside.join("schemathesis.toml"))
        .args(["run", &format!("http://{}/openapi.json", service.address), "--no-color"])
        // What reading a page returns depends on its site.
        .args(["--exclude-path", "/r/{url}"])
        .args(["--checks", "all", "--max-examples", size.examples, "--seed", &seed.to_string()])
        // DELETE cancels a batch or a crawl, which stays with the results that it has. The configuration cannot say so, because
        // `all` includes what it disables.
        .args(["--exclude-checks", "use_after_free"])
        .args(["--max-response-time", "120", "--report", "json", "--report-json-path"])
        .arg(&report)
        .current_dir(folder.path())
        .env("FETCHWELL_TOKEN", &service.token)
        .env("SCHEMATHESIS_HOOKS", beside.join("schemathesis_hooks.py"))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let ended = timeout(PATIENCE, command.output()).await.expect("an end in time").unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    let end: String =
        said.lines().map(|line| line.chars().take(300).collect::<String>() + "\n").collect();
    assert!(ended.status.success(), "replay with FETCHWELL_TEST_SEED={seed}\n{end}");
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    for phase in ["examples", "coverage", "fuzzing", "stateful"] {
        assert_eq!(report["phases"][phase]["status"], "success", "{phase}\n{end}");
    }
    report
}

fn cases_of(report: &Value) -> u64 {
    report["test_cases"]["generated"].as_u64().expect("a number of cases")
}
