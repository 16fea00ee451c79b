//! Crawls through the API: counted, read, limited, cancelled, and announced when they end.

use std::collections::BTreeMap;

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::eventually::eventually_ok;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::results::{ids, stream};
use super::service::Service;
use super::webhooks::{header, receive};
use crate::client::read_until;

/// Retailers do not hold crawls up, unless a test wants that.
const FAST: (&str, &str) = ("FETCHWELL_RETRIEVER__DEFAULT_RATE_LIMIT", "1000");

/// Pages of this retailer wait: one request per ten seconds.
const SLOW: [(&str, &str); 2] = [
    ("FETCHWELL_RETAILERS__SLOW__REQUESTS_PER_SECOND", "0.1"),
    ("FETCHWELL_RETAILERS__SLOW__BURST_SIZE", "1"),
];

const HTML: &str = "text/html";

fn site() -> SiteScript {
    let root = "<title>Home</title><p>Welcome.<a href=/a>a</a><a href=/b?utm_source=x>b</a>\
        <a href=/moved>m</a><a href=/private/x>p</a><a href=/quiet>q</a><a href=/file.pdf>f</a>\
        <a href=http://other.test/>o</a><a href=/missing>gone</a>";
    SiteScript::new("docs.test")
        .robots("User-agent: *\nDisallow: /private/\n")
        .text("/", HTML, root)
        .text("/a", HTML, "<title>A</title><p>First words.<a href=/deep>deep</a><a href=/>home</a>")
        .text("/b", HTML, "<title>B</title><p>Second words.")
        .text("/deep", HTML, "<title>Deep</title><p>Third words.<a href=/deeper>deeper</a>")
        .text("/deeper", HTML, "<title>Deeper</title><p>Fourth words.")
        .text("/quiet", HTML, "<meta name=robots content=noindex><p>Hush.")
        .redirect("/moved", "/b")
        .status("/missing", 404)
        .text(
            "/sitemap.xml",
            "application/xml",
            "<urlset><url><loc>http://docs.test/mapped</loc></url></urlset>",
        )
        .text("/mapped", HTML, "<title>Mapped</title><p>Fifth words.")
}

/// A site of many pages, all linked from its root.
fn wide(pages: usize) -> SiteScript {
    let links: String = (0..pages).map(|page| format!("<a href=/x{}>x</a>", words(page))).collect();
    SiteScript::new("wide.test").text("/", HTML, &links).text("/x*", HTML, "<p>Some words.")
}

/// A number without digits: URLs that differ only in digits are counted together.
fn words(number: usize) -> String {
    let letter = |digit: usize| char::from(b'a' + u8::try_from(digit).unwrap());
    [number / 100, number / 10 % 10, number % 10].into_iter().map(letter).collect()
}

async fn service(settings: &[(&str, &str)]) -> Service {
    let settings = [&[FAST], settings].concat();
    Service::start_with(&settings, [site(), wide(60)]).await
}

async fn start(service: &Service, crawl: &Value) -> String {
    let started = service.post("/crawl", &[], crawl).await.expect(200).json();
    started["id"].as_str().unwrap().to_owned()
}

fn docs() -> Value {
    json!({"urls": ["http://docs.test/"]})
}

async fn until_done(service: &Service, id: &str) -> Value {
    eventually_ok(&format!("the end of {id}"), async || {
        let crawl = service.get(&format!("/crawl/{id}")).await.expect(200).json();
        if crawl["done"] == true { Ok(crawl) } else { Err(crawl) }
    })
    .await
}

