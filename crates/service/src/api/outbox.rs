//! `GET /outbox`: a caller's results in the order of their commits, none ever skipped.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use fetchwell_engine::ports::inbox::{OutboxMessage, OutboxMost, OutboxPage};
use http::HeaderMap;
use http::header::ACCEPT;
use serde::Serialize;
use utoipa::ToSchema;

use super::identity::Identity;
use super::memory::Held;
use super::notifications::OutboxEvent;
use super::parameters::{WAIT, cursor, limit, seconds_to_wait};
use super::problems::{CallerProblems, QueryProblems, StoreProblems};
use super::respond::json;
use super::result_fields::{ChosenResult, ResultFields};
use super::waiting::Waiting;
use super::{Api, ApiResult, events, parameters};
use crate::problem::{PROBLEM_JSON, Problem, ProblemBody};
use crate::server::until_sent;
use crate::views::messages::OutboxView;

const KNOWN: [&str; 4] = ["after", "fields", "limit", "wait"];
const DEFAULT_LIMIT: u32 = 100;
pub(super) const MAX_LIMIT: u32 = 1_000;

const CURSOR_OR_LATEST: &str = "must be a cursor, `next` of an earlier response, or `latest`";
const NOT_FIELDS: &str =
    "must be names of fields of a result, separated by commas, such as `url,status`";

/// The maximum size of the contents in one response.
pub(super) const MAX_PAGE_BYTES: u64 = 16 << 20;

/// A page of a caller's outbox.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OutboxPage)]
pub(super) struct OutboxAnswer {
    /// The results after the cursor, in the order of their commits.
    messages: Vec<ChosenResult>,
    /// The cursor after which to continue.
    #[schema(example = "42", pattern = "^[0-9]+$")]
    next: String,
}

/// Read your results
///
/// Each of your messages ends with exactly one result. Continue with `after` = `next` of the last response,
/// and no result is skipped. With `Accept: text/event-stream` the results are sent as they are stored: the
/// `id` of each event is its cursor, and `Last-Event-ID` resumes after it. The stream also has an event
/// `batch.completed` for each of your batches that ended, after the last of its results.
#[utoipa::path(
    get,
    path = "/outbox",
    tag = "Outbox",
    params(
        ("after" = Option<String>, Query, description = "return results after this cursor (default: from the oldest result); `latest`: only results that are stored from now on", example = "0", pattern = "^([0-9]+|latest)$"),
        ("limit" = Option<u32>, Query, description = "maximum number of results, 1 to 1000 (default 100)", minimum = 1, maximum = 1000),
        ("wait" = Option<u32>, Query, description = "seconds to wait for a result, 0 to 60 (default 0)", minimum = 0, maximum = 60),
        ("fields" = Option<String>, Query, description = "names of the fields to return for each result, separated by commas (default: all); `cursor` and `id` are always returned", example = "url,status"),
        ("Last-Event-ID" = Option<String>, Header, description = "for a stream: the `id` of the last event that you received; events after it are sent. Ignored otherwise", example = "42"),
    ),
    responses(
        (status = 200, description = "results, or none yet; with `Accept: text/event-stream`, events without an end", content(
            (OutboxAnswer = "application/json"), (Vec<OutboxEvent> = "text/event-stream")
        ),
            links(("what follows" = (operation_id = "outbox", parameters(("after" = "$response.body#/next")))))
        ),
        (status = 410, description = "results after the cursor were deleted, or the cursor is beyond the newest result; continue after the cursor in `oldest`", body = ProblemBody, content_type = PROBLEM_JSON),
        CallerProblems, QueryProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn outbox(
    State(api): State<Arc<Api>>,
    identity: Identity,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> ApiResult {
    api.charge(&identity.caller, 1)?;
    let asked = Asked::read(query.as_deref().unwrap_or_default())?;
    let after = api.cursor_of(&identity, asked.after).await?;
    if wants_events(&headers) {
        return events::stream(api, identity, &headers, after, asked).await;
    }
    let mut waiting = Waiting::begin(&api, &identity.caller.name, asked.wait);
    loop {
        let OutboxPageFound { results, next, share } =
            api.page(&identity, after, asked.limit).await?;
        if !results.is_empty() || !waiting.next().await {
            identity.check_again(&api).await?;
            let messages = results.into_iter();
            let messages =
                messages.map(|result| asked.fields.of(OutboxView::from(result))).collect();
            let answer = OutboxAnswer { messages, next: next.to_string() };
            return Ok(until_sent(json(&answer), share));
        }
    }
}

/// A part of an outbox, with the memory reserved for it.
pub(super) struct OutboxPageFound {
    pub(super) results: Vec<OutboxMessage>,
    /// The cursor after which to continue.
    pub(super) next: i64,
    pub(super) share: Held,
}

impl Api {
    /// The cursor to begin after; `None` for the oldest one.
    async fn cursor_of(
        &self,
        identity: &Identity,
        after: Option<After>,
    ) -> Result<Option<i64>, Problem> {
        match after {
            None => Ok(None),
            Some(After::Cursor(cursor)) => Ok(Some(cursor)),
            Some(After::Latest) => {
                let newest = self.on.inbox.newest_cursor(&identity.caller.name).await;
                self.stored(newest).map(Some)
            }
        }
    }

    /// Results of this caller after the cursor.
    pub(super) async fn page(
        &self,
        identity: &Identity,
        after: Option<i64>,
        limit: u32,
    ) -> Result<OutboxPageFound, Problem> {
        let mut share = self.memory.take(MAX_PAGE_BYTES).await?;
        let most = OutboxMost { results: limit, bytes: MAX_PAGE_BYTES };
        match self.stored(self.on.inbox.outbox(&identity.caller.name, after, most).await)? {
            OutboxPage::Results { results, next } => {
                share.shrink_to(results.iter().map(|one| one.result.text_bytes()).sum());
                Ok(OutboxPageFound { results, next, share })
            }
            OutboxPage::Gone { oldest } => Err(Problem::gone(oldest)),
        }
    }
}

fn wants_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = accepted.flat_map(|line| line.split(','));
    types.any(|one| {
        let essence = one.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("text/event-stream")
    })
}

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Cursor(i64),
    /// After the newest result.
    Latest,
}

