//! Where the service of a test runs, and what it is seen to have.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::inbox::AuditEntry;
use fetchwell_stores::sqlite::open_retriever;
use fetchwell_testkit::crash::{Program, Service};
use serde_json::{Value, json};

use crate::client::{self, Response};

/// A page that may be asked for.
pub(crate) const PAGE: &str = "http://shop.test/page";

/// A service that takes messages and can't fetch: every host leads to loopback, which is refused.
pub(crate) fn no_way_out() -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell")).flags(["--resolve", "*=127.0.0.1:1"])
}

pub(crate) fn message() -> Value {
    json!({"url": PAGE, "retailer": "admhr", "correlation_id": "c-1"})
}

pub(crate) async fn get(to: SocketAddr, token: &str, path: &str) -> Response {
    let bearer = format!("Bearer {token}");
    client::raw(to, &client::request("GET", path, &[("authorization", &bearer)], "")).await
}

pub(crate) async fn post(
    to: SocketAddr,
    token: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response {
    let bearer = format!("Bearer {token}");
    let own = [("authorization", &*bearer), ("content-type", "application/json")];
    client::raw(to, &client::request("POST", path, &[&own, headers].concat(), body)).await
}

/// The metrics, by name and labels.
pub(crate) async fn metrics(service: &Service) -> BTreeMap<String, f64> {
    let text = get(service.address, &service.token, "/metrics").await.expect(200).body;
    let text = String::from_utf8(text).unwrap();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    };
    samples.map(sample).collect()
}

/// How many messages were ever accepted by the store.
pub(crate) async fn accepted(service: &Service) -> f64 {
    metrics(service).await["fetchwell_ledger_messages{state=\"accepted\"}"]
}

/// How many failed authentications the audit tells of: an entry may stand for many.
pub(crate) fn failures_in(audit: &[AuditEntry]) -> i64 {
    let failed = audit.iter().filter(|entry| entry.action == "authentication_failed");
    let times = |entry: &AuditEntry| match entry.detail.split_once(", ") {
        Some((_, times)) => times.split(' ').next().unwrap().parse::<i64>().unwrap(),
        None => 1,
    };
    failed.map(times).sum()
}

/// The audit of a service on SQLite.
pub(crate) async fn audit_of(service: &Service) -> Vec<AuditEntry> {
    let day = Duration::from_secs(86_400);
    let file = service.program().file("fetchwell.db");
    let store = open_retriever(&file, Clock::system(), day, day).await.unwrap();
    store.inbox.audit_trail(100_000).await.unwrap()
}
