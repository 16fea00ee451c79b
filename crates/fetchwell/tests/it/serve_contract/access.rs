//! Who gets in: every operation of the document × everything that can be wrong with a credential.

use std::path::Path;
use std::sync::OnceLock;

use fetchwell_testkit::crash::Service;

use super::document::{Operation, operations};
use super::place::{accepted, audit_of, failures_in, get, message, metrics, no_way_out, post};
use crate::client;

const NOBODYS: &str = "msg_00000000000000000000000000000000";

/// A service, and all whose tokens are tried on it.
struct Callers {
    service: Service,
    operations: Vec<Operation>,
    revoked: String,
    viewer: String,
    other: String,
    /// A crawl of the first.
    crawl: OnceLock<String>,
}

impl Callers {
    async fn meet() -> Callers {
        let service = Service::start(no_way_out().flags(["-vv"])).await;
        let revoked = service.caller("revoked", "operator").await;
        get(service.address, &revoked, "/outbox").await.expect(200);
        service.program().run(&["callers", "revoke", "revoked"]).await.expect_code(0);
        let viewer = service.caller("viewer", "viewer").await;
        let other = service.caller("other", "caller").await;
        for name in ["steered", "retired"] {
            service.caller(name, "caller").await;
        }
        let document = get(service.address, "", "/openapi.json").await.expect(200).json();
        let operations = operations(&document);
        let crawl = OnceLock::new();
        Callers { service, operations, revoked, viewer, other, crawl }
    }

    fn guarded(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter().filter(|operation| operation.needs_token)
    }

    async fn ask(&self, operation: &Operation, token: &str, id: &str) -> client::Response {
        let bearer = format!("Bearer {token}");
        let id = match self.crawl.get() {
            Some(crawl) if operation.is_about_a_crawl() && id != NOBODYS => crawl,
            _ => id,
        };
        operation.ask(self.service.address, &[("authorization", &bearer)], id).await
    }

    /// The only message of a batch. The first has a crawl then, too.
    async fn a_message_of_the_first(&self) -> String {
        let service = &self.service;
        let mut body = message();
        body["callback_url"] = "http://hook.test/".into();
        // A batch, which has the digits of its first message.
        let body = serde_json::json!({"messages": [body]}).to_string();
        let sent = post(service.address, &service.token, "/fetch/batch", &[], &body).await;
        let id = sent.expect(200).json()["messages"][0]["message_id"].as_str().unwrap().to_owned();
        // Until it has ended: what is being fetched at the moment cannot be cancelled.
        let path = format!("/messages/{id}?wait=60");
        let ended = get(service.address, &service.token, &path).await.expect(200).json();
        assert!(ended["outbox"].is_object(), "{ended}");
        let crawl = serde_json::json!({"urls": [super::place::PAGE]}).to_string();
        let crawl = post(service.address, &service.token, "/crawl", &[], &crawl).await;
        let crawl = crawl.expect(200).json()["id"].as_str().unwrap().to_owned();
        self.crawl.set(crawl).unwrap();
        id
    }

    /// Every set of headers that lets nobody in.
    fn strangers(&self) -> Vec<Vec<(&'static str, String)>> {
        let good = &self.service.token;
        let revoked = &self.revoked;
        let almost =
            format!("{}{}", &good[..good.len() - 1], if good.ends_with('A') { 'E' } else { 'A' });
        let single = [
            "".to_owned(),
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            "Bearer x y".to_owned(),
            "Basic YTpi".to_owned(),
            good.clone(),
            format!("Basic {good}"),
            format!("Token {good}"),
            format!("Bearer{good}"),
            format!("Bearer\t{good}"),
            format!("Bearer {good} {good}"),
            format!("Bearer {good},"),
            format!("Bearer \"{good}\""),
            format!("Bearer {}", good.replace("fw_", "fx_")),
            format!("Bearer {}", good.replace("fw_", "FW_")),
            format!("Bearer {}", good.replace("fw_", "")),
            format!("Bearer {}", &good[..good.len() - 1]),
            format!("Bearer {good}A"),
            format!("Bearer fw_{}", "A".repeat(10_000)),
            format!("Bearer fw_{}", "ä".repeat(43)),
            format!("Bearer {}", good.replace("fw_", "ﬀw_")),
            format!("Bearer fw_{}", "A".repeat(43)),
            format!("Bearer {almost}"),
            format!("Bearer {revoked}"),
        ];
        let mut all: Vec<_> = single.into_iter().map(|one| vec![("authorization", one)]).collect();
        let bearer = format!("Bearer {good}");
        all.push(vec![]);
        all.push(vec![("authorization", bearer.clone()), ("authorization", bearer.clone())]);
        all.push(vec![("proxy-authorization", bearer), ("cookie", format!("token={good}"))]);
        all
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_in_without_a_good_token_and_all_who_fail_look_alike() {
    let mut callers = Callers::meet().await;
    let open: Vec<String> =
        callers.operations.iter().filter(|one| !one.needs_token).map(Operation::name).collect();
    assert_eq!(open, ["GET /livez", "GET /metrics", "GET /readyz"]);
    for path in ["/livez", "/readyz", "/metrics", "/openapi.json", "/docs"] {
        client::raw(callers.service.address, &client::request("GET", path, &[], ""))
            .await
            .expect(200);
    }
    let before = accepted(&callers.service).await;

    let mut failures = 0;
    for operation in callers.guarded() {
        let mut first = None;
        for headers in callers.strangers() {
            let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, &**value)).collect();
            let refused = operation.ask(callers.service.address, &headers, NOBODYS).await;
            let name = operation.name();
            assert_eq!(refused.status, 401, "{name} with {headers:?}");
            let first = first.get_or_insert_with(|| refused.clone());
            assert_eq!(refused.bytes(), first.bytes(), "{name} with {headers:?}");
            assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
            failures += 1;
        }
    }
    assert!(failures >= 4 * 25, "{failures}");

