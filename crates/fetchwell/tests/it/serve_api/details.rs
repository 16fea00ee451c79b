//! Results say where a page was found, when, and whether it was stored before.

use fetchwell_simweb::SiteScript;
use serde_json::{Value, json};

use super::WAIT;
use super::service::{Service, message};

const FIELDS: [&str; 8] = [
    "final_url",
    "redirects",
    "fetched_at",
    "etag",
    "last_modified",
    "headers",
    "from_cache",
    "age_seconds",
];

async fn outbox_of(service: &Service, asked: &Value) -> Value {
    let ended = service.post("/fetch", &WAIT, asked).await.expect(200).json();
    let outbox = ended["outbox"].clone();
    for name in FIELDS {
        assert!(outbox.get(name).is_some(), "{name}: {outbox}");
    }
    outbox
}

async fn start() -> Service {
    let site = SiteScript::new("moves.test")
        .redirect("/a", "/b")
        .moved("/b", "http://shop.test/page")
        .redirect("/private", "http://closed.test/x")
        .tagged("/tagged", "text/plain", "words", "\"v1\"");
    let closed = SiteScript::new("closed.test").robots("User-agent: *\nDisallow: /\n");
    Service::start_with(&[], [site, closed]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_says_which_way_it_came() {
    let service = start().await;
    let moved = outbox_of(&service, &json!({"url": "http://moves.test/a"})).await;
    assert_eq!(moved["url"], "http://moves.test/a");
    assert_eq!(moved["final_url"], "http://shop.test/page");
    let way = json!([
        {"url": "http://moves.test/a", "status": 302},
        {"url": "http://moves.test/b", "status": 301},
    ]);
    assert_eq!(moved["redirects"], way);
    assert_eq!(moved["headers"]["content-type"], moved["content_type"]);
    assert_eq!((&moved["from_cache"], &moved["age_seconds"]), (&json!(false), &Value::Null));
    let fetched_at = moved["fetched_at"].as_str().unwrap();
    let created_at = moved["created_at"].as_str().unwrap();
    assert!(fetched_at <= created_at && fetched_at.ends_with('Z'), "{fetched_at} {created_at}");

    let missing = outbox_of(&service, &message("/missing")).await;
    assert_eq!(missing["final_url"], "http://shop.test/missing");
    assert_eq!((&missing["redirects"], &missing["http_status"]), (&json!([]), &json!(404)));
    assert!(missing["headers"].is_object() && missing["fetched_at"].is_string(), "{missing}");
    // Robots.txt of the site that the redirect leads to disallows it: nothing was requested there.
    let refused = outbox_of(&service, &json!({"url": "http://moves.test/private"})).await;
    assert_eq!(refused["status"], "refused_by_robots");
    assert_eq!(refused["final_url"], "http://closed.test/x");
    assert_eq!((&refused["fetched_at"], &refused["headers"]), (&Value::Null, &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_has_not_changed_says_so() {
    let service = start().await;
    let url = "http://moves.test/tagged";
    let first = outbox_of(&service, &json!({"url": url})).await;
    assert_eq!((&first["etag"], &first["content"]), (&json!("\"v1\""), &json!("words")));
    let asked = json!({"url": url, "headers": {"If-None-Match": first["etag"]}});
    let second = outbox_of(&service, &asked).await;
    assert_eq!((&second["status"], &second["http_status"]), (&json!("success"), &json!(304)));
    assert_eq!((&second["etag"], &second["content"]), (&first["etag"], &Value::Null));
    assert!(second["error"].as_str().unwrap().contains("not modified"), "{second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_page_says_that_it_is_one_and_how_old() {
    let service = start().await;
    let url = "http://moves.test/a";
    let first = outbox_of(&service, &json!({"url": url})).await;
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let stored = outbox_of(&service, &json!({"url": url, "max_age": "1h"})).await;
    for name in ["final_url", "redirects", "fetched_at", "headers", "content"] {
        assert_eq!(stored[name], first[name], "{name}");
    }
    assert_eq!(stored["from_cache"], true);
    assert!(stored["age_seconds"].as_u64().is_some_and(|age| age >= 1), "{stored}");
}
