//! The same by the API of a running service: who may, what comes of it, and what is kept of it.

use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::inbox::AuditEntry;
use fetchwell_simweb::SiteScript;
use fetchwell_stores::sqlite::open_retriever;
use fetchwell_testkit::crash::{Program, Service, TestWeb};
use fetchwell_testkit::eventually::eventually_ok;
use serde_json::{Value, json};

use crate::client::{self, Response};

async fn service(origin: &TestWeb) -> Service {
    Service::start(Program::new(env!("CARGO_BIN_EXE_fetchwell")).on(origin)).await
}

async fn ask(service: &Service, token: &str, method: &str, path: &str, body: &Value) -> Response {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", &*bearer), ("content-type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    client::raw(service.address, &client::request(method, path, &headers, &body)).await
}

async fn get(service: &Service, path: &str) -> Value {
    ask(service, &service.token, "GET", path, &Value::Null).await.expect(200).json()
}

async fn post(service: &Service, path: &str, body: Value) -> Value {
    ask(service, &service.token, "POST", path, &body).await.expect(200).json()
}

async fn audit_of(service: &Service) -> Vec<AuditEntry> {
    let day = Duration::from_secs(86_400);
    let file = service.program().file("fetchwell.db");
    let store = open_retriever(&file, Clock::system(), day, day).await.unwrap();
    store.inbox.audit_trail(1_000).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn acts_hit_the_site_that_they_name_and_are_kept_with_whoever_did_them() {
    let origin = TestWeb::start([SiteScript::new("a.test")]);
    let service = service(&origin).await;
    let paused = post(&service, "/sites/A.test/pause", Value::Null).await;
    assert_eq!((&paused["changed"], &paused["site"]["site"]), (&true.into(), &"a.test".into()));
    post(&service, "/sites/b.test/set-rate", json!({"rate": 0.5})).await;
    let paused = get(&service, "/sites?condition=paused").await;
    assert_eq!(paused["sites"].as_array().unwrap().len(), 1);
    assert_eq!(paused["sites"][0]["paused"]["by"], "local");
    assert_eq!(paused["next"], Value::Null);
    let rated = get(&service, "/sites/b.test").await;
    assert_eq!(rated["pace"]["interval_seconds"], 2.0);
    post(&service, "/sites/b.test/set-rate", json!({"rate": null})).await;
    post(&service, "/sites/b.test/reset-breaker", Value::Null).await;
    post(&service, "/sites/b.test/refetch-robots", Value::Null).await;
    post(&service, "/sites/a.test/resume", Value::Null).await;
    service.program().run(&["sites", "pause", "c.test"]).await.expect_code(0);
    let first = get(&service, "/sites?limit=1").await;
    let rest = get(&service, "/sites?limit=200&after=a.test").await;
    assert_eq!((&first["sites"][0]["site"], &first["next"]), (&"a.test".into(), &"a.test".into()));
    assert_eq!(rest["sites"].as_array().unwrap().len(), 2, "{rest}");

    let mut acts: Vec<_> = audit_of(&service).await;
    acts.retain(|entry| entry.action.contains("site"));
    acts.reverse();
    let acts: Vec<_> = acts
        .iter()
        .map(|entry| {
            let who = entry.caller.as_deref().unwrap_or_default();
            (who, entry.action.as_str(), entry.detail.as_str(), entry.from.as_str())
        })
        .collect();
    assert_eq!(
        acts,
        [
            ("local", "pause_site", "a.test", "127.0.0.1"),
            ("local", "set_site_rate", "b.test: one request every 2 s", "127.0.0.1"),
            ("local", "clear_site_rate", "b.test", "127.0.0.1"),
            ("local", "reset_site_breaker", "b.test (no change)", "127.0.0.1"),
            ("local", "refetch_site_robots", "b.test", "127.0.0.1"),
            ("local", "resume_site", "a.test", "127.0.0.1"),
            ("cli", "pause_site", "c.test", "command line"),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_changes_nothing_and_a_caller_sees_nothing() {
    let origin = TestWeb::start([SiteScript::new("a.test")]);
    let service = service(&origin).await;
    let viewer = service.caller("viewer", "viewer").await;
    let caller = service.caller("caller", "caller").await;
    post(&service, "/sites/a.test/pause", Value::Null).await;
    let before = get(&service, "/sites/a.test").await["paused"]["by"].clone();
    for path in ["/sites", "/sites/a.test"] {
        ask(&service, &viewer, "GET", path, &Value::Null).await.expect(200);
        ask(&service, &caller, "GET", path, &Value::Null).await.expect(403);
    }
    for act in ["pause", "resume", "set-rate", "reset-breaker", "refetch-robots"] {
        let path = format!("/sites/a.test/{act}");
        for token in [&viewer, &caller] {
            ask(&service, token, "POST", &path, &json!({"rate": 9})).await.expect(403);
        }
    }
    let after = get(&service, "/sites/a.test").await;
    assert_eq!(
        (&after["paused"]["by"], &after["pace"]["source"]),
        (&before, &"default rate".into())
    );
    let path = "/sites/a.test/set-rate";
    let none = json!({"rate": 0});
    let refused = ask(&service, &service.token, "POST", path, &none).await.expect(422).json();
    assert!(refused["errors"][0]["detail"].as_str().unwrap().contains("own"), "{refused}");
    ask(&service, &service.token, "POST", "/sites/a%2Fb/pause", &Value::Null).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_a_paused_site_waits_and_its_deadline_says_why() {
    let origin = TestWeb::start([SiteScript::new("a.test"), SiteScript::new("b.test")]);
    let service = service(&origin).await;
    post(&service, "/sites/a.test/pause", Value::Null).await;
    let message = |site: &str, deadline: &str| {
        json!({"url": format!("http://{site}/x"), "retailer": "r", "correlation_id": "c",
            "deadline": deadline})
    };
    let late = post(&service, "/fetch", message("a.test", "2s")).await;
    let patient = post(&service, "/fetch", message("a.test", "10m")).await;
    let other = post(&service, "/fetch", message("b.test", "10m")).await;
    let id = |sent: &Value| format!("/messages/{}", sent["message_id"].as_str().unwrap());
    let ended = until_ended(&service, &id(&late)).await;
    assert_eq!(ended["outbox"]["status"], "timeout");
    let error = ended["outbox"]["error"].as_str().unwrap();
    assert!(error.contains("paused by an operator"), "{error}");
    assert_eq!(until_ended(&service, &id(&other)).await["outbox"]["status"], "success");
    let waits = get(&service, &id(&patient)).await;
    assert_eq!(waits["outbox"], Value::Null, "{waits}");
    assert!(origin.hits().iter().all(|hit| &*hit.site == "b.test"), "{:?}", origin.hits());
    post(&service, "/sites/a.test/resume", Value::Null).await;
    let ended = until_ended(&service, &id(&patient)).await;
    assert_eq!(ended["outbox"]["status"], "success", "{ended}");
}

async fn until_ended(service: &Service, path: &str) -> Value {
    eventually_ok(&format!("the end of {path}"), async || {
        let message = get(service, path).await;
        if message["outbox"].is_null() { Err(service.log()) } else { Ok(message) }
    })
    .await
}