    let after = metrics(&callers.service).await;
    assert_eq!(accepted(&callers.service).await, before);
    assert_eq!(after["fetchwell_authentication_failures_total"], f64::from(failures));
    callers.service.stop().await;
    let audit = audit_of(&callers.service).await;
    let failed: Vec<_> = audit.iter().filter(|one| one.action == "authentication_failed").collect();
    assert_eq!(failures_in(&audit), i64::from(failures));
    assert!(failed.len() < 10, "no entry for each of them: {failed:?}");
    assert!(failed.iter().all(|one| one.from == "127.0.0.1" && one.caller.is_none()));
    assert!(!audit.iter().any(|one| one.action == "submit"), "{audit:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_writes_nothing_and_everybody_else_may() {
    let callers = Callers::meet().await;
    let id = callers.a_message_of_the_first().await;
    // The pages of crawls are messages, too, but nobody sends them.
    let accepted = async || metrics(&callers.service).await["fetchwell_messages_accepted_total"];
    let before = accepted().await;
    let mut writes = 0.0;
    for operation in callers.guarded() {
        let viewed = callers.ask(operation, &callers.viewer, &id).await;
        viewed.expect(if operation.is_write() { 403 } else { operation.good_status() });
        writes += if operation.is_fetch() { 1.0 } else { 0.0 };
    }
    assert_eq!(accepted().await, before);
    // The same requests from those who may: nothing else was wrong with them.
    for operation in callers.guarded() {
        let good = operation.good_status();
        callers.ask(operation, &callers.service.token, &id).await.expect(good);
        let status = match (operation.is_oversight(), operation.is_about_one()) {
            (true, _) => 403,
            (false, true) => 404,
            (false, false) => good,
        };
        callers.ask(operation, &callers.other, &id).await.expect(status);
    }
    assert_eq!(accepted().await, before + 2.0 * writes);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_anothers_looks_like_what_is_not_there() {
    let callers = Callers::meet().await;
    let id = callers.a_message_of_the_first().await;
    let mut seen = 0;
    let about_one = |operation: &&Operation| operation.is_about_one() && !operation.is_oversight();
    for operation in callers.guarded().filter(about_one) {
        let own = callers.ask(operation, &callers.service.token, &id).await;
        own.expect(operation.good_status());
        let unknown = callers.ask(operation, &callers.other, NOBODYS).await.expect(404);
        for id in [&*id, "x", "msg_%00", "%FF", &id.to_uppercase(), "msg_", &"0".repeat(5_000)] {
            let foreign = callers.ask(operation, &callers.other, id).await;
            assert_eq!(foreign.bytes(), unknown.bytes(), "{id}");
        }
        seen += 1;
    }
    assert!(seen > 0, "nothing is about one message");
    let theirs = get(callers.service.address, &callers.other, "/outbox").await.expect(200).json();
    assert_eq!(theirs, serde_json::json!({"messages": [], "next": "0"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_written_down_nowhere() {
    let mut callers = Callers::meet().await;
    let hook = serde_json::json!({"url": super::place::PAGE, "retailer": "a", "correlation_id": "c",
        "callback_url": "http://hook.test/", "deadline": "2s"});
    let tokens = [&callers.service.token, &callers.revoked, &callers.viewer, &callers.other]
        .map(String::clone);
    for token in &tokens {
        for operation in callers.guarded() {
            callers.ask(operation, token, NOBODYS).await;
        }
        post(callers.service.address, token, "/fetch", &[("prefer", "wait=3")], &hook.to_string())
            .await;
        post(callers.service.address, token, "/fetch", &[], "{").await;
    }
    let folder = callers.service.program().folder().to_owned();
    let secret = callers.service.secret.trim_start_matches("whsec_").to_owned();
    let hidden: Vec<String> = tokens
        .iter()
        .map(|token| token.trim_start_matches("fw_").to_owned())
        .chain([secret])
        .collect();
    let log = callers.service.log();
    assert!(log.contains("DEBUG") || log.contains("TRACE"), "-vv says more than that:\n{log}");
    expect_nowhere(&folder, &hidden);
    callers.service.stop().await;
    expect_nowhere(&folder, &hidden);
    let audit = format!("{:?}", audit_of(&callers.service).await);
    assert!(audit.contains("add_caller"), "{audit}");
    for text in &hidden {
        assert!(!audit.contains(text) && !callers.service.log().contains(text), "{text}");
    }
}

/// Looks through every file that the service has but what it said at its first start.
fn expect_nowhere(folder: &Path, hidden: &[String]) {
    let mut looked_at = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "said.txt" || !entry.file_type().unwrap().is_file() {
            continue;
        }
        let bytes = std::fs::read(entry.path()).unwrap();
        for text in hidden {
            let found = bytes.windows(text.len()).any(|window| window == text.as_bytes());
            assert!(!found, "{text} stands in {name}");
        }
        looked_at.push(name);
    }
    for needed in ["fetchwell.db", "log.txt"] {
        assert!(looked_at.iter().any(|name| name == needed), "{looked_at:?}");
    }
}
