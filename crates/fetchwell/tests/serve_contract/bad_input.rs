//! What can't be accepted: each has its own clear problem, and nothing of it is stored.

use std::time::{Duration, Instant};

use fetchwell_testkit::crash::Service;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::client::{Response, connect, read_to_end, request};
use crate::place::{PAGE, accepted, message, no_way_out, post};

/// Something that is wrong, and where: a JSON pointer, or the kind of the problem.
struct Refused<'a> {
    body: String,
    status: u16,
    says: &'a str,
}

fn with(field: &str, value: impl Into<Value>) -> Value {
    let mut message = message();
    message[field] = value.into();
    message
}

/// One that is wrong in this field only.
fn wrong(field: &'static str, value: impl Into<Value>) -> Refused<'static> {
    Refused { body: with(field, value).to_string(), status: 422, says: field }
}

fn malformed(body: impl Into<String>) -> Refused<'static> {
    Refused { body: body.into(), status: 400, says: "malformed-json" }
}

/// Sends each alone and as the second of a batch.
async fn expect_all_refused(refused: impl IntoIterator<Item = Refused<'_>>) {
    let service = Service::start(no_way_out()).await;
    for Refused { body, status, says } in refused {
        let shown: String = body.chars().take(200).collect();
        let alone = send(&service, "/fetch", &body).await;
        assert_eq!(alone.status, status, "{shown}");
        expect_says(&alone.expect(status), says, "", &shown);
        let batch = format!("{{\"messages\": [{}, {body}]}}", message());
        let second = send(&service, "/fetch/batch", &batch).await;
        assert_eq!(second.status, status, "in a batch: {shown}");
        expect_says(&second.expect(status), says, "/messages/1", &shown);
    }
    assert_eq!(accepted(&service).await, 0.0);
    // Nothing else was wrong with them.
    send(&service, "/fetch", &message().to_string()).await.expect(200);
    assert_eq!(accepted(&service).await, 1.0);
}

async fn send(service: &Service, path: &str, body: &str) -> Response {
    post(service.address, &service.token, path, &[], body).await
}