/// The results of a crawl by path.
async fn results(service: &Service, id: &str) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let mut after = "0".to_owned();
    loop {
        let path = format!("/crawl/{id}/results?after={after}&limit=3&wait=20");
        let page = service.get(&path).await.expect(200).json();
        for one in page["messages"].as_array().unwrap() {
            let url = one["url"].as_str().unwrap();
            let (_, path) = url.split_once(".test").unwrap();
            assert!(found.insert(path.to_owned(), one.clone()).is_none(), "{url} has two results");
        }
        if page["done"] == true {
            return found;
        }
        after = page["next"].as_str().unwrap().to_owned();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_has_one_result_per_page_with_its_place() {
    let service = service(&[]).await;
    let id = start(&service, &json!({"urls": ["http://docs.test/"], "extract": true})).await;
    let found = results(&service, &id).await;
    let statuses: Vec<(&str, &str)> = found
        .iter()
        .map(|(path, one)| (path.as_str(), one["status"].as_str().unwrap()))
        .filter(|(path, _)| !["/b", "/moved"].contains(path))
        .collect();
    let expected = [
        ("/", "success"),
        ("/a", "success"),
        ("/deep", "success"),
        ("/deeper", "success"),
        ("/mapped", "success"),
        ("/missing", "http_error"),
        ("/private/x", "refused_by_robots"),
        ("/quiet", "noindex"),
    ];
    assert_eq!(statuses, expected);
    // Either URL may come first. The page is in one result only.
    let pages = ["/b", "/moved"].map(|path| found[path]["status"].as_str().unwrap());
    assert!(pages == ["success", "redirected"] || pages == ["redirected", "success"], "{pages:?}");

    let deep = &found["/deep"];
    let place = json!({"id": id, "depth": 2, "parent": "http://docs.test/a", "links_found": 1});
    assert_eq!((&deep["crawl"], &deep["correlation_id"]), (&place, &json!(id)));
    assert_eq!((&deep["title"], deep["content"].is_string()), (&json!("Deep"), true));
    assert_eq!(found["/"]["crawl"]["parent"], Value::Null);
    let mapped = &found["/mapped"]["crawl"];
    assert_eq!(
        (&mapped["depth"], &mapped["parent"]),
        (&json!(1), &json!("http://docs.test/sitemap.xml"))
    );
    let quiet = &found["/quiet"];
    assert_eq!((&quiet["content"], &quiet["http_status"]), (&Value::Null, &json!(200)));
    assert!(quiet["error"].as_str().unwrap().contains("asks not to be indexed"), "{quiet}");

    let crawl = service.get(&format!("/crawl/{id}")).await.expect(200).json();
    assert_eq!((&crawl["done"], &crawl["end_reason"]), (&json!(true), &json!("completed")));
    let counts = json!({"known": 10, "waiting": 0, "queued": 0, "sitemaps_left": 0, "sites": 1,
        "completed": 6, "failed": 4, "robots": 1, "noindex": 1, "redirected": 1});
    assert_eq!(crawl["counts"], counts, "{crawl}");
    let cut = json!([{"reason": "download", "site": "docs.test", "links": 1,
        "example": "http://docs.test/file.pdf"}]);
    assert_eq!(crawl["cut_off"], cut);
    // Pages are messages like all others.
    let message = deep["inbox_message_id"].as_str().unwrap();
    let message = service.get(&format!("/messages/{message}")).await.expect(200).json();
    assert_eq!((&message["status"], &message["outbox"]["crawl"]), (&json!("completed"), &place));
    let listed = service.get(&format!("/messages?correlation_id={id}&limit=200")).await.json();
    assert_eq!(listed["messages"].as_array().unwrap().len(), 10);
    let mut shown = crawl;
    shown.as_object_mut().unwrap().remove("cut_off");
    let listed = service.get("/crawls").await.expect(200).json();
    assert_eq!(listed, json!({"crawls": [shown], "next": null}));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_of_a_crawl_hold() {
    let service = service(&[]).await;
    let paths = async |changes: Value| {
        let mut crawl = docs();
        for (name, value) in changes.as_object().unwrap() {
            crawl[name] = value.clone();
        }
        let id = start(&service, &crawl).await;
        let found: Vec<String> = results(&service, &id).await.into_keys().collect();
        (found, until_done(&service, &id).await["end_reason"].clone())
    };
    let completed = json!("completed");
    let (found, end) = paths(json!({"depth": 0, "sitemaps": "off"})).await;
    assert_eq!((found, end), (vec!["/".to_owned()], completed.clone()));
    let (found, _) = paths(json!({"sitemaps": "only"})).await;
    assert_eq!(found, ["/", "/mapped"]);
    let (found, _) = paths(json!({"scope": "page"})).await;
    assert_eq!(found, ["/"]);
    let (found, _) = paths(json!({"include": ["/a*", "/d*"], "exclude": ["*deeper"]})).await;
    assert_eq!(found, ["/", "/a", "/deep"]);
    let (found, end) = paths(json!({"limit": 3, "sitemaps": "off"})).await;
    assert_eq!((found.len(), end), (3, json!("limit")));
    let (found, end) = paths(json!({"limit_per_site": 2, "sitemaps": "off"})).await;
    assert_eq!((found.len(), end), (2, json!("limit")));
    let (found, _) =
        paths(json!({"downloads": true, "include": ["*.pdf"], "sitemaps": "off"})).await;
    assert_eq!(found, ["/", "/file.pdf"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_crawl_is_announced_after_its_last_result() {
    let service = service(&[]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut crawl = docs();
    crawl["callback_url"] = json!(format!("http://{}/hook", listener.local_addr().unwrap()));
    let id = start(&service, &crawl).await;
    let (head, body) = receive(&listener, "204 Thanks").await;
    assert_eq!(header(&head, "webhook-id"), Some(id.as_str()));
    let delivered: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(delivered["type"], "crawl.completed");
    assert_eq!((&delivered["data"]["id"], &delivered["data"]["done"]), (&json!(id), &json!(true)));

    let batch = json!({"messages": [super::service::message("/page")]});
    let batch = service.post("/fetch/batch", &[], &batch).await.expect(200).json();
    let mut events = stream(&service, &[], "/outbox").await;
    let text = read_until(&mut events, |text| text.contains("event: batch.completed")).await;
    let found = ids(&text);
    // Ten results, the end of the crawl, the result of the batch and its end.
    assert_eq!(found[9..], ["10", "10.1", "11", "11.2"]);
    let data = |event: &str| -> Value {
        let (_, rest) = text.split_once(&format!("event: {event}\ndata: ")).unwrap();
        serde_json::from_str(rest.lines().next().unwrap()).unwrap()
    };
    assert_eq!(data("crawl.completed"), delivered["data"]);
    assert_eq!(data("batch.completed")["id"], batch["batch_id"]);
    for (last, next) in [("9", "10"), ("10", "10.1"), ("10.1", "11"), ("11.2", "")] {
        let mut again = stream(&service, &[("last-event-id", last)], "/outbox").await;
        let text = read_until(&mut again, |text| next.is_empty() || !ids(text).is_empty()).await;
        assert_eq!(ids(&text).first().copied().unwrap_or_default(), next, "after {last}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_crawl_ends_without_results_for_what_was_not_fetched() {
    let service = service(&SLOW).await;
    let crawl = json!({"urls": ["http://wide.test/"], "retailer": "slow", "sitemaps": "off"});
    let id = start(&service, &crawl).await;
    eventually_ok("the first result", async || {
        let crawl = service.get(&format!("/crawl/{id}")).await.expect(200).json();
        if crawl["counts"]["completed"] == 1 { Ok(crawl) } else { Err(crawl) }
    })
    .await;
    let delete = async |token: &str| {
        let bearer = format!("Bearer {token}");
        service.send("DELETE", &format!("/crawl/{id}"), &[("authorization", &bearer)], "").await
    };
    let other = service.caller("another", "caller").await;
    delete(&other).await.expect(404);
    let viewer = service.caller("watcher", "viewer").await;
    delete(&viewer).await.expect(403);
    let cancelled = delete(&service.token).await.expect(200).json();
    assert!(cancelled["cancelled_at"].is_string(), "{cancelled}");
    let crawl = until_done(&service, &id).await;
    assert_eq!(crawl["end_reason"], "cancelled");
    // A request may have been in flight.
    let count = |name: &str| crawl["counts"][name].as_u64().unwrap();
    assert!((1..=2).contains(&count("completed")), "{crawl}");
    assert_eq!((count("queued"), count("waiting")), (0, 61 - count("completed")), "{crawl}");
    assert_eq!(results(&service, &id).await.len() as u64, count("completed"));
    // Another time, nothing happens.
    let again = delete(&service.token).await.expect(200).json();
    assert_eq!(again["cancelled_at"], cancelled["cancelled_at"]);
    let path = format!("/crawl/{id}");
    service.get_as(&other, &path).await.expect(404);
    assert_eq!(service.get_as(&viewer, &path).await.expect(200).json()["id"], json!(id));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_ends_at_its_maximum_time() {
    let service = service(&SLOW).await;
    let crawl = json!({"urls": ["http://wide.test/"], "retailer": "slow", "max_time": 1,
        "sitemaps": "off"});
    let id = start(&service, &crawl).await;
    let crawl = until_done(&service, &id).await;
    assert_eq!((&crawl["end_reason"], &crawl["counts"]["queued"]), (&json!("max_time"), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_a_caller_hold_and_a_repeated_request_starts_nothing() {
    let settings = [
        ("FETCHWELL_RETRIEVER__MAX_CRAWLS", "2"),
        ("FETCHWELL_RETRIEVER__MAX_CRAWL_PAGES", "50"),
        SLOW[0],
        SLOW[1],
    ];
    let service = service(&settings).await;
    let crawl = |number: usize| json!({"urls": ["http://wide.test/"], "retailer": "slow", "correlation_id": number.to_string()});
    let key = [("idempotency-key", "one")];
    let first = service.post("/crawl", &key, &crawl(1)).await.expect(200).json();
    assert_eq!(first["limit"], 50);
    let again = service.post("/crawl", &key, &crawl(1)).await.expect(200).json();
    assert_eq!(again["id"], first["id"]);
    let other = service.post("/crawl", &key, &crawl(2)).await.expect(422).json();
    assert_eq!(other["type"], "/docs#problem-key-reused");
    start(&service, &crawl(2)).await;
    let refused = service.post("/crawl", &[], &crawl(3)).await.expect(429);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.json()["type"], "/docs#problem-too-many-crawls");
    // The limit is that of each caller.
    let token = service.caller("another", "caller").await;
    let posted = crawl(4).to_string();
    let theirs = service.post_as(&token, "/crawl", &[], &posted).await.expect(200).json();
    assert_eq!(theirs["caller_id"], "another");
    let mut large = crawl(5);
    large["limit"] = json!(51);
    let refused = service.post("/crawl", &[], &large).await.expect(422).json();
    assert_eq!(refused["errors"][0]["pointer"], "/limit", "{refused}");
    let listed = async |query: &str| {
        let page = service.get(&format!("/crawls{query}")).await.expect(200).json();
        let crawls = page["crawls"].as_array().unwrap().iter();
        let names: Vec<Value> = crawls.map(|one| one["correlation_id"].clone()).collect();
        (names, page["next"].as_str().map(str::to_owned))
    };
    let (newest, next) = listed("?limit=1").await;
    assert_eq!(newest, ["2"]);
    let (rest, next) = listed(&format!("?limit=2&after={}", next.unwrap())).await;
    assert_eq!((rest, next), (vec![json!("1")], None));
    for wrong in ["/crawls?limit=0", "/crawls?after=x", "/crawls?state=done"] {
        service.get(wrong).await.expect(422);
    }
    service.get("/crawl/crawl_ffffffffffffffffffffffffffffffff").await.expect(404);
    service.get("/crawl/x/results").await.expect(404);
}
