//! A service whose store goes away.

use fetchwell_testkit::crash::{OwnServer, Service};
use fetchwell_testkit::eventually::{eventually, eventually_ok};

use super::place::{accepted, get, message, no_way_out, post};

/// Asks until it has this status.
async fn until(service: &Service, path: &str, status: u16) {
    eventually_ok(&format!("{status} at {path}"), async || {
        let answer = get(service.address, &service.token, path).await;
        let state = || format!("it has {}:\n{}", answer.status, service.log());
        if answer.status == status { Ok(()) } else { Err(state()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_store_it_says_503_and_when_to_come_again() {
    let Some(server) = OwnServer::start("postgres").await else { return };
    let service = Service::start(no_way_out().flags(["--store", server.url()])).await;
    let token = &service.token;
    let body = message().to_string();
    // It has a result, so the service is past its beginning, at which it would end without a store.
    let sent = post(service.address, token, "/fetch", &[("prefer", "wait=15")], &body).await;
    let own = format!("/messages/{}", sent.expect(200).json()["id"].as_str().unwrap());
    until(&service, "/readyz", 200).await;

    server.stop().await;
    until(&service, "/readyz", 503).await;
    for path in ["/readyz", "/metrics", "/outbox", &own] {
        let down = get(service.address, token, path).await.expect(503);
        assert_eq!(down.header("retry-after"), Some("5"), "{path}");
        assert_eq!(down.json()["type"], "/docs#problem-store-unavailable", "{path}");
    }
    let down = post(service.address, token, "/fetch", &[], &body).await.expect(503);
    assert_eq!(down.header("retry-after"), Some("5"));
    // It lives, and what is wrong is not for callers.
    get(service.address, token, "/livez").await.expect(200);
    let told = String::from_utf8(down.body).unwrap();
    assert!(!told.contains("postgres") && !told.contains("127.0.0.1"), "{told}");

    server.restart().await;
    until(&service, "/readyz", 200).await;
    until(&service, &own, 200).await;
    assert_eq!(accepted(&service).await, 1.0);
    post(service.address, token, "/fetch", &[], &body).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_politeness_store_it_accepts_messages_and_is_not_ready() {
    let Some(server) = OwnServer::start("redis").await else { return };
    let service = Service::start(no_way_out().flags(["--politeness", server.url()])).await;
    until(&service, "/readyz", 200).await;
    server.stop().await;
    let body = message().to_string();
    post(service.address, &service.token, "/fetch", &[], &body).await.expect(200);
    until(&service, "/readyz", 503).await;
    let down = get(service.address, "", "/readyz").await.expect(503).json();
    assert!(down["detail"].as_str().unwrap().starts_with("The store is failing: "), "{down}");

    server.restart().await;
    until(&service, "/readyz", 200).await;
    eventually("its result", async || {
        let outbox = get(service.address, &service.token, "/outbox").await.expect(200).json();
        outbox["messages"].as_array().unwrap().len() == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_does_not_start_without_its_store() {
    let Some(server) = OwnServer::start("postgres").await else { return };
    server.stop().await;
    let program = no_way_out().flags(["--store", server.url()]);
    let ended = program.run(&["serve", "--listen", "127.0.0.1:0"]).await.expect_code(5);
    assert!(!ended.stdout.contains("fw_"), "a token nobody can use: {}", ended.stdout);
    assert!(!ended.stderr.is_empty());
}
