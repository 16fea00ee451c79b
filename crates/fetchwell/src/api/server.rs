//! Connections: how many, how long they may be idle, and how they end.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;
use tracing::{debug, warn};

use super::identity::Peer;
use super::usage::{Look, Usage};
use crate::descriptors::Descriptors;

/// How long a connection may be idle, or silent at its beginning.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a request's head may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long what we send may stay unread.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(60);

const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_HEADER_LIST_BYTES: u32 = 16 << 10;
const MAX_HEADERS: usize = 100;
const MAX_STREAMS: u32 = 128;
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// After a failure to accept (too many open files), the next try waits.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bounds of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connections {
    /// Connections at once; more wait in line.
    pub(crate) most: usize,
    /// How long requests under way may go on after the signal to stop.
    pub(crate) grace: Duration,
}

/// Serves until `stop`, then lets what is under way come to its end.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    bounds: Connections,
    stop: CancellationToken,
) {
    let most = Descriptors::of_this_process().fit_listener(bounds.most);
    let (places, connections) = (Arc::new(Semaphore::new(most)), TaskTracker::new());
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
        .max_header_list_size(MAX_HEADER_LIST_BYTES);
    let builder = Arc::new(builder);
    while let Some((stream, peer, place)) = next(&listener, &places, &stop).await {
        let connection = Connection { builder: builder.clone(), router: router.clone(), peer };
        connections.spawn(connection.run(stream, stop.clone(), place));
    }
    connections.close();
    if tokio::time::timeout(bounds.grace, connections.wait()).await.is_err() {
        warn!("{} connections were cut off at the end of the grace", connections.len());
    }
}

/// The next connection, when there is a place for it; `None`: the end.
async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    stop: &CancellationToken,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let accept = async {
        let place = places.clone().acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => return Some((stream, peer, place)),
                Err(error) => {
                    warn!("a connection could not be accepted: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        accepted = accept => accepted,
        () = stop.cancelled() => None,
    }
}

struct Connection {
    builder: Arc<auto::Builder<TokioExecutor>>,
    router: Router,
    peer: SocketAddr,
}

impl Connection {
    async fn run(self, stream: TcpStream, stop: CancellationToken, _place: OwnedSemaphorePermit) {
        prepare(&stream);
        let Connection { builder, router, peer } = self;
        let usage = Arc::new(Usage::default());
        let counted = usage.clone();
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let under_way = counted.begin();
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(Peer(peer));
            let answer = router.clone().call(request);
            async move {
                let answer = answer.await.unwrap_or_else(|never| match never {});
                drop(under_way);
                Ok::<_, Infallible>(answer)
            }
        });
        let serving = builder.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(serving);
        let mut watch = tokio::time::interval_at(Instant::now() + IDLE_TIMEOUT, IDLE_TIMEOUT);
        let ended = loop {
            tokio::select! {
                ended = serving.as_mut() => break ended,
                _ = watch.tick() => match usage.look() {
                    // Nobody else looks at the clock until the first bytes show which protocol it is.
                    Look::NeverUsed => return,
                    Look::Idle => serving.as_mut().graceful_shutdown(),
                    Look::InUse => {}
                },
                () = stop.cancelled() => {
                    serving.as_mut().graceful_shutdown();
                    break serving.as_mut().await;
                }
            }
        };
        if let Err(error) = ended {
            debug!("a connection from {peer} ended early: {error}");
        }
    }
}

/// Answers go out at once, and not for ever to somebody who does not read them.
fn prepare(stream: &TcpStream) {
    let socket = socket2::SockRef::from(stream);
    let mut set = socket.set_tcp_nodelay(true);
    #[cfg(target_os = "linux")]
    {
        set = set.and_then(|()| socket.set_tcp_user_timeout(Some(UNREAD_TIMEOUT)));
    }
    set = set.and_then(|()| socket.set_keepalive(true));
    if let Err(error) = set {
        debug!("a connection keeps the system's own settings: {error}");
    }
}
