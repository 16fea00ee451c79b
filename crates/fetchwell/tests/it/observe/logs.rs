//! Logs as programs read them.

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::crash::{Service, TestWeb};
use fetchwell_testkit::plain_http::ask;
use serde_json::Value;

use super::program;

#[tokio::test(flavor = "multi_thread")]
async fn every_line_is_json_with_ids_and_without_a_token() {
    let origin = TestWeb::start([SiteScript::new("shop.test").fails_first("/shaky", 1, 500)]);
    let program = program()
        .on(&origin)
        .flags(["-vv"])
        .variable("FETCHWELL_LOG__FORMAT", "json")
        .variable("FETCHWELL_RATE", "50");
    let mut service = Service::start(program).await;
    let body = r#"{"url":"http://shop.test/shaky","retailer":"shop","correlation_id":"c1"}"#;
    let wait = [("prefer", "wait=30")];
    let answer = ask(service.address, &service.token, "POST /fetch", &wait, body).await.unwrap();
    let message_id = answer.json()["id"].as_str().unwrap().to_owned();
    service.stop().await;

    let log = service.log();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect();
    assert!(lines.len() > 3, "{log}");
    for line in &lines {
        let has = |name: &str| line[name].is_string();
        assert!(has("timestamp") && has("level") && line["fields"].is_object(), "{line}");
    }
    let accepted = lines.iter().find(|line| line["fields"]["message_id"] == message_id.as_str());
    assert!(accepted.is_some(), "no line has the id {message_id}: {log}");
    let settled: Vec<&Value> =
        lines.iter().filter(|line| line["target"] == "fetchwell::settled").collect();
    let attempts: Vec<&Value> = settled.iter().map(|line| &line["fields"]["attempt"]).collect();
    assert_eq!(attempts, [1, 2], "{settled:#?}");
    for line in settled {
        assert_eq!(line["fields"]["site"], "shop.test", "{line}");
        assert!(line["fields"]["lease"].is_i64(), "{line}");
    }
    assert!(!log.contains(&service.token) && !log.contains(&service.secret), "a secret is logged");
}
