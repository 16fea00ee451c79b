//! Every wait ends, and what was waited for is let go.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use fetchwell_engine::http::Client;
use fetchwell_engine::web::{Exchange, Method, Phases, Request, Web};
use fetchwell_policy::outcome::{FetchOutcome, Phase};
use fetchwell_policy::url::WebUrl;
use tokio::net::{TcpListener, TcpSocket};

use super::client::{
    Fixed, SHORT, client, client_knowing, client_limited, exchange, failure, fetch, in_time,
};
use super::script::{Server, Step, answer, ok};

fn impatient_between_bytes() -> Client {
    client_limited(|limits| limits.idle_read_timeout = SHORT)
}

fn impatient_over_all() -> Client {
    client_limited(|limits| limits.request_timeout = SHORT)
}

fn piece_by_piece(head: &str, piece: &str) -> Vec<Step> {
    let pause = Duration::from_millis(20);
    [answer(head), vec![Step::Repeat { piece: piece.into(), pause }]].concat()
}

#[tokio::test]
async fn silence_within_a_body_ends_at_the_idle_limit() {
    let begun = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello";
    let server = Server::start([[answer(begun), vec![Step::AwaitClose]].concat()]).await;
    let happened = failure(&impatient_between_bytes(), server.url("/")).await;
    assert_eq!(happened, FetchOutcome::TimedOut(Phase::Read));
    in_time(server.until(|seen| seen.ended == 1)).await;
}

#[tokio::test]
async fn silence_before_the_body_ends_at_the_total_limit() {
    for begun in ["", "HTTP/1.1 200 OK\r\n"] {
        let server = Server::start([[answer(begun), vec![Step::AwaitClose]].concat()]).await;
        let happened = failure(&impatient_over_all(), server.url("/")).await;
        assert_eq!(happened, FetchOutcome::TimedOut(Phase::Total), "{begun}");
        in_time(server.until(|seen| seen.ended == 1)).await;
    }
}

/// A page that is made while we wait is silent for longer than a body may pause.
#[tokio::test]
async fn a_slow_first_byte_is_waited_for_beyond_the_idle_limit() {
    let slow = [vec![Step::Read, Step::Pause(3 * SHORT)], vec![Step::Write(ok("", b"hello"))]];
    let server = Server::start([slow.concat()]).await;
    assert_eq!(fetch(&impatient_between_bytes(), server.url("/")).await.body, "hello");
    // A request may have a limit of its own, as each retailer may.
    let mut own = Request::page(server.url("/"));
    own.timeouts.request = Some(SHORT);
    let exchange = exchange(&impatient_between_bytes(), own).await;
    let is_total = matches!(exchange, Exchange::Failed(FetchOutcome::TimedOut(Phase::Total)));
    assert!(is_total, "{exchange:?}");
}

#[tokio::test]
async fn a_trickle_ends_at_the_total_limit() {
    for (head, piece) in [
        ("HTTP/1.1 200 OK\r\n\r\n", "x"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "1\r\nx\r\n"),
        ("HTTP/1.1 200 OK\r\n", "x-header: y\r\n"),
    ] {
        let server = Server::start([piece_by_piece(head, piece)]).await;
        let happened = failure(&impatient_over_all(), server.url("/")).await;
        assert_eq!(happened, FetchOutcome::TimedOut(Phase::Total), "{head}{piece}");
        in_time(server.until(|seen| seen.ended == 1)).await;
    }
}

#[tokio::test]
async fn a_trickle_below_the_least_rate_is_as_good_as_silence() {
    let trickle = || piece_by_piece("HTTP/1.1 200 OK\r\ncontent-length: 30\r\n\r\n", "x");
    let server = Server::start([trickle()]).await;
    let happened = failure(&impatient_between_bytes(), server.url("/")).await;
    assert_eq!(happened, FetchOutcome::TimedOut(Phase::Read));
    in_time(server.until(|seen| seen.ended == 1)).await;

    let server = Server::start([trickle()]).await;
    let patient = client_limited(|limits| {
        limits.idle_read_timeout = SHORT;
        limits.least_bytes_per_second = 0;
    });
    assert_eq!(fetch(&patient, server.url("/")).await.body.len(), 30);
}

