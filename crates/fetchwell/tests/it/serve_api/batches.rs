//! Batches as resources: counted, read, cancelled, and announced when they end.

use std::collections::BTreeSet;
use std::time::Duration;

use fetchwell_testkit::eventually::eventually_ok;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::results::{ids, stream};
use super::service::{Service, message};
use super::webhooks::{header, receive};
use crate::client::read_until;

/// A retailer whose messages wait: one request per ten seconds.
const SLOW: [(&str, &str); 2] = [
    ("FETCHWELL_RETAILERS__SLOW__REQUESTS_PER_SECOND", "0.1"),
    ("FETCHWELL_RETAILERS__SLOW__BURST_SIZE", "1"),
];

fn pages(count: usize) -> Vec<Value> {
    (0..count).map(|page| message(&format!("/{page}"))).collect()
}

async fn send(service: &Service, messages: Vec<Value>) -> Value {
    service.post("/fetch/batch", &[], &json!({"messages": messages})).await.expect(200).json()
}

fn id_of(batch: &Value) -> String {
    batch["batch_id"].as_str().unwrap().to_owned()
}

async fn until_done(service: &Service, id: &str) -> Value {
    eventually_ok(&format!("the end of {id}"), async || {
        let batch = service.get(&format!("/batches/{id}")).await.expect(200).json();
        if batch["done"] == true { Ok(batch) } else { Err(batch) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_counted_and_its_results_are_read_to_the_end() {
    let service = Service::start(&[]).await;
    let mut messages = pages(24);
    messages.push(message("/missing"));
    let sent = send(&service, messages).await;
    let id = id_of(&sent);
    assert_eq!((&sent["skipped"], sent["estimated_end"].is_string()), (&json!([]), true));
    service.post("/fetch", &[], &message("/alone")).await.expect(200);

    let mut seen = BTreeSet::new();
    let mut after = "0".to_owned();
    loop {
        let path = format!("/batches/{id}/results?after={after}&limit=10&wait=20");
        let page = service.get(&path).await.expect(200).json();
        for one in page["messages"].as_array().unwrap() {
            let cursor = |text: &str| text.parse::<i64>().unwrap();
            assert!(cursor(one["cursor"].as_str().unwrap()) > cursor(&after), "{one}");
            after = one["cursor"].as_str().unwrap().to_owned();
            assert!(seen.insert(one["inbox_message_id"].as_str().unwrap().to_owned()), "{one}");
        }
        if page["done"] == true {
            break;
        }
        after = page["next"].as_str().unwrap().to_owned();
    }
    let expected = sent["messages"].as_array().unwrap().iter();
    let expected: BTreeSet<_> =
        expected.map(|one| one["message_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(seen, expected);

    let batch = service.get(&format!("/batches/{id}")).await.expect(200).json();
    let counts = json!({"total": 25, "queued": 0, "processing": 0, "completed": 24, "failed": 1, "cancelled": 0});
    assert_eq!((&batch["done"], &batch["counts"]), (&json!(true), &counts));
    assert_eq!(
        (&batch["ended_at"], &batch["caller_id"]),
        (&batch["estimated_end"], &json!("local"))
    );
    let listed = service.get("/batches").await.expect(200).json();
    assert_eq!(listed, json!({"batches": [batch], "next": null}));
    // Nothing is waited for where nothing follows.
    let end = service.get(&format!("/batches/{id}/results?after={after}&wait=60")).await;
    assert_eq!(end.expect(200).json()["messages"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_parameters_and_cursors_of_batches_are_refused() {
    let service = Service::start(&[]).await;
    let id = id_of(&send(&service, pages(2)).await);
    until_done(&service, &id).await;
    for (path, status) in [
        ("/batches?limit=0".to_owned(), 422),
        ("/batches?limit=201".to_owned(), 422),
        ("/batches?after=x".to_owned(), 422),
        ("/batches?status=done".to_owned(), 422),
        (format!("/batches/{id}?wait=30"), 422),
        (format!("/batches/{id}/results?limit=1001"), 422),
        (format!("/batches/{id}/results?wait=61"), 422),
        (format!("/batches/{id}/results?colour=red"), 422),
        (format!("/batches/{id}/results?after=99"), 410),
        (format!("/batches/{}", id.replacen("batch_", "msg_", 1)), 404),
        (format!("/batches/{}/results", id.replacen("batch_0", "batch_f", 1)), 404),
    ] {
        let refused = service.get(&path).await;
        assert_eq!(refused.status, status, "{path}");
    }
    let refused = service.get("/batches?status=done").await.json();
    assert_eq!(refused["errors"][0]["parameter"], "status", "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_lists_its_own_batches_newest_first() {
    let service = Service::start(&[]).await;
    let mut own = Vec::new();
    for count in 1..=3 {
        own.insert(0, id_of(&send(&service, pages(count)).await));
        // The ids of one millisecond have no order.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let token = service.caller("another", "caller").await;
    let ids = async |token: &str, query: &str| {
        let page = service.get_as(token, &format!("/batches{query}")).await.expect(200).json();
        let batches = page["batches"].as_array().unwrap().iter();
        let ids: Vec<_> = batches.map(|one| one["id"].as_str().unwrap().to_owned()).collect();
        (ids, page["next"].as_str().map(str::to_owned))
    };
    let (first, next) = ids(&service.token, "?limit=2").await;
    assert_eq!((&first[..], next.as_ref()), (&own[..2], Some(&own[1])));
    let (rest, next) = ids(&service.token, &format!("?limit=2&after={}", own[1])).await;
    assert_eq!((&rest[..], next), (&own[2..], None));
    assert_eq!(ids(&token, "").await, (Vec::new(), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_messages_are_left_out_and_a_repetition_gets_the_same_answer() {
    let service = Service::start(&[]).await;
    let mut bad = message("/bad");
    bad["url"] = json!("http://10.0.0.1/");
    let mut late = message("/late");
    late["deadline"] = json!("2020-01-01T00:00:00Z");
    let batch = json!({"messages": [message("/0"), bad, message("/2"), late], "invalid": "skip"});
    let key = [("idempotency-key", "batch-1")];
    let first = service.post("/fetch/batch", &key, &batch).await.expect(200);
    let sent = first.json();
    assert_eq!(sent["messages"].as_array().unwrap().len(), 2);
    let skipped = sent["skipped"].as_array().unwrap();
    let told: Vec<_> = skipped
        .iter()
        .map(|one| {
            (&one["index"], &one["url"], &one["correlation_id"], &one["errors"][0]["pointer"])
        })
        .collect();
    assert_eq!(
        told,
        [
            (&json!(1), &json!("http://10.0.0.1/"), &json!("/bad"), &json!("/messages/1/url")),
            (
                &json!(3),
                &json!("http://shop.test/late"),
                &json!("/late"),
                &json!("/messages/3/deadline")
            ),
        ]
    );
    let done = until_done(&service, &id_of(&sent)).await;
    assert_eq!((&done["counts"]["total"], &done["skipped"]), (&json!(2), &json!(2)));
    let again = service.post("/fetch/batch", &key, &batch).await.expect(200);
    assert_eq!(again.bytes(), first.bytes());
    let reject = json!({"messages": batch["messages"], "invalid": "reject"});
    service.post("/fetch/batch", &[], &reject).await.expect(422);
    let none = json!({"messages": [batch["messages"][1]], "invalid": "skip"});
    service.post("/fetch/batch", &[], &none).await.expect(422);
    let listed = service.get("/batches").await.expect(200).json();
    assert_eq!(listed["batches"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rest_of_a_batch_is_cancelled_and_its_end_was_estimated() {
    let service = Service::start(&SLOW).await;
    let slow = |mut one: Value| {
        one["retailer"] = json!("slow");
        one
    };
    let sent = send(&service, pages(20).into_iter().map(slow).collect()).await;
    let id = id_of(&sent);
    let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let batch = service.get(&format!("/batches/{id}")).await.expect(200).json();
    let takes = time(&sent["estimated_end"]).duration_since(time(&batch["created_at"]));
    assert!((185..=195).contains(&takes.as_secs()), "19 requests, 10 s apart: {takes:?}");
    assert_eq!((&batch["done"], &batch["cancelled_at"]), (&json!(false), &Value::Null));

    let bearer = format!("Bearer {}", service.token);
    let path = format!("/batches/{id}");
    let cancel = async || service.send("DELETE", &path, &[("authorization", &bearer)], "").await;
    let cancelled = cancel().await.expect(200).json();
    assert!(cancelled["cancelled_at"].is_string(), "{cancelled}");
    // Messages that were handed out wait in memory, and come back within a while.
    let done = eventually_ok("the end of the batch", async || {
        let batch = cancel().await.expect(200).json();
        if batch["done"] == true { Ok(batch) } else { Err(batch) }
    })
    .await;
    let ended =
        done["counts"]["completed"].as_u64().unwrap() + done["counts"]["failed"].as_u64().unwrap();
    assert_eq!(ended, 20);
    assert!(done["counts"]["cancelled"].as_u64().unwrap() >= 10, "{done}");
    let first =
        sent["messages"].as_array().unwrap().last().unwrap()["message_id"].as_str().unwrap();
    let message = service.get(&format!("/messages/{first}")).await.expect(200).json();
    assert_eq!(message["outbox"]["status"], "cancelled", "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_batch_is_delivered_under_its_own_id() {
    let service = Service::start(&[]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hook = format!("http://{}/hook", listener.local_addr().unwrap());
    let batch = json!({"messages": pages(3), "callback_url": hook});
    let sent = service.post("/fetch/batch", &[], &batch).await.expect(200).json();
    let id = id_of(&sent);
    let (first, _) = receive(&listener, "500 Sorry").await;
    let (head, body) = receive(&listener, "204 Thanks").await;
    assert_eq!(
        (header(&first, "webhook-id"), header(&head, "webhook-id")),
        (Some(&*id), Some(&*id))
    );
    let body: Value = serde_json::from_str(&body).unwrap();
    let batch = service.get(&format!("/batches/{id}")).await.expect(200).json();
    assert_eq!((&body["type"], &body["data"]), (&json!("batch.completed"), &batch));
    assert_eq!(body["timestamp"], batch["ended_at"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_tells_the_end_of_a_batch_once_after_its_last_result() {
    let service = Service::start(&[]).await;
    let mut live = stream(&service, &[], "/outbox").await;
    let first = id_of(&send(&service, pages(2)).await);
    let is_told =
        |text: &str| text.contains("event: batch.completed\ndata: ") && text.ends_with("\n\n\r\n");
    let text = read_until(&mut live, is_told).await;
    assert_eq!(ids(&text), ["1", "2", "2.1"]);
    let data = text.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!((&data["id"], &data["done"]), (&json!(first), &json!(true)));
    let second = id_of(&send(&service, pages(1)).await);
    until_done(&service, &second).await;

    // Who saw the batch gets what follows; who saw only its last result gets the batch, too.
    for (last, expected) in
        [("2.1", &["3", "3.2"][..]), ("2", &["2.1", "3", "3.2"]), ("1", &["2", "2.1", "3", "3.2"])]
    {
        let mut resumed = stream(&service, &[("last-event-id", last)], "/outbox").await;
        let text = read_until(&mut resumed, |text| ids(text).contains(&"3.2")).await;
        assert_eq!(ids(&text), expected, "after {last}");
    }
    let all = service.get("/outbox").await.expect(200).json();
    let cursors: Vec<_> = all["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["cursor"].as_str().unwrap())
        .collect();
    assert_eq!(cursors, ["1", "2", "3"]);
}
