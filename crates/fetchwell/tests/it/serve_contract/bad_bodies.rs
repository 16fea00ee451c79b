//! Bodies that are no JSON, too much, or too slow.

use std::time::Duration;

use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::crash::Service;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::place::{PAGE, accepted, message, no_way_out};
use super::refused::{expect_all_refused, expect_says, malformed, send};
use crate::client::{connect, read_to_end, request};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_json_is_refused() {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(10_000), close.repeat(10_000));
    let good = message().to_string();
    let inside = |url: &str| good.replace(&json!(PAGE).to_string(), url);
    assert_ne!(inside("0"), good);
    expect_all_refused([
        malformed("{"),
        malformed("'url'"),
        malformed(good.trim_end_matches('}')),
        malformed(format!("{good}}}")),
        malformed(format!("{good} {good}")),
        malformed(good.replace(',', ",,")),
        malformed(good.replace('"', "'")),
        malformed(inside("NaN")),
        malformed(inside("Infinity")),
        malformed(inside("01")),
        malformed(inside("\"a\nb\"")),
        malformed(inside("\"\\x41\"")),
        malformed(inside("\"\\ud800\"")),
        malformed(inside("\"\\ud800\\u0041\"")),
        malformed(inside("\"\\udc00\\ud800\"")),
        malformed(inside(&deep("[", "]"))),
        malformed(inside(&deep("{\"a\":", "}").replace(":}", ":1}"))),
        malformed(format!("{{\"url\": {},{}", json!("http://other.test/"), &good[1..])),
        malformed(good.replace("\"url\"", "\"correlation_id\"")),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_text_are_refused() {
    let service = Service::start(no_way_out()).await;
    let bearer = format!("Bearer {}", service.token);
    let headers = [("authorization", &*bearer), ("content-type", "application/json")];
    let good = message().to_string();
    let utf16: Vec<u8> = good.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let in_url = |bytes: &[u8]| {
        let (before, after) = good.split_once("shop.test/").unwrap();
        [before.as_bytes(), b"shop.test/", bytes, after.as_bytes()].concat()
    };
    let with_mark = [b"\xef\xbb\xbf", good.as_bytes()].concat();
    for body in [utf16, with_mark, in_url(b"\xff"), in_url(b"\xed\xa0\x80"), in_url(b"\xc0\xaf")] {
        let length = body.len().to_string();
        let headers = [&headers[..], &[("content-length", &*length)]].concat();
        let mut stream = connect(service.address).await;
        let head = request("POST", "/fetch", &headers, "");
        stream.write_all(&[head, body].concat()).await.unwrap();
        read_to_end(stream).await.expect(400);
    }
    assert_eq!(accepted(&service).await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nest_of_any_depth_is_refused_and_harms_nobody() {
    let service = Service::start(no_way_out()).await;
    for depth in [129, 30_000] {
        let nest = format!("{{\"url\": {}{}}}", "[".repeat(depth), "]".repeat(depth));
        send(&service, "/fetch", &nest).await.expect(400);
    }
    let nest = format!("{{\"messages\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    send(&service, "/fetch/batch", &nest).await.expect(400);
    send(&service, "/fetch", &"[".repeat(100_000)).await.expect(413);
    assert_eq!(accepted(&service).await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_much_is_refused() {
    let service = Service::start(no_way_out()).await;
    let padded = |json: &str, bytes: usize| format!("{json}{}", " ".repeat(bytes - json.len()));
    let good = message().to_string();
    send(&service, "/fetch", &padded(&good, (64 << 10) + 1)).await.expect(413);
    let batch = |count: usize| json!({"messages": vec![message(); count]}).to_string();
    let too_many = send(&service, "/fetch/batch", &batch(10_001)).await.expect(422);
    expect_says(&too_many, "messages", "", "10,001 entries");
    expect_says(
        &send(&service, "/fetch/batch", &batch(0)).await.expect(422),
        "messages",
        "",
        "none",
    );
    let values = format!("{{\"messages\": [{}0]}}", "0,".repeat(400_001));
    send(&service, "/fetch/batch", &values).await.expect(422);
    send(&service, "/fetch/batch", &padded(&batch(1), (16 << 20) + 1)).await.expect(413);
    assert_eq!(accepted(&service).await, 0.0);
    send(&service, "/fetch", &padded(&good, 64 << 10)).await.expect(200);
    send(&service, "/fetch/batch", &padded(&batch(10_000), 16 << 20)).await.expect(200);
    assert_eq!(accepted(&service).await, 10_001.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_comes_too_slowly_is_not_waited_for() {
    let service = Service::start(no_way_out()).await;
    let bearer = format!("Bearer {}", service.token);
    let headers = [
        ("authorization", &*bearer),
        ("content-type", "application/json"),
        ("content-length", "9999"),
    ];
    let mut stream = connect(service.address).await;
    stream.write_all(&request("POST", "/fetch", &headers, "")).await.unwrap();
    // A byte now and then does not help.
    let until_answered = async {
        while stream.write_all(b" ").await.is_ok()
            && timeout(Duration::from_secs(1), stream.peek(&mut [0])).await.is_err()
        {}
    };
    timeout(DEADLINE, until_answered).await.expect("an answer while bytes keep arriving");
    read_to_end(stream).await.expect(408);
    assert_eq!(accepted(&service).await, 0.0);
}