/// A parsed query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) after: Option<After>,
    pub(super) limit: u32,
    pub(super) fields: ResultFields,
    wait: Duration,
}

impl Asked {
    fn read(query: &str) -> Result<Asked, Problem> {
        let mut asked = Asked {
            after: None,
            limit: DEFAULT_LIMIT,
            fields: ResultFields::default(),
            wait: Duration::ZERO,
        };
        parameters::read_known(query, &KNOWN, |name, value| {
            match name {
                "after" if value == "latest" => asked.after = Some(After::Latest),
                "after" => {
                    let at = cursor(value).ok_or(("after", CURSOR_OR_LATEST))?;
                    asked.after = Some(After::Cursor(at));
                }
                "fields" => {
                    let fields = ResultFields::read(value);
                    asked.fields = fields.ok_or(("fields", NOT_FIELDS))?;
                }
                "limit" => {
                    asked.limit = limit(value, MAX_LIMIT).ok_or(("limit", "must be 1 to 1000"))?;
                }
                _ => asked.wait = seconds_to_wait(value).ok_or(("wait", WAIT))?,
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
    fn a_query_is_read_strictly() {
        let seconds = Duration::from_secs;
        for (query, expected) in [
            ("", Some((None, 100, seconds(0)))),
            ("after=42&limit=1000&wait=60", Some((Some(After::Cursor(42)), 1_000, seconds(60)))),
            ("after=0&limit=100", Some((Some(After::Cursor(0)), 100, seconds(0)))),
            ("after=0&other=1", None),
            ("after=latest&fields=url,status", Some((Some(After::Latest), 100, seconds(0)))),
            ("after=Latest", None),
            ("fields=colour", None),
            ("fields=", None),
            ("limit=0", None),
            ("limit=1001", None),
            ("wait=61", None),
            ("wait=", None),
            ("after=-1", None),
            ("after=%2B1", None),
            ("after=99999999999999999999", None),
        ] {
            let read = Asked::read(query).ok().map(|asked| (asked.after, asked.limit, asked.wait));
            assert_eq!(read, expected, "{query}");
        }
    }

    #[test]
    fn only_those_who_ask_for_events_get_them() {
        for (accept, expected) in [
            ("text/event-stream", true),
            ("application/json, Text/Event-Stream;q=0.9", true),
            ("*/*", false),
            ("application/json", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
            assert_eq!(wants_events(&headers), expected, "{accept}");
        }
    }
}
