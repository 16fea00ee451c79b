//! A caller and its messages: one shape for all answers, a list, and cancelling.

use std::time::{Duration, Instant};

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::eventually::{eventually, eventually_ok};
use serde_json::{Value, json};

use super::WAIT;
use super::service::{Service, message};
use crate::client::Response;

/// With a site that is paused: messages for it wait.
async fn with_a_slow_site() -> Service {
    let service = Service::start_with(&[], [SiteScript::new("slow.test")]).await;
    let bearer = format!("Bearer {}", service.token);
    let pause = [("authorization", &*bearer)];
    service.send("POST", "/sites/slow.test/pause", &pause, "").await.expect(200);
    service
}

async fn cancel_as(service: &Service, token: &str, id: &str) -> Response {
    let bearer = format!("Bearer {token}");
    let path = format!("/messages/{id}");
    service.send("DELETE", &path, &[("authorization", &bearer)], "").await
}

/// Cancels a message, as soon as no instance holds it: it is looked at before it is put back to wait.
async fn cancelled(service: &Service, id: &str) -> Value {
    eventually_ok("the end of a message", async || {
        let answer = cancel_as(service, &service.token, id).await;
        if answer.status == 200 { Ok(answer.json()) } else { Err(answer.expect(409).json()) }
    })
    .await
}

