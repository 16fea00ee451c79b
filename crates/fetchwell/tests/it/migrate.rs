//! `fetchwell migrate`: what a service kept in SQLite goes on in PostgreSQL as if nothing had happened.

use std::collections::HashSet;
use std::time::Duration;

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::conformance::servers::unused_postgres;
use fetchwell_testkit::crash::{Program, Service, TestWeb};
use fetchwell_testkit::plain_http;
use fetchwell_testkit::replay::count_or;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// Two sites: one that serves, and one whose pages come one in five seconds, so that most of them wait.
fn web() -> TestWeb {
    TestWeb::start([
        SiteScript::new("quick.test").status("/missing", 404).binary("/photo", "image/png", 999),
        SiteScript::new("slow.test").crawl_delay(Duration::from_secs(5)),
    ])
}

fn program(origin: &TestWeb) -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
        .on(origin)
        .flags(["--rate", "50"])
        .variable("FETCHWELL_RETRIEVER__DEFAULT_RATE_LIMIT", "1000")
        .variable("FETCHWELL_RETRIEVER__DEFAULT_BURST_SIZE", "1000")
}

async fn ask(service: &Service, line: &str, headers: &[(&str, &str)], body: &Value) -> Value {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let answer =
        plain_http::ask(service.address, &service.token, line, headers, &body).await.unwrap();
    assert_eq!(answer.status, 200, "{line}: {}", String::from_utf8_lossy(&answer.body));
    answer.json()
}

async fn submit(service: &Service, url: &str, key: &str) -> String {
    let body = json!({"url": url, "retailer": "admhr", "correlation_id": "c"});
    let queued = ask(service, "POST /fetch", &[("idempotency-key", key)], &body).await;
    queued["message_id"].as_str().unwrap().to_owned()
}

async fn body_of(service: &Service, id: &str) -> Vec<u8> {
    let line = format!("GET /messages/{id}/body");
    let answer = plain_http::ask(service.address, &service.token, &line, &[], "").await.unwrap();
    assert_eq!(answer.status, 200, "{line}: {}", String::from_utf8_lossy(&answer.body));
    answer.body
}

