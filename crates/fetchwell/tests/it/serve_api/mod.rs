//! The API of `fetchwell serve`, as its callers meet it: a real process, over HTTP.

mod batches;
mod bodies;
mod crawls;
mod deliveries;
mod details;
mod memory;
mod outbox_options;
mod own;
mod reader;
mod refusals;
mod results;
mod service;
mod tokens;
mod webhooks;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use service::{Service, message};

const WAIT: [(&str, &str); 1] = [("prefer", "wait=10")];

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_queued_fetched_and_found_again() {
    let service = Service::start(&[]).await;
    let queued = service.post("/fetch", &[], &message("/page")).await.expect(200);
    assert_eq!(queued.json()["status"], "queued");
    let id = queued.json()["message_id"].as_str().unwrap().to_owned();

    let mut asked = message("/page");
    asked["extract"] = true.into();
    asked["headers"] = json!({"Accept-Language": "de"});
    let waited = service.post("/fetch", &WAIT, &asked).await.expect(200);
    assert_eq!(waited.header("preference-applied"), Some("wait=10"));
    assert_eq!(waited.header("cache-control"), Some("no-store"));
    let waited = waited.json();
    let outbox = &waited["outbox"];
    assert_eq!((&waited["status"], &outbox["status"]), (&json!("completed"), &json!("success")));
    assert_eq!((&waited["caller_id"], &waited["attempts"]), (&json!("local"), &json!(1)));
    assert_eq!((&outbox["title"], &outbox["http_status"]), (&json!("A page"), &json!(200)));
    assert!(outbox["content"].as_str().unwrap().contains("Some words on it."));
    assert!(outbox["markdown"].as_str().unwrap().contains("Some words on it."));

    // They were fetched at the same time: either may have been the first.
    service.get("/outbox?after=1&wait=10").await.expect(200);
    let found = service.get(&format!("/messages/{id}")).await.expect(200).json();
    assert_eq!((&found["id"], &found["correlation_id"]), (&json!(id), &json!("/page")));
    assert_eq!(found["outbox"]["inbox_message_id"], json!(id));
    assert!(found["outbox"].get("title").is_none(), "{found}");
    let again = service.get(&format!("/messages/{}", waited["id"].as_str().unwrap())).await;
    assert_eq!(again.json(), waited);
}

