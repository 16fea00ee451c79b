//! What pages consist of, whatever they are made from.

use fetchwell_testkit::eventually::eventually;

use super::place::{PAGES, send, serve, web};
use super::visit::{Visitor, text};
use crate::client;

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_hardened_and_nothing_on_a_page_is_inline() {
    let origin = web();
    let service = serve(&origin).await;
    let operator = Visitor::log_in(service.address, &service.token).await;
    let others = [
        "/dashboard/login",
        "/dashboard/sites/shop.test",
        "/dashboard/assets/nothing",
        "/dashboard/articles/x",
    ];
    for path in PAGES.into_iter().chain(others) {
        let answer = operator.get(path).await;
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"),
            "{path}: {policy}"
        );
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("form-action 'self'"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("same-origin"), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        let page = text(&answer);
        for inline in
            [" style=", "<style", " onclick", " onload", "javascript:", "<script>", "http-equiv"]
        {
            assert!(!page.contains(inline), "{path} has {inline}");
        }
        for address in page.split([' ', '\n']).filter_map(|word| word.strip_prefix("src=\"")) {
            assert!(address.starts_with("/dashboard/assets/"), "{path} loads {address}");
        }
    }
    let style = operator.page("/").await;
    let (_, style) = style.split_once("<link rel=\"stylesheet\" href=\"").unwrap();
    let style = operator.get(style.split('"').next().unwrap()).await;
    assert_eq!(style.header("content-type"), Some("text/css; charset=utf-8"));
    assert!(style.header("cache-control").unwrap().contains("immutable"));
    assert!(
        !text(&style).contains("url(") && !text(&style).contains("@import"),
        "nothing is loaded"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_from_outside_is_text() {
    let origin = web();
    let service = serve(&origin).await;
    let url = "http://shop.test/missing?q=<script>alert(1)</script>\"'onmouseover=x";
    let id = send(&service, url, "\"><img src=x onerror=alert(1)>", true).await;
    let operator = Visitor::log_in(service.address, &service.token).await;
    let filter = "/dashboard/messages?text=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E&site=%3Cb%3E";
    let sites = "/dashboard/sites?text=%22%3E%3Cscript%3Ealert(1)%3C/script%3E";
    let one = format!("/dashboard/messages/{id}");
    for path in ["/dashboard/messages", &one, "/dashboard/dead-letters", filter, sites] {
        let page = operator.page(path).await;
        for harm in ["<script>alert", "<img src=x", "\"'onmouseover"] {
            assert!(!page.contains(harm), "{path} has {harm}");
        }
    }
    let page = operator.page(&one).await;
    assert!(page.contains("&#60;script&#62;alert(1)"), "it is shown as it was written");
    let link = page.split("<a href=\"http://shop.test").nth(1).unwrap().split('>').next().unwrap();
    assert!(link.contains("rel=\"noreferrer noopener\""), "{link}");
    for path in [
        "/dashboard/sites/%3Cscript%3E",
        "/dashboard/messages/%3Cscript%3E",
        "/dashboard/articles/%3Cscript%3E",
    ] {
        let answer = operator.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(!text(&answer).contains("<script>"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_watched_comes_anew_until_its_session_ends() {
    let origin = web();
    let service = serve(&origin).await;
    let operator = Visitor::log_in(service.address, &service.token).await;
    let mut stream = client::connect(service.address).await;
    let headers = [("cookie", operator.cookie.as_str()), ("accept", "text/event-stream")];
    let request = client::request("GET", "/dashboard/messages", &headers, "");
    tokio::io::AsyncWriteExt::write_all(&mut stream, &request).await.unwrap();
    let said = client::read_until(&mut stream, |said| said.contains("\n\n")).await;
    assert!(said.contains("content-type: text/event-stream"), "{said}");
    let said = client::read_until(&mut stream, |said| said.contains("data: <header")).await;
    assert!(
        !said.contains("<html") && !said.contains("csrf\" value=\"\""),
        "the content alone: {said}"
    );
    send(&service, "http://shop.test/page", "seen-live", false).await;
    client::read_until(&mut stream, |said| said.contains("seen-live")).await;
    let csrf = super::visit::csrf(&operator.page("/").await);
    operator.post("/dashboard/logout", &[("csrf", &csrf)], &[super::visit::FROM_US]).await;
    client::read_until(&mut stream, |said| said.contains("event: over")).await;
    let stranger = Visitor::stranger(service.address);
    let headers = [("accept", "text/event-stream")];
    eventually("an answer", async || {
        let answer = stranger.send("GET", "/", &headers, "").await;
        text(&answer).contains("event: over")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_take_no_place_of_those_who_watch_a_page() {
    let origin = web();
    let service = serve(&origin).await;
    let operator = Visitor::log_in(service.address, &service.token).await;
    let watch = async |cookie: &str| {
        let mut stream = client::connect(service.address).await;
        let headers = [("cookie", cookie), ("accept", "text/event-stream")];
        let request = client::request("GET", "/", &headers, "");
        tokio::io::AsyncWriteExt::write_all(&mut stream, &request).await.unwrap();
        stream
    };
    // More than there are places.
    let mut strangers = Vec::new();
    for _ in 0..70 {
        strangers.push(watch("").await);
    }
    for stranger in &mut strangers {
        client::read_until(stranger, |said| said.contains("event: over")).await;
    }
    let mut stream = watch(&operator.cookie).await;
    client::read_until(&mut stream, |said| said.contains("data: <header")).await;
}
