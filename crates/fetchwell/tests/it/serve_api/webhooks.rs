//! Results that are delivered.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fetchwell_testkit::DEADLINE;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::service::{Service, message};
use crate::client::read_until;

/// One delivery, answered with this status.
pub(super) async fn receive(listener: &TcpListener, status: &str) -> (String, String) {
    let accepted = timeout(DEADLINE, listener.accept()).await.expect("a delivery");
    let (mut stream, _) = accepted.unwrap();
    let is_whole = |text: &str| {
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
        header(head, "content-length").is_some_and(|length| length.parse() == Ok(body.len()))
    };
    let text = read_until(&mut stream, is_whole).await;
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

pub(super) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_delivered_signed_and_again_until_it_is_taken() {
    let service = Service::start(&[]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut asked = message("/page");
    asked["callback_url"] = json!(format!("http://{}/hook", listener.local_addr().unwrap()));
    let sent = service.post("/fetch", &[], &asked).await.expect(200).json();
    let (first, _) = receive(&listener, "500 Sorry").await;
    let (head, body) = receive(&listener, "204 Thanks").await;
    assert!(head.starts_with("POST /hook "), "{head}");
    let id = header(&head, "webhook-id").unwrap();
    assert_eq!(
        (Some(id), id),
        (sent["message_id"].as_str(), header(&first, "webhook-id").unwrap())
    );

    let content = format!("{id}.{}.{body}", header(&head, "webhook-timestamp").unwrap());
    let key = STANDARD.decode(&service.secret).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(content.as_bytes());
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(header(&head, "webhook-signature"), Some(&*expected));

    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["type"], "fetch.completed");
    let message = service.get(&format!("/messages/{id}")).await.expect(200).json();
    assert_eq!(body["data"], message);
}
