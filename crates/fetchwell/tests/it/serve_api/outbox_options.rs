//! How much of the outbox a reader gets: from where, which fields, and compressed.

use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::WAIT;
use super::service::{Service, message};
use crate::client::{Response, connect, read_until, request};

async fn fetch(service: &Service, path: &str) -> Value {
    service.post("/fetch", &WAIT, &message(path)).await.expect(200).json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_begins_at_the_end_gets_only_what_comes_later() {
    let service = Service::start(&[]).await;
    let latest = async || service.get("/outbox?after=latest").await.expect(200).json();
    assert_eq!(latest().await, json!({"messages": [], "next": "0"}));
    fetch(&service, "/page").await;
    assert_eq!(latest().await, json!({"messages": [], "next": "1"}));
    let (page, _) = tokio::join!(service.get("/outbox?after=latest&wait=60"), async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        fetch(&service, "/missing").await
    });
    let page = page.expect(200).json();
    assert_eq!(page["messages"][0]["correlation_id"], "/missing", "{page}");
    assert_eq!((page["messages"].as_array().unwrap().len(), &page["next"]), (1, &json!("2")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_may_begin_at_the_end_and_have_chosen_fields() {
    let service = Service::start(&[]).await;
    fetch(&service, "/page").await;
    let bearer = format!("Bearer {}", service.token);
    let headers = [
        ("authorization", &*bearer),
        ("accept", "text/event-stream"),
        ("accept-encoding", "gzip, br, zstd"),
    ];
    let mut stream = connect(service.address).await;
    let path = "/outbox?after=latest&fields=status";
    stream.write_all(&request("GET", path, &headers, "")).await.unwrap();
    let head = read_until(&mut stream, |text| text.contains(": results")).await;
    assert!(!head.contains("content-encoding"), "{head}");
    fetch(&service, "/missing").await;
    let text = read_until(&mut stream, |text| text.contains("\ndata: ")).await;
    let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!((data["cursor"].as_str(), data["status"].as_str()), (Some("2"), Some("http_error")));
    assert_eq!(data.as_object().unwrap().len(), 3, "{data}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_gets_the_fields_that_it_names_and_no_unknown_ones() {
    let service = Service::start(&[]).await;
    let sent = fetch(&service, "/page").await;
    let page = service.get("/outbox?fields=url,http_status").await.expect(200).json();
    let result = &sent["outbox"];
    let chosen =
        json!({"cursor": "1", "id": result["id"], "url": result["url"], "http_status": 200});
    assert_eq!(page, json!({"messages": [chosen], "next": "1"}));
    for wrong in ["fields=", "fields=colour", "fields=url,,id", "after=LATEST", "after=newest"] {
        let refused = service.get(&format!("/outbox?{wrong}")).await.expect(422).json();
        let name = wrong.split('=').next();
        assert_eq!(refused["errors"][0]["parameter"].as_str(), name, "{refused}");
    }
}

async fn outbox(service: &Service, encodings: &str) -> Response {
    let bearer = format!("Bearer {}", service.token);
    let headers = [("authorization", &*bearer), ("accept-encoding", encodings)];
    service.send("GET", "/outbox", &headers, "").await.expect(200)
}

/// The chunks of a body as one piece.
fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let end = chunks.windows(2).position(|two| two == b"\r\n").expect("a length");
        let length = std::str::from_utf8(&chunks[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return whole;
        }
        whole.extend_from_slice(&chunks[end + 2..end + 2 + length]);
        chunks = &chunks[end + 2 + length + 2..];
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_response_is_compressed_as_the_client_prefers() {
    let service = Service::start(&[]).await;
    fetch(&service, "/page").await;
    let small = service.get("/outbox?fields=url").await.expect(200);
    assert_eq!(small.header("content-encoding"), None);
    for _ in 0..9 {
        fetch(&service, "/page").await;
    }
    let plain = outbox(&service, "identity").await;
    assert_eq!(plain.header("content-encoding"), None);
    for (accepted, coding) in [
        ("gzip", "gzip"),
        ("zstd", "zstd"),
        ("br, gzip", "gzip"),
        ("gzip;q=0.1, zstd;q=0.9", "zstd"),
    ] {
        let answer = outbox(&service, accepted).await;
        assert_eq!(answer.header("content-encoding"), Some(coding));
        assert!(answer.body.len() < plain.body.len() / 2, "{coding}: {}", answer.body.len());
    }
    let mut text = String::new();
    let gzip = outbox(&service, "gzip").await;
    GzDecoder::new(&*joined(&gzip.body)).read_to_string(&mut text).unwrap();
    assert_eq!(text.as_bytes(), plain.body);
    let zstd = outbox(&service, "zstd").await;
    assert_eq!(zstd::decode_all(&*joined(&zstd.body)).unwrap(), plain.body);
}
