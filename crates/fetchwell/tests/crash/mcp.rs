//! Many language models at once: they share one pace and one cache.

use std::time::Duration;

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::alone::alone;
use fetchwell_testkit::crash::{ControlSender, Program, Service, TestWeb};
use fetchwell_testkit::plain_http::ask;
use futures::future::join_all;
use serde_json::{Value, json};

const ACCEPT: [(&str, &str); 1] = [("accept", "application/json, text/event-stream")];

/// Clients over HTTP, and on the standard streams of processes of their own.
const OVER_HTTP: usize = 46;
const ALL: usize = 50;

fn fetch(url: &str) -> Value {
    let params = json!({"name": "fetch", "arguments": {"url": url}});
    json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
}

/// The text that a tool answered, which must be a success.
fn text_of(answer: &Value) -> &str {
    let result = &answer["result"];
    assert_eq!(result["isError"], false, "{answer}");
    result["content"][0]["text"].as_str().unwrap()
}

async fn fetch_over_http(service: &Service, url: &str) -> String {
    let body = fetch(url).to_string();
    let answer = ask(service.address, &service.token, "POST /mcp", &ACCEPT, &body).await.unwrap();
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    text_of(&answer.json()).to_owned()
}

/// Fetches a page with a process on the store of the service.
async fn fetch_on_streams(service: &Service, url: &str) -> String {
    let about = json!({"name": "a test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello});
    let input = format!("{hello}\n{}\n", fetch(url));
    let mcp = ["mcp", "--store", "sqlite:fetchwell.db"];
    let ended = service.program().run_with_input(&mcp, &input).await.expect_code(0);
    let last = ended.stdout.lines().last().unwrap_or_else(|| panic!("{}", ended.stderr));
    text_of(&serde_json::from_str(last).unwrap()).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_mcp_clients_on_one_site_keep_one_pace_and_share_its_pages() {
    let _turn = alone().await;
    let interval = Duration::from_millis(100);
    let origin = TestWeb::start([SiteScript::new("busy.test").page_bytes(1_000)]);
    let program = Program::new(env!("CARGO_BIN_EXE_fetchwell"))
        .on(&origin)
        .flags(["--rate", "10"])
        .variable("FETCHWELL_RETRIEVER__DEFAULT_RATE_LIMIT", "1000");
    let service = Service::start(program).await;
    let control = ControlSender::start(&origin);
    let client = async |number: usize| {
        let url = format!("http://busy.test/{number}");
        let text = match number {
            ..OVER_HTTP => fetch_over_http(&service, &url).await,
            _ => fetch_on_streams(&service, &url).await,
        };
        assert!(text.contains("Fetched just now."), "{text}");
    };
    join_all((0..ALL).map(client)).await;
    assert_eq!((origin.page_hits(), origin.repeated_pages()), (ALL, 0));

    // The same page for all of them is one request.
    let same = "http://busy.test/same";
    join_all((0..ALL).map(|_| fetch_over_http(&service, same))).await;
    assert_eq!(origin.page_hits(), ALL + 1);

    let tolerance = control.tolerance(&origin).await;
    let verdict = origin.verdict(interval, tolerance);
    println!("{ALL} clients: {verdict}; tolerance {tolerance:?}");
    assert!(verdict.is_polite() && verdict.gaps_judged >= ALL, "{verdict}");
}
