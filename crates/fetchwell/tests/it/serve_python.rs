//! The Python client against a real service on a simulated web.
//!
//! It needs `FETCHWELL_TEST_PYTHON`: the Python of an environment that has httpx, such as
//! `scripts/setup --test` makes. Without it these tests say that they skip.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use fetchwell_simweb::{OutageKind, SiteScript};
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::conformance::servers::unused_postgres;
use fetchwell_testkit::crash::{Program, Service, TestWeb};
use fetchwell_testkit::plain_http::ask;
use fetchwell_testkit::python::python;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::timeout;

use crate::fetch::ARTICLE;

const FOR_EVER: Duration = Duration::from_secs(86_400);

/// The sites that clients/python/tests/end_to_end.py names.
pub(crate) fn web() -> TestWeb {
    let page = "<title>A page</title><article><p>The quick brown fox jumps over the lazy dog, and then \
                it does so again, for a page needs some words.</p></article>";
    TestWeb::start([
        SiteScript::new("pages.test")
            .text("/one", "text/html", page)
            .text("/article", "text/html", ARTICLE)
            .text("/article?a=b%2Fc&d=/e", "text/html", ARTICLE)
            .text("/large", "text/plain", &"a long line\n".repeat(30_000))
            .binary("/photo", "image/jpeg", 999)
            .redirect("/moved", "/one"),
        SiteScript::new("gone.test").status("/x", 404),
        SiteScript::new("private.test").robots("User-agent: *\nDisallow: /\n"),
        SiteScript::new("down.test").outage(Duration::ZERO..FOR_EVER, OutageKind::Refuse),
    ])
}

pub(crate) async fn service_on(store: &str, origin: &TestWeb) -> Service {
    let program = Program::new(env!("CARGO_BIN_EXE_fetchwell")).on(origin).flags([
        "--store",
        store,
        "--rate",
        "0",
        "--i-own-these-sites",
    ]);
    Service::start(program).await
}

pub(crate) fn client() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python")
}

/// Runs a program of the client's to its good end, and returns what it wrote.
async fn run(python: &Path, service: &Service, arguments: &[&str], input: &str) -> String {
    run_with(python, service, &[client().join("src")], arguments, input).await
}

/// Runs a program that finds its modules in these folders.
pub(crate) async fn run_with(
    python: &Path,
    service: &Service,
    modules: &[PathBuf],
    arguments: &[&str],
    input: &str,
) -> String {
    let mut command = Command::new(python);
    command
        .args(arguments)
        .current_dir(client())
        .env("PYTHONPATH", std::env::join_paths(modules).unwrap())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    run_to_its_end(command, service, input).await
}

/// Runs a program that talks to this service to its good end, and returns what it wrote.
pub(crate) async fn run_to_its_end(mut command: Command, service: &Service, input: &str) -> String {
    command
        .env("FETCHWELL_URL", format!("http://{}", service.address))
        .env("FETCHWELL_TOKEN", &service.token)
        .env("FETCHWELL_SECRET", &service.secret)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    let ended = timeout(DEADLINE, child.wait_with_output()).await.expect("an end in time").unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{command:?}:\n{said}\nthe service:\n{}", service.log());
    String::from_utf8(ended.stdout).unwrap()
}

