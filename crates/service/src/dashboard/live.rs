//! Automatic refresh: a client that requests a page as a stream of events gets it again whenever it has changed.
//!
//! The request is repeated internally through the ordinary handler. So every page with every filter is live, and the
//! stream ends when the session ends or its token is revoked.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use http::{Method, StatusCode};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep};

use super::Dashboard;
use super::access::{IsLive, Visitor};

/// How often a page is rendered again.
const INTERVAL: Duration = Duration::from_secs(2);
/// A line is sent at least this often, so that both ends notice when the connection is dead.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The maximum number of live pages; further ones are not refreshed.
pub(super) const MOST_WATCHED: usize = 64;
/// The maximum size of a page.
const MOST_BYTES: usize = 8 << 20;
/// Tells the browser to reload the page, which then shows why the stream ended.
const OVER: &str = "event: over\ndata:\n\n";

/// Responds with a stream if the client requests one.
pub(super) async fn stream(
    State(dashboard): State<Arc<Dashboard>>,
    request: Request,
    next: Next,
) -> Response {
    let accepts = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    let is_wanted = accepts.is_some_and(|kinds| kinds.contains("text/event-stream"));
    if !is_wanted || request.method() != Method::GET {
        return next.run(request).await;
    }
    let (mut parts, _) = request.into_parts();
    parts.extensions.insert(IsLive);
    // Only logged-in users get a place. Others are told to reload the page, which redirects to the login.
    if Visitor::from_request_parts(&mut parts, &dashboard).await.is_err() {
        return events(Body::from(OVER));
    }
    let Ok(place) = dashboard.watched.clone().try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "30")]).into_response();
    };
    let seen = Bytes::new();
    let last_sent = Instant::now();
    let watch = Watch { dashboard, next, request: parts, seen, last_sent, _place: place };
    let pages = futures::stream::unfold(Some(watch), |watch| async {
        let (event, watch) = watch?.look_again().await?;
        Some((Ok::<_, Infallible>(event), watch))
    });
    events(Body::from_stream(pages))
}

fn events(body: Body) -> Response {
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

struct Watch {
    dashboard: Arc<Dashboard>,
    next: Next,
    /// The request to repeat. It has no body, so it can be sent as often as needed.
    request: Parts,
    seen: Bytes,
    last_sent: Instant,
    /// Released when the client disconnects.
    _place: OwnedSemaphorePermit,
}

impl Watch {
    /// The next event, and the state for the one after it, if any. `None` ends the stream, because the server is
    /// stopping or the page cannot be read.
    async fn look_again(mut self) -> Option<(Bytes, Option<Watch>)> {
        loop {
            tokio::select! {
                () = sleep(INTERVAL) => {}
                () = self.dashboard.stop.cancelled() => return None,
            }
            let request = Request::from_parts(self.request.clone(), Body::empty());
            let response = self.next.clone().run(request).await;
            if response.status() != StatusCode::OK {
                return Some((Bytes::from_static(OVER.as_bytes()), None));
            }
            let page = to_bytes(response.into_body(), MOST_BYTES).await.ok()?;
            let heartbeat = self.last_sent.elapsed() >= HEARTBEAT;
            let event = if page != self.seen {
                event(&page)
            } else if heartbeat {
                Bytes::from_static(b": still here\n\n")
            } else {
                continue;
            };
            self.seen = page;
            self.last_sent = Instant::now();
            return Some((event, Some(self)));
        }
    }
}

/// A page as an event, with one `data` line per line of the page.
fn event(page: &Bytes) -> Bytes {
    let page = String::from_utf8_lossy(page);
    let mut text = String::with_capacity(page.len() + 1_024);
    for line in page.split(['\n', '\r']) {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_page_ends_its_event() {
        let event = event(&Bytes::from_static(b"<p>\r\nevent: over\n\n</p>"));
        let text = std::str::from_utf8(&event).unwrap();
        assert!(text.ends_with("data: </p>\n\n"));
        assert!(text.trim_end().lines().all(|line| line.starts_with("data: ")), "{text}");
    }
}
