//! The outbox as a live stream: server-sent events, resumed by `Last-Event-ID`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::IntoResponse;
use fetchwell_engine::ports::inbox::OutboxMessage;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use tokio::time::Instant;

use super::identity::Identity;
use super::memory::Held;
use super::outbox::{Asked, OutboxPageFound};
use super::parameters::cursor;
use super::result_fields::ResultFields;
use super::waiting::Waiting;
use super::{Api, ApiResult};
use crate::problem::{FieldError, Problem};
use crate::views::messages::OutboxView;

/// A line is sent at least this often, so that both ends notice when the connection is dead.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The response with the stream of events.
pub(super) async fn stream(
    api: Arc<Api>,
    identity: Identity,
    headers: &HeaderMap,
    after: Option<i64>,
    asked: Asked,
) -> ApiResult {
    let last = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?"));
    let after = match last {
        Some(text) => Some(cursor(text).ok_or_else(|| {
            let detail = "must be the id of an event, from an earlier stream";
            Problem::invalid(vec![FieldError::in_header("Last-Event-ID", detail)])
        })?),
        None => after,
    };
    // The first results are read before the response begins, so that an invalid cursor still gets a 410.
    let OutboxPageFound { results, share, .. } = api.page(&identity, after, asked.limit).await?;
    let results = results.into();
    let share = Some(share);
    let last_sent = Instant::now();
    let Asked { limit, fields, .. } = asked;
    let live = Live { api, identity, after, limit, fields, results, share, last_sent };
    let begin = Ok::<_, Infallible>(Bytes::from_static(b": results as they come\n\n"));
    let rest = futures::stream::unfold(live, |mut live| async {
        let next = live.next().await?;
        Some((Ok(next), live))
    });
    let body = futures::StreamExt::chain(futures::stream::iter([begin]), rest);
    Ok(([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(body)).into_response())
}

struct Live {
    api: Arc<Api>,
    identity: Identity,
    after: Option<i64>,
    limit: u32,
    fields: ResultFields,
    /// Results that were read but not sent yet.
    results: VecDeque<OutboxMessage>,
    /// The memory reserved for `results`.
    share: Option<Held>,
    last_sent: Instant,
}

impl Live {
    /// The next piece of the stream; `None` if the server is stopping or the token is no longer valid.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            self.identity.check_again(&self.api).await.ok()?;
            if self.api.on.stop.is_cancelled() {
                return None;
            }
            if let Some(result) = self.results.pop_front() {
                self.after = Some(result.cursor);
                self.last_sent = Instant::now();
                return event(result, &self.fields);
            }
            if self.last_sent.elapsed() >= HEARTBEAT {
                self.last_sent = Instant::now();
                return Some(Bytes::from_static(b": nothing new\n\n"));
            }
            self.look().await?;
        }
    }

    /// Polls for results until there are some or a heartbeat is due. An error ends the stream; the client gets the
    /// problem when it reconnects.
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

/// Encoded JSON has no line breaks, so the data is a single line.
fn event(result: OutboxMessage, fields: &ResultFields) -> Option<Bytes> {
    let cursor = result.cursor;
    let data = serde_json::to_string(&fields.of(OutboxView::from(result))).ok()?;
    Some(format!("id: {cursor}\nevent: result\ndata: {data}\n\n").into())
}
