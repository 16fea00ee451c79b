//! `/batches`: messages that were sent together.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, RawQuery, State};
use fetchwell_engine::ports::inbox::{BatchId, OutboxMessage, OutboxMost, OutboxPage};
use fetchwell_engine::ports::message_batches::{BATCHES_PER_PAGE, MessageBatch};
use serde::Serialize;
use utoipa::ToSchema;

use super::batch::MAX_BATCH;
use super::identity::Identity;
use super::memory::Held;
use super::outbox::{MAX_LIMIT, MAX_PAGE_BYTES};
use super::parameters::{CURSOR, cursor, limit, whole};
use super::prefer::MAX_WAIT_SECONDS;
use super::problems::{
    BatchProblems, CallerProblems, QueryProblems, SenderProblems, StoreProblems,
};
use super::respond::json;
use super::waiting::Waiting;
use super::{Api, ApiResult, PathName, parameters};
use crate::problem::{PROBLEM_JSON, Problem, ProblemBody, ProblemKind};
use crate::server::until_sent;
use crate::views::batches::BatchView;
use crate::views::messages::OutboxView;

const DEFAULT_BATCHES: u32 = 50;
const DEFAULT_RESULTS: u32 = 100;

/// A page of a caller's batches, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Batches {
    /// The batches.
    batches: Vec<BatchView>,
    /// The id after which to continue; null at the end.
    #[schema(required)]
    next: Option<String>,
}

/// A page of the results of a batch.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BatchResults {
    /// The results after the cursor, in the order in which they were stored.
    messages: Vec<OutboxView>,
    /// The cursor after which to continue.
    #[schema(example = "42", pattern = "^[0-9]+$")]
    next: String,
    /// Whether the batch has ended and no results follow.
    done: bool,
}

