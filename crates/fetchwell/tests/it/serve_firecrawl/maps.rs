//! `POST /v1/map` and `POST /v2/map`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Place, refused};

/// The URLs of a map, without that of the shop.
async fn mapped(place: &Place, path: &str, changes: Value) -> Vec<String> {
    let mut body = json!({"url": "http://shop.test/"});
    body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    let answer = place.post(path, &body).await.expect(200).json();
    assert_eq!(answer["success"], true);
    let url = |link: &Value| link.as_str().or_else(|| link["url"].as_str()).unwrap().to_owned();
    let urls: Vec<String> = answer["links"].as_array().unwrap().iter().map(url).collect();
    urls.iter().map(|url| url.strip_prefix("http://shop.test").unwrap_or(url).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_has_the_links_of_the_page_and_of_the_sitemaps() {
    let place = Place::start().await;
    let sitemaps = ["/hats/1", "/hats/2", "/about", "/coats/1"];
    for (path, changes, expected) in [
        (
            "/v2/map",
            json!({}),
            &["/", "/about", "http://blog.shop.test/", "/hats/1", "/hats/2", "/coats/1"][..],
        ),
        ("/v1/map", json!({}), &["/", "/about", "/hats?size=l", "/hats/1", "/hats/2", "/coats/1"]),
        ("/v2/map", json!({"sitemap": "skip", "includeSubdomains": false}), &["/", "/about"]),
        (
            "/v2/map",
            json!({"sitemap": "skip", "ignoreQueryParameters": false}),
            &["/", "/about", "/hats?size=l", "http://blog.shop.test/"],
        ),
        ("/v2/map", json!({"sitemap": "only"}), &sitemaps),
        ("/v1/map", json!({"sitemapOnly": true}), &sitemaps),
        ("/v1/map", json!({"ignoreSitemap": true}), &["/", "/about", "/hats?size=l"]),
        ("/v2/map", json!({"search": "HATS"}), &["/hats/1", "/hats/2"]),
        ("/v2/map", json!({"limit": 2}), &["/", "/about"]),
    ] {
        assert_eq!(mapped(&place, path, changes.clone()).await, expected, "{path} {changes}");
    }
    // What was read once is not read again.
    for path in ["/", "/robots.txt", "/maps/index.xml", "/maps/hats.xml"] {
        assert!(place.requests("shop.test", path) <= 2, "{path}");
    }
    assert_eq!(place.requests("shop.test", "/maps/coats.xml.gz"), 1);
    let uncached = mapped(&place, "/v2/map", json!({"sitemap": "skip", "ignoreCache": true})).await;
    assert_eq!((uncached.len(), place.requests("shop.test", "/")), (3, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_says_what_it_knows_about_a_page() {
    let place = Place::start().await;
    let answer =
        place.post("/v2/map", &json!({"url": "http://shop.test/"})).await.expect(200).json();
    let page =
        json!({"url": "http://shop.test/", "title": "The shop", "description": "All you need."});
    assert_eq!(answer["links"][0], page);
    assert_eq!(answer["links"][1], json!({"url": "http://shop.test/about"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_without_named_sitemaps_is_asked_for_the_usual_one() {
    let place = Place::start().await;
    let plain = mapped(&place, "/v2/map", json!({"url": "http://plain.test/"})).await;
    let plain: BTreeSet<_> = plain.iter().map(String::as_str).collect();
    assert_eq!(
        plain,
        BTreeSet::from(["http://plain.test/", "http://plain.test/one", "http://plain.test/two"])
    );
}

/// Each read is a request to the site, and a result that is stored.
#[tokio::test(flavor = "multi_thread")]
async fn a_map_reads_and_stores_no_more_than_it_needs() {
    let place = Place::start().await;
    let one = json!({"url": "http://plain.test/", "limit": 1});
    assert_eq!(mapped(&place, "/v2/map", one).await, ["http://plain.test/"]);
    // This is the request of the gate.
    assert_eq!(place.requests("plain.test", "/robots.txt"), 1);

    let soft = json!({"url": "http://soft.test/", "sitemap": "only"});
    assert!(mapped(&place, "/v2/map", soft).await.is_empty());
    let outbox = place.get("/outbox").await.expect(200).json();
    let results = outbox["messages"].as_array().unwrap();
    let of = |url: &str| results.iter().find(|result| result["url"] == url).unwrap();
    assert_eq!(of("http://plain.test/")["title"], "Plain");
    assert!(of("http://soft.test/sitemap.xml").get("title").is_none(), "{outbox}");
    assert_eq!(results.len(), 3, "{outbox}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_of_which_nothing_can_be_read_is_an_error() {
    let place = Place::start().await;
    for (url, status, code) in [
        ("http://private.test/", 403, "refused_by_robots"),
        ("http://down.test/", 500, "network_error"),
    ] {
        let (error, got) = refused(&place.post("/v2/map", &json!({"url": url})).await, status);
        assert_eq!(got, code, "{error}");
    }
    let slow = json!({"url": "http://slow.test/", "timeout": 1_000});
    let (_, code) = refused(&place.post("/v2/map", &slow).await, 408);
    assert_eq!(code, "SCRAPE_TIMEOUT");
}