#[tokio::test]
async fn informational_answers_without_end_are_not_listened_to_for_ever() {
    let endless = piece_by_piece("", "HTTP/1.1 100 Continue\r\n\r\n");
    let server = Server::start([endless]).await;
    let happened = failure(&impatient_over_all(), server.url("/")).await;
    assert!(matches!(happened, FetchOutcome::TimedOut(_)), "{happened:?}");
}

#[tokio::test]
async fn a_server_that_does_not_read_is_given_up() {
    let server = Server::start([vec![Step::Pause(Duration::from_secs(60))]]).await;
    let body = Bytes::from(vec![b'x'; 32 << 20]);
    let post = Request::page(server.url("/")).by(Method::POST).with_body(body);
    let exchange = exchange(&impatient_over_all(), post).await;
    assert!(matches!(exchange, Exchange::Failed(FetchOutcome::TimedOut(_))), "{exchange:?}");
}

#[tokio::test]
async fn a_handshake_that_stalls_ends_at_the_connect_limit_or_the_total() {
    let server = Server::start([vec![Step::AwaitClose]]).await;
    let url = WebUrl::parse(&format!("https://{}/", server.address)).unwrap();
    let hours = Duration::from_secs(3_600);
    for (connect, total) in [(SHORT, hours), (hours, SHORT)] {
        let client = client_limited(|limits| {
            limits.connect_timeout = connect;
            limits.request_timeout = total;
        });
        let happened = failure(&client, url.clone()).await;
        assert_eq!(happened, FetchOutcome::TimedOut(Phase::Connect));
    }
    in_time(server.until(|seen| seen.ended == 2)).await;
}

#[tokio::test]
async fn an_address_that_swallows_everything_does_not_use_up_the_time_of_the_next() {
    let server = Server::answering(ok("", b"hello")).await;
    let port = server.address.port();
    let _full = full_listener(SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), port))).await;
    let names = [("two.test", &["127.0.0.2", "127.0.0.1"][..])];
    let client =
        client_knowing(names, |settings| settings.limits.connect_timeout = Duration::from_secs(2));
    let url = WebUrl::parse(&format!("http://two.test:{port}/")).unwrap();
    assert_eq!(fetch(&client, url).await.body, "hello");
}

/// A listener whose queue is full and which accepts nobody: the kernel drops what comes next.
async fn full_listener(address: SocketAddr) -> (TcpListener, Vec<tokio::net::TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(address).unwrap();
    let listener = socket.listen(1).unwrap();
    let mut queued = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "a test's own connections to its own listener")]
    while let Ok(stream) =
        tokio::time::timeout(SHORT, tokio::net::TcpStream::connect(address)).await
    {
        queued.push(stream.unwrap());
    }
    (listener, queued)
}

#[tokio::test]
async fn limits_may_be_as_long_as_a_duration() {
    let server = Server::answering(ok("", b"hello")).await;
    let client = client_limited(|limits| {
        limits.connect_timeout = Duration::MAX;
        limits.request_timeout = Duration::MAX;
        limits.idle_read_timeout = Duration::MAX;
    });
    fetch(&client, server.url("/")).await;
}

#[tokio::test]
async fn an_exchange_that_is_dropped_lets_its_connection_go() {
    for begun in ["", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello"] {
        let server = Server::start([[answer(begun), vec![Step::AwaitClose]].concat()]).await;
        let client = client();
        let request = Request::page(server.url("/"));
        let mut send_permit = Fixed { given: true, asked: 0 };
        let mut phases = Phases::default();
        tokio::select! {
            _ = client.exchange(&request, &mut send_permit, &mut phases) => panic!("no answer was sent"),
            () = server.until(|seen| seen.requests.len() == 1) => {}
        }
        in_time(server.until(|seen| seen.ended == 1)).await;
    }
}
