//! `POST /v1/scrape` and `POST /v2/scrape`.

use serde_json::{Value, json};

use super::{HOME, NOTES, Place, refused};

const BOTH: [&str; 2] = ["/v1/scrape", "/v2/scrape"];

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_returned_in_every_format() {
    let place = Place::start().await;
    let formats = json!(["markdown", "html", "rawHtml", "links"]);
    for path in BOTH {
        let body = json!({"url": "http://shop.test/", "formats": formats, "origin": "test", "integration": null});
        let answer = place.post(path, &body).await.expect(200).json();
        assert_eq!(answer["success"], true, "{answer}");
        let data = &answer["data"];
        assert!(
            text(data, "markdown").contains("We sell [hats](http://shop.test/hats?size=l)"),
            "{data}"
        );
        assert!(!text(data, "markdown").contains("About us"), "{data}");
        assert!(
            text(data, "html")
                .contains("<p id=\"intro\">We sell <a href=\"http://shop.test/hats?size=l\">"),
            "{data}"
        );
        assert_eq!(text(data, "rawHtml"), HOME);
        let links = [
            "http://shop.test/about",
            "http://shop.test/hats?size=l",
            "http://blog.shop.test/",
            "http://other.test/",
        ];
        assert_eq!(data["links"], json!(links));
        let metadata = &data["metadata"];
        for (name, value) in [
            ("title", json!("The shop")),
            ("description", json!("All you need.")),
            ("language", json!("en")),
            ("sourceURL", json!("http://shop.test/")),
            ("url", json!("http://shop.test/")),
            ("statusCode", json!(200)),
            ("contentType", json!("text/html")),
        ] {
            assert_eq!(metadata[name], value, "{name} of {metadata}");
        }
        assert!(metadata.get("error").is_none(), "{metadata}");
    }
    // By default, there is Markdown only.
    let plain =
        place.post("/v2/scrape", &json!({"url": "http://shop.test/article"})).await.expect(200);
    let names: Vec<String> = plain.json()["data"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["markdown", "metadata"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_has_the_part_of_the_page_that_was_asked_for() {
    let place = Place::start().await;
    for (options, has, has_not) in [
        (
            json!({"onlyMainContent": false}),
            &["About us", "We sell", "Buy two", "Our blog"][..],
            &["alert"][..],
        ),
        (
            json!({"onlyMainContent": false, "excludeTags": [".ad", "footer"]}),
            &["About us"],
            &["Buy two", "Our blog"],
        ),
        (
            json!({"includeTags": ["#intro", "nav.top"]}),
            &["About us", "We sell"],
            &["The shop", "Buy two"],
        ),
        (json!({"excludeTags": ["#intro"]}), &["The shop"], &["We sell"]),
        (json!({"includeTags": ["table"]}), &[], &["The shop", "We sell"]),
    ] {
        let mut body = json!({"url": "http://shop.test/", "formats": ["markdown", "html"]});
        body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        let data = place.post("/v2/scrape", &body).await.expect(200).json()["data"].clone();
        for format in ["markdown", "html"] {
            assert!(has.iter().all(|words| text(&data, format).contains(words)), "{body}: {data}");
            assert!(
                !has_not.iter().any(|words| text(&data, format).contains(words)),
                "{body}: {data}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_page_is_returned_unless_it_is_too_old() {
    let place = Place::start().await;
    let state = async |path: &str, max_age: Value| {
        let body = json!({"url": "http://shop.test/article", "maxAge": max_age});
        let answer = place.post(path, &body).await.expect(200).json();
        text(&answer["data"]["metadata"], "cacheState").to_owned()
    };
    assert_eq!(state("/v2/scrape", Value::Null).await, "miss");
    assert_eq!(state("/v2/scrape", Value::Null).await, "hit");
    assert_eq!(state("/v2/scrape", json!(600_000)).await, "hit");
    assert_eq!(place.requests("shop.test", "/article"), 1);
    assert_eq!(state("/v2/scrape", json!(0)).await, "miss");
    // Version 1 stores pages, but uses them only if it is asked to.
    assert_eq!(state("/v1/scrape", Value::Null).await, "miss");
    assert_eq!(state("/v1/scrape", json!(600_000)).await, "hit");
    assert_eq!(place.requests("shop.test", "/article"), 3);
}

/// During an upgrade, instances of the release before, which know no documents, fetch pages, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_an_earlier_release_stored_is_fetched_again() {
    let place = Place::start().await;
    let body = json!({"url": "http://shop.test/article", "maxAge": 600_000});
    place.post("/v2/scrape", &body).await.expect(200);
    let store = rusqlite::Connection::open(place.service.program().file("fetchwell.db")).unwrap();
    store.busy_timeout(fetchwell_testkit::DEADLINE).unwrap();
    let changed = store.execute("UPDATE outbox SET extracted = NULL", []).unwrap();
    assert_eq!(changed, 1);
    for state in ["miss", "hit"] {
        let data = place.post("/v2/scrape", &body).await.expect(200).json()["data"].clone();
        assert!(!text(&data, "markdown").is_empty(), "{data}");
        assert_eq!(data["metadata"]["cacheState"], state, "{data}");
        assert_eq!(place.requests("shop.test", "/article"), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn markdown_of_the_site_and_redirects_are_followed() {
    let place = Place::start().await;
    let notes = place.post("/v2/scrape", &json!({"url": "http://shop.test/notes.md"})).await;
    assert_eq!(notes.expect(200).json()["data"]["markdown"], NOTES);
    let moved = place
        .post("/v2/scrape", &json!({"url": "http://shop.test/moved"}))
        .await
        .expect(200)
        .json();
    let metadata = &moved["data"]["metadata"];
    assert_eq!(metadata["sourceURL"], "http://shop.test/moved");
    assert_eq!(
        (&metadata["url"], &metadata["title"]),
        (&json!("http://shop.test/article"), &json!("Bees return"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_cannot_be_had_says_why() {
    let place = Place::start().await;
    let missing = place
        .post("/v2/scrape", &json!({"url": "http://shop.test/missing"}))
        .await
        .expect(200)
        .json();
    let metadata = &missing["data"]["metadata"];
    assert_eq!((&missing["success"], &metadata["statusCode"]), (&json!(true), &json!(404)));
    assert!(
        text(metadata, "error").contains("404") && missing["data"].get("markdown").is_none(),
        "{missing}"
    );
    for (url, status, code, said) in [
        ("http://private.test/", 403, "refused_by_robots", "robots.txt"),
        ("http://shop.test/private", 403, "refused_by_robots", "robots.txt"),
        ("http://shop.test/photo", 403, "not-text", "not text"),
        ("http://down.test/", 500, "network_error", "connection"),
    ] {
        let failed = place.post("/v2/scrape", &json!({"url": url})).await;
        let (error, got) = refused(&failed, status);
        assert_eq!(got, code, "{url}: {error}");
        assert!(error.contains(said), "{url}: {error}");
    }
    let slow = json!({"url": "http://slow.test/", "timeout": 1_000});
    let (error, code) = refused(&place.post("/v2/scrape", &slow).await, 408);
    assert_eq!(code, "SCRAPE_TIMEOUT");
    assert!(error.contains("within 1 second."), "{error}");
    // The page is fetched nevertheless, and the same request gets it.
    let again = place.post("/v2/scrape", &json!({"url": "http://slow.test/"})).await.expect(200);
    assert_eq!(
        (again.json()["success"].clone(), place.requests("slow.test", "/")),
        (json!(true), 1)
    );
}
