//! What is refused, and how.

use std::time::{Duration, Instant};

use fetchwell_engine::clock::Clock;
use fetchwell_stores::sqlite::open_retriever;
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::eventually::{eventually, eventually_ok};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::service::{Service, message};
use crate::client::{connect, has_read, read_to_end, request};

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_has_its_status() {
    let service = Service::start(&[]).await;
    let bearer = format!("Bearer {}", service.token);
    let auth = ("authorization", &*bearer);
    let json_type = ("content-type", "application/json");
    let good = message("/page").to_string();
    let unknown = r#"{"url":"http://a.test/","retailer":"a","correlation_id":"c","colour":1}"#;
    let private = r#"{"url":"http://169.254.169.254/","retailer":"a","correlation_id":"c"}"#;
    for (method, path, headers, body, status) in [
        ("POST", "/fetch", vec![auth, json_type], "{", 400),
        ("POST", "/fetch", vec![auth, json_type], "", 400),
        ("POST", "/fetch", vec![json_type], &*good, 401),
        ("GET", "/nothing", vec![], "", 404),
        ("GET", "/messages/", vec![auth], "", 404),
        ("GET", "/fetch", vec![auth], "", 405),
        ("DELETE", "/outbox", vec![auth], "", 405),
        ("OPTIONS", "/livez", vec![], "", 405),
        ("POST", "/fetch", vec![auth], &*good, 415),
        ("POST", "/fetch", vec![auth, ("content-type", "text/plain")], &*good, 415),
        ("POST", "/fetch", vec![auth, json_type, ("content-encoding", "gzip")], &*good, 415),
        ("POST", "/fetch", vec![auth, json_type], "[]", 422),
        ("POST", "/fetch", vec![auth, json_type], "{}", 422),
        ("POST", "/fetch", vec![auth, json_type], unknown, 422),
        ("POST", "/fetch", vec![auth, json_type], private, 422),
        ("POST", "/fetch", vec![auth, json_type, ("idempotency-key", "a b")], &*good, 422),
        ("POST", "/fetch/batch", vec![auth, json_type], r#"{"messages":[]}"#, 422),
        ("GET", "/outbox?limit=0", vec![auth], "", 422),
        ("GET", "/outbox?after=x", vec![auth], "", 422),
    ] {
        println!("{method} {path} {headers:?} {body}");
        let refused = service.send(method, path, &headers, body).await.expect(status);
        match status {
            401 => assert_eq!(refused.header("www-authenticate"), Some("Bearer")),
            405 => assert!(refused.header("allow").is_some()),
            _ => {}
        }
    }
    let refused = service.post_as(&service.token, "/fetch", &[], private).await;
    let stranger = service.send("POST", "/fetch", &[json_type], private).await.expect(401);
    for problem in [refused.json(), stranger.json()] {
        assert_eq!(
            (&problem["url"], &problem["correlation_id"]),
            (&json!("http://169.254.169.254/"), &json!("c"))
        );
    }
}

/// A body may take 30 s, but not a stranger's.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_the_body_of_a_stranger() {
    let service = Service::start(&[]).await;
    let mut stream = connect(service.address).await;
    let head = "POST /fetch HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\
                content-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = timeout(Duration::from_secs(20), read_to_end(stream)).await;
    answer.expect("an answer in time").expect(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_wrong_with_a_token_the_answer_is_the_same() {
    let service = Service::start(&[]).await;
    let revoked = service.caller("gone", "caller").await;
    service.get_as(&revoked, "/outbox").await.expect(200);
    service.program.run(&["callers", "revoke", "gone"]).await.expect_code(0);
    let wrong = format!("fw_{}", "A".repeat(43));
    let mut answers = vec![service.send("GET", "/outbox", &[], "").await];
    for value in [
        "Bearer",
        "Basic YTpi",
        "Bearer x",
        &format!("Bearer {wrong}"),
        &format!("Bearer {revoked}"),
    ] {
        answers.push(service.send("GET", "/outbox", &[("authorization", value)], "").await);
    }
    for answer in &answers {
        assert_eq!((answer.status, answer.bytes()), (401, answers[0].bytes()));
    }
    // The audit is written once a second, and never says what was tried.
    let day = Duration::from_secs(86_400);
    let file = service.program.file("fetchwell.db");
    let store = open_retriever(&file, Clock::system(), day, day).await.unwrap();
    let trail = eventually_ok("the audit", async || {
        let trail = store.inbox.audit_trail(100).await.unwrap();
        let is_told = trail.iter().any(|entry| entry.action == "authentication_failed");
        if is_told { Ok(trail) } else { Err("nothing yet") }
    })
    .await;
    let count = |action: &str| trail.iter().filter(|entry| entry.action == action).count();
    assert_eq!((count("add_caller"), count("revoke_caller")), (2, 1));
    let failed = trail.iter().find(|entry| entry.action == "authentication_failed").unwrap();
    assert_eq!((failed.from.as_str(), &failed.caller), ("127.0.0.1", &None));
    assert!(!format!("{trail:?}").contains("fw_"), "{trail:?}");
    let listed = service.program.run(&["--json", "callers", "list"]).await.expect_code(0).stdout;
    assert!(listed.contains(r#""name":"local""#) && !listed.contains("fw_"), "{listed}");
    service.program.run(&["callers", "revoke", "nobody"]).await.expect_code(2);
    service.program.run(&["callers", "add", "local"]).await.expect_code(2);
    service.program.run(&["callers", "add", "No Name"]).await.expect_code(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_callers_message_looks_like_none() {
    let service = Service::start(&[]).await;
    let mine = service.caller("mine", "caller").await;
    let other = service.caller("other", "caller").await;
    let viewer = service.caller("viewer", "viewer").await;
    let body = message("/page").to_string();
    let sent =
        service.post_as(&mine, "/fetch", &[("prefer", "wait=10")], &body).await.expect(200).json();
    let path = format!("/messages/{}", sent["id"].as_str().unwrap());
    service.get_as(&mine, &path).await.expect(200);
    service.get_as(&viewer, &path).await.expect(200);
    service.get(&path).await.expect(200);
    let foreign = service.get_as(&other, &path).await.expect(404);
    let unknown = format!("/messages/msg_{}", "0".repeat(32));
    for path in [&*unknown, "/messages/x", "/messages/msg_%00"] {
        assert_eq!(service.get_as(&other, path).await.bytes(), foreign.bytes(), "{path}");
    }
    let theirs = service.get_as(&other, "/outbox").await.expect(200).json();
    assert_eq!(theirs, json!({"messages": [], "next": "0"}));
    service.post_as(&viewer, "/fetch", &[], &body).await.expect(403);
    service.post_as(&viewer, "/fetch/batch", &[], &body).await.expect(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_is_refused_before_it_is_there() {
    let service = Service::start(&[]).await;
    let bearer = format!("Bearer {}", service.token);
    let headers = [("authorization", &*bearer), ("content-type", "application/json")];
    // By what it announces: nothing of the body is ever sent.
    for (path, bytes) in [("/fetch", 65_537), ("/fetch/batch", (16 << 20) + 1)] {
        let announced = bytes.to_string();
        let headers = [&headers[..], &[("content-length", &*announced)]].concat();
        let mut stream = connect(service.address).await;
        stream.write_all(&request("POST", path, &headers, "")).await.unwrap();
        read_to_end(stream).await.expect(413);
    }
    // By what comes, when nothing is announced.
    let chunked = [&headers[..], &[("transfer-encoding", "chunked")]].concat();
    let mut stream = connect(service.address).await;
    stream.write_all(&request("POST", "/fetch", &chunked, "")).await.unwrap();
    let chunk = format!("4000\r\n{}\r\n", " ".repeat(0x4000));
    for _ in 0..5 {
        stream.write_all(chunk.as_bytes()).await.unwrap();
    }
    read_to_end(stream).await.expect(413);
    // A whole one, sent by somebody who reads the answer only after it.
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    service.post_as(&service.token, "/fetch", &[], &large).await.expect(413);
    let just_fits = format!("{{\"url\":\"{}\"}}", "x".repeat(65_526));
    service.post_as(&service.token, "/fetch", &[], &just_fits).await.expect(422);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_has_a_limit_of_its_own() {
    let limits =
        [("FETCHWELL_RETRIEVER__CALLER_RATE", "0.1"), ("FETCHWELL_RETRIEVER__CALLER_BURST", "3")];
    let service = Service::start(&limits).await;
    let token = service.caller("busy", "caller").await;
    let batch = json!({"messages": [message("/1"), message("/2")]}).to_string();
    service.post_as(&token, "/fetch/batch", &[], &batch).await.expect(200);
    let refused = service.post_as(&token, "/fetch/batch", &[], &batch).await.expect(429);
    assert_eq!(refused.header("retry-after"), Some("10"));
    let body = message("/3").to_string();
    service.post_as(&token, "/fetch", &[], &body).await.expect(200);
    let refused = service.post_as(&token, "/fetch", &[], &body).await.expect(429).json();
    assert_eq!(refused["correlation_id"], "/3");
    service.get_as(&token, "/outbox").await.expect(429);
    service.get("/outbox").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_what_waits_and_the_process_ends_well() {
    let mut service = Service::start(&[("FETCHWELL_SHUTDOWN_GRACE", "1h")]).await;
    let bearer = format!("Bearer {}", service.token);
    let mut polling = connect(service.address).await;
    let poll = request("GET", "/outbox?wait=60", &[("authorization", &bearer)], "");
    polling.write_all(&poll).await.unwrap();
    eventually("the service reads the request", async || has_read(&polling)).await;
    let id = service.child.id().unwrap().to_string();
    // Its idle timeout begins here.
    let idle = connect(service.address).await;
    let stopped = Instant::now();
    let sent = tokio::process::Command::new("kill").args(["-s", "TERM", &id]).status().await;
    assert!(sent.unwrap().success());
    read_to_end(polling).await.expect(200);
    let ended = timeout(DEADLINE, service.child.wait()).await.expect("an end").unwrap();
    assert_eq!(ended.code(), Some(0));
    // Shorter than the poll's wait (60 s) and the idle timeout (30 s).
    assert!(stopped.elapsed() < Duration::from_secs(28), "{:?}", stopped.elapsed());
    drop(idle);
}
