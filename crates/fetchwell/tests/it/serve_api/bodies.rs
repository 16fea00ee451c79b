//! `GET /messages/{id}/body`: what the site sent, to the byte, and nothing that a browser runs.

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::eventually::eventually;
use serde_json::{Value, json};

use super::WAIT;
use super::service::Service;
use crate::client::{self, Response};

/// UTF-8 with a byte order mark, which `content` does not have.
const MARKED: &str = "\u{feff}<p>Marked words";

async fn start(settings: &[(&str, &str)]) -> Service {
    let html = "text/html; charset=utf-8";
    let odd = SiteScript::new("odd.test")
        .text("/marked", html, MARKED)
        .text("/notes", "text/markdown", "# Notes")
        .text("/data", "application/json", "{\"a\": [1, 2]}")
        .text("/icon", "image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'/>")
        .tagged("/tagged", "text/plain", "words", "\"v1\"")
        .binary("/large", "image/png", 5_000)
        .robots("User-agent: *\nDisallow: /private\n");
    // Its pages take longer than any test.
    let slow = SiteScript::new("slow.test").slow(2 * DEADLINE);
    Service::start_with(settings, [odd, slow]).await
}

/// Fetches a page, and returns its message.
async fn fetched(service: &Service, url: &str) -> Value {
    service.post("/fetch", &WAIT, &json!({"url": url})).await.expect(200).json()
}

fn path_of(message: &Value) -> String {
    format!("/messages/{}/body", message["id"].as_str().unwrap())
}

async fn body_of(service: &Service, message: &Value) -> Response {
    service.get(&path_of(message)).await
}

/// What the site itself sends.
async fn at_origin(service: &Service, host: &str, path: &str) -> Vec<u8> {
    let [_, address, ..] = service.origin.flags();
    let address = address.rsplit('=').next().unwrap().parse().unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    client::raw(address, request.as_bytes()).await.body
}

