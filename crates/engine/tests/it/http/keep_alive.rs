//! Connections are kept, and dead ones are found out.

use std::time::Duration;

use bytes::Bytes;
use fetchwell_engine::web::{Exchange, Method, Request};
use fetchwell_policy::outcome::{FetchOutcome, NetworkFault};
use fetchwell_testkit::eventually::eventually;

use super::client::{answered, client, client_limited, exchange, fetch, in_time};
use super::script::{Server, Step, answer, ok};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_in_a_row_share_one_connection() {
    let server = Server::start([vec![answer(ok("", b"hello")); 1_000].concat()]).await;
    let client = client();
    let url = server.url("/");
    // On a worker of its own, the next request can come before the connection is through with the last.
    let in_a_row = async move {
        for _ in 0..1_000 {
            fetch(&client, url.clone()).await;
        }
    };
    tokio::spawn(in_a_row).await.unwrap();
    assert_eq!(server.seen().connections, 1);
}

#[tokio::test]
async fn the_next_request_asks_anew_when_the_server_hung_up_on_it() {
    let hangs_up = [answer(ok("", b"first")), vec![Step::Read]].concat();
    let server = Server::start([hangs_up, answer(ok("", b"second"))]).await;
    let client = client();
    assert_eq!(fetch(&client, server.url("/")).await.body, "first");
    let exchange = exchange(&client, Request::page(server.url("/"))).await;
    assert!(matches!(exchange, Exchange::NotSent), "{exchange:?}");
    assert_eq!(fetch(&client, server.url("/")).await.body, "second");
    assert_eq!(server.seen().connections, 2);
}

#[tokio::test]
async fn a_new_connection_that_hangs_up_is_the_servers_fault() {
    let server = Server::start([vec![Step::Read]]).await;
    let exchange = exchange(&client(), Request::page(server.url("/"))).await;
    let reset = FetchOutcome::Network(NetworkFault::Reset);
    assert!(matches!(&exchange, Exchange::Failed(happened) if *happened == reset), "{exchange:?}");
}

#[tokio::test]
async fn a_probe_is_told_what_became_of_it_whatever_became_of_kept_connections() {
    let hangs_up = [answer(ok("", b"first")), vec![Step::Read]].concat();
    let server = Server::start([hangs_up, vec![Step::Read], answer(ok("", b""))]).await;
    let client = client();
    fetch(&client, server.url("/")).await;
    let probe = || Request::ungoverned(server.url("/")).by(Method::HEAD);
    let failed = exchange(&client, probe()).await;
    assert!(matches!(failed, Exchange::Failed(FetchOutcome::Network(_))), "{failed:?}");
    answered(exchange(&client, probe()).await);
    assert_eq!(server.seen().connections, 3);
}

#[tokio::test]
async fn a_post_is_never_repeated_on_the_quiet() {
    let hangs_up = [answer(ok("", b"")), vec![Step::Read]].concat();
    let server = Server::start([hangs_up]).await;
    let client = client();
    fetch(&client, server.url("/")).await;
    let post = Request::page(server.url("/")).by(Method::POST).with_body(Bytes::from("x"));
    let exchange = exchange(&client, post).await;
    assert!(matches!(exchange, Exchange::Failed(_)), "{exchange:?}");
    assert_eq!(server.seen().requests.len(), 2);
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_not_used_again() {
    let server = Server::start([answer(ok("connection: close\r\n", b"hello"))]).await;
    let client = client();
    for _ in 0..10 {
        fetch(&client, server.url("/")).await;
    }
    assert_eq!(server.seen().connections, 10);
}

#[tokio::test]
async fn bytes_after_an_answer_end_the_connection() {
    let mut two_answers = ok("", b"first");
    two_answers.extend(ok("", b"smuggled"));
    let server = Server::start([
        [answer(two_answers), vec![Step::AwaitClose]].concat(),
        answer(ok("", b"second")),
    ])
    .await;
    let client = client();
    assert_eq!(fetch(&client, server.url("/")).await.body, "first");
    assert_eq!(fetch(&client, server.url("/")).await.body, "second");
}

/// A server that answers before it has read the request, and never reads it.
async fn hasty_server() -> Server {
    let hasty = vec![Step::Write(ok("", b"hasty")), Step::Pause(Duration::from_secs(60))];
    Server::start([hasty, answer(ok("", b"hello"))]).await
}

fn large_post(server: &Server) -> Request {
    Request::page(server.url("/")).by(Method::POST).with_body(Bytes::from(vec![b'x'; 32 << 20]))
}

#[tokio::test]
async fn a_connection_that_is_still_busy_is_not_used_again() {
    let server = hasty_server().await;
    let client = client();
    assert_eq!(answered(exchange(&client, large_post(&server)).await).body, "hasty");
    assert_eq!(fetch(&client, server.url("/")).await.body, "hello");
}

#[tokio::test]
async fn a_connection_that_is_given_up_ends_even_when_it_is_busy() {
    let server = hasty_server().await;
    let tasks = tokio::runtime::Handle::current().metrics();
    let before = tasks.num_alive_tasks();
    let client = client_limited(|limits| limits.max_idle_connections = 0);
    answered(exchange(&client, large_post(&server)).await);
    let only_the_server_is_left = async || tasks.num_alive_tasks() <= before + 1;
    in_time(eventually("the end of the connection", only_the_server_is_left)).await;
}

#[tokio::test]
async fn no_more_connections_are_kept_than_allowed() {
    let one = Server::start([[answer(ok("", b"")), vec![Step::AwaitClose]].concat()]).await;
    let other = Server::answering(ok("", b"")).await;
    let client = client_limited(|limits| limits.max_idle_connections = 0);
    fetch(&client, one.url("/")).await;
    fetch(&client, other.url("/")).await;
    in_time(one.until(|seen| seen.ended == 1)).await;
}
