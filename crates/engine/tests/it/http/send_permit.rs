//! Permission to write: it is requested once the connection is established, and nothing is written without it.

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::web::{Exchange, PermitTime, Request, SendPermit};
use fetchwell_testkit::closed_port::ClosedPort;
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::client::{Fixed, SHORT, answered, client, exchange_with, fetch, in_time};
use super::script::{Server, Step, ok};

#[tokio::test]
async fn without_leave_nothing_is_written() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let client = client();
    let mut no = Fixed { given: false, asked: 0 };
    let exchange = exchange_with(&client, &Request::page(url), &mut no).await;
    assert!(matches!(exchange, Exchange::NotSent), "{exchange:?}");
    assert_eq!(no.asked, 1);
    drop(client);
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut written = Vec::new();
    in_time(tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut written)).await.unwrap();
    assert_eq!(written, b"");
}

#[tokio::test]
async fn a_connection_without_leave_serves_the_next_request() {
    let server = Server::answering(ok("", b"hello")).await;
    let client = client();
    let request = Request::page(server.url("/"));
    exchange_with(&client, &request, &mut Fixed { given: false, asked: 0 }).await;
    fetch(&client, server.url("/")).await;
    assert_eq!(server.seen().connections, 1);
    assert_eq!(server.seen().requests.len(), 1);
}

/// Gives leave when the server has a connection and no request yet; would wait for ever before.
struct OnceConnected<'a>(&'a Server);

#[async_trait]
impl SendPermit for OnceConnected<'_> {
    async fn to_write(&mut self) -> bool {
        self.0.until(|seen| seen.connections == 1).await;
        self.0.seen().requests.is_empty()
    }
}

#[tokio::test]
async fn leave_is_asked_for_when_the_connection_stands() {
    let server = Server::answering(ok("", b"hello")).await;
    let request = Request::page(server.url("/"));
    answered(exchange_with(&client(), &request, &mut OnceConnected(&server)).await);
}

#[tokio::test]
async fn without_a_connection_leave_is_not_asked_for() {
    let nobody = ClosedPort::bind().unwrap();
    let request = Request::page(format!("http://{}/", nobody.address()).parse().unwrap());
    let mut send_permit = Fixed { given: true, asked: 0 };
    exchange_with(&client(), &request, &mut send_permit).await;
    assert_eq!(send_permit.asked, 0);
}

#[tokio::test]
async fn a_dead_kept_connection_costs_one_leave_only() {
    let server = Server::start([vec![
        Step::Read,
        Step::Write(ok("", b"hello")),
        Step::Read, // And no answer.
    ]])
    .await;
    let client = client();
    fetch(&client, server.url("/")).await;
    let mut send_permit = Fixed { given: true, asked: 0 };
    let exchange = exchange_with(&client, &Request::page(server.url("/")), &mut send_permit).await;
    assert!(matches!(exchange, Exchange::NotSent), "{exchange:?}");
    assert_eq!((send_permit.asked, server.seen().connections), (1, 1));
}

/// Gives leave, and has something else keep the thread to itself right after it: as if the process were
/// stopped there.
struct ThenStopped(Option<PermitTime>);

#[async_trait]
impl SendPermit for ThenStopped {
    async fn to_write(&mut self) -> bool {
        // The connection is at rest by then, so that it comes after the other.
        tokio::time::sleep(Duration::from_millis(1)).await;
        #[expect(clippy::disallowed_methods, reason = "it is to keep the thread to itself")]
        let something_else = async { std::thread::sleep(SHORT) };
        tokio::spawn(something_else);
        let in_time = SHORT / 2;
        self.0 = Some(PermitTime { at: Instant::now(), decided_before: Duration::ZERO, in_time });
        true
    }

    fn given(&self) -> Option<PermitTime> {
        self.0
    }
}

#[tokio::test]
async fn a_head_that_is_held_up_after_its_leave_is_not_written() {
    let server = Server::answering(ok("", b"hello")).await;
    let client = client();
    for kept in [false, true] {
        let request = Request::page(server.url("/held-up"));
        let exchange = exchange_with(&client, &request, &mut ThenStopped(None)).await;
        assert!(matches!(exchange, Exchange::NotSent), "kept {kept}: {exchange:?}");
        fetch(&client, server.url("/in-time")).await;
    }
    let requests = server.seen().requests;
    assert!(requests.iter().all(|head| head.starts_with("GET /in-time ")), "{requests:?}");
}
