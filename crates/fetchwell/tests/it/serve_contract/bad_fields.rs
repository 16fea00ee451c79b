//! Fields of another type, names off their patterns, times beyond their limits.

use fetchwell_testkit::crash::Service;
use serde_json::{Value, json};

use super::place::{PAGE, message, no_way_out};
use super::refused::{Refused, expect_all_refused, send, with, wrong};

#[tokio::test(flavor = "multi_thread")]
async fn each_field_has_its_type() {
    let mut refused = vec![Refused { body: "[]".to_owned(), status: 422, says: "" }];
    for body in ["null", "1", "\"x\"", "true"] {
        refused.push(Refused { body: body.to_owned(), status: 422, says: "" });
    }
    let values = [json!(true), json!(1.5), json!("x"), json!([]), json!({"a": 1}), json!(-1)];
    let fits = |field: &str, value: &Value| match field {
        "retailer" | "correlation_id" => value.is_string(),
        "extract" | "links" => value.is_boolean(),
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
        "links",
    ];
    for field in fields {
        for value in values.iter().filter(|value| !fits(field, value)) {
            let is_header = field == "headers" && value.is_object();
            refused.push(wrong(if is_header { "headers/a" } else { field }, Value::Null));
            refused.last_mut().unwrap().body = with(field, value.clone()).to_string();
        }
    }
    refused.push(wrong("url", Value::Null));
    let mut without = message();
    without.as_object_mut().unwrap().remove("url");
    refused.push(Refused { body: without.to_string(), status: 422, says: "url" });
    refused.push(wrong("colour", "red"));
    refused.push(wrong("URL", PAGE));
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
