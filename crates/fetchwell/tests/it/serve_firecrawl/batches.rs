//! `/v1/batch/scrape` and `/v2/batch/scrape`.

use std::collections::BTreeSet;

use fetchwell_testkit::eventually::{eventually, eventually_ok};
use serde_json::{Value, json};

use super::{Place, refused};

/// Waits until a batch has ended, and returns its state.
async fn ended(place: &Place, path: &str) -> Value {
    eventually_ok("the batch to end", async || {
        let state = place.get(path).await.expect(200).json();
        if state["status"] == "scraping" { Err(state.to_string()) } else { Ok(state) }
    })
    .await
}

fn sources(documents: &[Value]) -> BTreeSet<String> {
    let source = |document: &Value| document["metadata"]["sourceURL"].as_str().unwrap().to_owned();
    documents.iter().map(source).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_scraped_and_read_page_by_page() {
    let place = Place::start().await;
    let good: BTreeSet<String> = (0..5).map(|n| format!("http://shop.test/list/{n}")).collect();
    let mut urls: Vec<&str> = good.iter().map(String::as_str).collect();
    urls.splice(
        2..2,
        [
            "http://private.test/1",
            "http://down.test/",
            "http://shop.test/missing",
            "ftp://shop.test/",
        ],
    );
    let body = json!({"urls": urls, "formats": ["markdown", "links"]});
    let started = place.post("/v2/batch/scrape", &body).await.expect(200).json();
    assert_eq!(started["invalidURLs"], json!(["ftp://shop.test/"]));
    let id = started["id"].as_str().unwrap();
    let path = format!("/v2/batch/scrape/{id}");
    assert_eq!(started["url"], format!("http://fetchwell.test{path}"));

    let whole = ended(&place, &path).await;
    assert_eq!((&whole["success"], &whole["status"]), (&json!(true), &json!("completed")));
    assert_eq!(
        (&whole["total"], &whole["completed"], &whole["creditsUsed"]),
        (&json!(8), &json!(8), &json!(0))
    );
    assert!(
        whole["expiresAt"].as_str().unwrap().ends_with('Z') && whole.get("next").is_none(),
        "{whole}"
    );
    let documents = whole["data"].as_array().unwrap();
    let mut expected = good.clone();
    expected.insert("http://shop.test/missing".to_owned());
    assert_eq!((sources(documents), documents.len()), (expected.clone(), 6));
    for document in documents {
        let is_missing = document["metadata"]["statusCode"] == 404;
        assert_eq!(
            document.get("markdown").is_none() && document.get("links").is_none(),
            is_missing
        );
    }

    // The same in small pages, as the clients follow them.
    let mut next = Some(format!("{path}?limit=2"));
    let mut found = Vec::new();
    let mut pages = 0;
    while let Some(path) = next {
        let page = place.get(&path).await.expect(200).json();
        let documents = page["data"].as_array().unwrap();
        assert!(!documents.is_empty() && documents.len() <= 2, "{page}");
        found.extend(documents.clone());
        pages += 1;
        next = page.get("next").map(|next| {
            let next = next.as_str().unwrap().strip_prefix("http://fetchwell.test");
            next.unwrap_or_else(|| panic!("{page}")).to_owned()
        });
    }
    assert_eq!((sources(&found), found.len()), (expected, 6));
    assert!((3..=5).contains(&pages), "{pages}");

    for method in ["GET", "DELETE"] {
        let path = format!("{path}/errors");
        let errors =
            place.send_as(&place.service.token, method, &path, "").await.expect(200).json();
        assert_eq!(errors["robotsBlocked"], json!(["http://private.test/1"]));
        let one = &errors["errors"][0];
        assert_eq!(
            (&one["url"], &one["code"]),
            (&json!("http://down.test/"), &json!("network_error"))
        );
        assert!(one["error"].as_str().is_some() && one["timestamp"].as_str().is_some(), "{errors}");
        assert_eq!(errors["errors"].as_array().unwrap().len(), 1);
    }
    // It is a batch like any other.
    let native = place.get(&format!("/batches/{id}")).await.expect(200).json();
    assert_eq!((&native["counts"]["total"], &native["skipped"]), (&json!(8), &json!(1)));
    let outbox = place.get("/outbox").await.expect(200).json();
    assert_eq!(outbox["messages"].as_array().unwrap().len(), 8);
    // The client of version 1 asks for its state elsewhere.
    let first = place.get(&format!("/v1/crawl/{id}")).await.expect(200).json();
    assert_eq!(first["data"], whole["data"]);
}

/// The clients take an empty page for the last one, and a page has no more documents than they asked for.
#[tokio::test(flavor = "multi_thread")]
async fn pages_that_have_failed_are_skipped() {
    let place = Place::start().await;
    let private = (0..40).map(|n| format!("http://private.test/{n}"));
    let urls: Vec<String> =
        private.chain((0..3).map(|n| format!("http://slow.test/{n}"))).collect();
    let started = place.post("/v2/batch/scrape", &json!({"urls": urls})).await.expect(200).json();
    let path = format!("/v2/batch/scrape/{}", started["id"].as_str().unwrap());
    ended(&place, &path).await;
    let mut next = Some(format!("{path}?limit=2"));
    let mut pages = Vec::new();
    while let Some(path) = next {
        let page = place.get(&path).await.expect(200).json();
        pages.push(page["data"].as_array().unwrap().len());
        let next_url = page.get("next").map(|next| next.as_str().unwrap().to_owned());
        next = next_url.map(|url| url.strip_prefix("http://fetchwell.test").unwrap().to_owned());
    }
    assert_eq!(pages, [2, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_can_be_cancelled() {
    let place = Place::start().await;
    let urls: Vec<String> = (0..500).map(|n| format!("http://slow.test/list/{n}")).collect();
    let started = place.post("/v1/batch/scrape", &json!({"urls": urls})).await.expect(200).json();
    let path = format!("/v1/batch/scrape/{}", started["id"].as_str().unwrap());
    assert_eq!(place.get(&path).await.expect(200).json()["status"], "scraping");
    let cancelled =
        place.send_as(&place.service.token, "DELETE", &path, "").await.expect(200).json();
    assert_eq!((&cancelled["status"], &cancelled["success"]), (&json!("cancelled"), &json!(true)));
    let has_ended = async || {
        let state = place.get(&path).await.expect(200).json();
        assert_eq!(state["status"], "cancelled");
        state["completed"] == 500
    };
    eventually("the rest to end", has_ended).await;
    let errors = place.get(&format!("{path}/errors")).await.expect(200).json();
    let errors = errors["errors"].as_array().unwrap();
    // As many as may be in flight at once were not cancelled.
    assert!(errors.len() >= 300 && errors.iter().all(|error| error["code"] == "cancelled"));
}

/// The options are stored with each URL.
#[tokio::test(flavor = "multi_thread")]
async fn a_short_request_for_a_huge_batch_is_refused() {
    let place = Place::start().await;
    let urls: Vec<String> = (0..2_000).map(|n| format!("http://shop.test/{n}")).collect();
    let selectors = vec![format!(".{}", "x".repeat(200)); 50];
    let body = json!({"urls": urls, "includeTags": selectors});
    let (error, code) = refused(&place.post("/v2/batch/scrape", &body).await, 413);
    assert_eq!(code, "too-large");
    assert!(error.contains("fewer selectors"), "{error}");
    let few = json!({"urls": urls[..10], "includeTags": selectors});
    place.post("/v2/batch/scrape", &few).await.expect(200);
}

/// It is refused as one request: otherwise its caller would have to wait for minutes.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_with_too_many_urls_is_refused_for_that_and_costs_little() {
    let limits =
        [("FETCHWELL_RETRIEVER__CALLER_RATE", "0.001"), ("FETCHWELL_RETRIEVER__CALLER_BURST", "3")];
    let place = Place::start_with(&limits).await;
    let too_many = json!({"urls": vec!["http://shop.test/"; 100_000]});
    for _ in 0..2 {
        let (error, _) = refused(&place.post("/v2/batch/scrape", &too_many).await, 400);
        assert_eq!(error, "urls has more than 10000 entries");
    }
    place.post("/v2/scrape", &json!({"url": "http://shop.test/article"})).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_repeats_the_first_answer() {
    let place = Place::start().await;
    let send = async |urls: &[&str]| {
        let bearer = format!("Bearer {}", place.service.token);
        let headers = [
            ("authorization", &*bearer),
            ("content-type", "application/json"),
            ("x-idempotency-key", "k-1"),
        ];
        let body = json!({"urls": urls}).to_string();
        let request = crate::client::request("POST", "/v2/batch/scrape", &headers, &body);
        crate::client::raw(place.service.address, &request).await
    };
    let first = send(&["http://shop.test/article"]).await.expect(200).json();
    let again = send(&["http://shop.test/article"]).await.expect(200).json();
    assert_eq!(first, again);
    refused(&send(&["http://shop.test/"]).await, 409);
    ended(&place, &format!("/v2/batch/scrape/{}", first["id"].as_str().unwrap())).await;
    assert_eq!(place.requests("shop.test", "/article"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn urls_of_other_requests_use_the_public_url() {
    let public = ("FETCHWELL_RETRIEVER__PUBLIC_URL", "https://fetch.example.com/api/");
    let place = Place::start_with(&[public]).await;
    let urls: Vec<String> = (0..3).map(|n| format!("http://shop.test/list/{n}")).collect();
    let started = place.post("/v2/batch/scrape", &json!({"urls": urls})).await.expect(200).json();
    let path = format!("/v2/batch/scrape/{}", started["id"].as_str().unwrap());
    assert_eq!(started["url"], format!("https://fetch.example.com/api{path}"));
    ended(&place, &path).await;
    let page = place.get(&format!("{path}?limit=1")).await.expect(200).json();
    let next = page["next"].as_str().unwrap();
    assert!(next.starts_with(&format!("https://fetch.example.com/api{path}?after=")), "{next}");
}