async fn the_client_is_right_on(store: &str) {
    let Some(python) = python() else { return };
    let origin = web();
    let service = service_on(store, &origin).await;
    let said = run(&python, &service, &["tests/end_to_end.py"], "").await;
    assert_eq!(said.trim_end(), "all held");

    let before = origin.page_hits();
    let urls: Vec<String> = (0..25).map(|n| format!("http://pages.test/list/{n}")).collect();
    let list = format!("{}\n\nhttp://gone.test/x\n", urls.join("\n"));
    let rows = run(&python, &service, &["examples/fetch_list.py", "admhr"], &list).await;
    let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    let of = |status: &str| {
        let rows = rows.iter().filter(|row| row["status"] == status);
        rows.map(|row| row["url"].as_str().unwrap()).collect::<HashSet<_>>()
    };
    assert_eq!(of("success"), urls.iter().map(String::as_str).collect());
    assert_eq!(of("http_error"), HashSet::from(["http://gone.test/x"]));
    assert_eq!((rows.len(), origin.page_hits() - before), (26, 26));
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite_the_client_and_its_example_are_right() {
    the_client_is_right_on("sqlite:fetchwell.db").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgresql_the_client_and_its_example_are_right() {
    let Some(store) = unused_postgres().await else { return };
    the_client_is_right_on(&store).await;
}

/// The addresses of the examples in a README are those of the service and its web.
pub(crate) fn examples(readme: &str, language: &str, service: &Service) -> Vec<String> {
    let begin = format!("```{language}\n");
    let blocks = readme.split(&begin).skip(1).filter_map(|rest| rest.split("\n```").next());
    let blocks = blocks.map(|block| {
        block
            .replace("http://127.0.0.1:8080", &format!("http://{}", service.address))
            .replace("https://example.com/", "http://pages.test/")
    });
    blocks.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_of_the_readme_runs() {
    let Some(python) = python() else { return };
    let origin = web();
    let service = service_on("sqlite:fetchwell.db", &origin).await;
    let readme = std::fs::read_to_string(client().join("README.md")).unwrap();
    let examples = examples(&readme, "python", &service);
    assert!(examples.len() >= 5, "{}", examples.len());
    for example in examples {
        run(&python, &service, &["-c", &example], "").await;
    }
}

/// Verifies the delivery on its standard input, and then that nothing about it may be changed.
const VERIFY: &str = r#"
import json, os, sys
from fetchwell_client import BadSignature, verify_webhook

delivery = json.load(sys.stdin)
secret, headers, body = os.environ["FETCHWELL_SECRET"], delivery["headers"], delivery["body"].encode()
verify_webhook(secret, headers, body)
later = float(headers["webhook-timestamp"]) + 301
changes = [
    (secret, headers, body + b" ", None),
    (secret, headers | {"webhook-id": "msg_" + "0" * 32}, body, None),
    (secret, headers | {"webhook-timestamp": str(int(later))}, body, None),
    (secret, headers, body, later),
    (secret[:-5] + "AAAA=", headers, body, None),
    (secret, {}, body, None),
]
for secret, headers, body, now_s in changes:
    try:
        verify_webhook(secret, headers, body, now_s=now_s)
    except BadSignature:
        continue
    raise AssertionError((headers, now_s))
print(json.loads(delivery["body"])["data"]["id"])
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_knows_a_delivery_by_its_signature() {
    let Some(python) = python() else { return };
    let origin = web();
    let service = service_on("sqlite:fetchwell.db", &origin).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hook = format!("http://{}/hook", listener.local_addr().unwrap());
    let message = json!({"url": "http://pages.test/one", "retailer": "admhr", "correlation_id": "ä",
                         "callback_url": hook});
    let sent = ask(service.address, &service.token, "POST /fetch", &[], &message.to_string()).await;
    let id = sent.unwrap().json()["message_id"].as_str().unwrap().to_owned();
    let delivery = timeout(DEADLINE, receive(&listener)).await.expect("a delivery");
    let said = run(&python, &service, &["-c", VERIFY], &delivery.to_string()).await;
    assert_eq!(said.trim_end(), id);
}

/// Verifies the delivery on its standard input with both secrets of a rotation, and with no other.
const VERIFY_BOTH: &str = r#"
import base64, json, os, sys
from standardwebhooks import Webhook, WebhookVerificationError

delivery = json.load(sys.stdin)
headers, body = delivery["headers"], delivery["body"]
for secret in (os.environ["FETCHWELL_SECRET"], delivery["new"]):
    print(Webhook(secret).verify(body, headers)["data"]["id"])
other = "whsec_" + base64.b64encode(b"x" * 32).decode()
for secret, text in ((other, body), (delivery["new"], body + " ")):
    try:
        Webhook(secret).verify(text, headers)
    except WebhookVerificationError:
        continue
    raise AssertionError(secret)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn during_a_rotation_a_receiver_of_standard_webhooks_accepts_both_secrets() {
    let Some(python) = python() else { return };
    let origin = web();
    let service = service_on("sqlite:fetchwell.db", &origin).await;
    let rotate = ["--json", "callers", "rotate-secret", "local"];
    let rotated = service.program().run(&rotate).await.expect_code(0);
    let rotated: Value = serde_json::from_str(&rotated.stdout).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hook = format!("http://{}/hook", listener.local_addr().unwrap());
    let message = json!({"url": "http://pages.test/one", "retailer": "admhr", "correlation_id": "c",
                         "callback_url": hook});
    let sent = ask(service.address, &service.token, "POST /fetch", &[], &message.to_string()).await;
    let id = sent.unwrap().json()["message_id"].as_str().unwrap().to_owned();
    let mut delivery = timeout(DEADLINE, receive(&listener)).await.expect("a delivery");
    delivery["new"] = rotated["webhook_secret"].clone();
    let said = run(&python, &service, &["-c", VERIFY_BOTH], &delivery.to_string()).await;
    assert_eq!(said.lines().collect::<Vec<_>>(), [&*id, &*id]);
}

/// One delivery, which is taken: its headers and its body.
async fn receive(listener: &TcpListener) -> Value {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4_096];
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "it broke off");
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let headers: Value = lines
            .map(|(name, value)| (name.to_lowercase(), json!(value)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        if headers["content-length"].as_str().and_then(|length| length.parse().ok())
            == Some(body.len())
        {
            let thanks = b"HTTP/1.1 204 Thanks\r\nconnection: close\r\n\r\n";
            stream.write_all(thanks).await.unwrap();
            return json!({"headers": headers, "body": body});
        }
    }
}
