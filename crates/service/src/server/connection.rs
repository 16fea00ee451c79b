//! One connection: its requests, its timeouts and its end.

use std::convert::Infallible;
use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Version;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::Service;
use tracing::debug;

use super::chunks::{CHUNK_BYTES, in_chunks};
use super::held_body::until_sent;
use super::places::{Busy, Forwarded, Place, Places, Refusal};
use super::proxies::{Peer, TrustedProxies, network_of};
use super::request::{bad_host, closing, harden, has_one_host, is_health_check, over_limit};
use super::usage::{Look, Usage};

/// How long a connection may be idle, or take to send its first request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a request's head may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a connection without a request in progress stays open after the signal to stop.
const LAST_CALL: Duration = Duration::from_secs(1);

/// How long sent data may stay unacknowledged.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(60);

const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_HEADER_LIST_BYTES: u32 = 16 << 10;
const MAX_HEADERS: usize = 100;
/// Concurrent requests on one HTTP/2 connection. hyper holds less than two chunks of each response, so a client that
/// reads nothing makes hyper buffer `MAX_STREAMS` × 2 × `CHUNK_BYTES` (512 KiB). The rest of the response waits in
/// `Chunks`, whose request counts against the limits of the listener.
const MAX_STREAMS: u32 = 64;
/// How much a client may send in advance over HTTP/2, per stream and per connection. It is buffered before the client
/// is authenticated.
const MAX_WINDOW_BYTES: u32 = 256 << 10;
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// The state that all connections of a listener share.
pub(super) struct Shared {
    builder: auto::Builder<TokioExecutor>,
    router: Router,
    places: Arc<Places>,
    proxies: TrustedProxies,
}

impl Shared {
    pub(super) fn new(router: Router, places: Arc<Places>, proxies: TrustedProxies) -> Shared {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(MAX_HEAD_BYTES)
            .max_headers(MAX_HEADERS)
            .half_close(false);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_INTERVAL)
            .max_concurrent_streams(MAX_STREAMS)
            .max_send_buf_size(CHUNK_BYTES)
            .max_header_list_size(MAX_HEADER_LIST_BYTES)
            .initial_stream_window_size(MAX_WINDOW_BYTES)
            .initial_connection_window_size(MAX_WINDOW_BYTES);
        Shared { builder, router, places, proxies }
    }
}

/// The place of a request. Until it is dropped, the request counts against the limits of its connection and, behind a
/// proxy, of the address that the proxy forwards for.
type RequestPlace = (Busy, Option<Forwarded>);

#[derive(Clone)]
pub(super) struct Connection {
    shared: Arc<Shared>,
    place: Arc<Place>,
    usage: Arc<Usage>,
    /// The address of the other end.
    connected: IpAddr,
    /// Whether that is a trusted proxy, which forwards requests of other addresses.
    is_proxy: bool,
}

impl Connection {
    /// A connection that was just accepted.
    pub(super) fn new(shared: Arc<Shared>, connected: IpAddr) -> Connection {
        let is_proxy = shared.proxies.contains(connected);
        let place = shared.places.enter((!is_proxy).then(|| network_of(connected)));
        let usage = Arc::new(Usage::default());
        Connection { shared, place: Arc::new(place), usage, connected, is_proxy }
    }

