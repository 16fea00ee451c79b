//! What is written: request lines, headers, bodies; and plain answers.

use bytes::Bytes;
use fetchwell_engine::web::{Exchange, Method, Request};
use fetchwell_policy::address::ResolveRule;
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::url::WebUrl;

use super::client::{SHORT, answered, client, client_with, exchange, fetch};
use super::script::{Server, Step, answer, ok};

#[tokio::test]
async fn a_plain_answer_comes_back_whole() {
    let server = Server::answering(ok("content-type: text/plain\r\n", b"hello")).await;
    let answer = fetch(&client(), server.url("/")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/plain"));
    assert_eq!(answer.body, "hello");
}

#[tokio::test]
async fn a_request_is_written_as_expected() {
    let server = Server::answering(ok("", b"")).await;
    fetch(&client(), server.url("/a/b?c=d&e")).await;
    let expected = format!(
        "GET /a/b?c=d&e HTTP/1.1\r\n\
         host: {}\r\n\
         user-agent: Tester/1.0\r\n\
         accept: */*\r\n\
         accept-encoding: gzip, br, zstd, deflate\r\n\r\n",
        server.address
    );
    assert_eq!(server.seen().requests, [expected]);
}

#[tokio::test]
async fn the_default_port_is_not_in_the_host_header() {
    let server = Server::answering(ok("", b"")).await;
    let client = client_with(|settings| {
        settings.resolve = vec![ResolveRule {
            pattern: "*.test".to_owned(),
            address: server.address.ip(),
            port: Some(server.address.port()),
        }];
    });
    fetch(&client, WebUrl::parse("http://www.test/").unwrap()).await;
    assert!(server.seen().requests[0].contains("\r\nhost: www.test\r\n"));
}

#[tokio::test]
async fn a_request_may_bring_headers_of_its_own() {
    let server = Server::answering(ok("", b"")).await;
    let request = Request::page(server.url("/"))
        .with_header("If-None-Match", "\"x\"")
        .with_header("accept", "text/html");
    answered(exchange(&client(), request).await);
    let written = &server.seen().requests[0];
    assert!(written.contains("\r\nif-none-match: \"x\"\r\n"), "{written}");
    assert!(written.contains("\r\naccept: text/html\r\n"), "{written}");
    assert!(!written.contains("*/*"), "{written}");
}

#[tokio::test]
async fn a_header_that_can_not_be_written_is_refused() {
    let server = Server::start([vec![Step::AwaitClose]]).await;
    let request = Request::page(server.url("/")).with_header("x-sly", "a\r\nx-smuggled: b");
    let exchange = exchange(&client(), request).await;
    assert!(matches!(exchange, Exchange::Failed(FetchOutcome::Refused(_))), "{exchange:?}");
    assert!(server.seen().requests.is_empty());
}

#[tokio::test]
async fn a_head_request_reads_no_body() {
    let script = [
        answer("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-encoding: gzip\r\n\r\n"),
        answer(ok("", b"")),
    ];
    let server = Server::start([script.concat()]).await;
    let client = client();
    let request = Request::page(server.url("/")).by(Method::HEAD);
    let answer = answered(exchange(&client, request).await);
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    fetch(&client, server.url("/next")).await;
    assert!(server.seen().requests[0].starts_with("HEAD / HTTP/1.1\r\n"));
    assert_eq!(server.seen().connections, 1);
}

#[tokio::test]
async fn a_post_request_brings_its_body() {
    let server = Server::answering(ok("", b"thanks")).await;
    let request =
        Request::page(server.url("/hook")).by(Method::POST).with_body(Bytes::from("{\"a\":1}"));
    assert_eq!(answered(exchange(&client(), request).await).body, "thanks");
    let written = &server.seen().requests[0];
    assert!(written.starts_with("POST /hook HTTP/1.1\r\n"), "{written}");
    assert!(written.contains("\r\ncontent-length: 7\r\n"), "{written}");
    assert!(written.ends_with("\r\n\r\n{\"a\":1}"), "{written}");
}

#[tokio::test]
async fn odd_characters_are_written_as_the_url_has_them() {
    let server = Server::answering(ok("", b"")).await;
    let client = client();
    for path in
        ["//a//b", "/%zz", "/a|b^c[d]", "/\"{`}<>", "/?\"'{`}<>|\\^[]", "/ä?ö", "/?/?", "/*"]
    {
        let url = server.url(path);
        let line = format!("GET {} HTTP/1.1\r\n", url.path_and_query());
        fetch(&client, url).await;
        let written = server.seen().requests.pop().unwrap();
        assert!(written.starts_with(&line), "{path}: {written}");
    }
}

#[tokio::test]
async fn odd_hosts_come_to_an_outcome() {
    let server = Server::answering(ok("", b"")).await;
    let client = client_with(|settings| {
        settings.limits.connect_timeout = SHORT; // For names that get as far as a handshake.
        settings.resolve = vec![ResolveRule {
            pattern: "*".to_owned(),
            address: server.address.ip(),
            port: Some(server.address.port()),
        }];
    });
    for host in ["a_b", "a'b", "a!b", "a{b}", "a\"b", "a`b", "a*b", "a;b", "-", "a..b", "xn--a"] {
        for scheme in ["http", "https"] {
            if let Ok(url) = WebUrl::parse(&format!("{scheme}://{host}/")) {
                exchange(&client, Request::page(url)).await;
            }
        }
    }
}

#[tokio::test]
async fn informational_answers_come_before_the_answer() {
    let mut bytes = b"HTTP/1.1 100 Continue\r\n\r\n\
                      HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n"
        .to_vec();
    bytes.extend(ok("", b"at last"));
    let server = Server::answering(bytes).await;
    let answer = fetch(&client(), server.url("/")).await;
    assert_eq!((answer.status, &answer.body[..]), (200, &b"at last"[..]));
}

#[tokio::test]
async fn every_status_is_an_answer() {
    let client = client();
    for (head, status, body) in [
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\ngone", 404, "gone"),
        ("HTTP/1.1 503\r\nretry-after: 5\r\ncontent-length: 0\r\n\r\n", 503, ""),
        ("HTTP/1.1 204 No Content\r\n\r\n", 204, ""),
        ("HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", 304, ""),
        ("HTTP/1.1 302 Found\r\nlocation: /a\r\ncontent-length: 0\r\n\r\n", 302, ""),
        ("HTTP/1.0 200 OK\r\n\r\nold", 200, "old"),
        ("HTTP/1.1 999 Odd\r\ncontent-length: 0\r\n\r\n", 999, ""),
    ] {
        let server = Server::start([answer(head)]).await;
        let answer = fetch(&client, server.url("/")).await;
        assert_eq!((answer.status, &answer.body[..]), (status, body.as_bytes()), "{head}");
    }
}
