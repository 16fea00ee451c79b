//! Every way through the API, in a network where every address answers: each leads where it may, and nowhere else.

use std::net::IpAddr;

use fetchwell_testkit::canary::Canary;
use fetchwell_testkit::crash::Service;
use fetchwell_testkit::eventually::eventually_ok;
use fetchwell_testkit::namespace;
use fetchwell_testkit::plain_http::{PlainResponse, ask};
use serde_json::{Value, json};

use crate::guard::{self, CASES, HOME, program_in, trap};
use crate::mcp::use_tool;
use crate::serve_contract::URLS as BAD_URLS;

/// A page that may be fetched, and a server that takes webhooks.
const OK: &str = "http://ok.test/";

/// The robots.txt of this site names sitemaps at all refused addresses.
const SITEMAPS: &str = "http://sitemaps.test/";

#[test]
fn no_way_through_the_api_leads_to_a_refused_address() {
    if namespace::is_inside("serve_guard::no_way_through_the_api_leads_to_a_refused_address") {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(try_every_way_and_judge());
    }
}

async fn try_every_way_and_judge() {
    let (canary, server) = trap().await;
    let program = program_in(&server).variable("FETCHWELL_RETRIEVER__DEFAULT_RATE_LIMIT", "1000");
    let service = Service::start(program).await;
    let refused: Vec<&str> = guard::refused().chain(BAD_URLS.iter().copied()).collect();
    assert!(refused.len() > 97, "{}", refused.len());
    for url in &refused {
        for tool in ["fetch", "map"] {
            let answer = tool_answer(&service, tool, url).await;
            assert!(answer.is_error, "{tool} {url:?}: {answer:?}");
        }
        // An explanation does not follow redirects, so it cannot always say why not.
        tool_answer(&service, "explain", url).await;
        let scraped = scrape(&service, url).await;
        assert_ne!(scraped["success"], true, "{url:?}: {scraped}");
        let mapped = map(&service, url).await;
        assert_ne!(mapped["success"], true, "{url:?}: {mapped}");
        let read = read(&service, url).await;
        assert!(matches!(read.status, 404 | 422 | 502), "{url:?}: {read:?}");
    }
    expect_only_home_was_dialled(&canary).await;

    let mapped = map(&service, SITEMAPS).await;
    assert_eq!(mapped["links"][0]["url"], SITEMAPS, "{mapped}");
    assert_eq!(mapped["links"].as_array().map(Vec::len), Some(1), "{mapped}");
    assert_eq!(fetched_in_batches(&service, &refused).await, 0);
    expect_only_home_was_dialled(&canary).await;

    let mut accepted = 0;
    for url in &refused {
        accepted += usize::from(send_with_callback(&service, url).await);
    }
    assert!(accepted > 5, "names are looked up later: {accepted}");
    eventually_ok("every delivery to be tried", async || {
        let all = deliveries(&service).await;
        let tried = all.iter().filter(|one| one["attempts"].as_u64() > Some(0)).count();
        if (all.len(), tried) == (accepted, accepted) { Ok(()) } else { Err(json!(all)) }
    })
    .await;
    for delivery in deliveries(&service).await {
        assert_ne!(delivery["status"], "delivered", "{delivery}");
    }
    expect_only_home_was_dialled(&canary).await;
    expect_every_way_is_open(&service).await;
}

/// The control: what may be reached is reached by each of these ways.
async fn expect_every_way_is_open(service: &Service) {
    for (url, ..) in CASES.iter().filter(|(_, outcome, _)| *outcome == "fetched") {
        let scraped = scrape(service, url).await;
        assert_eq!(scraped["success"], true, "{url}: {scraped}\n{}", service.log());
        let read = read(service, url).await;
        assert_eq!(read.status, 200, "{url}: {read:?}");
        let answer = tool_answer(service, "fetch", url).await;
        assert!(!answer.is_error, "{url}: {answer:?}");
    }
    let mapped = map(service, OK).await;
    assert_eq!(mapped["success"], true, "{mapped}");
    assert_eq!(fetched_in_batches(service, &[OK]).await, 2);
    assert!(send_with_callback(service, OK).await);
    eventually_ok("a webhook to arrive", async || {
        let all = deliveries(service).await;
        let arrived = all.iter().any(|one| one["status"] == "delivered");
        if arrived { Ok(()) } else { Err(json!(all)) }
    })
    .await;
}

