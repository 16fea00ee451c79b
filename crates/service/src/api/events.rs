//! The outbox as a live stream: server-sent events, resumed by `Last-Event-ID`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::IntoResponse;
use fetchwell_engine::ports::crawls::MessageCrawl;
use fetchwell_engine::ports::inbox::OutboxMessage;
use fetchwell_engine::ports::message_batches::{
    BATCHES_PER_PAGE, Completion, MessageBatch, ReadUpTo,
};
use fetchwell_policy::time::Time;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use tokio::time::Instant;

use super::identity::Identity;
use super::memory::Held;
use super::outbox::{Asked, OutboxPageFound};
use super::parameters::{cursor, whole};
use super::result_fields::ResultFields;
use super::waiting::Waiting;
use super::{Api, ApiResult};
use crate::problem::{FieldError, Problem};
use crate::views::batches::BatchView;
use crate::views::crawls::CrawlView;
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
    let (after, read) = match last {
        Some(text) => place(text).map(|(after, read)| (Some(after), read)).ok_or_else(|| {
            let detail = "must be the id of an event, from an earlier stream";
            Problem::invalid(vec![FieldError::in_header("Last-Event-ID", detail)])
        })?,
        None => (after, after.map_or(ReadUpTo::Nothing, ReadUpTo::Cursor)),
    };
    // The first results are read before the response begins, so that an invalid cursor still gets a 410.
    let OutboxPageFound { results, next, share } = api.page(&identity, after, asked.limit).await?;
    let first = results.first().map_or(next, |first| first.cursor - 1);
    let ended = api.ended(&identity, read, next).await?;
    let last_sent = Instant::now();
    let live = Live {
        api,
        identity,
        after: after.unwrap_or(first),
        read,
        limit: asked.limit,
        fields: asked.fields,
        results: results.into(),
        ended: ended.into(),
        share: Some(share),
        last_sent,
    };
    let begin = Ok::<_, Infallible>(Bytes::from_static(b": results as they come\n\n"));
    let rest = futures::stream::unfold(live, |mut live| async {
        let next = live.next().await?;
        Some((Ok(next), live))
    });
    let body = futures::StreamExt::chain(futures::stream::iter([begin]), rest);
    Ok(([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(body)).into_response())
}

/// Where a reader is, by the id of an event. That of a result is its cursor. That of the end of a batch or a crawl is
/// the cursor of the result before it, and the number of the end: `42.7`.
fn place(text: &str) -> Option<(i64, ReadUpTo)> {
    match text.split_once('.') {
        Some((after, number)) => Some((cursor(after)?, ReadUpTo::Number(whole(number)?))),
        None => cursor(text).map(|after| (after, ReadUpTo::Cursor(after))),
    }
}

/// A batch or a crawl that has ended.
enum EndedGroup {
    Batch(MessageBatch),
    Crawl(Box<MessageCrawl>),
}

impl EndedGroup {
    fn completion(&self) -> Option<Completion> {
        match self {
            EndedGroup::Batch(batch) => batch.completion,
            EndedGroup::Crawl(crawl) => crawl.completion,
        }
    }

    fn number(&self) -> i64 {
        self.completion().map_or(0, |completion| completion.number)
    }

    fn event(&self, id: &str, now: Time) -> Option<Bytes> {
        let (name, data) = match self {
            EndedGroup::Batch(batch) => {
                ("batch.completed", serde_json::to_string(&BatchView::of(batch, now)))
            }
            EndedGroup::Crawl(crawl) => {
                ("crawl.completed", serde_json::to_string(&CrawlView::of(crawl)))
            }
        };
        Some(format!("id: {id}\nevent: {name}\ndata: {}\n\n", data.ok()?).into())
    }
}

impl Api {
    /// Batches and crawls of this caller that ended after those that were read, and whose results have no cursor beyond
    /// `until`. They are numbered together.
    async fn ended(
        &self,
        identity: &Identity,
        read: ReadUpTo,
        until: i64,
    ) -> Result<Vec<EndedGroup>, Problem> {
        let caller = &identity.caller.name;
        let most = BATCHES_PER_PAGE;
        let batches = || self.on.batches.ended_batches(caller, read, until, most);
        let mut ended_batches = self.stored(batches().await)?;
        let mut ended: Vec<EndedGroup> = Vec::new();
        if let Some(crawls) = &self.on.crawls {
            let crawls = crawls.store.ended_crawls(caller, read, until, most).await;
            ended.extend(
                self.stored(crawls)?.into_iter().map(|crawl| EndedGroup::Crawl(Box::new(crawl))),
            );
        }
        let newest = ended.last().map_or(0, EndedGroup::number);
        let number = |batch: &MessageBatch| batch.completion.map_or(0, |end| end.number);
        if ended_batches.last().is_none_or(|last| number(last) < newest) && newest > 0 {
            // Between the two reads, a batch may have ended before the newest of these crawls.
            ended_batches = self.stored(batches().await)?;
            ended_batches.retain(|batch| number(batch) < newest);
        }
        ended.extend(ended_batches.into_iter().map(EndedGroup::Batch));
        ended.sort_by_key(EndedGroup::number);
        // Beyond that, those of the other kind may be missing.
        ended.truncate(most as usize);
        Ok(ended)
    }
}

struct Live {
    api: Arc<Api>,
    identity: Identity,
    /// The cursor of the last result that was sent.
    after: i64,
    /// The ended batches and crawls that were sent.
    read: ReadUpTo,
    limit: u32,
    fields: ResultFields,
    /// Results that were read but not sent yet.
    results: VecDeque<OutboxMessage>,
    /// Ended batches and crawls that were read but not sent yet. Their results come first.
    ended: VecDeque<EndedGroup>,
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
            if let Some((group, completion)) = self.next_ended() {
                self.read = ReadUpTo::Number(completion.number);
                self.last_sent = Instant::now();
                let id = format!("{}.{}", self.after, completion.number);
                return group.event(&id, self.api.on.clock.wall());
            }
            if let Some(result) = self.results.pop_front() {
                self.after = result.cursor;
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

    /// A batch or a crawl whose last result was sent.
    fn next_ended(&mut self) -> Option<(EndedGroup, Completion)> {
        let completion = self.ended.front()?.completion()?;
        let is_due = self.results.front().is_none_or(|next| completion.cursor < next.cursor);
        let group = if is_due { self.ended.pop_front() } else { None };
        Some((group?, completion))
    }

    /// Polls for results until there are some or a heartbeat is due. An error ends the stream; the client gets the
    /// problem when it reconnects.
    async fn look(&mut self) -> Option<()> {
        let until_heartbeat = HEARTBEAT.saturating_sub(self.last_sent.elapsed());
        let mut waiting = Waiting::begin(&self.api, &self.identity.caller.name, until_heartbeat);
        loop {
            self.identity.check_again(&self.api).await.ok()?;
            self.share = None;
            let found = self.api.page(&self.identity, Some(self.after), self.limit).await.ok()?;
            (self.results, self.share) = (found.results.into(), Some(found.share));
            let ended = self.api.ended(&self.identity, self.read, found.next).await.ok()?;
            self.ended = ended.into();
            let is_empty = self.results.is_empty() && self.ended.is_empty();
            if !is_empty || !waiting.next().await {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_event_says_where_its_reader_is() {
        assert_eq!(place("42"), Some((42, ReadUpTo::Cursor(42))));
        assert_eq!(place("42.7"), Some((42, ReadUpTo::Number(7))));
        for wrong in ["", "x", "42.", ".7", "-1", "42.7.1", "42,7", " 42"] {
            assert_eq!(place(wrong), None, "{wrong}");
        }
    }
}
