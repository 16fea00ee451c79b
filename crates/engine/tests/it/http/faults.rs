//! Connections that fail, and answers that are none.

use fetchwell_policy::outcome::{AnswerFault, FetchOutcome, NameFault, NetworkFault};
use fetchwell_policy::url::WebUrl;
use fetchwell_testkit::closed_port::ClosedPort;

use super::client::{client, client_knowing, client_limited, failure, fetch};
use super::script::{Server, Step, answer, ok};

fn headers_too_large() -> FetchOutcome {
    FetchOutcome::BadAnswer(AnswerFault::HeadersTooLarge)
}

#[tokio::test]
async fn nobody_listens() {
    let nobody = ClosedPort::bind().unwrap();
    let url = WebUrl::parse(&format!("http://{}/", nobody.address())).unwrap();
    let expected = FetchOutcome::Network(NetworkFault::ConnectRefused);
    assert_eq!(failure(&client(), url).await, expected);
}

#[tokio::test]
async fn a_name_without_an_address() {
    let client = client_knowing([("empty.test", &[])], |_| {});
    for (url, fault) in [
        ("http://unknown.test/", NameFault::NoSuchName),
        ("http://empty.test/", NameFault::NoAddress),
        ("https://unknown.test/", NameFault::NoSuchName),
    ] {
        let url = WebUrl::parse(url).unwrap();
        assert_eq!(failure(&client, url).await, FetchOutcome::Network(NetworkFault::Dns(fault)));
    }
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_refuses() {
    let server = Server::answering(ok("", b"hello")).await;
    let client = client_knowing([("two.test", &["127.0.0.77", "127.0.0.1"])], |_| {});
    let url = WebUrl::parse(&format!("http://two.test:{}/", server.address.port())).unwrap();
    assert_eq!(fetch(&client, url).await.body, "hello");
}

#[tokio::test]
async fn garbage_is_not_http() {
    for garbage in [
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "<html>hello</html>\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
    ] {
        let server = Server::start([answer(garbage)]).await;
        let expected = FetchOutcome::BadAnswer(AnswerFault::NotHttp);
        assert_eq!(failure(&client(), server.url("/")).await, expected, "{garbage}");
    }
}

#[tokio::test]
async fn headers_are_limited() {
    let client = client();
    let server = Server::answering(ok(&format!("x: {}\r\n", "y".repeat(60 << 10)), b"")).await;
    fetch(&client, server.url("/")).await;
    for headers in [
        format!("x: {}\r\n", "y".repeat(65 << 10)),
        "x: y\r\n".repeat(20_000),
        "y".repeat(100 << 10),
    ] {
        let server = Server::start([[answer(ok(&headers, b"")), vec![Step::AwaitClose]].concat()]);
        assert_eq!(failure(&client, server.await.url("/")).await, headers_too_large());
    }
}

#[tokio::test]
async fn the_header_limit_may_be_small() {
    let client = client_limited(|limits| limits.max_header_bytes = 100);
    let server = Server::answering(ok(&format!("x: {}\r\n", "y".repeat(100)), b"")).await;
    assert_eq!(failure(&client, server.url("/")).await, headers_too_large());
    let server = Server::answering(ok("", b"hello")).await;
    fetch(&client, server.url("/")).await;
}
