//! The outbox: every result once, in order, by pages and as a stream.

use std::time::{Duration, Instant};

use fetchwell_engine::clock::Clock;
use fetchwell_stores::sqlite::open_retriever;
use fetchwell_testkit::eventually::eventually;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::service::{Service, message};
use crate::client::{connect, read_until, request};

async fn submit(service: &Service, paths: std::ops::Range<usize>) {
    let messages: Vec<Value> = paths.map(|page| message(&format!("/{page}"))).collect();
    service.post("/fetch/batch", &[], &json!({"messages": messages})).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_the_outbox_skip_nothing() {
    let service = Service::start(&[]).await;
    assert_eq!(
        service.get("/outbox").await.expect(200).json(),
        json!({"messages": [], "next": "0"})
    );
    submit(&service, 0..25).await;
    let mut seen = Vec::new();
    let mut after = "0".to_owned();
    while seen.len() < 25 {
        let path = format!("/outbox?after={after}&limit=10&wait=10");
        let page = service.get(&path).await.expect(200).json();
        let messages = page["messages"].as_array().unwrap();
        assert!((1..=10).contains(&messages.len()), "{page}");
        seen.extend(messages.iter().map(|one| one["correlation_id"].as_str().unwrap().to_owned()));
        after = page["next"].as_str().unwrap().to_owned();
    }
    seen.sort();
    seen.dedup();
    assert_eq!((seen.len(), after.as_str()), (25, "25"));
    let end = service.get("/outbox?after=25").await.expect(200).json();
    assert_eq!(end, json!({"messages": [], "next": "25"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_poll_ends_when_there_is_a_result() {
    let service = Service::start(&[]).await;
    let started = Instant::now();
    let (page, ()) = tokio::join!(service.get("/outbox?wait=60"), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        submit(&service, 0..1).await;
    });
    assert_eq!(page.expect(200).json()["messages"].as_array().unwrap().len(), 1);
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    let started = Instant::now();
    let empty = service.get("/outbox?after=1&wait=1").await.expect(200).json();
    assert_eq!(empty["next"], "1");
    // A server that ignored `wait=1` would wait for 60 s.
    assert!(started.elapsed() < Duration::from_secs(45), "{:?}", started.elapsed());
}

pub(super) async fn stream(service: &Service, headers: &[(&str, &str)], path: &str) -> TcpStream {
    let bearer = format!("Bearer {}", service.token);
    let all = [&[("authorization", &*bearer), ("accept", "text/event-stream")], headers].concat();
    let mut stream = connect(service.address).await;
    stream.write_all(&request("GET", path, &all, "")).await.unwrap();
    stream
}

pub(super) fn ids(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("id: ")).collect()
}

/// The ids of results. Those of other events, such as the end of a batch, are no cursors.
fn result_ids(text: &str) -> Vec<&str> {
    ids(text).into_iter().filter(|id| !id.contains('.')).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_live_and_resumes_where_it_ended() {
    let service = Service::start(&[]).await;
    submit(&service, 0..3).await;
    let mut first = stream(&service, &[], "/outbox").await;
    let text = read_until(&mut first, |text| result_ids(text).len() >= 3).await;
    assert!(text.contains("content-type: text/event-stream\r\n"), "{text}");
    assert_eq!(result_ids(&text), ["1", "2", "3"]);
    let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["status"], "success");
    submit(&service, 3..4).await;
    let live = read_until(&mut first, |text| !result_ids(text).is_empty()).await;
    assert_eq!(result_ids(&live), ["4"]);
    drop(first);

    submit(&service, 4..6).await;
    let mut resumed = stream(&service, &[("last-event-id", "4")], "/outbox?after=0").await;
    let text = read_until(&mut resumed, |text| result_ids(text).len() >= 2).await;
    assert_eq!(result_ids(&text), ["5", "6"]);
    let bad = [("accept", "text/event-stream"), ("last-event-id", "x")];
    let bearer = format!("Bearer {}", service.token);
    let bad = [&[("authorization", &*bearer)], &bad[..]].concat();
    service.send("GET", "/outbox", &bad, "").await.expect(422);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_its_token() {
    let mut service = Service::start(&[]).await;
    let token = service.caller("short", "caller").await;
    let own = std::mem::replace(&mut service.token, token);
    let mut events = stream(&service, &[], "/outbox").await;
    read_until(&mut events, |text| text.contains(": results")).await;
    service.program.run(&["callers", "revoke", "short"]).await.expect_code(0);
    // The end of a chunked body; it comes with the next result, or with the next heartbeat.
    let text = read_until(&mut events, |text| text.contains("0\r\n\r\n")).await;
    assert!(text.matches(": nothing new").count() <= 1, "{text}");
    service.token = own;
    service.get("/outbox").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_gone_soon_after_their_time() {
    let service = Service::start(&[("FETCHWELL_RETRIEVER__RETENTION", "1s")]).await;
    submit(&service, 0..1).await;
    let is_gone = async || service.get("/outbox?after=0").await.status == 410;
    let going = eventually("the end of the results", is_gone);
    // Shorter than the minute between cleanups at longer retentions.
    timeout(Duration::from_secs(45), going).await.expect("they are gone in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_whose_results_are_gone_is_told_so() {
    let service = Service::start(&[]).await;
    submit(&service, 0..3).await;
    let all_are_there = async || service.get("/outbox").await.json()["next"] == "3";
    eventually("three results", all_are_there).await;
    let day = Duration::from_secs(86_400);
    let file = service.program.file("fetchwell.db");
    let store = open_retriever(&file, Clock::system(), day, day).await.unwrap();
    assert_eq!(store.inbox.prune(Duration::ZERO, 2).await.unwrap(), 2);
    let gone = service.get("/outbox?after=0").await.expect(410).json();
    assert_eq!(gone["oldest"], "2");
    let bearer = format!("Bearer {}", service.token);
    let resumed =
        [("authorization", &*bearer), ("accept", "text/event-stream"), ("last-event-id", "1")];
    service.send("GET", "/outbox", &resumed, "").await.expect(410);
    // Nor is there anything to wait for after a cursor that this store has not given yet.
    let ahead = service.get("/outbox?after=4&wait=10").await.expect(410).json();
    assert_eq!(
        (&ahead["oldest"], &ahead["type"]),
        (&json!("2"), &json!("/docs#problem-cursor-gone"))
    );
    let resumed = [&resumed[..2], &[("last-event-id", "4")]].concat();
    service.send("GET", "/outbox", &resumed, "").await.expect(410);
    for path in ["/outbox?after=2", "/outbox"] {
        let left = service.get(path).await.expect(200).json();
        assert_eq!((left["messages"].as_array().unwrap().len(), &left["next"]), (1, &json!("3")));
    }
}
