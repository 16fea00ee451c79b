//! `fetchwell top` on each store: what it shows is what is there.

use std::time::Duration;

use fetchwell_simweb::{OutageKind, SiteScript};
use fetchwell_testkit::crash::{Program, Service};
use fetchwell_testkit::plain_http::ask;
use fetchwell_testkit::scene::{Scene, StoreKind};
use serde_json::{Value, json};

/// A site that is down for as long as any test runs, so that its URLs wait.
fn down() -> [SiteScript; 1] {
    let always = Duration::ZERO..Duration::from_secs(86_400);
    [SiteScript::new("down.test").outage(always, OutageKind::Refuse)]
}

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
}

async fn top(program: &Program) -> Value {
    let told = program.run(&["top", "--json"]).await.expect_code(0).stdout;
    serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"))
}

/// Accepts a message for a site that is down, and looks.
async fn a_message_that_waits(scene: Scene) {
    let service = Service::start(scene.program).await;
    let body = json!({"url": "http://down.test/", "retailer": "x", "correlation_id": "y"});
    let posted = ask(service.address, &service.token, "POST /fetch", &[], &body.to_string()).await;
    assert_eq!(posted.expect("it answers").status, 200);
    let snapshot = top(service.program()).await;
    let queue = &snapshot["queues"][0];
    assert_eq!(
        (&queue["queue"], &queue["accepted"]),
        (&json!("messages"), &json!(1)),
        "{snapshot}"
    );
    assert_eq!(queue["accepted_per_second"], json!(0.0), "{snapshot}");
    let site =
        snapshot["sites"].as_array().expect("sites").iter().find(|s| s["site"] == "down.test");
    let site = site.unwrap_or_else(|| panic!("the site is not there: {snapshot}"));
    assert_eq!(site["interval_seconds"], json!(1.0), "{snapshot}");
    // It waits in the store, or the service has it in hand.
    let waits = queue["queued"].as_i64().unwrap_or(0) + queue["delayed"].as_i64().unwrap_or(0);
    assert_eq!(queue["oldest_waiting_seconds"].is_f64(), waits > 0, "{snapshot}");
}

#[tokio::test]
async fn on_sqlite() {
    a_message_that_waits(Scene::embedded(program(), down())).await;
}

#[tokio::test]
async fn on_postgres() {
    let Some(scene) = Scene::on(StoreKind::Postgres, program(), down()).await else { return };
    a_message_that_waits(scene).await;
}

#[tokio::test]
async fn on_redis() {
    let Some(scene) = Scene::on(StoreKind::Redis, program(), down()).await else { return };
    let add = ["pages", "add", "http://down.test/", "http://down.test/2"];
    scene.program.run(&add).await.expect_code(0);
    let snapshot = top(&scene.program).await;
    let queue = &snapshot["queues"][0];
    assert_eq!(
        (&queue["queue"], &queue["queued"]),
        (&json!("crawler_queue"), &json!(2)),
        "{snapshot}"
    );
}

#[tokio::test]
async fn without_a_terminal_it_says_what_to_type() {
    let told = program().run(&["top"]).await.expect_code(2).stderr;
    assert!(told.contains("--once"), "{told}");
}
