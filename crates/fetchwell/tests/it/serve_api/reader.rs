//! `GET /r/{url}`: a page with one request.

use std::time::Duration;

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::crash::{Program, Service, TestWeb};
use fetchwell_testkit::eventually::eventually;

use crate::client::{self, Response};
use crate::fetch::ARTICLE as HTML;
use crate::serve_contract::audit_of;

const ARTICLE: &str = "/r/http://shop.test/article";
const NOTES: &str = "# Notes\n\n* <b>one</b>\n";

/// A service and its origin.
struct Reader {
    service: Service,
    origin: TestWeb,
}

impl Reader {
    async fn start() -> Reader {
        let shop = SiteScript::new("shop.test")
            .text("/article", "text/html", HTML)
            .text("/notes.md", "text/markdown", NOTES)
            .binary("/photo", "image/jpeg", 999)
            .status("/missing", 404);
        let slow = SiteScript::new("slow.test").slow(Duration::from_secs(3));
        let origin = TestWeb::start([shop, slow]);
        let program = Program::new(env!("CARGO_BIN_EXE_fetchwell")).on(&origin);
        let program = program.flags(["--rate", "0", "--i-own-these-sites"]);
        Reader { service: Service::start(program).await, origin }
    }

    async fn read(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        self.read_as(&self.service.token, path, headers).await
    }

    async fn read_as(&self, token: &str, path: &str, headers: &[(&str, &str)]) -> Response {
        let bearer = format!("Bearer {token}");
        let headers = [&[("authorization", &*bearer)], headers].concat();
        client::raw(self.service.address, &client::request("GET", path, &headers, "")).await
    }

    /// The requests for this path at the origin.
    fn requests(&self, path: &str) -> usize {
        self.origin.hits().iter().filter(|hit| &*hit.path == path).count()
    }

    async fn messages(&self) -> usize {
        let page = self.read("/operator/messages", &[]).await.expect(200).json();
        page["messages"].as_array().unwrap().len()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_read_once_and_then_comes_from_the_store() {
    let reader = Reader::start().await;
    let fresh = reader.read(ARTICLE, &[]).await.expect(200);
    assert_eq!(fresh.header("content-type"), Some("text/markdown; charset=utf-8"));
    assert_eq!(fresh.header("age"), None);
    assert!(fresh.text().contains("]("), "{}", fresh.text());

    let stored = reader.read(ARTICLE, &[]).await.expect(200);
    assert_eq!(stored.text(), fresh.text());
    assert!(stored.header("age").is_some());
    assert_eq!((reader.requests("/article"), reader.messages().await), (1, 1));

    let text = reader.read(ARTICLE, &[("accept", "text/plain")]).await.expect(200);
    assert_eq!(text.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(!text.text().contains("]("), "{}", text.text());
    let json = reader.read(ARTICLE, &[("accept", "application/json")]).await.expect(200);
    assert_eq!(json.json()["markdown"], fresh.text());
    assert_eq!(reader.requests("/article"), 1);

    reader.read(ARTICLE, &[("cache-control", "no-cache")]).await.expect(200);
    assert_eq!((reader.requests("/article"), reader.messages().await), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_caller_is_fetched_again() {
    let reader = Reader::start().await;
    reader.read(ARTICLE, &[]).await.expect(200);
    let token = reader.service.caller("other", "caller").await;
    let other = reader.read_as(&token, ARTICLE, &[]).await.expect(200);
    assert_eq!((other.header("age"), reader.requests("/article")), (None, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_a_problem_that_says_why() {
    let reader = Reader::start().await;
    let missing = reader.read("/r/http://shop.test/missing", &[]).await.expect(502).json();
    assert_eq!(missing["type"], "/docs#problem-no-page");
    assert_eq!(
        (&missing["result"], &missing["url"]),
        (&"http_error".into(), &"http://shop.test/missing".into())
    );
    assert!(missing["detail"].as_str().unwrap().contains("404"), "{missing}");
    let path = format!("/messages/{}", missing["message_id"].as_str().unwrap());
    reader.read(&path, &[]).await.expect(200);
    let photo = reader.read("/r/http://shop.test/photo", &[]).await.expect(502).json();
    assert!(photo["detail"].as_str().unwrap().contains("not text"), "{photo}");
    for (url, said) in [("ftp://shop.test/", "ftp:"), ("http://10.0.0.1/", "refused"), ("", "host")]
    {
        let problem = reader.read(&format!("/r/{url}"), &[]).await;
        let problem = problem.expect(if url.is_empty() { 404 } else { 422 }).json();
        assert!(url.is_empty() || problem.to_string().contains(said), "{problem}");
    }
    reader.read(ARTICLE, &[("accept", "text/html")]).await.expect(406);
    // A session of the dashboard is no token.
    let cookie = format!("fetchwell_session={}", reader.service.token);
    let request = client::request("GET", ARTICLE, &[("cookie", &cookie)], "");
    client::raw(reader.service.address, &request).await.expect(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_takes_longer_than_the_wait_is_still_fetched() {
    let reader = Reader::start().await;
    let slow = "/r/http://slow.test/";
    let late = reader.read(slow, &[("prefer", "wait=1")]).await.expect(504);
    assert!(late.header("retry-after").is_some());
    let id = late.json()["message_id"].as_str().unwrap().to_owned();
    let is_done = async || {
        let message = reader.read(&format!("/messages/{id}"), &[]).await.expect(200).json();
        message["status"] == "completed"
    };
    eventually("the page", is_done).await;
    let stored = reader.read(slow, &[]).await.expect(200);
    assert_eq!((stored.header("age").is_some(), reader.requests("/")), (true, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn markdown_of_the_site_is_returned_as_it_is() {
    let reader = Reader::start().await;
    let notes = reader.read("/r/http://shop.test/notes.md", &[]).await.expect(200);
    assert_eq!(notes.header("content-type"), Some("text/markdown; charset=utf-8"));
    assert_eq!(notes.text(), NOTES);
}

/// All reads of a stored page within a minute make one entry, at the latest when the service stops.
#[tokio::test(flavor = "multi_thread")]
async fn reads_of_stored_pages_are_in_the_audit_log() {
    let reader = Reader::start().await;
    for _ in 0..4 {
        reader.read(ARTICLE, &[]).await.expect(200);
    }
    let Reader { mut service, .. } = reader;
    service.stop().await;
    let audit = audit_of(&service).await;
    let reads: Vec<_> = audit.iter().filter(|entry| entry.action == "read_stored_pages").collect();
    assert_eq!(reads.len(), 1, "{audit:?}");
    assert_eq!((reads[0].caller.as_deref(), &*reads[0].detail), (Some("local"), "3 pages"));
}