async fn expect_only_home_was_dialled(canary: &Canary) {
    let dialled = canary.connections().await.expect("the canary's count");
    let home: IpAddr = HOME.parse().expect("an address");
    assert_eq!(Vec::from_iter(dialled.into_keys()), [home]);
}

async fn tool_answer(service: &Service, tool: &str, url: &str) -> crate::mcp::ToolAnswer {
    use_tool(service.address, &service.token, tool, &json!({"url": url})).await
}

async fn scrape(service: &Service, url: &str) -> Value {
    let scraped = send(service, "POST /v2/scrape", &json!({"url": url, "maxAge": 0})).await;
    assert_ne!(scraped.status, 429, "{url:?}: {scraped:?}");
    scraped.json()
}

async fn map(service: &Service, url: &str) -> Value {
    let mapped = send(service, "POST /v2/map", &json!({"url": url, "ignoreCache": true})).await;
    assert_ne!(mapped.status, 429, "{url:?}: {mapped:?}");
    mapped.json()
}

/// Sends these URLs as a batch in each format, and returns how many pages were fetched when both have ended.
async fn fetched_in_batches(service: &Service, urls: &[&str]) -> u64 {
    let messages: Vec<Value> = urls.iter().map(|url| json!({"url": url})).collect();
    let native = json!({"messages": messages, "invalid": "skip"});
    let native = send(service, "POST /fetch/batch", &native).await.json();
    let scrapes = json!({"urls": urls, "maxAge": 0});
    let scrapes = send(service, "POST /v2/batch/scrape", &scrapes).await.json();
    let mut fetched = 0;
    for id in [&native["batch_id"], &scrapes["id"]] {
        let id = id.as_str().unwrap_or_else(|| panic!("{native} {scrapes}"));
        let ended = eventually_ok("the batch to end", async || {
            let batch = get(service, &format!("/batches/{id}")).await;
            if batch["done"] == true { Ok(batch) } else { Err(batch) }
        })
        .await;
        fetched += ended["counts"]["completed"].as_u64().expect("a count");
    }
    fetched
}

async fn read(service: &Service, url: &str) -> PlainResponse {
    // Encoded as a whole: some of these URLs fit in no request line.
    let line = format!("GET /r/{}", percent_encoded(url));
    let fresh = [("cache-control", "no-cache")];
    ask(service.address, &service.token, &line, &fresh, "").await.expect("an answer")
}

fn percent_encoded(url: &str) -> String {
    let encoded = url.bytes().map(|byte| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    encoded.collect()
}

/// Sends a message whose result goes to this URL, and returns whether it was accepted.
async fn send_with_callback(service: &Service, url: &str) -> bool {
    let sent = send(service, "POST /fetch", &json!({"url": OK, "callback_url": url})).await;
    assert!(matches!(sent.status, 200 | 422), "{url:?}: {sent:?}");
    sent.status == 200
}

async fn send(service: &Service, line: &str, body: &Value) -> PlainResponse {
    let sent = ask(service.address, &service.token, line, &[], &body.to_string()).await;
    sent.expect("an answer")
}

async fn deliveries(service: &Service) -> Vec<Value> {
    let listed = get(service, "/webhooks/deliveries?limit=200").await;
    listed["deliveries"].as_array().expect("deliveries").clone()
}

async fn get(service: &Service, path: &str) -> Value {
    let line = format!("GET {path}");
    ask(service.address, &service.token, &line, &[], "").await.expect("an answer").json()
}