fn expect_says(refused: &Response, says: &str, before: &str, shown: &str) {
    let problem = refused.json();
    if refused.status != 422 {
        let kind = format!("/docs#problem-{says}");
        assert_eq!(problem["type"], json!(kind), "{shown}");
        return;
    }
    let errors = problem["errors"].as_array().unwrap_or_else(|| panic!("{shown}: {problem}"));
    let pointer = if says.is_empty() { before.to_owned() } else { format!("{before}/{says}") };
    let places: Vec<&str> = errors.iter().filter_map(|error| error["pointer"].as_str()).collect();
    assert_eq!(places, [&*pointer], "{shown}: {problem}");
    assert!(errors[0]["detail"].as_str().is_some_and(|detail| detail.len() > 8), "{problem}");
}

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
async fn each_field_has_its_type() {
    let mut refused = vec![Refused { body: "[]".to_owned(), status: 422, says: "" }];
    for body in ["null", "1", "\"x\"", "true"] {
        refused.push(Refused { body: body.to_owned(), status: 422, says: "" });
    }
    let values = [json!(true), json!(1.5), json!("x"), json!([]), json!({"a": 1}), json!(-1)];
    let fits = |field: &str, value: &Value| match field {
        "retailer" | "correlation_id" => value.is_string(),
        "extract" => value.is_boolean(),
        _ => false,
    };
    let fields = [
        "url",
        "retailer",
        "correlation_id",
        "callback_url",
        "max_age",
        "headers",
        "deadline",
        "extract",
    ];
    for field in fields {
        for value in values.iter().filter(|value| !fits(field, value)) {
            let is_header = field == "headers" && value.is_object();
            refused.push(wrong(if is_header { "headers/a" } else { field }, Value::Null));
            refused.last_mut().unwrap().body = with(field, value.clone()).to_string();
        }
    }
    for field in ["url", "retailer", "correlation_id"] {
        refused.push(wrong(field, Value::Null));
        let mut without = message();
        without.as_object_mut().unwrap().remove(field);
        refused.push(Refused { body: without.to_string(), status: 422, says: field });
    }
    refused.push(wrong("colour", "red"));
    refused.push(wrong("URL", PAGE));
    expect_all_refused(refused).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_public_web_is_asked_for() {
    let urls = [
        "",
        " ",
        "/page",
        "//shop.test/",
        "shop.test",
        "http",
        "http:",
        "http://",
        "https:///",
        "http://:80/",
        "http://?",
        "http://#",
        "ftp://shop.test/",
        "file:///etc/passwd",
        "gopher://shop.test/",
        "data:text/html,x",
        "javascript:alert(1)",
        "ws://shop.test/",
        "blob:http://shop.test/",
        "unix:/run/x",
        "about:blank",
        "view-source:http://shop.test/",
        "mailto:a@shop.test",
        "http://a@shop.test/",
        "http://a:b@shop.test/",
        "http://:@shop.test:1/",
        "http://shop.test@evil.test/",
        "http://127.0.0.1/",
        "http://127.1/",
        "http://127.0.1/",
        "http://2130706433/",
        "http://017700000001/",
        "http://0x7f000001/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.0.0.1./",
        "http://0/",
        "http://0.0.0.0/",
        "http://１２７.0.0.1/",
        "http://127。0。0。1/",
        "http://%31%32%37.0.0.1/",
        "http://10.0.0.1/",
        "http://172.16.0.1/",
        "http://172.31.255.255/",
        "http://192.168.0.1/",
        "http://100.64.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/",
        "http://192.0.0.8/",
        "http://192.0.2.1/",
        "http://198.18.0.1/",
        "http://198.51.100.1/",
        "http://203.0.113.1/",
        "http://224.0.0.1/",
        "http://240.0.0.1/",
        "http://255.255.255.255/",
        "http://[::1]/",
        "http://[::]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[fe80::1]/",
        "http://[fc00::1]/",
        "http://[fd00:ec2::254]/",
        "http://[ff02::1]/",
        "http://[2001:db8::1]/",
        "http://[::1%25lo]/",
        "http://[::1",
        "http://256.1.1.1/",
        "http://1.2.3.4.5/",
        "http://0x/",
        "http://shop.test:0/",
        "http://shop.test:22/",
        "http://shop.test:25/",
        "http://shop.test:6000/",
        "http://shop.test:10080/",
        "http://shop.test:65536/",
        "http://shop.test:x/",
        "http://shop.test:-1/",
        "http://sh op.test/",
        "http://shop<.test/",
        "http://xn--a/",
        "http://shop.test/\u{0}",
        "http://shop.test/a\tb",
        "http://shop.test/a\r\nHost: b.test",
        "ht\ntp://shop.test/",
        "http://shop.test/\u{7f}",
        "\u{1}http://shop.test/",
    ];
    let mut refused: Vec<Refused<'_>> = urls.iter().map(|url| wrong("url", *url)).collect();
    refused.extend(urls.iter().map(|url| wrong("callback_url", *url)));
    for (field, long) in [("url", 8_193), ("callback_url", 8_193)] {
        refused.push(wrong(field, format!("{PAGE}{}", "x".repeat(long - PAGE.len()))));
        refused.push(wrong(field, format!("http://{}test/", "x.".repeat(130))));
    }
    expect_all_refused(refused).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_keep_to_their_patterns() {
    let mut refused = Vec::new();
    for retailer in [
        "",
        "A",
        "admhr ",
        " admhr",
        "adm hr",
        "ädm",
        "a.b",
        "a/b",
        "a\n",
        "a\u{0}",
        "admhr\u{200b}",
    ] {
        refused.push(wrong("retailer", retailer));
    }
    refused.push(wrong("retailer", "x".repeat(33)));
    for name in ["", "\u{0}", "a\u{0}b", "a\nb", "\r", "\t", "\u{1b}[31m", "\u{7f}", "\u{85}"] {
        refused.push(wrong("correlation_id", name));
    }
    refused.push(wrong("correlation_id", "x".repeat(257)));
    refused.push(wrong("correlation_id", "𝄞".repeat(257)));
    for (name, value) in [
        ("cookie", "a=b"),
        ("authorization", "Bearer x"),
        ("host", "a.test"),
        ("user-agent", "x"),
        ("x-forwarded-for", "127.0.0.1"),
        ("transfer-encoding", "chunked"),
        ("accept ", "x"),
        ("", "x"),
        ("accept", "a\r\nb: c"),
        ("accept", "a\u{0}"),
        ("accept", "ä"),
        ("referer", "\u{7f}"),
    ] {
        let says = format!("headers/{name}").leak();
        let body = with("headers", json!({name: value})).to_string();
        refused.push(Refused { body, status: 422, says });
    }
    let long = with("headers", json!({"accept": "x".repeat(1_025)})).to_string();
    refused.push(Refused { body: long, status: 422, says: "headers/accept" });
    let twice = with("headers", json!({"accept": "a", "Accept": "b"})).to_string();
    refused.push(Refused { body: twice, status: 422, says: "headers/accept" });
    expect_all_refused(refused).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn times_keep_to_their_limits() {
    let mut refused = Vec::new();
    let never = [
        json!(-1),
        json!(0.5),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("x"),
        json!("10"),
        json!("-5s"),
        json!("10 s"),
        json!("1e3s"),
        json!("999999999999999999999d"),
        json!("\u{0}"),
        json!("366d"),
    ];
    for field in ["max_age", "deadline"] {
        refused.extend(never.iter().map(|value| wrong(field, value.clone())));
    }
    refused.push(wrong("max_age", 31_536_001));
    refused.push(wrong("max_age", "2030-01-01T00:00:00Z"));
    for over in [
        json!(0),
        json!(86_401),
        json!("0s"),
        json!("25h"),
        json!("2020-01-01T00:00:00Z"),
        json!("1970-01-01T00:00:00Z"),
        json!("9999-12-31T23:59:59Z"),
        json!("2030-02-30T00:00:00Z"),
        json!("2030-01-01"),
        json!("2030-01-01T00:00:00"),
    ] {
        refused.push(wrong("deadline", over));
    }
    expect_all_refused(refused).await;
    let service = Service::start(no_way_out()).await;
    for good in [
        with("max_age", 0),
        with("max_age", 31_536_000),
        with("max_age", "365d"),
        with("deadline", 1),
        with("deadline", 86_400),
        with("deadline", "24h"),
        with("deadline", "1ms"),
    ] {
        send(&service, "/fetch", &good.to_string()).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_much_is_refused() {
    let service = Service::start(no_way_out()).await;
    let padded = |json: &str, bytes: usize| format!("{json}{}", " ".repeat(bytes - json.len()));
    let good = message().to_string();
    send(&service, "/fetch", &padded(&good, (64 << 10) + 1)).await.expect(413);
    let batch = |count: usize| json!({"messages": vec![message(); count]}).to_string();
    let too_many = send(&service, "/fetch/batch", &batch(1_001)).await.expect(422);
    expect_says(&too_many, "messages", "", "1,001 entries");
    expect_says(
        &send(&service, "/fetch/batch", &batch(0)).await.expect(422),
        "messages",
        "",
        "none",
    );
    send(&service, "/fetch/batch", &padded(&batch(1), (4 << 20) + 1)).await.expect(413);
    assert_eq!(accepted(&service).await, 0.0);
    send(&service, "/fetch", &padded(&good, 64 << 10)).await.expect(200);
    send(&service, "/fetch/batch", &padded(&batch(1_000), 4 << 20)).await.expect(200);
    assert_eq!(accepted(&service).await, 1_001.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_comes_too_slowly_is_not_waited_for() {
    let service = Service::start(no_way_out()).await;
    let bearer = format!("Bearer {}", service.token);
    let headers = [
        ("authorization", &*bearer),
        ("content-type", "application/json"),
        ("content-length", "99"),
    ];
    let mut stream = connect(service.address).await;
    let began = Instant::now();
    stream.write_all(&request("POST", "/fetch", &headers, "")).await.unwrap();
    // A byte now and then does not help.
    for byte in message().to_string().bytes().take(15) {
        stream.write_all(&[byte]).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    read_to_end(stream).await.expect(408);
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    assert_eq!(accepted(&service).await, 0.0);
}
