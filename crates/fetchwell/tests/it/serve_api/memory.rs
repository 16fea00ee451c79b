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

/// The response to a batch repeats what was left out.
#[tokio::test(flavor = "multi_thread")]
async fn batches_whose_answer_nobody_reads_are_counted() {
    let service = Service::start(&[]).await;
    let invalid = "x".repeat(PAGE_BYTES);
    let bearer = format!("Bearer {}", service.token);
    let headers = [("authorization", &*bearer), ("content-type", "application/json")];
    let batch = json!({"urls": ["http://shop.test/", invalid]}).to_string();
    let request = client::request("POST", "/v2/batch/scrape", &headers, &batch);
    // The text of a body, and what is read of it.
    let most = TOTAL_BYTES / (2 * PAGE_BYTES);
    // One at a time: a request waits only so long for memory that others need for a moment.
    let mut clients = Vec::new();
    for _ in 0..most {
        let (status, client) = ask_and_stop_reading(&service, &request).await;
        assert_eq!(status, 200, "after {} others", clients.len());
        clients.push(client);
    }
    let unknown = "/messages/msg_00000000000000000000000000000000";
    service.get(unknown).await.expect(503);
    drop(clients);
    eventually("memory", async || service.get(unknown).await.status == 404).await;
}
