//! The pool of idle connections.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fetchwell_policy::url::{Origin, WebUrl};
use http::Version;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::DropGuard;
use tokio_util::task::AbortOnDropHandle;

use super::stream::Departure;

/// A connection that was idle for this long is not reused, and closed soon after.
const KEEP_IDLE_FOR: Duration = Duration::from_secs(20);

/// A connection needs a moment to finish its last response; one that takes longer is stuck.
const READY_WITHIN: Duration = Duration::from_millis(100);

pub(super) type RequestBody = Full<Bytes>;

/// The connection of a sender.
pub(super) struct Connection {
    pub(super) peer: SocketAddr,
    /// Whether it ended because the server violated HTTP. A request that was written learns that from its own error;
    /// one that was not only learns that the connection ended.
    pub(super) broke_http: Arc<AtomicBool>,
    /// The task that drives the connection. It is aborted with the last sender; otherwise it could wait for the peer
    /// without limit.
    #[expect(dead_code, reason = "held, so that it ends with its sender")]
    pub(super) task: AbortOnDropHandle<()>,
}

/// A connection that can send a request. HTTP/2 needs additional tasks, which end with the guard.
pub(super) enum Sender {
    Http1(http1::SendRequest<RequestBody>, Connection, Departure),
    Http2(http2::SendRequest<RequestBody>, Arc<(Connection, DropGuard)>),
}

impl Sender {
    pub(super) fn peer(&self) -> SocketAddr {
        self.connection().peer
    }

    pub(super) fn broke_http(&self) -> bool {
        self.connection().broke_http.load(Ordering::Acquire)
    }

    fn connection(&self) -> &Connection {
        match self {
            Sender::Http1(_, connection, _) => connection,
            Sender::Http2(_, held) => &held.0,
        }
    }

    pub(super) fn version(&self) -> Version {
        match self {
            Sender::Http1(..) => Version::HTTP_11,
            Sender::Http2(..) => Version::HTTP_2,
        }
    }

    fn is_usable(&self) -> bool {
        match self {
            Sender::Http1(sender, ..) => !sender.is_closed(),
            Sender::Http2(sender, _) => !sender.is_closed(),
        }
    }

    /// Waits briefly until the connection can take a request. hyper refuses a request before that.
    async fn is_ready(&mut self) -> bool {
        let ready = async {
            match self {
                Sender::Http1(sender, ..) => sender.ready().await.is_ok(),
                Sender::Http2(sender, _) => sender.ready().await.is_ok(),
            }
        };
        tokio::time::timeout(READY_WITHIN, ready).await.unwrap_or(false)
    }
}

struct Idle {
    sender: Sender,
    since: Instant,
}

/// Idle connections by origin.
#[derive(Default)]
pub(super) struct Pool(Mutex<Idles>);

#[derive(Default)]
struct Idles {
    by_origin: HashMap<Origin, Vec<Idle>>,
    count: usize,
    swept: Option<Instant>,
}

impl Pool {
    /// Takes a connection that is ready for a request to this URL. An HTTP/2 connection is shared, so it also stays in
    /// the pool.
    pub(super) async fn take(&self, url: &WebUrl) -> Option<Sender> {
        while let Some(mut sender) = self.take_open(url) {
            if sender.is_ready().await {
                return Some(sender);
            }
        }
        None
    }

    fn take_open(&self, url: &WebUrl) -> Option<Sender> {
        let mut idles = self.0.lock();
        let list = idles.by_origin.get_mut(url.origin_key())?;
        let mut gone = 0;
        let mut found = None;
        while let Some(idle) = list.pop() {
            gone += 1;
            if idle.sender.is_usable() && idle.since.elapsed() < KEEP_IDLE_FOR {
                if let Sender::Http2(sender, connection) = &idle.sender {
                    let twin = Sender::Http2(sender.clone(), connection.clone());
                    list.push(Idle { sender: twin, since: Instant::now() });
                    gone -= 1;
                }
                found = Some(idle.sender);
                break;
            }
        }
        if list.is_empty() {
            idles.by_origin.remove(url.origin_key());
        }
        idles.count -= gone;
        found
    }

