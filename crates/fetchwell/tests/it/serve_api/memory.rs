//! The memory budget of the API, with clients that read nothing.

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::eventually::eventually;
use futures::future::join_all;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::service::{Service, message};
use crate::client;

const PAGE_BYTES: usize = 9 << 20;
/// 256 MiB are for all bodies together.
const TOTAL_BYTES: usize = 256 << 20;
const MOST: usize = TOTAL_BYTES / PAGE_BYTES;
/// `HTTP/1.1 200 `
const STATUS_BYTES: usize = 13;

/// Sends a request, and reads the status of the answer but nothing else of it.
async fn ask_and_stop_reading(service: &Service, request: &[u8]) -> (u16, TcpStream) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test's own client to its own listener")]
    let mut stream = socket.connect(service.address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut begin = [0; STATUS_BYTES];
    timeout(DEADLINE, stream.read_exact(&mut begin)).await.unwrap().unwrap();
    let status = std::str::from_utf8(&begin[9..12]).unwrap().parse().unwrap();
    (status, stream)
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_nobody_reads_to_the_end_are_counted() {
    let large = SiteScript::new("large.test").text("/", "text/plain", &"x".repeat(PAGE_BYTES));
    let service = Service::start_with(&[], [large]).await;
    let mut asked = message("/");
    asked["url"] = "http://large.test/".into();
    let sent = service.post("/fetch", &[("prefer", "wait=60")], &asked).await.expect(200).json();
    assert_eq!(sent["outbox"]["content"].as_str().map(str::len), Some(PAGE_BYTES));
    let path = format!("/messages/{}", sent["id"].as_str().unwrap());
    let bearer = format!("Bearer {}", service.token);
    // An operator sees the same result elsewhere, too.
    for path in [path.clone(), format!("/operator{path}")] {
        let request = client::request("GET", &path, &[("authorization", &*bearer)], "");
        let clients = (0..MOST + 8).map(|_| ask_and_stop_reading(&service, &request));
        let clients = join_all(clients).await;
        let count = |status: u16| clients.iter().filter(|(found, _)| *found == status).count();
        assert!(count(200) > 0 && count(200) <= MOST, "{path}: {} were answered", count(200));
        assert_eq!(count(200) + count(503), clients.len());
        drop(clients);
        let has_memory = async || client::raw(service.address, &request).await.status == 200;
        eventually("memory", has_memory).await;
    }
}

/// The response to a batch repeats what was left out. Here, requests that announce a body and send none take the rest of
/// the memory, because those that send one need seconds each.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_whose_answer_nobody_reads_is_counted() {
    let service = Service::start(&[]).await;
    let bearer = format!("Bearer {}", service.token);
    let headers = [("authorization", &*bearer), ("content-type", "application/json")];
    let post = |headers: &[(&str, &str)], body: &str| {
        client::request("POST", "/v2/batch/scrape", headers, body)
    };
    let batch = json!({"urls": ["http://shop.test/", "x".repeat(PAGE_BYTES)]}).to_string();
    let (status, unread) = ask_and_stop_reading(&service, &post(&headers, &batch)).await;
    assert_eq!(status, 200);
    // The text of a body, and what is read of it. The server asks for the body once it has the memory.
    let announced = (TOTAL_BYTES / 8 / 2).to_string();
    let expect = [("expect", "100-continue"), ("content-length", &announced)];
    let announcement = post(&[&headers[..], &expect].concat(), "");
    let mut waiting = Vec::new();
    for _ in 0..7 {
        let (status, client) = ask_and_stop_reading(&service, &announcement).await;
        assert_eq!(status, 100);
        waiting.push(client);
    }
    let (status, _) = ask_and_stop_reading(&service, &announcement).await;
    assert_eq!(status, 503, "the batch is not counted");
    drop(unread);
    let (status, _) = ask_and_stop_reading(&service, &announcement).await;
    assert_eq!(status, 100, "its memory came back");
}