/// List your batches
///
/// The newest comes first. Continue with `after` = `next` of the last response.
#[utoipa::path(
    get,
    path = "/batches",
    operation_id = "batches",
    tag = "Batches",
    params(
        ("after" = Option<String>, Query, description = "return batches that were sent before this one", example = "batch_ffffffffffffffffffffffffffffffff", pattern = "^batch_[0-9a-f]{32}$"),
        ("limit" = Option<u32>, Query, description = "maximum number of batches, 1 to 200 (default 50)", minimum = 1, maximum = 200),
    ),
    responses(
        (status = 200, description = "your batches", body = Batches),
        CallerProblems, QueryProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn batches(
    State(api): State<Arc<Api>>,
    identity: Identity,
    RawQuery(query): RawQuery,
) -> ApiResult {
    const AFTER: &str = "must be the id of a batch: `next` of an earlier response";
    api.charge(&identity.caller, 1)?;
    let query = query.unwrap_or_default();
    let mut after: Option<BatchId> = None;
    let mut most = DEFAULT_BATCHES;
    parameters::read_known(&query, &["after", "limit"], |name, value| {
        match name {
            "after" => after = Some(value.parse().map_err(|_| ("after", AFTER))?),
            _ => most = limit(value, BATCHES_PER_PAGE).ok_or(("limit", "must be 1 to 200"))?,
        }
        Ok(())
    })?;
    let found = api.stored(api.on.batches.batches(&identity.caller.name, after, most).await)?;
    let is_full = found.len() >= usize::try_from(most).unwrap_or(usize::MAX);
    let next = found.last().filter(|_| is_full).map(|last| last.id.to_string());
    let batches = found.iter().map(|batch| api.view_of(batch)).collect();
    Ok(json(&Batches { batches, next }))
}

/// Get a batch: how many of its messages have ended
///
/// A caller sees its own batches; a viewer and an operator see all. The response is the same for batches that do not
/// exist and for those of other callers. A batch is done when all of its messages have ended; a message that an
/// operator retries later is a new message outside of the batch.
#[utoipa::path(
    get,
    path = "/batches/{id}",
    operation_id = "batch_state",
    tag = "Batches",
    params(("id" = String, Path, description = "the batch_id that /fetch/batch returned", example = "batch_018bcfe56800ffffffffffffffffffff", pattern = "^batch_[0-9a-f]{32}$")),
    responses(
        (status = 200, description = "the batch", body = BatchView),
        CallerProblems, BatchProblems, QueryProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn batch(
    State(api): State<Arc<Api>>,
    identity: Identity,
    id: PathName,
    RawQuery(query): RawQuery,
) -> ApiResult {
    api.charge(&identity.caller, 1)?;
    parameters::refuse_any(query.as_deref())?;
    let batch = api.batch(batch_id(id)?, &identity).await?;
    Ok(json(&api.view_of(&batch)))
}

/// Read the results of a batch
///
/// They come in the order in which they were stored. Continue with `after` = `next` of the last response until `done`
/// is true: no result is skipped or returned twice. The cursors are those of `/outbox`, which has these results, too.
#[utoipa::path(
    get,
    path = "/batches/{id}/results",
    operation_id = "batch_results",
    tag = "Batches",
    params(
        ("id" = String, Path, description = "the batch_id that /fetch/batch returned", example = "batch_018bcfe56800ffffffffffffffffffff", pattern = "^batch_[0-9a-f]{32}$"),
        ("after" = Option<String>, Query, description = "return results after this cursor (default: from the oldest result)", example = "0", pattern = "^[0-9]+$"),
        ("limit" = Option<u32>, Query, description = "maximum number of results, 1 to 1000 (default 100)", minimum = 1, maximum = 1000),
        ("wait" = Option<u32>, Query, description = "seconds to wait for a result, 0 to 60 (default 0)", minimum = 0, maximum = 60),
    ),
    responses(
        (status = 200, description = "results, or none yet", body = BatchResults),
        (status = 410, description = "results after the cursor were deleted, or the cursor is beyond the newest result; continue after the cursor in `oldest`", body = ProblemBody, content_type = PROBLEM_JSON),
        CallerProblems, BatchProblems, QueryProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn batch_results(
    State(api): State<Arc<Api>>,
    identity: Identity,
    id: PathName,
    RawQuery(query): RawQuery,
) -> ApiResult {
    api.charge(&identity.caller, 1)?;
    let id = batch_id(id)?;
    let asked = AskedResults::read(query.as_deref().unwrap_or_default())?;
    let owner = api.batch(id, &identity).await?.caller;
    let mut waiting = Waiting::begin(&api, &owner, asked.wait);
    loop {
        // Read before the results: if it has ended by then, all of them are there.
        let batch = api.batch(id, &identity).await?;
        let (results, next, share) =
            api.batch_page(id, &identity, asked.after, asked.limit).await?;
        let nothing_follows = |end: i64| results.is_empty() || next >= end;
        let done = batch.completion.is_some_and(|completion| nothing_follows(completion.cursor));
        if !results.is_empty() || done || !waiting.next().await {
            identity.check_again(&api).await?;
            let messages = results.into_iter().map(OutboxView::from).collect();
            let answer = BatchResults { messages, next: next.to_string(), done };
            return Ok(until_sent(json(&answer), share));
        }
    }
}

/// Cancel the rest of a batch
///
/// Waiting messages end with the status `cancelled`. Requests in flight are not interrupted; if one fails and its
/// message would have to wait for a retry, the message is cancelled. Existing results are kept. A batch that has
/// ended is not changed.
#[utoipa::path(
    delete,
    path = "/batches/{id}",
    operation_id = "cancel_batch",
    tag = "Batches",
    params(("id" = String, Path, description = "the batch_id that /fetch/batch returned", example = "batch_018bcfe56800ffffffffffffffffffff", pattern = "^batch_[0-9a-f]{32}$")),
    responses(
        (status = 200, description = "the batch as it is now", body = BatchView),
        CallerProblems, SenderProblems, BatchProblems, QueryProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn cancel_batch(
    State(api): State<Arc<Api>>,
    identity: Identity,
    id: PathName,
    RawQuery(query): RawQuery,
) -> ApiResult {
    identity.check_may_send()?;
    api.charge(&identity.caller, 1)?;
    parameters::refuse_any(query.as_deref())?;
    let batch = api.cancel_rest_of(batch_id(id)?, &identity).await?;
    Ok(json(&api.view_of(&batch)))
}

/// Parses the batch in the path. A path that is not valid UTF-8 is not an id, either.
pub(super) fn batch_id(name: PathName) -> Result<BatchId, Problem> {
    let id = name.ok().and_then(|Path(text)| text.parse().ok());
    id.ok_or_else(|| Problem::new(ProblemKind::NOT_FOUND))
}

impl Api {
    pub(super) async fn batch(
        &self,
        id: BatchId,
        identity: &Identity,
    ) -> Result<MessageBatch, Problem> {
        let found = self.stored(self.on.batches.batch(id, identity.sees()).await)?;
        found.ok_or_else(|| Problem::new(ProblemKind::NOT_FOUND))
    }

    /// Cancels the rest of a batch, and returns the batch as it is then.
    pub(super) async fn cancel_rest_of(
        &self,
        id: BatchId,
        identity: &Identity,
    ) -> Result<MessageBatch, Problem> {
        let batches = &self.on.batches;
        if !self.stored(batches.cancel(id, identity.sees()).await)? {
            return Err(Problem::new(ProblemKind::NOT_FOUND));
        }
        let caller = &identity.caller.name;
        let noted = self.on.audit.note(caller, "cancel_batch", id.to_string(), &identity.from);
        self.stored(noted.await)?;
        // What is left if this is cut off is cancelled with the next cleanup.
        let mut cancelled = 0;
        while cancelled <= MAX_BATCH {
            match self.stored(batches.cancel_some(id).await)? {
                0 => break,
                some => cancelled += usize::try_from(some).unwrap_or(usize::MAX),
            }
        }
        self.batch(id, identity).await
    }

    fn view_of(&self, batch: &MessageBatch) -> BatchView {
        BatchView::of(batch, self.on.clock.wall())
    }

    /// Results of a batch, the cursor after which to continue, and the memory reserved for them.
    pub(super) async fn batch_page(
        &self,
        id: BatchId,
        identity: &Identity,
        after: Option<i64>,
        limit: u32,
    ) -> Result<(Vec<OutboxMessage>, i64, Held), Problem> {
        let mut share = self.memory.take(MAX_PAGE_BYTES).await?;
        let most = OutboxMost { results: limit, bytes: MAX_PAGE_BYTES };
        let page = self.on.batches.results(id, identity.sees(), after, most).await;
        match self.stored(page)? {
            Some(OutboxPage::Results { results, next }) => {
                share.shrink_to(results.iter().map(|one| one.result.text_bytes()).sum());
                Ok((results, next, share))
            }
            Some(OutboxPage::Gone { oldest }) => Err(Problem::gone(oldest)),
            None => Err(Problem::new(ProblemKind::NOT_FOUND)),
        }
    }
}

/// A parsed query for results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AskedResults {
    pub(super) after: Option<i64>,
    pub(super) limit: u32,
    pub(super) wait: Duration,
}

impl AskedResults {
    pub(super) fn read(query: &str) -> Result<AskedResults, Problem> {
        let mut asked = AskedResults { after: None, limit: DEFAULT_RESULTS, wait: Duration::ZERO };
        parameters::read_known(query, &["after", "limit", "wait"], |name, value| {
            match name {
                "after" => asked.after = Some(cursor(value).ok_or(("after", CURSOR))?),
                "limit" => {
                    asked.limit = limit(value, MAX_LIMIT).ok_or(("limit", "must be 1 to 1000"))?;
                }
                _ => {
                    let seconds =
                        whole::<u64>(value).filter(|seconds| *seconds <= MAX_WAIT_SECONDS);
                    let seconds = seconds.ok_or(("wait", "must be 0 to 60 seconds"))?;
                    asked.wait = Duration::from_secs(seconds);
                }
            }
            Ok(())
        })?;
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_for_results_is_read_strictly() {
        let read = |query| {
            let asked = AskedResults::read(query).ok()?;
            Some((asked.after, asked.limit, asked.wait.as_secs()))
        };
        for (query, expected) in [
            ("", Some((None, 100, 0))),
            ("after=42&limit=1000&wait=60", Some((Some(42), 1_000, 60))),
            ("limit=0", None),
            ("wait=61", None),
            ("after=x", None),
            ("other=1", None),
            ("After=1", None),
        ] {
            assert_eq!(read(query), expected, "{query}");
        }
    }
}
