//! Requests that these endpoints reject, and the errors.

use serde_json::json;

use super::{Place, refused};
use crate::client;

#[tokio::test(flavor = "multi_thread")]
async fn an_option_that_is_not_supported_is_named() {
    let place = Place::start().await;
    for (option, value) in [
        ("actions", json!([{"type": "wait", "milliseconds": 10}])),
        ("waitFor", json!(100)),
        ("mobile", json!(true)),
        ("location", json!({"country": "US"})),
        ("proxy", json!("stealth")),
        ("formats", json!(["screenshot"])),
        ("formats", json!([{"type": "json", "schema": {}}])),
        ("jsonOptions", json!({"prompt": "x"})),
        ("includeTags", json!(["div > p"])),
        ("headers", json!({"cookie": "a=b"})),
        ("storeInCache", json!(false)),
        ("timeout", json!(0)),
        ("colour", json!("blue")),
    ] {
        for (path, name, url) in [
            ("/v1/scrape", "url", json!("http://shop.test/")),
            ("/v2/scrape", "url", json!("http://shop.test/")),
            ("/v2/batch/scrape", "urls", json!(["http://shop.test/"])),
        ] {
            let (error, code) =
                refused(&place.post(path, &json!({name: url, option: value})).await, 400);
            assert!(error.starts_with(option), "{path} {option}: {error}");
            assert_eq!(code, "invalid-field");
        }
    }
    let webhook = json!({"urls": ["http://shop.test/"], "webhook": "http://other.test/hook"});
    let (error, _) = refused(&place.post("/v2/batch/scrape", &webhook).await, 400);
    assert!(error.contains("callback_url"), "{error}");
    assert!(place.origin.hits().is_empty());
}

/// The clients send these values with every scrape, and the service accepts them.
#[tokio::test(flavor = "multi_thread")]
async fn the_default_options_of_the_clients_are_accepted() {
    let place = Place::start().await;
    let defaults = json!({
        "url": "http://shop.test/", "onlyMainContent": true, "mobile": false, "skipTlsVerification": true,
        "removeBase64Images": true, "fastMode": false, "blockAds": true, "maxAge": 14_400_000, "storeInCache": true,
        "parsers": ["pdf"], "proxy": "auto", "waitFor": 0, "actions": [], "origin": "python-sdk@4.54.0",
    });
    for path in ["/v1/scrape", "/v2/scrape"] {
        place.post(path, &defaults).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_token_opens_these_endpoints() {
    let place = Place::start().await;
    let viewer = place.service.caller("watcher", "viewer").await;
    let stranger = place.service.caller("stranger", "caller").await;
    let urls = json!({"urls": ["http://shop.test/article"]});
    let batch = place.post("/v2/batch/scrape", &urls).await.expect(200).json();
    let status = format!("/v2/batch/scrape/{}", batch["id"].as_str().unwrap());
    let scrape = r#"{"url": "http://shop.test/"}"#;
    for (method, path, body) in [
        ("POST", "/v2/scrape", scrape),
        ("POST", "/v1/scrape", scrape),
        ("POST", "/v2/map", scrape),
        ("POST", "/v2/batch/scrape", &*urls.to_string()),
        ("GET", &*status, ""),
        ("DELETE", &*status, ""),
        ("GET", &*format!("{status}/errors"), ""),
    ] {
        let wrong = place.send_as(&format!("fw_{}", "a".repeat(43)), method, path, body).await;
        let (_, code) = refused(&wrong, 401);
        assert_eq!(
            (code.as_str(), wrong.header("www-authenticate")),
            ("unauthorized", Some("Bearer"))
        );
        // A session of the dashboard is no token.
        let cookie = format!("fetchwell_session={}", place.service.token);
        let request = client::request(
            method,
            path,
            &[("cookie", &cookie), ("content-type", "application/json")],
            body,
        );
        refused(&client::raw(place.service.address, &request).await, 401);
        if method == "GET" {
            refused(&place.send_as(&stranger, method, path, body).await, 404);
        } else {
            refused(&place.send_as(&viewer, method, path, body).await, 403);
        }
    }
    refused(&place.send_as(&stranger, "DELETE", &status, "").await, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_errors_have_the_same_format() {
    let place = Place::start().await;
    for (method, path) in [
        ("POST", "/v2/crawl"),
        ("GET", "/v2/crawl/123"),
        ("DELETE", "/v1/crawl/123"),
        ("POST", "/v2/search"),
        ("POST", "/v2/extract"),
        ("GET", "/v2/team/credit-usage"),
        ("GET", "/v2"),
    ] {
        let (error, _) =
            refused(&place.send_as(&place.service.token, method, path, "{}").await, 501);
        assert!(error.starts_with(path), "{error}");
        assert_eq!(error.contains("`fetchwell crawl`"), path.contains("crawl"), "{error}");
    }
    for (method, path, status) in [
        ("GET", "/v2/scrape", 405),
        ("PUT", "/v2/map", 405),
        ("GET", "/v2/batch/scrape/123", 404),
        ("GET", "/v1/crawl/123", 404),
        ("GET", "/v2/batch/scrape/batch_00000000000000000000000000000000/errors", 404),
    ] {
        refused(&place.send_as(&place.service.token, method, path, "").await, status);
    }
    for (body, status) in
        [("{", 400), ("[]", 400), (r#"{"url": "http://a.test/", "url": ""}"#, 400), ("{}", 400)]
    {
        refused(&place.send_as(&place.service.token, "POST", "/v2/scrape", body).await, status);
    }
    let long = json!({"url": "http://shop.test/", "origin": "x".repeat(70_000)});
    refused(&place.post("/v2/scrape", &long).await, 413);
    let (error, _) = refused(
        &place.get("/v2/batch/scrape/batch_00000000000000000000000000000000?page=2").await,
        400,
    );
    assert!(error.starts_with("page is not a known parameter"), "{error}");
}