async fn refusal(service: &Service, message: &Value) -> String {
    let refused = body_of(service, message).await.expect(404).json();
    assert_eq!(refused["type"], "/docs#problem-no-body", "{refused}");
    assert_eq!(refused["message_id"], message["id"]);
    refused["detail"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn any_body_is_returned_as_the_site_sent_it() {
    let service = start(&[]).await;
    for (host, path, content_type, is_content, is_shown) in [
        ("shop.test", "/page", "text/html", true, false),
        ("shop.test", "/photo", "image/jpeg", false, false),
        ("shop.test", "/missing", "text/plain", false, true),
        ("odd.test", "/marked", "text/html; charset=utf-8", false, false),
        ("odd.test", "/notes", "text/markdown", true, true),
        ("odd.test", "/data", "application/json", true, true),
        ("odd.test", "/icon", "image/svg+xml", true, false),
    ] {
        let ended = fetched(&service, &format!("http://{host}{path}")).await;
        let about = &ended["outbox"]["body"];
        let body = body_of(&service, &ended).await;
        assert_eq!(body.status, 200, "{path}: {body:?}");
        assert_eq!(body.body, at_origin(&service, host, path).await, "{path}");
        assert_eq!(about["bytes"], body.body.len(), "{path}");
        assert_eq!(about["expires_at"].is_null(), is_content, "{path}: {about}");
        assert_eq!(body.header("content-type"), Some(content_type));
        assert_eq!(about["content_type"], content_type);
        let disposition = (!is_shown).then_some("attachment");
        assert_eq!(body.header("content-disposition"), disposition, "{path}");
        for (name, value) in [
            ("content-security-policy", "sandbox; default-src 'none'"),
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(body.header(name), Some(value), "{path}");
        }
        let bearer = format!("Bearer {}", service.token);
        let head = service.send("HEAD", &path_of(&ended), &[("authorization", &bearer)], "").await;
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
        assert_eq!(head.header("content-length"), body.header("content-length"), "{path}");
    }
    let photo = fetched(&service, "http://shop.test/photo").await;
    let error = photo["outbox"]["error"].as_str().unwrap();
    assert!(error.contains("not text") && error.contains("/body"), "{error}");
    // A message that shares the result has the body, too.
    let asked = json!({"url": "http://shop.test/photo", "max_age": "1h"});
    let shared = service.post("/fetch", &WAIT, &asked).await.expect(200).json();
    assert_eq!(shared["outbox"]["from_cache"], true);
    assert_eq!(shared["outbox"]["body"], photo["outbox"]["body"]);
    assert_eq!(body_of(&service, &shared).await.body.len(), 999);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_a_body_says_why() {
    let service = start(&[("FETCHWELL_RETRIEVER__BODY_MAX_SIZE", "1KiB")]).await;
    let large = fetched(&service, "http://odd.test/large").await;
    assert!(large["outbox"]["body"].is_null(), "{large}");
    let error = large["outbox"]["error"].as_str().unwrap();
    assert!(error.contains("not text") && error.contains("body_max_size"), "{error}");
    let reason = refusal(&service, &large).await;
    assert!(reason.contains("5000 bytes") && reason.contains("body_max_size"), "{reason}");
    let private = fetched(&service, "http://odd.test/private").await;
    assert!(refusal(&service, &private).await.contains("robots.txt"));
    let asked = json!({"url": "http://odd.test/tagged", "headers": {"If-None-Match": "\"v1\""}});
    let unchanged = service.post("/fetch", &WAIT, &asked).await.expect(200).json();
    assert!(refusal(&service, &unchanged).await.contains("304"));
    // What is equal to the content takes no space, so it has no limit.
    let page = fetched(&service, "http://shop.test/").await;
    assert!(page["outbox"]["body"]["bytes"].as_u64().unwrap() > 1_024, "{page}");
    assert!(body_of(&service, &page).await.body.len() > 1_024);

    let waiting = json!({"url": "http://slow.test/"});
    let waiting = service.post("/fetch", &[], &waiting).await.expect(200).json();
    assert!(refusal(&service, &waiting).await.contains("no result yet"));
    let odd = service.get(&format!("{}?range=1", path_of(&page))).await.expect(422).json();
    assert_eq!(odd["errors"][0]["parameter"], "range");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_deleted_when_its_time_is_over() {
    let service = start(&[("FETCHWELL_RETRIEVER__BODY_RETENTION", "1s")]).await;
    let photo = fetched(&service, "http://shop.test/photo").await;
    let page = fetched(&service, "http://shop.test/page").await;
    let is_gone = async || body_of(&service, &photo).await.status == 404;
    eventually("the end of a body", is_gone).await;
    assert!(refusal(&service, &photo).await.contains("body_retention"));
    let id = photo["id"].as_str().unwrap();
    let now = service.get(&format!("/messages/{id}")).await.expect(200).json();
    assert!(now["outbox"]["body"].is_null() && now["outbox"]["status"] == "success", "{now}");
    assert_eq!(body_of(&service, &page).await.status, 200, "it is in the result");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_bodies_of_a_caller_make_room_for_newer_ones() {
    let service = start(&[("FETCHWELL_RETRIEVER__BODY_QUOTA", "2KiB")]).await;
    let token = service.caller("another", "caller").await;
    let photo = json!({"url": "http://shop.test/photo"}).to_string();
    let theirs = service.post_as(&token, "/fetch", &WAIT, &photo).await.expect(200).json();
    let mut own = Vec::new();
    for _ in 0..3 {
        own.push(fetched(&service, "http://shop.test/photo").await);
    }
    let statuses = async || {
        let mut statuses = Vec::new();
        for message in &own {
            statuses.push(body_of(&service, message).await.status);
        }
        statuses
    };
    assert_eq!(statuses().await, [404, 200, 200]);
    assert!(refusal(&service, &own[0]).await.contains("body_quota"));
    assert_eq!(service.get_as(&token, &path_of(&theirs)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_for_its_caller_alone() {
    let service = start(&[]).await;
    let token = service.caller("another", "caller").await;
    let viewer = service.caller("looker", "viewer").await;
    let photo = fetched(&service, "http://shop.test/photo").await;
    let path = path_of(&photo);
    let unknown = format!("/messages/msg_{}/body", "0".repeat(32));
    let foreign = service.get_as(&token, &path).await.expect(404);
    assert_eq!(foreign.bytes(), service.get_as(&token, &unknown).await.expect(404).bytes());
    assert_eq!(service.get_as(&viewer, &path).await.status, 200, "a viewer sees all");
    // A session of the dashboard is no token.
    let form = format!("token={}", service.token);
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("origin", "http://fetchwell.test"),
    ];
    let login = service.send("POST", "/dashboard/login", &headers, &form).await;
    let cookie = login.header("set-cookie").unwrap_or_else(|| panic!("{login:?}"));
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let page = service.send("GET", "/dashboard/sites", &[("cookie", &cookie)], "").await;
    assert_eq!(page.status, 200, "the session is good");
    for (method, path) in [
        ("GET", &*path),
        ("GET", "/r/http://shop.test/photo"),
        ("POST", "/v1/scrape"),
        ("POST", "/v2/scrape"),
    ] {
        let answer = service.send(method, path, &[("cookie", &cookie)], "{}").await;
        assert_eq!(answer.status, 401, "{method} {path}: {answer:?}");
    }
}
