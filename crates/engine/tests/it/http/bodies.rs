//! How bodies are framed, and how large they may be.

use std::time::Duration;

use fetchwell_engine::web::Request;
use fetchwell_policy::outcome::{AnswerFault, FetchOutcome, NetworkFault};

use super::client::{answered, client, client_limited, exchange, failure, fetch, in_time};
use super::script::{Server, Step, answer, ok};

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

fn too_large() -> FetchOutcome {
    FetchOutcome::BadAnswer(AnswerFault::TooLarge)
}

fn reset() -> FetchOutcome {
    FetchOutcome::Network(NetworkFault::Reset)
}

#[tokio::test]
async fn chunks_are_put_together() {
    let chunks = "5\r\nhello\r\n1;x=y\r\n \r\n5\r\nworld\r\n0\r\nx-trailer: y\r\n\r\n";
    let server = Server::answering(format!("{CHUNKED}{chunks}")).await;
    let client = client();
    assert_eq!(fetch(&client, server.url("/")).await.body, "hello world");
    assert_eq!(fetch(&client, server.url("/")).await.body, "hello world");
    assert_eq!(server.seen().connections, 1);
}

#[tokio::test]
async fn without_a_length_the_body_ends_with_the_connection() {
    let server = Server::start([answer("HTTP/1.1 200 OK\r\n\r\nhello")]).await;
    assert_eq!(fetch(&client(), server.url("/")).await.body, "hello");
}

#[tokio::test]
async fn an_answer_that_is_cut_short_is_a_broken_connection() {
    for cut in [
        String::new(),
        "HTTP/1.1 200 OK\r\ncont".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello".to_owned(),
        format!("{CHUNKED}5\r\nhel"),
        format!("{CHUNKED}5\r\nhello\r\n"),
    ] {
        let server = Server::start([answer(cut.clone())]).await;
        assert_eq!(failure(&client(), server.url("/")).await, reset(), "{cut}");
    }
}

#[tokio::test]
async fn a_reset_is_a_broken_connection() {
    for begun in ["", "HTTP/1.1 200 OK\r\n\r\nhello"] {
        let pause = Step::Pause(Duration::from_millis(50)); // So that the bytes arrive before.
        let script = [answer(begun), vec![pause, Step::Reset]].concat();
        let server = Server::start([script]).await;
        assert_eq!(failure(&client(), server.url("/")).await, reset(), "{begun}");
    }
}

#[tokio::test]
async fn chunks_that_make_no_sense_are_no_http() {
    for nonsense in ["zz\r\nhello\r\n0\r\n\r\n", "fffffffffffffffff\r\n", "5\r\nhelloworld"] {
        let server = Server::start([answer(format!("{CHUNKED}{nonsense}"))]).await;
        let expected = FetchOutcome::BadAnswer(AnswerFault::NotHttp);
        assert_eq!(failure(&client(), server.url("/")).await, expected, "{nonsense}");
    }
}

#[tokio::test]
async fn a_body_may_be_as_large_as_the_limit_and_no_larger() {
    let client = client_limited(|limits| limits.max_body_bytes = 100_000);
    let server = Server::answering(ok("", &vec![b'x'; 100_000])).await;
    assert_eq!(fetch(&client, server.url("/")).await.body.len(), 100_000);
    let server = Server::answering(ok("", &vec![b'x'; 100_001])).await;
    assert_eq!(failure(&client, server.url("/")).await, too_large());
}

#[tokio::test]
async fn a_body_is_read_as_far_as_is_enough() {
    let client = client_limited(|limits| limits.max_body_bytes = 100_000);
    for (length, enough, expected) in [
        (50_000, 60_000, 50_000),
        (50_000, 50_000, 50_000),
        (50_000, 0, 0),
        (5_000_000, 70_000, 70_000),
    ] {
        let server = Server::start([answer(ok("", &vec![b'x'; length]))]).await;
        let request = Request::page(server.url("/")).with_enough(enough);
        let answer = answered(exchange(&client, request).await);
        assert_eq!(answer.body.len(), expected, "{enough} of {length}");
    }
}

#[tokio::test]
async fn a_body_of_another_status_than_wanted_is_not_read() {
    let endless = Step::Repeat { piece: vec![b'x'; 10_000], pause: Duration::ZERO };
    let server = Server::start([
        [answer("HTTP/1.1 200 OK\r\n\r\n"), vec![endless]].concat(),
        answer("HTTP/1.1 206 Partial Content\r\ncontent-length: 5\r\n\r\nhello"),
    ])
    .await;
    let client = client();
    let request = Request::page(server.url("/")).with_wanted_status(206);
    let whole = answered(exchange(&client, request.clone()).await);
    assert_eq!((whole.status, whole.body.len()), (200, 0));
    in_time(server.until(|seen| seen.ended == 1)).await;
    assert_eq!(answered(exchange(&client, request).await).body, "hello");
}

#[tokio::test]
async fn a_connection_with_too_large_a_body_is_closed() {
    let endless = Step::Repeat { piece: vec![b'x'; 10_000], pause: Duration::ZERO };
    let server = Server::start([
        [answer("HTTP/1.1 200 OK\r\n\r\n"), vec![endless]].concat(),
        answer(ok("", b"hello")),
    ])
    .await;
    let client = client_limited(|limits| limits.max_body_bytes = 100_000);
    assert_eq!(failure(&client, server.url("/")).await, too_large());
    in_time(server.until(|seen| seen.ended == 1)).await;
    assert_eq!(fetch(&client, server.url("/")).await.body, "hello");
    assert_eq!(server.seen().connections, 2);
}
