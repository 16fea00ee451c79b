//! How many connections there may be at once.

use std::time::Duration;

use fetchwell_testkit::crash::Service;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::place::no_way_out;
use crate::client::{connect, read_until};

const ASK: &[u8] = b"GET /livez HTTP/1.1\r\nhost: fetchwell.test\r\n\r\n";

async fn answer(stream: &mut TcpStream) -> String {
    read_until(stream, |text| text.ends_with("ok\n")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn more_connections_than_there_may_be_wait_in_line() {
    let program = no_way_out().variable("FETCHWELL_RETRIEVER__MAX_CONNECTIONS", "2");
    let service = Service::start(program).await;
    let mut served = [connect(service.address).await, connect(service.address).await];
    for stream in &mut served {
        stream.write_all(ASK).await.unwrap();
        answer(stream).await;
    }
    let mut waiting = connect(service.address).await;
    waiting.write_all(ASK).await.unwrap();
    let early = timeout(Duration::from_secs(1), answer(&mut waiting)).await;
    assert!(early.is_err(), "a third connection was served: {early:?}");
    // The others are served as ever, and whoever waits comes next.
    let [first, mut second] = served;
    second.write_all(ASK).await.unwrap();
    answer(&mut second).await;
    drop(first);
    assert!(answer(&mut waiting).await.starts_with("HTTP/1.1 200 "));
}