    /// Adds a connection. If there are too many, expired ones are dropped first, then any other.
    pub(super) fn keep(&self, url: &WebUrl, sender: Sender, most: usize) {
        let mut idles = self.0.lock();
        if idles.count >= most || idles.swept.is_none_or(|at| at.elapsed() >= KEEP_IDLE_FOR) {
            idles.sweep();
        }
        let list = match idles.by_origin.get_mut(url.origin_key()) {
            Some(list) => list,
            None => idles.by_origin.entry(url.origin()).or_default(),
        };
        let has_two = list.iter().any(|idle| matches!(idle.sender, Sender::Http2(..)));
        if has_two && matches!(sender, Sender::Http2(..)) {
            return;
        }
        list.push(Idle { sender, since: Instant::now() });
        idles.count += 1;
        if idles.count > most {
            idles.drop_one();
        }
    }

    /// Drops all connections to the origin of a URL, after one of them turned out to be dead.
    pub(super) fn forget(&self, url: &WebUrl) {
        let mut idles = self.0.lock();
        if let Some(list) = idles.by_origin.remove(url.origin_key()) {
            idles.count -= list.len();
        }
    }

    /// Closes all idle connections, to free their descriptors.
    pub(super) fn close_idle(&self) {
        let idles = std::mem::take(&mut *self.0.lock());
        drop(idles); // After the lock is released.
    }
}

impl Idles {
    fn sweep(&mut self) {
        self.by_origin.retain(|_, list| {
            list.retain(|idle| idle.sender.is_usable() && idle.since.elapsed() < KEEP_IDLE_FOR);
            !list.is_empty()
        });
        self.count = self.by_origin.values().map(Vec::len).sum();
        self.swept = Some(Instant::now());
    }

    fn drop_one(&mut self) {
        let Some(origin) = self.by_origin.keys().next().cloned() else { return };
        if let Some(list) = self.by_origin.get_mut(&origin) {
            list.pop();
            self.count -= 1;
            if list.is_empty() {
                self.by_origin.remove(&origin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt, DuplexStream};

    use super::*;

    async fn connection() -> (Sender, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(1_024);
        #[expect(clippy::disallowed_methods, reason = "a connection to nowhere, for this test")]
        let (sender, task) = http1::Builder::new().handshake(TokioIo::new(ours)).await.unwrap();
        let task = AbortOnDropHandle::new(tokio::spawn(async move { drop(task.await) }));
        let peer = SocketAddr::from(([127, 0, 0, 1], 80));
        (
            Sender::Http1(
                sender,
                Connection { peer, broke_http: Arc::default(), task },
                Departure::default(),
            ),
            theirs,
        )
    }

    #[tokio::test(start_paused = true)]
    async fn connections_that_nobody_uses_are_closed() {
        let [quiet, busy] =
            ["http://quiet", "http://busy"].map(|text| WebUrl::parse(text).unwrap());
        let pool = Pool::default();
        let most = 10;
        let (sender, mut other_end) = connection().await;
        pool.keep(&quiet, sender, most);
        for _ in 0..2 {
            tokio::time::advance(KEEP_IDLE_FOR).await;
            let (sender, _open) = connection().await;
            pool.keep(&busy, sender, most);
        }
        assert_eq!(other_end.read(&mut [0]).await.unwrap(), 0);
        assert!(pool.take(&quiet).await.is_none());
    }

    #[tokio::test]
    async fn idle_connections_are_closed_when_their_descriptors_are_wanted() {
        let url = WebUrl::parse("http://a.test").unwrap();
        let pool = Pool::default();
        let (sender, mut other_end) = connection().await;
        pool.keep(&url, sender, 10);
        pool.close_idle();
        assert_eq!(other_end.read(&mut [0]).await.unwrap(), 0);
        assert!(pool.take(&url).await.is_none());
        let (sender, _open) = connection().await;
        pool.keep(&url, sender, 10);
        assert!(pool.take(&url).await.is_some(), "it keeps the next ones");
    }
}
