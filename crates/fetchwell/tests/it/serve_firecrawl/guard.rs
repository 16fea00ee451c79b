//! URLs that do not lead to the public web.

use fetchwell_testkit::crash::Service;
use serde_json::json;

use super::refused;
use crate::serve_contract::{URLS, accepted, no_way_out, send};

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_fetched_from_elsewhere_than_the_public_web() {
    let service = Service::start(no_way_out()).await;
    for url in URLS {
        for (path, body) in [
            ("/v1/scrape", json!({"url": url})),
            ("/v2/scrape", json!({"url": url})),
            ("/v2/map", json!({"url": url})),
            ("/v1/map", json!({"url": url, "ignoreSitemap": true})),
            ("/v2/batch/scrape", json!({"urls": [url]})),
            (
                "/v2/batch/scrape",
                json!({"urls": ["http://shop.test/", url], "ignoreInvalidURLs": false}),
            ),
        ] {
            let response = send(&service, path, &body.to_string()).await;
            let (error, _) = refused(&response, 400);
            assert!(error.starts_with("url"), "{url:?}: {error}");
        }
    }
    assert_eq!(accepted(&service).await, 0.0);
    let urls = [URLS, &["http://shop.test/"]].concat();
    let mixed = json!({"urls": urls});
    let started = send(&service, "/v2/batch/scrape", &mixed.to_string()).await.expect(200).json();
    assert_eq!(started["invalidURLs"], json!(URLS));
    assert_eq!(accepted(&service).await, 1.0);
}
