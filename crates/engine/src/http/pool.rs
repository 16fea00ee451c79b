//! Connections that are kept for later requests.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use fetchwell_policy::url::Origin;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use tokio::time::Instant;

/// A connection that nobody used for this long is closed.
const KEEP_IDLE_FOR: Duration = Duration::from_secs(20);

/// The body of a request.
pub(super) type RequestBody = Full<Bytes>;

/// A connection that can send a request.
pub(super) enum Sender {
    One(http1::SendRequest<RequestBody>),
    Two(http2::SendRequest<RequestBody>),
}

impl Sender {
    fn is_usable(&self) -> bool {
        match self {
            Sender::One(sender) => !sender.is_closed(),
            Sender::Two(sender) => !sender.is_closed(),
        }
    }
}

struct Idle {
    sender: Sender,
    since: Instant,
}

/// The idle connections, by origin.
#[derive(Default)]
pub(super) struct Pool(Mutex<Idles>);

#[derive(Default)]
struct Idles {
    by_origin: HashMap<Origin, Vec<Idle>>,
    count: usize,
}

impl Pool {
    /// Takes out a connection that is still open. An HTTP/2 one serves many, so it stays in as well.
    pub(super) fn take(&self, origin: &Origin) -> Option<Sender> {
        let mut idles = self.lock();
        let list = idles.by_origin.get_mut(origin)?;
        let mut gone = 0;
        let mut found = None;
        while let Some(idle) = list.pop() {
            gone += 1;
            if idle.sender.is_usable() && idle.since.elapsed() < KEEP_IDLE_FOR {
                if let Sender::Two(sender) = &idle.sender {
                    let twin = Sender::Two(sender.clone());
                    list.push(Idle { sender: twin, since: Instant::now() });
                    gone -= 1;
                }
                found = Some(idle.sender);
                break;
            }
        }
        if list.is_empty() {
            idles.by_origin.remove(origin);
        }
        idles.count -= gone;
        found
    }

    /// Keeps a connection; when there are too many, idle ones go first and else this one.
    pub(super) fn keep(&self, origin: &Origin, sender: Sender, most: usize) {
        let mut idles = self.lock();
        if idles.count >= most {
            idles.sweep();
        }
        let list = idles.by_origin.entry(origin.clone()).or_default();
        let has_two = list.iter().any(|idle| matches!(idle.sender, Sender::Two(_)));
        if has_two && matches!(sender, Sender::Two(_)) {
            return;
        }
        list.push(Idle { sender, since: Instant::now() });
        idles.count += 1;
        if idles.count > most {
            idles.drop_one();
        }
    }

    /// Forgets all connections to an origin: one of them turned out to be dead.
    pub(super) fn forget(&self, origin: &Origin) {
        let mut idles = self.lock();
        if let Some(list) = idles.by_origin.remove(origin) {
            idles.count -= list.len();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Idles> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Idles {
    fn sweep(&mut self) {
        self.by_origin.retain(|_, list| {
            list.retain(|idle| idle.sender.is_usable() && idle.since.elapsed() < KEEP_IDLE_FOR);
            !list.is_empty()
        });
        self.count = self.by_origin.values().map(Vec::len).sum();
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