/// All results from a cursor on, until there are so many.
async fn results(service: &Service, many: usize) -> Vec<Value> {
    let mut found = Vec::new();
    let began = Instant::now();
    while found.len() < many {
        assert!(began.elapsed() < DEADLINE, "{} of {many} results", found.len());
        let line = format!("GET /outbox?after={}&wait=5", found.len());
        found.extend(
            ask(service, &line, &[], &Value::Null).await["messages"].as_array().unwrap().clone(),
        );
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_goes_on_in_postgresql_where_it_stopped_in_sqlite() {
    let Some(target) = unused_postgres().await else { return };
    let origin = web();
    let mut service = Service::start(program(&origin)).await;
    let mut all = HashSet::new();
    for number in 0..20 {
        let url = format!("http://quick.test/{number}");
        all.insert(submit(&service, &url, &format!("quick-{number}")).await);
    }
    all.insert(submit(&service, "http://quick.test/missing", "missing").await);
    let photo = submit(&service, "http://quick.test/photo", "photo").await;
    all.insert(photo.clone());
    let before = results(&service, 22).await;
    let body = body_of(&service, &photo).await;
    for number in 0..5 {
        let url = format!("http://slow.test/{number}");
        all.insert(submit(&service, &url, &format!("slow-{number}")).await);
    }

    // While it runs, nothing moves.
    let refused = service.program().run(&["migrate", "--to", &target]).await.expect_code(2);
    assert!(
        refused.stderr.contains("a process is using sqlite:fetchwell.db"),
        "{}",
        refused.stderr
    );
    service.stop().await;
    let waiting = 27 - results_in_file(&service).await;
    assert!(waiting >= 3, "only {waiting} wait");

    let moved = service.program().run(&["--json", "migrate", "--to", &target]).await.expect_code(0);
    let moved: Value = serde_json::from_str(&moved.stdout).unwrap();
    assert_eq!((&moved["moved"]["messages"], &moved["moved"]["callers"]), (&json!(27), &json!(1)));
    assert_eq!(moved["moved"]["idempotency_keys"], 27);
    assert_eq!(moved["moved"]["bodies"], 2, "of the photo, and of the error page");
    assert!(moved["moved"]["sites"].as_u64().unwrap() >= 2, "{moved}");

    // The file is not served from any more, and says where to look.
    let refused = service.program().run(&["callers", "list"]).await.expect_code(2);
    assert!(refused.stderr.contains("was moved to postgres://"), "{}", refused.stderr);
    let again = service.program().run(&["migrate", "--to", &target]).await.expect_code(0);
    assert!(again.stdout.contains("already moved"), "{}", again.stdout);
    // Not to a second database either: both would fetch.
    let other = unused_postgres().await.unwrap();
    let refused = service.program().run(&["migrate", "--to", &other]).await.expect_code(2);
    assert!(refused.stderr.contains("continue with the database"), "{}", refused.stderr);
    let callers =
        service.program().run(&["--store", &other, "callers", "list"]).await.expect_code(0);
    assert!(callers.stdout.contains("there are no callers"), "{}", callers.stdout);

    // The same token, the same results by the same cursors, the same answer to what was sent before.
    service.start_again_with(&["--store", &target]).await;
    let after = results(&service, 22).await;
    assert_eq!(after[..22], before[..22]);
    assert_eq!(body_of(&service, &photo).await, body);
    let sent_again = submit(&service, "http://quick.test/3", "quick-3").await;
    assert!(all.contains(&sent_again));
    let new = submit(&service, "http://quick.test/new", "new").await;
    assert!(all.insert(new), "a name was given twice");
    let ended: HashSet<String> = results(&service, 28)
        .await
        .iter()
        .map(|result| result["inbox_message_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ended, all);
    assert_eq!(origin.repeated_pages(), 0, "what had its result was fetched again");

    // PostgreSQL has no frontier, and the answer says what to do.
    for (line, body) in [
        ("POST /crawl", json!({"urls": ["http://quick.test/"]}).to_string()),
        ("GET /crawls", String::new()),
        ("GET /crawl/crawl_00000000000000000000000000000000", String::new()),
    ] {
        let refused = plain_http::ask(service.address, &service.token, line, &[], &body).await;
        let refused = refused.unwrap();
        assert_eq!(refused.status, 501, "{line}");
        let problem = refused.json();
        assert_eq!(problem["type"], "/docs#problem-not-supported");
        assert!(problem["detail"].as_str().unwrap().contains("sqlite:PATH"), "{problem}");
    }
    service.stop().await;
}

/// How many results the stopped service had.
async fn results_in_file(service: &Service) -> usize {
    let file = service.program().file("fetchwell.db");
    let connection = rusqlite::Connection::open(file).unwrap();
    connection.query_row("SELECT count(*) FROM outbox", [], |row| row.get(0)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_is_cut_off_is_made_whole_by_the_next() {
    let Some(target) = unused_postgres().await else { return };
    let origin = web();
    let mut service = Service::start(program(&origin)).await;
    let message = |number| json!({"url": format!("http://slow.test/{number}"), "retailer": "admhr", "correlation_id": "c"});
    for batch in 0..5 {
        let messages: Vec<Value> = (batch * 1_000..(batch + 1) * 1_000).map(message).collect();
        ask(&service, "POST /fetch/batch", &[], &json!({"messages": messages})).await;
    }
    service.stop().await;
    for kill in 0..count_or("FETCHWELL_TEST_MIGRATE_KILLS", 2) {
        let moving = service.program().start(&["migrate", "--to", &target]);
        sleep(Duration::from_millis(60 + 90 * (kill % 4))).await;
        moving.kill().await;
    }
    service.program().run(&["migrate", "--to", &target]).await.expect_code(0);
    service.start_again_with(&["--store", &target]).await;
    let metrics = plain_http::ask(service.address, &service.token, "GET /metrics", &[], "").await;
    let metrics = String::from_utf8(metrics.unwrap().body).unwrap();
    let accepted = metrics.lines().find(|line| line.contains("accepted") && line.contains("5000"));
    assert!(accepted.is_some(), "{metrics}");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_moved_is_said() {
    let origin = web();
    let program = program(&origin);
    let cases = [
        (vec!["migrate", "--to", "postgres://x@127.0.0.1/x"], 2, "there is no file"),
        (
            vec!["migrate", "--to", "sqlite:other.db"],
            2,
            "use `fetchwell migrate --store sqlite:PATH",
        ),
        (vec!["migrate", "--to", "mysql://x"], 2, "--to"),
    ];
    for (arguments, code, words) in cases {
        let ended = program.run(&arguments).await.expect_code(code);
        assert!(ended.stderr.contains(words), "{arguments:?}: {}", ended.stderr);
    }
    program.run(&["callers", "add", "somebody"]).await.expect_code(0);
    let nobody = ["migrate", "--to", "postgres://x@127.0.0.1:1/x"];
    program.run(&nobody).await.expect_code(5);
    if let Some(target) = unused_postgres().await {
        program.run(&["--store", &target, "callers", "add", "other"]).await.expect_code(0);
        let ended = program.run(&["migrate", "--to", &target]).await.expect_code(2);
        assert!(ended.stderr.contains("already has callers or messages"), "{}", ended.stderr);
        // Nothing was changed: the file is as good as before.
        program.run(&["callers", "list"]).await.expect_code(0);
    }
}
