//! HTTP/2, against hyper's server.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_engine::web::{Exchange, Method, Request, SendPermit};
use fetchwell_policy::outcome::{AnswerFault, FetchOutcome, Phase};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Barrier, mpsc};

use super::client::{SHORT, answered, exchange, exchange_with, failure, fetch};
use super::tls::{Authority, NAME, listen, url};

/// Echoes method, URL, user agent and body of a request; some paths have a way of their own.
struct Echo {
    connections: AtomicUsize,
    /// `/together` is answered when two such requests are there.
    together: Barrier,
}

impl Echo {
    async fn start(authority: &Authority) -> (SocketAddr, Arc<Echo>) {
        let echo = Arc::new(Echo { connections: AtomicUsize::new(0), together: Barrier::new(2) });
        let serving = echo.clone();
        let address = listen(authority.acceptor(b"h2"), move |stream| {
            let echo = serving.clone();
            async move {
                echo.connections.fetch_add(1, Ordering::SeqCst);
                let service = service_fn(move |request| echo.clone().answer(request));
                let connection = http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service);
                // A client that hangs up ends its connection, which is no fault of the server.
                drop(connection.await);
            }
        })
        .await;
        (address, echo)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    async fn answer(
        self: Arc<Self>,
        request: http::Request<Incoming>,
    ) -> Result<http::Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let agent = head.headers["user-agent"].to_str().unwrap();
        let echo = format!("{} {} {agent} {}", head.method, head.uri, body.len());
        let mut answer = http::Response::new(Full::from(echo));
        match head.uri.path() {
            "/together" => {
                self.together.wait().await;
            }
            "/silence" => std::future::pending().await,
            "/headers" => {
                let bytes = head.uri.query().unwrap().parse().unwrap();
                let name = http::HeaderName::from_static("x");
                answer.headers_mut().insert(name, "y".repeat(bytes).parse().unwrap());
            }
            "/large" => *answer.body_mut() = Full::from(vec![b'x'; 1 << 20]),
            _ => {}
        }
        Ok(answer)
    }
}

#[tokio::test]
async fn requests_are_written_as_expected() {
    let authority = Authority::new();
    let (address, echo) = Echo::start(&authority).await;
    let client = authority.client();
    let port = address.port();
    let url = url(address, "/a?b=c");
    let answer = fetch(&client, url.clone()).await;
    assert_eq!(answer.body, format!("GET https://{NAME}:{port}/a?b=c Tester/1.0 0"));
    let post = Request::page(url.clone()).by(Method::POST).with_body(Bytes::from("12345"));
    let answer = answered(exchange(&client, post).await);
    assert_eq!(answer.body, format!("POST https://{NAME}:{port}/a?b=c Tester/1.0 5"));
    let answer = answered(exchange(&client, Request::page(url).by(Method::HEAD)).await);
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    // A probe has a connection of its own.
    assert_eq!(echo.connections(), 2);
}

#[tokio::test]
async fn requests_at_once_share_the_connection() {
    let authority = Authority::new();
    let (address, echo) = Echo::start(&authority).await;
    let client = authority.client();
    fetch(&client, url(address, "/")).await;
    let (one, other) = tokio::join!(
        fetch(&client, url(address, "/together")),
        fetch(&client, url(address, "/together")),
    );
    assert_eq!((one.status, other.status), (200, 200));
    assert_eq!(echo.connections(), 1);
}

#[tokio::test]
async fn headers_are_limited() {
    let authority = Authority::new();
    let (address, _) = Echo::start(&authority).await;
    let client = authority.client();
    fetch(&client, url(address, "/headers?60000")).await;
    let expected = FetchOutcome::BadAnswer(AnswerFault::HeadersTooLarge);
    assert_eq!(failure(&client, url(address, "/headers?66000")).await, expected);
}

#[tokio::test]
async fn too_large_a_body_ends_its_stream_and_not_the_connection() {
    let authority = Authority::new();
    let (address, echo) = Echo::start(&authority).await;
    let client = authority.limited_client(|limits| limits.max_body_bytes = 1_000);
    let expected = FetchOutcome::BadAnswer(AnswerFault::TooLarge);
    fetch(&client, url(address, "/")).await;
    assert_eq!(failure(&client, url(address, "/large")).await, expected);
    fetch(&client, url(address, "/")).await;
    assert_eq!(echo.connections(), 1);
}