fn id_of(message: &Value) -> &str {
    message["id"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_is_answered_as_it_is_found_again() {
    let service = with_a_slow_site().await;
    let sent = json!({"url": "http://slow.test/2", "retailer": "shop", "correlation_id": "ä 1"});
    let answer = service.post("/fetch", &[], &sent).await.expect(200);
    assert_eq!(answer.header("preference-applied"), None);
    let answer = answer.json();
    assert_eq!((&answer["status"], &answer["attempts"]), (&json!("queued"), &json!(0)));
    assert_eq!((&answer["message_id"], &answer["caller_id"]), (&answer["id"], &json!("local")));
    for (name, value) in sent.as_object().unwrap() {
        assert_eq!(&answer[name], value);
    }
    assert!(answer["outbox"].is_null(), "{answer}");
    let path = format!("/messages/{}", id_of(&answer));
    let is_the_same = async || service.get(&path).await.expect(200).json() == answer;
    eventually("the message as it was answered", is_the_same).await;

    // Neither does it matter whether the request waits, nor for how long.
    let hasty = [("prefer", "wait=1")];
    let waited = service.post("/fetch", &hasty, &sent).await.expect(200);
    assert_eq!(waited.header("preference-applied"), None, "the result did not come");
    let fields = |message: &Value| message.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&waited.json()), fields(&answer));
    let ended = service.post("/fetch", &WAIT, &message("/page")).await.expect(200).json();
    assert_eq!(fields(&ended), fields(&answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_needs_only_a_url() {
    let service = Service::start(&[]).await;
    let bare = json!({"url": "http://shop.test/page"});
    let ended = service.post("/fetch", &WAIT, &bare).await.expect(200).json();
    assert_eq!((&ended["retailer"], &ended["correlation_id"]), (&json!("default"), &ended["id"]));
    assert_eq!(ended["outbox"]["correlation_id"], ended["id"]);
    let batch = json!({"messages": [bare, bare]});
    let batch = service.post("/fetch/batch", &[], &batch).await.expect(200).json();
    let second = batch["messages"][1]["message_id"].as_str().unwrap();
    let second = service.get(&format!("/messages/{second}?wait=60")).await.expect(200).json();
    assert_eq!(
        (&second["correlation_id"], &second["status"]),
        (&second["id"], &json!("completed"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_key_gets_the_message_as_it_is_now() {
    let service = Service::start(&[]).await;
    let key = [("idempotency-key", "order-1")];
    let first = service.post("/fetch", &key, &message("/page")).await.expect(200).json();
    assert!(first["outbox"].is_null(), "{first}");
    let path = format!("/messages/{}?wait=60", id_of(&first));
    let ended = service.get(&path).await.expect(200).json();
    assert_eq!(ended["outbox"]["status"], "success");
    let again = service.post("/fetch", &key, &message("/page")).await.expect(200).json();
    assert_eq!(again, ended);
    assert_eq!(service.origin.page_hits(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_can_be_waited_for() {
    let service = with_a_slow_site().await;
    let began = Instant::now();
    let sent = service.post("/fetch", &[], &message("/page")).await.expect(200).json();
    let path = format!("/messages/{}", id_of(&sent));
    // A viewer may wait for what others sent.
    let viewer = service.caller("viewer", "viewer").await;
    let waited = service.get_as(&viewer, &format!("{path}?wait=60")).await.expect(200).json();
    assert_eq!(waited["outbox"]["status"], "success");
    let slow = json!({"url": "http://slow.test/2"});
    let slow = service.post("/fetch", &[], &slow).await.expect(200).json();
    let path = format!("/messages/{}", id_of(&slow));
    let in_vain = service.get(&format!("{path}?wait=1")).await.expect(200).json();
    assert!(in_vain["outbox"].is_null(), "{in_vain}");
    // A server that ignored `wait=1`, or waited for a result that is there, would have waited for 60 s.
    assert!(began.elapsed() < Duration::from_secs(55), "{:?}", began.elapsed());
    for wrong in ["wait=61", "wait=-1", "wait=", "wait=soon", "weight=1"] {
        let refused = service.get(&format!("{path}?{wrong}")).await.expect(422).json();
        assert_eq!(refused["errors"][0]["parameter"], wrong.split('=').next().unwrap());
    }
    let foreign = service.caller("another", "caller").await;
    service.get_as(&foreign, &format!("{path}?wait=1")).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_lists_what_it_sent_and_nothing_else() {
    let service = Service::start(&[]).await;
    let mut sent = Vec::new();
    for n in 0..5 {
        let mut asked = message(if n == 2 { "/missing" } else { "/page" });
        asked["correlation_id"] = json!(format!("order {}", n % 2));
        asked["retailer"] = json!(format!("shop-{n}"));
        let ended = service.post("/fetch", &WAIT, &asked).await.expect(200).json();
        sent.insert(0, ended);
    }
    let ids = |page: &Value| -> Vec<String> {
        let messages = page["messages"].as_array().unwrap().iter();
        messages.map(|one| id_of(one).to_owned()).collect()
    };
    let all: Vec<&str> = sent.iter().map(id_of).collect();
    let page = service.get("/messages").await.expect(200).json();
    assert_eq!(
        (ids(&page), &page["next"]),
        (all.iter().map(|id| (*id).to_owned()).collect(), &Value::Null)
    );
    for (listed, ended) in page["messages"].as_array().unwrap().iter().zip(&sent) {
        assert_eq!(listed["result_status"], ended["outbox"]["status"]);
        for (name, value) in listed.as_object().unwrap() {
            let is_own = name == "result_status" || ended[name] == *value;
            assert!(is_own, "{name}: {listed} {ended}");
        }
    }
    let first = service.get("/messages?limit=2").await.expect(200).json();
    let path = format!("/messages?limit=2&after={}", first["next"].as_str().unwrap());
    let second = service.get(&path).await.expect(200).json();
    assert_eq!([ids(&first), ids(&second)].concat(), all[..4]);
    let named = service.get("/messages?correlation_id=order%201").await.expect(200).json();
    assert_eq!(ids(&named), [all[1], all[3]]);
    let failed = service.get("/messages?status=failed").await.expect(200).json();
    assert_eq!(ids(&failed), [all[2]]);

    let nothing = json!({"messages": [], "next": null});
    for role in ["caller", "viewer", "operator"] {
        let other = service.caller(role, role).await;
        let theirs = service.get_as(&other, "/messages").await.expect(200).json();
        assert_eq!(theirs, nothing, "{role}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_cancels_what_waits() {
    let service = with_a_slow_site().await;
    let slow = json!({"url": "http://slow.test/2", "correlation_id": "c"});
    let sent = service.post("/fetch", &[], &slow).await.expect(200).json();
    let id = id_of(&sent);
    // To others it is not there; viewers change nothing.
    let other = service.caller("other", "caller").await;
    let unknown = cancel_as(&service, &other, "msg_00000000000000000000000000000000").await;
    let foreign = cancel_as(&service, &other, id).await.expect(404);
    assert_eq!(foreign.bytes(), unknown.bytes());
    let viewer = service.caller("viewer", "viewer").await;
    cancel_as(&service, &viewer, id).await.expect(403);

    let ended = cancelled(&service, id).await;
    assert_eq!(
        (&ended["status"], &ended["outbox"]["status"]),
        (&json!("failed"), &json!("cancelled"))
    );
    assert_eq!(cancelled(&service, id).await, ended, "twice does no harm");
    let found = service.get(&format!("/messages/{id}")).await.expect(200).json();
    assert_eq!(found, ended);
    let results = service.get("/outbox").await.expect(200).json();
    assert_eq!(results["messages"], json!([ended["outbox"]]));

    // What has ended stays as it is.
    let page = service.post("/fetch", &WAIT, &message("/page")).await.expect(200).json();
    assert_eq!(cancelled(&service, id_of(&page)).await, page);
    assert_eq!(service.origin.page_hits(), 1);

    // An operator may cancel what others sent, and that is in the audit log.
    let theirs = service.post_as(&other, "/fetch", &[], &slow.to_string()).await.expect(200).json();
    let ended = cancelled(&service, id_of(&theirs)).await;
    assert_eq!(ended["outbox"]["status"], "cancelled");
    let audit = service.get("/operator/audit").await.expect(200).json();
    let entries = audit["entries"].as_array().unwrap().iter();
    let acts: Vec<_> = entries.filter(|entry| entry["action"] == "cancel_messages").collect();
    let is_of = |entry: &&Value, id: &str| entry["detail"].as_str().unwrap().contains(id);
    assert!(acts.iter().any(|entry| is_of(entry, id_of(&theirs))), "{audit}");
    assert!(!acts.iter().any(|entry| is_of(entry, id)), "one's own needs none: {audit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_that_is_not_known_is_refused() {
    let service = Service::start(&[]).await;
    for (path, parameter) in [
        ("/outbox?afer=1", "afer"),
        ("/outbox?after=0&cursor=1", "cursor"),
        ("/messages?correlation-id=a", "correlation-id"),
        ("/messages?limit=5&state=failed", "state"),
        ("/messages/msg_00000000000000000000000000000000?pretty", "pretty"),
    ] {
        let refused = service.get(path).await.expect(422).json();
        assert_eq!(refused["type"], "/docs#problem-invalid-field", "{path}");
        let errors = refused["errors"].as_array().unwrap();
        let detail = errors[0]["detail"].as_str().unwrap();
        assert_eq!((errors.len(), &errors[0]["parameter"]), (1, &json!(parameter)), "{path}");
        assert!(detail.contains("not a known parameter"), "{detail}");
    }
    let long = format!("/outbox?{}", "x".repeat(3_000));
    let refused = service.get(&long).await.expect(422);
    assert!(refused.body.len() < 1_000, "it repeats all of it");
}