    /// Why all requests except health checks are refused on this connection, if they are.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.place.refusal()
    }

    /// Serves requests until the connection ends.
    pub(super) async fn run(self, stream: TcpStream, stop: CancellationToken) {
        prepare(&stream);
        let own = self.clone();
        let service = service_fn(move |request| {
            let own = own.clone();
            async move { Ok::<_, Infallible>(own.answer(request).await) }
        });
        let serving = self.shared.builder.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(serving);
        let mut watch = tokio::time::interval_at(Instant::now() + IDLE_TIMEOUT, IDLE_TIMEOUT);
        loop {
            tokio::select! {
                ended = serving.as_mut() => return self.note_end(ended),
                // This connection is idle, and another one needs its place.
                () = self.place.closed() => return,
                _ = watch.tick() => match self.usage.look() {
                    // hyper's own timeouts do not apply until the first bytes show the protocol.
                    Look::NeverUsed | Look::Unread => return,
                    Look::Idle => serving.as_mut().graceful_shutdown(),
                    Look::InUse => {}
                },
                () = stop.cancelled() => break,
            }
        }
        serving.as_mut().graceful_shutdown();
        loop {
            tokio::select! {
                ended = serving.as_mut() => return self.note_end(ended),
                // Do not wait for clients that are still sending a request head or that read nothing.
                () = tokio::time::sleep(LAST_CALL) => {}
            }
            if !self.usage.is_under_way() || self.usage.look() == Look::Unread {
                return;
            }
        }
    }

    fn note_end<E: Display>(&self, ended: Result<(), E>) {
        if let Err(error) = ended {
            debug!("a connection from {} ended early: {error}", self.connected);
        }
    }

    async fn answer(self, request: hyper::Request<Incoming>) -> Response {
        let under_way = self.usage.begin();
        let is_http_2 = request.version() == Version::HTTP_2;
        let (response, place) = self.admit(request).await;
        let response = harden(response);
        // A request is in progress, and has its place, until its response body is sent.
        match (is_http_2, place) {
            (true, None) => in_chunks(response, under_way),
            (true, Some(place)) => in_chunks(until_sent(response, place), under_way),
            // An HTTP/1.1 connection sends one response at a time, and counts as long as it is open.
            (false, place) => until_sent(response, (place, under_way)),
        }
    }

    /// Returns the response, and the request's place unless the request does not count against the limits.
    async fn admit(&self, request: hyper::Request<Incoming>) -> (Response, Option<RequestPlace>) {
        if !has_one_host(&request) {
            return (bad_host(), None);
        }
        let peer = self.shared.proxies.peer(self.connected, request.headers());
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        if is_health_check(request.uri().path()) {
            self.place.touch();
            return (self.route(request).await, None);
        }
        // A reserved place is for health checks only.
        if let Some(refusal) = self.place.refusal() {
            return (closing(over_limit(refusal)), None);
        }
        match self.begin(peer) {
            Ok(place) => (self.route(request).await, Some(place)),
            Err(refusal) => (over_limit(refusal), None),
        }
    }

    /// Counts a request against the limits until the returned value is dropped.
    fn begin(&self, peer: Peer) -> Result<RequestPlace, Refusal> {
        let address = network_of(peer.address);
        let forwarded = self.is_proxy.then(|| self.shared.places.begin_for(address)).transpose()?;
        Ok((self.place.begin()?, forwarded))
    }

    async fn route(&self, request: axum::extract::Request) -> Response {
        let answer = self.shared.router.clone().call(request).await;
        answer.unwrap_or_else(|never| match never {})
    }
}

/// Disables Nagle's algorithm, and sets a timeout for clients that read nothing.
fn prepare(stream: &TcpStream) {
    let socket = socket2::SockRef::from(stream);
    let mut set = socket.set_tcp_nodelay(true);
    #[cfg(target_os = "linux")]
    {
        set = set.and_then(|()| socket.set_tcp_user_timeout(Some(UNREAD_TIMEOUT)));
    }
    set = set.and_then(|()| socket.set_keepalive(true));
    if let Err(error) = set {
        debug!("could not set the options of a connection: {error}");
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use hyper::StatusCode;
    use hyper::client::conn::http2;
    use tokio::net::TcpListener;

    use super::super::places::Limits;
    use super::*;

    #[tokio::test]
    async fn answers_that_nobody_reads_over_http_2_count_against_the_limits() {
        let answer = get(async || vec![b'x'; 1 << 20]);
        let limits = Limits { most: 10, per_address: 4, health_checks: 1 };
        let places = Arc::new(Places::new(limits));
        let router = Router::new().route("/", answer);
        let shared = Arc::new(Shared::new(router, places, TrustedProxies::new(Vec::new())));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (stream, peer) = listener.accept().await.unwrap();
            Connection::new(shared, peer.ip()).run(stream, CancellationToken::new()).await;
        });

        #[expect(clippy::disallowed_methods, reason = "the test's own client to its own listener")]
        let stream = TcpStream::connect(address).await.unwrap();
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(1_024);
        #[expect(clippy::disallowed_methods, reason = "the test's own client to its own listener")]
        let handshake = builder.handshake(TokioIo::new(stream));
        let (mut client, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        let mut ask = async || {
            client.ready().await.unwrap();
            let uri = format!("http://{address}/");
            let request = hyper::Request::builder().uri(uri).body(Body::empty()).unwrap();
            client.send_request(request).await.unwrap()
        };
        let mut unread = Vec::new();
        for _ in 0..limits.per_address {
            let answer = ask().await;
            assert_eq!(answer.status(), StatusCode::OK);
            unread.push(answer);
        }
        for _ in 0..20 {
            let answer = ask().await;
            assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
            unread.push(answer);
        }
        // What is read gives its place back, and arrives whole.
        let read = axum::body::to_bytes(Body::new(unread.remove(0).into_body()), usize::MAX).await;
        assert_eq!(read.unwrap().len(), 1 << 20);
        assert_eq!(ask().await.status(), StatusCode::OK);
    }
}