/// The fields of a result that come from the page, if they are there.
fn from_page(result: &Value) -> Value {
    let names =
        ["author", "authors", "published", "site_name", "description", "canonical_url", "links"];
    let found = names.iter().filter_map(|name| Some((*name, result.get(name)?)));
    json!(found.collect::<BTreeMap<_, _>>())
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_and_links_come_with_what_asks_for_them() {
    let service = Service::start(&[]).await;
    let asked = async |path: &str, options: &[&str]| {
        let mut asked = message(path);
        for option in options {
            asked[*option] = true.into();
        }
        let ended = service.post("/fetch", &WAIT, &asked).await.expect(200).json();
        let found = service.get(&format!("/messages/{}", ended["id"].as_str().unwrap())).await;
        assert_eq!(found.expect(200).json(), ended);
        from_page(&ended["outbox"])
    };
    let metadata = json!({
        "author": "Ada Keeper, Ben Mason", "authors": ["Ada Keeper", "Ben Mason"],
        "published": "2024-05-17T08:30:00+02:00", "site_name": "The Hive",
        "description": "A town gets its bees back.", "canonical_url": "http://shop.test/bees",
    });
    let links = json!(["http://shop.test/", "http://shop.test/more", "http://other.test/hives"]);
    assert_eq!(asked("/article", &[]).await, json!({}));
    assert_eq!(asked("/article", &["extract"]).await, metadata);
    assert_eq!(asked("/article", &["links"]).await, json!({"links": links}));
    let mut both = metadata;
    both["links"] = links;
    assert_eq!(asked("/article", &["extract", "links"]).await, both);
    let none = json!({
        "author": null, "authors": [], "published": null, "site_name": null, "description": null,
        "canonical_url": null, "links": [],
    });
    assert_eq!(asked("/page", &["extract", "links"]).await, none);
    // There is no page to read them from.
    for path in ["/photo", "/missing"] {
        assert_eq!(asked(path, &["extract", "links"]).await, json!({}), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_says_which_fields_of_an_article_may_be_null() {
    let service = Service::start(&[]).await;
    let document = service.get("/openapi.json").await.expect(200).json();
    let schemas = &document["components"]["schemas"];
    let result = &schemas["OutboxMessage"];
    for name in ["author", "published", "site_name", "description", "canonical_url"] {
        assert_eq!(result["properties"][name]["type"], json!(["string", "null"]), "{name}");
    }
    for name in ["authors", "links"] {
        let list = &result["properties"][name];
        assert_eq!((&list["type"], &list["items"]["type"]), (&json!("array"), &json!("string")));
    }
    let required = result["required"].as_array().unwrap();
    let fields = from_page(&result["properties"]);
    let fields = fields.as_object().unwrap();
    assert!(
        fields.len() == 7
            && required.iter().all(|name| !fields.contains_key(name.as_str().unwrap()))
    );
    let asked = &schemas["FetchRequest"]["properties"];
    assert_eq!(asked["links"]["type"], asked["extract"]["type"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_end_has_its_status() {
    let service = Service::start(&[]).await;
    for (path, status, outbox) in [
        ("/page", "completed", "success"),
        ("/photo", "completed", "success"),
        ("/missing", "failed", "http_error"),
    ] {
        let ended = service.post("/fetch", &WAIT, &message(path)).await.expect(200).json();
        assert_eq!(
            (&ended["status"], &ended["outbox"]["status"]),
            (&json!(status), &json!(outbox))
        );
        assert_eq!(ended["outbox"]["error"].is_null(), path == "/page", "{ended}");
    }
    let mut own = message("/");
    own["url"] = json!(format!("http://{}/livez", service.address));
    let refused = service.post("/fetch", &WAIT, &own).await.expect(200).json();
    assert_eq!(refused["outbox"]["status"], "refused", "a server does not fetch from itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_makes_a_repetition_harmless() {
    let service = Service::start(&[]).await;
    let key = [("idempotency-key", "order-1")];
    let first = service.post("/fetch", &key, &message("/page")).await.expect(200);
    let again = service.post("/fetch", &key, &message("/page")).await.expect(200);
    assert_eq!(first.json()["id"], again.json()["id"]);
    let other = service.post("/fetch", &key, &message("/missing")).await.expect(422).json();
    assert_eq!(other["type"], "/docs#problem-key-reused");
    assert_eq!(other["url"], "http://shop.test/missing");
    let elsewhere = json!({"messages": [message("/page")]});
    service.post("/fetch/batch", &key, &elsewhere).await.expect(422);
    // The key is the caller's own.
    let token = service.caller("another", "caller").await;
    let theirs = service.post_as(&token, "/fetch", &key, &message("/page").to_string()).await;
    assert_ne!(theirs.expect(200).json()["id"], first.json()["id"]);
    let metrics = String::from_utf8(service.get("/metrics").await.expect(200).body).unwrap();
    assert!(metrics.contains("fetchwell_messages_accepted_total 2\n"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_accepted_whole_or_not_at_all() {
    let service = Service::start(&[]).await;
    let many: Vec<Value> = (0..10_000).map(|page| message(&format!("/{page}"))).collect();
    let answer = service.post("/fetch/batch", &[], &json!({"messages": many})).await.expect(200);
    let answer = answer.json();
    let accepted = answer["messages"].as_array().unwrap().iter();
    let ids: Vec<_> = accepted.map(|one| one["message_id"].as_str().unwrap()).collect();
    assert!(ids.len() == 10_000 && ids.is_sorted(), "they sort as the batch does");
    let mut bad = message("/2");
    bad["url"] = json!("http://10.0.0.1/");
    let batch = json!({"messages": [message("/0"), {"correlation_id": "c1"}, bad]});
    let refused = service.post("/fetch/batch", &[], &batch).await.expect(422).json();
    let errors = refused["errors"].as_array().unwrap();
    let found: Vec<_> =
        errors.iter().map(|e| (e["index"].as_u64(), e["pointer"].as_str())).collect();
    let expected = [(Some(1), Some("/messages/1/url")), (Some(2), Some("/messages/2/url"))];
    assert_eq!(found, expected);
    assert_eq!(
        (&errors[0]["correlation_id"], &errors[1]["url"]),
        (&json!("c1"), &json!("http://10.0.0.1/"))
    );
    let metrics = String::from_utf8(service.get("/metrics").await.expect(200).body).unwrap();
    assert!(metrics.contains("fetchwell_ledger_messages{state=\"accepted\"} 10000\n"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_fresh_enough_answers_at_once() {
    let service = Service::start(&[]).await;
    service.post("/fetch", &WAIT, &message("/page")).await.expect(200);
    let mut asked = message("/page");
    asked["max_age"] = json!("1h");
    let answer = service.post("/fetch", &[], &asked).await.expect(200).json();
    assert_eq!(answer["status"], "completed");
    assert_eq!(service.origin.page_hits(), 1);
    // What one caller fetched is not another's.
    let token = service.caller("another", "caller").await;
    let theirs = service.post_as(&token, "/fetch", &WAIT, &asked.to_string()).await.expect(200);
    assert_eq!(theirs.json()["status"], "completed");
    assert_eq!(service.origin.page_hits(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_public_needs_no_token() {
    let service = Service::start(&[]).await;
    let get = async |path| service.send("GET", path, &[], "").await;
    for path in ["/livez", "/readyz", "/metrics"] {
        get(path).await.expect(200);
    }
    assert_eq!(get("/").await.expect(303).header("location"), Some("/dashboard/login?to=%2F"));
    let document = get("/openapi.json").await.expect(200).json();
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    let expected = [
        "/batches",
        "/batches/{id}",
        "/batches/{id}/results",
        "/crawl",
        "/crawl/{id}",
        "/crawl/{id}/results",
        "/crawls",
        "/fetch",
        "/fetch/batch",
        "/livez",
        "/messages",
        "/messages/{id}",
        "/messages/{id}/body",
        "/metrics",
        "/operator/audit",
        "/operator/callers",
        "/operator/callers/{name}",
        "/operator/callers/{name}/tokens",
        "/operator/callers/{name}/tokens/{token}",
        "/operator/callers/{name}/webhook-secret",
        "/operator/failures",
        "/operator/instances",
        "/operator/ledger",
        "/operator/messages",
        "/operator/messages/cancel",
        "/operator/messages/cancel-matching",
        "/operator/messages/count",
        "/operator/messages/retry",
        "/operator/messages/retry-matching",
        "/operator/messages/{id}",
        "/outbox",
        "/r/{url}",
        "/readyz",
        "/sites",
        "/sites/{site}",
        "/sites/{site}/pause",
        "/sites/{site}/refetch-robots",
        "/sites/{site}/reset-breaker",
        "/sites/{site}/resume",
        "/sites/{site}/set-rate",
        "/webhooks/deliveries",
        "/webhooks/deliveries/replay",
        "/webhooks/deliveries/{id}/replay",
        "/webhooks/secret",
    ];
    assert_eq!(paths, expected);
    let schemas = &document["components"]["schemas"];
    for reference in document.to_string().split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(schemas.get(name).is_some(), "{name} is not described");
    }
    let docs = get("/docs").await.expect(200);
    let policy = docs.header("content-security-policy").unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    let page = String::from_utf8(docs.body).unwrap();
    for part in ["id=\"problem-invalid-field\"", "id=\"post-fetch\"", "curl ", "callback_url"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(
        policy.contains("; script-src 'sha256-") && policy.contains("; connect-src 'self';"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    let first = page.split("<li>").nth(2).unwrap();
    assert!(first.starts_with("<a href=\"#post-fetch\">"), "most come for that: {first}");
    assert!(page.contains("export FETCHWELL=http://fetchwell.test\n"), "where the page was found");
    assert_eq!(page.matches("<script>").count(), 1, "one script of its own, named by its hash");
    assert!(!page.contains("src=") && !page.contains(" onclick"), "nothing is loaded");
    let head = service.send("HEAD", "/livez", &[], "").await.expect(200);
    assert!(head.body.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_can_be_kept_private() {
    let service = Service::start(&[("FETCHWELL_RETRIEVER__PUBLIC_METRICS", "false")]).await;
    service.send("GET", "/metrics", &[], "").await.expect(401);
    service.get("/metrics").await.expect(200);
}
