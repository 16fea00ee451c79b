//! What a caller learns of its webhooks: deliveries, replays, and secrets that rotate.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fetchwell_testkit::eventually::eventually_ok;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::net::TcpListener;

use super::service::{Service, message};
use super::webhooks::{header, receive};

async fn send(service: &Service, listener: &TcpListener) -> String {
    let mut asked = message("/page");
    asked["callback_url"] = json!(format!("http://{}/hook", listener.local_addr().unwrap()));
    let sent = service.post("/fetch", &[], &asked).await.expect(200).json();
    sent["message_id"].as_str().unwrap().to_owned()
}

/// The delivery, once it has this status and as many attempts.
async fn delivery(service: &Service, status: &str, attempts: u64) -> Value {
    eventually_ok("the delivery", async || {
        let listed = service.get("/webhooks/deliveries").await.expect(200).json();
        let first = listed["deliveries"][0].clone();
        let is_so = first["status"] == status && first["attempts"] == attempts;
        if is_so { Ok(first) } else { Err(listed.to_string()) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_listed_with_its_attempts_and_replayed_with_its_id() {
    let service = Service::start(&[]).await;
    let stranger = service.caller("stranger", "caller").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let id = send(&service, &listener).await;
    let (first, _) = receive(&listener, "410 Gone").await;
    let failed = delivery(&service, "failed", 1).await;
    assert_eq!(failed["id"], json!(id));
    let attempt = &failed["last_attempts"][0];
    assert_eq!(
        (&attempt["http_status"], &attempt["error"]),
        (&json!(410), &json!("the server answered 410"))
    );

    let replay = format!("/webhooks/deliveries/{id}/replay");
    let foreign = service.post_as(&stranger, &replay, &[], "").await.expect(404);
    let missing = "/webhooks/deliveries/msg_00000000000000000000000000000000/replay";
    let missing = service.post_as(&stranger, missing, &[], "").await.expect(404);
    assert_eq!(foreign.bytes(), missing.bytes());
    let theirs = service.get_as(&stranger, "/webhooks/deliveries").await.expect(200).json();
    assert_eq!(theirs, json!({"deliveries": [], "next": null}));

    let again = service.post(&replay, &[], &json!({})).await.expect(200).json();
    assert_eq!(again, json!({"id": id, "replayed": true}));
    let (second, _) = receive(&listener, "204 Thanks").await;
    assert_eq!(header(&second, "webhook-id"), header(&first, "webhook-id"));
    delivery(&service, "delivered", 2).await;

    let day = |from: &str, to: &str| json!({"since": from, "until": to});
    let all = day("2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z");
    let range = all.to_string();
    let of_others = service.post_as(&stranger, "/webhooks/deliveries/replay", &[], &range);
    assert_eq!(of_others.await.expect(200).json(), json!({"replayed": 0, "next": null}));
    let earlier = day("2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z");
    for (range, count) in [(earlier, 0), (all, 1)] {
        let replayed = service.post("/webhooks/deliveries/replay", &[], &range).await.expect(200);
        assert_eq!(replayed.json(), json!({"replayed": count, "next": null}));
    }
    let (third, _) = receive(&listener, "204 Thanks").await;
    assert_eq!(header(&third, "webhook-id"), Some(&*id));
    delivery(&service, "delivered", 3).await;
    service.get("/webhooks/deliveries?status=lost").await.expect(422);
}

fn signature(secret: &str, head: &str, body: &str) -> String {
    let id = header(head, "webhook-id").unwrap();
    let content = format!("{id}.{}.{body}", header(head, "webhook-timestamp").unwrap());
    let key = STANDARD.decode(secret.trim_start_matches("whsec_")).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(content.as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[tokio::test(flavor = "multi_thread")]
async fn during_a_rotation_a_delivery_has_the_signatures_of_both_secrets() {
    let service = Service::start(&[]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let rotate = ["--json", "callers", "rotate-secret", "local"];
    let rotated = service.program.run(&rotate).await.expect_code(0);
    let rotated: Value = serde_json::from_str(&rotated.stdout).unwrap();
    assert!(rotated["previous_until"].is_string(), "{rotated}");
    let new = rotated["webhook_secret"].as_str().unwrap();
    send(&service, &listener).await;
    let (head, body) = receive(&listener, "204 Thanks").await;
    let both =
        format!("{} {}", signature(new, &head, &body), signature(&service.secret, &head, &body));
    assert_eq!(header(&head, "webhook-signature"), Some(&*both));

    let secret = "/webhooks/secret";
    service.post(secret, &[], &json!({})).await.expect(409);
    service.post(secret, &[], &json!({"overlap": "31d"})).await.expect(422);
    let last = service.post(secret, &[], &json!({"overlap": "0s"})).await.expect(200).json();
    assert_eq!(last["previous_until"], Value::Null);
    send(&service, &listener).await;
    let (head, body) = receive(&listener, "204 Thanks").await;
    let only = signature(last["webhook_secret"].as_str().unwrap(), &head, &body);
    assert_eq!(header(&head, "webhook-signature"), Some(&*only));

    let operators = "/operator/callers/local/webhook-secret";
    service.post(operators, &[], &json!({"overlap": "1h"})).await.expect(200);
    service.post("/operator/callers/nobody/webhook-secret", &[], &json!({})).await.expect(404);
}