/// What a server sends ahead of our reading is outside the byte budget.
#[tokio::test]
async fn a_server_may_not_send_far_ahead() {
    let authority = Authority::new();
    let (told, mut windows) = mpsc::unbounded_channel();
    let address = listen(authority.acceptor(b"h2"), move |mut stream| {
        let told = told.clone();
        async move {
            stream.read_exact(&mut [0; 24]).await.unwrap(); // The preface.
            let mut head = [0; 9];
            while stream.read_exact(&mut head).await.is_ok() {
                let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
                stream.read_exact(&mut payload).await.unwrap();
                drop(told.send((head[3], payload)));
            }
        }
    })
    .await;
    let client = authority.limited_client(|limits| limits.request_timeout = SHORT);
    failure(&client, url(address, "/")).await;
    let mut stream_window = 65_535;
    let mut connection_window = 65_535;
    while let Ok((kind, payload)) = windows.try_recv() {
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
        match kind {
            4 => payload.chunks(6).filter(|setting| setting[..2] == [0, 4]).for_each(|setting| {
                stream_window = number(&setting[2..]);
            }),
            8 => connection_window += number(&payload),
            _ => {}
        }
    }
    assert_eq!((stream_window, connection_window), (256 << 10, 1 << 20));
}

const HEADERS: u8 = 1;

/// Reads frames until a request comes, and tells its stream.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> [u8; 4] {
    let mut head = [0; 9];
    while head[3] != HEADERS {
        stream.read_exact(&mut head).await.unwrap();
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        stream.read_exact(&mut payload).await.unwrap();
    }
    [head[5], head[6], head[7], head[8]]
}

/// A server that leaves, or refuses a stream, has done nothing about the request.
#[tokio::test]
async fn a_request_that_a_kept_connection_turns_away_asks_anew() {
    let go_away = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0";
    let refused_stream = b"\0\0\x04\x03\0\0\0\0\x03\0\0\0\x07";
    for turned_away in [&go_away[..], &refused_stream[..]] {
        let authority = Authority::new();
        let address = listen(authority.acceptor(b"h2"), move |mut stream| async move {
            stream.read_exact(&mut [0; 24]).await.unwrap(); // The preface.
            stream.write_all(b"\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0").await.unwrap();
            let id = read_request(&mut stream).await;
            let answer = [&b"\0\0\x01\x01\x05"[..], &id, b"\x88"].concat(); // 200, and no body.
            stream.write_all(&answer).await.unwrap();
            read_request(&mut stream).await;
            stream.write_all(turned_away).await.unwrap();
            read_request(&mut stream).await;
        })
        .await;
        let client = authority.client();
        assert_eq!(fetch(&client, url(address, "/")).await.status, 200);
        let again = exchange(&client, Request::page(url(address, "/"))).await;
        assert!(matches!(again, Exchange::NotSent), "{again:?}");
        assert_eq!(fetch(&client, url(address, "/")).await.status, 200);
    }
}

/// Permits the request when the server has seen the end of its connection.
struct WhenClosed(mpsc::UnboundedReceiver<()>);

#[async_trait]
impl SendPermit for WhenClosed {
    async fn to_write(&mut self) -> bool {
        self.0.recv().await.is_some()
    }
}

/// The request itself only learns that its connection ended.
#[tokio::test]
async fn a_server_that_violates_http_before_the_request_is_written_is_at_fault() {
    let authority = Authority::new();
    let (closed, is_closed) = mpsc::unbounded_channel();
    let address = listen(authority.acceptor(b"h2"), move |mut stream| {
        let closed = closed.clone();
        async move {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            drop(stream.read_to_end(&mut Vec::new()).await);
            closed.send(()).unwrap();
        }
    })
    .await;
    let request = Request::page(url(address, "/"));
    let exchange = exchange_with(&authority.client(), &request, &mut WhenClosed(is_closed)).await;
    let expected = FetchOutcome::BadAnswer(AnswerFault::NotHttp);
    assert!(matches!(&exchange, Exchange::Failed(outcome) if *outcome == expected), "{exchange:?}");
}

/// A connection whose other end is gone without a word looks just like a slow one.
#[tokio::test]
async fn after_a_time_out_the_next_request_has_a_new_connection() {
    let authority = Authority::new();
    let (address, echo) = Echo::start(&authority).await;
    let client = authority.limited_client(|limits| limits.request_timeout = 2 * SHORT);
    fetch(&client, url(address, "/")).await;
    let happened = failure(&client, url(address, "/silence")).await;
    assert_eq!(happened, FetchOutcome::TimedOut(Phase::Total));
    fetch(&client, url(address, "/")).await;
    assert_eq!(echo.connections(), 2);
}
