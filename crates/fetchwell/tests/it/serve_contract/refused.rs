//! What can't be accepted: each has its own clear problem, and nothing of it is stored.

use fetchwell_testkit::crash::Service;
use serde_json::{Value, json};

use super::place::{accepted, message, no_way_out, post};
use crate::client::Response;

/// Something that is wrong, and where: a JSON pointer, or the kind of the problem.
pub(crate) struct Refused<'a> {
    pub(crate) body: String,
    pub(crate) status: u16,
    pub(crate) says: &'a str,
}

pub(crate) fn with(field: &str, value: impl Into<Value>) -> Value {
    let mut message = message();
    message[field] = value.into();
    message
}

/// One that is wrong in this field only.
pub(crate) fn wrong(field: &'static str, value: impl Into<Value>) -> Refused<'static> {
    Refused { body: with(field, value).to_string(), status: 422, says: field }
}

pub(crate) fn malformed(body: impl Into<String>) -> Refused<'static> {
    Refused { body: body.into(), status: 400, says: "malformed-json" }
}

/// Sends each alone and as the second of a batch.
pub(crate) async fn expect_all_refused(refused: impl IntoIterator<Item = Refused<'_>>) {
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

pub(crate) async fn send(service: &Service, path: &str, body: &str) -> Response {
    post(service.address, &service.token, path, &[], body).await
}

pub(crate) fn expect_says(refused: &Response, says: &str, before: &str, shown: &str) {
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
