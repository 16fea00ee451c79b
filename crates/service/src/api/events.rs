//! The outbox as a live stream: server-sent events, resumed by `Last-Event-ID`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use fetchwell_engine::ports::inbox::OutboxMessage;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use tokio::time::Instant;

use super::Api;
use super::identity::Identity;
use super::memory::Held;
use super::outbox::{Asked, Found};
use super::parameters::cursor;
use super::waiting::Waiting;
use crate::problem::{FieldError, Problem};
use crate::views::messages::OutboxView;

/// A line goes out at least so often, so that both ends know that the other is there.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The answer to whoever asks for events.
pub(super) async fn stream(
    api: Arc<Api>,
    identity: Identity,
    headers: &HeaderMap,
    asked: Asked,
) -> Result<Response, Problem> {
    let last = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?"));
    let after = match last {
        Some(text) => Some(cursor(text).ok_or_else(|| {
            let detail = "must be the id of an event, from an earlier stream";
            Problem::invalid(vec![FieldError::in_header("Last-Event-ID", detail)])
        })?),
        None => asked.after,
    };
    // The first results are read before the answer begins, so that a cursor that is gone is told.
    let Found { results, share, .. } = api.page(&identity, after, asked.limit).await?;
    let results = results.into();
    let share = Some(share);
    let last_sent = Instant::now();
    let live = Live { api, identity, after, limit: asked.limit, results, share, last_sent };
    let begin = Ok::<_, Infallible>(Bytes::from_static(b": results as they come\n\n"));
    let rest = futures::stream::unfold(live, |mut live| async {
        let next = live.next().await?;
        Some((Ok(next), live))
    });
    let body = futures::StreamExt::chain(futures::stream::iter([begin]), rest);
    let mut response = Response::new(Body::from_stream(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

struct Live {
    api: Arc<Api>,
    identity: Identity,
    after: Option<i64>,
    limit: u32,
    /// What was read and not yet sent.
    results: VecDeque<OutboxMessage>,
    /// The memory that those have.
    share: Option<Held>,
    last_sent: Instant,
}

impl Live {
    /// The next piece of the stream; `None`: the server stops, or the token is not good any more.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            self.identity.check_again(&self.api).await.ok()?;
            if self.api.stop.is_cancelled() {
                return None;
            }
            if let Some(result) = self.results.pop_front() {
                self.after = Some(result.cursor);
                self.last_sent = Instant::now();
                return event(result);
            }
            if self.last_sent.elapsed() >= HEARTBEAT {
                self.last_sent = Instant::now();
                return Some(Bytes::from_static(b": nothing new\n\n"));
            }
            self.look().await?;
        }
    }

    /// Looks for more until there is some, or a heartbeat is due. Faults end the stream: whoever comes
    /// again is told of them.
    async fn look(&mut self) -> Option<()> {
        let until_heartbeat = HEARTBEAT.saturating_sub(self.last_sent.elapsed());
        let mut waiting = Waiting::begin(&self.api, &self.identity.caller.name, until_heartbeat);
        loop {
            self.identity.check_again(&self.api).await.ok()?;
            self.share = None;
            let found = self.api.page(&self.identity, self.after, self.limit).await.ok()?;
            (self.results, self.share) = (found.results.into(), Some(found.share));
            if !self.results.is_empty() || !waiting.next().await {
                return Some(());
            }
        }
    }
}

/// JSON has no line breaks, so it is one line of data.
fn event(result: OutboxMessage) -> Option<Bytes> {
    let cursor = result.cursor;
    let data = serde_json::to_string(&OutboxView::from(result)).ok()?;
    Some(format!("id: {cursor}\nevent: result\ndata: {data}\n\n").into())
}
