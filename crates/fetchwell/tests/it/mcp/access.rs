//! Who may use `/mcp`, and from where.

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::crash::{Program, Service, TestWeb};
use fetchwell_testkit::plain_http::ask;
use serde_json::{Value, json};

use super::{ACCEPT, use_tool};
use crate::client;

const PING: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;

async fn service() -> (Service, TestWeb) {
    let origin = TestWeb::start([SiteScript::new("shop.test").text("/", "text/plain", "Words.")]);
    let program = Program::new(env!("CARGO_BIN_EXE_fetchwell"))
        .on(&origin)
        .variable("FETCHWELL_MCP__ALLOWED_HOSTS", "fetch.example")
        .variable("FETCHWELL_RETRIEVER__PUBLIC_URL", "https://public.example/api");
    (Service::start(program).await, origin)
}

/// Asks under a name, from an origin. Returns the status and the end of the problem's type.
async fn asked(service: &Service, headers: &[(&str, &str)]) -> (u16, String) {
    let bearer = format!("Bearer {}", service.token);
    let mut text = "POST /mcp HTTP/1.1\r\nconnection: close\r\n".to_owned();
    let own = [("content-type", "application/json"), ACCEPT[0], ("authorization", &bearer)];
    for (name, value) in own.iter().chain(headers) {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("content-length: {}\r\n\r\n{PING}", PING.len()));
    let answer = client::raw(service.address, text.as_bytes()).await;
    let kind = answer.json()["type"].as_str().unwrap_or_default().to_owned();
    (answer.status, kind.rsplit('#').next().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn web_pages_of_others_and_foreign_names_are_refused() {
    let (service, _origin) = service().await;
    let address = service.address.to_string();
    let local = format!("localhost:{}", service.address.port());
    let own = format!("http://{local}");
    let fine = (200, String::new());
    let bad_host = (400, "problem-bad-host".to_owned());
    let foreign = (403, "problem-foreign-origin".to_owned());
    for (headers, expected) in [
        (&[("host", &*address)][..], &fine),
        (&[("host", &local)], &fine),
        (&[("host", "fetch.example")], &fine),
        (&[("host", "public.example")], &fine),
        (&[("host", &local), ("origin", &own)], &fine),
        (&[("host", "fetch.example"), ("origin", "https://fetch.example")], &fine),
        (&[("host", "evil.test")], &bad_host),
        (&[("host", "evil.test"), ("origin", "http://evil.test")], &bad_host),
        (&[("host", &address), ("origin", "http://evil.test")], &foreign),
        (&[("host", &address), ("origin", "null")], &foreign),
    ] {
        assert_eq!(asked(&service, headers).await, *expected, "{headers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_token_lets_anyone_in_and_a_viewer_fetches_nothing() {
    let (service, origin) = service().await;
    let ping = async |token: &str, headers: &[(&str, &str)]| {
        let headers = [&ACCEPT, headers].concat();
        ask(service.address, token, "POST /mcp", &headers, PING).await.unwrap().status
    };
    assert_eq!(ping(&service.token, &[]).await, 200);
    assert_eq!(ping("fw_wrong", &[]).await, 401);
    let cookie = format!("session={0}; token={0}", service.token);
    assert_eq!(ping("fw_wrong", &[("cookie", &cookie)]).await, 401);

    let viewer = service.caller("viewer", "viewer").await;
    let url = json!({"url": "http://shop.test/"});
    for tool in ["fetch", "map", "explain", "find_in_archive"] {
        use_tool(service.address, &viewer, tool, &url).await.expect_error("another token");
    }
    assert_eq!(origin.hits().len(), 0);
    let caller = service.caller("agent", "caller").await;
    assert!(!use_tool(service.address, &caller, "fetch", &url).await.is_error);
    service.program().run(&["callers", "revoke", "agent"]).await.expect_code(0);
    assert_eq!(ping(&caller, &[]).await, 401);
}

/// Otherwise, it would be refused each time, however long the client waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_may_have_more_pages_than_a_caller_may_ask_for_at_once() {
    let origin = TestWeb::start([SiteScript::new("shop.test")]);
    let program = Program::new(env!("CARGO_BIN_EXE_fetchwell"))
        .on(&origin)
        .flags(["--rate", "0", "--i-own-these-sites"])
        .variable("FETCHWELL_RETRIEVER__CALLER_RATE", "0.001")
        .variable("FETCHWELL_RETRIEVER__CALLER_BURST", "3");
    let service = Service::start(program).await;
    let urls: Vec<String> =
        (0..5).map(|number| format!("http://shop.test/list/{number}")).collect();
    let arguments = json!({"urls": urls});
    let pages = use_tool(service.address, &service.token, "fetch", &arguments).await;
    assert!(!pages.is_error && !pages.text.contains("Could not read"), "{pages:?}");
    let answer = ask(service.address, &service.token, "POST /mcp", &ACCEPT, PING).await.unwrap();
    assert_eq!(answer.status, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_a_message_is_refused() {
    let (service, _origin) = service().await;
    let token = &service.token;
    let large = format!("{{\"x\": \"{}\"}}", "x".repeat(300 << 10));
    for (line, body, status) in [
        ("POST /mcp", "{", 400),
        ("POST /mcp", "{}", 400),
        ("POST /mcp", "[]", 400),
        ("POST /mcp", &large, 413),
        ("GET /mcp", "", 405),
        ("DELETE /mcp", "", 405),
    ] {
        let answer = ask(service.address, token, line, &ACCEPT, body).await.unwrap();
        assert_eq!(answer.status, status, "{line} {}", String::from_utf8_lossy(&answer.body));
    }
    for accept in ["application/json", "text/event-stream", "*/*"] {
        let headers = [("accept", accept)];
        let answer = ask(service.address, token, "POST /mcp", &headers, PING).await.unwrap();
        assert_eq!(answer.status, 406, "{accept}");
    }
    let broken = ask(service.address, token, "POST /mcp", &ACCEPT, "{").await.unwrap().json();
    assert_eq!((&broken["error"]["code"], &broken["id"]), (&json!(-32_700), &Value::Null));
    let metrics = ask(service.address, token, "GET /metrics", &[], "").await.unwrap();
    let metrics = String::from_utf8(metrics.body).unwrap();
    assert!(metrics.contains(r#"{method="POST",route="/mcp",status="413"} 1"#), "{metrics}");
}
