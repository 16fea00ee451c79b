//! `/v2/batch/scrape/{id}`: the status of a batch, its documents and its errors.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use fetchwell_engine::ports::inbox::{BatchId, FetchResult};
use fetchwell_engine::ports::message_batches::{MessageBatch, Unanswered};
use fetchwell_policy::rfc3339::rfc3339;
use serde::Serialize;

use super::FirecrawlResult;
use super::document::Document;
use super::error::code_of;
use super::request::{Caller, PublicUrl, Version};
use crate::api::batches::batch_id;
use crate::api::identity::Identity;
use crate::api::memory::Held;
use crate::api::outbox::{MAX_LIMIT, MAX_PAGE_BYTES};
use crate::api::parameters::{self, CURSOR, cursor, limit};
use crate::api::respond::json;
use crate::api::{Api, PathName};
use crate::problem::Problem;
use crate::server::until_sent;

/// How many results a page has by default.
const DEFAULT_LIMIT: u32 = 100;

/// What an error takes besides its URL and its reason.
const BYTES_PER_ERROR: u64 = 256;

const NO_SKIP: &str = "is not supported; follow `next`";

/// A batch with a page of its documents. The last page has no `next`: the clients of /v1 check whether it is present.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    success: bool,
    status: &'static str,
    total: u32,
    completed: u32,
    credits_used: u32,
    expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    data: Vec<Document>,
}

/// Returns the status of a batch, and its documents so far.
pub(super) async fn status(
    State(api): State<Arc<Api>>,
    version: Version,
    Caller(identity): Caller,
    PublicUrl(public_url): PublicUrl,
    id: PathName,
    RawQuery(query): RawQuery,
) -> FirecrawlResult {
    api.charge(&identity.caller, 1)?;
    let id = batch_id(id)?;
    let asked = AskedPage::read(query.as_deref().unwrap_or_default())?;
    // Read before the results: if the batch has ended by then, all of its results are stored.
    let batch = api.batch(id, &identity).await?;
    let page = api.documents(id, &identity, &asked).await?;
    let next = page.next.map(|cursor| {
        let path = version.path();
        let limit = asked.limit.map(|limit| format!("&limit={limit}")).unwrap_or_default();
        format!("{public_url}{path}/batch/scrape/{id}?after={cursor}{limit}")
    });
    let status = Status {
        success: true,
        status: word(&batch),
        total: batch.counts.total,
        completed: batch.counts.ended(),
        credits_used: 0,
        expires_at: rfc3339(
            batch.ended_at.unwrap_or_else(|| api.on.clock.wall()) + api.rules.retention,
        ),
        next,
        data: page.documents,
    };
    Ok(until_sent(json(&status), page.share))
}

#[derive(Serialize)]
struct Cancelled {
    success: bool,
    status: &'static str,
}

/// Cancels the rest of a batch.
pub(super) async fn cancel(
    State(api): State<Arc<Api>>,
    Caller(identity): Caller,
    id: PathName,
) -> FirecrawlResult {
    identity.check_may_send()?;
    api.charge(&identity.caller, 1)?;
    let batch = api.cancel_rest_of(batch_id(id)?, &identity).await?;
    Ok(json(&Cancelled { success: true, status: word(&batch) }))
}

/// The URLs of a batch that have no document.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Errors {
    errors: Vec<ScrapeError>,
    robots_blocked: Vec<String>,
}

#[derive(Serialize)]
struct ScrapeError {
    /// The id of the message.
    id: String,
    timestamp: String,
    url: String,
    /// The status of the result.
    code: String,
    error: String,
}

/// Lists the pages of a batch that have no document, and why.
pub(super) async fn errors(
    State(api): State<Arc<Api>>,
    Caller(identity): Caller,
    id: PathName,
    RawQuery(query): RawQuery,
) -> FirecrawlResult {
    api.charge(&identity.caller, 1)?;
    parameters::refuse_any(query.as_deref())?;
    let id = batch_id(id)?;
    api.batch(id, &identity).await?;
    let mut errors = Errors::default();
    let mut shares = Vec::new();
    let mut after = Some(0);
    // Each result adds at most one error, so the response is bounded by the size of a batch.
    while let Some(cursor) = after {
        // A URL and a reason have at most 16 KiB.
        let mut share = api.memory.take(MAX_PAGE_BYTES).await?;
        let found = api.on.batches.unanswered(id, identity.sees(), cursor, MAX_LIMIT).await;
        let found = api.stored(found)?;
        let is_full = found.len() as u64 >= u64::from(MAX_LIMIT);
        after = found.last().map(|last| last.cursor).filter(|_| is_full);
        // Reading the results of a large batch is as much work as many requests.
        api.charge_more(&identity.caller, 1);
        let bytes: u64 = found.into_iter().map(|one| errors.add(one)).sum();
        // Twice: the errors, and the JSON of the response.
        share.shrink_to(2 * bytes);
        shares.push(share);
    }
    Ok(until_sent(json(&errors), shares))
}

impl Errors {
    /// Returns how many bytes it takes.
    fn add(&mut self, unanswered: Unanswered) -> u64 {
        let Unanswered { message, url, created_at, status, error, .. } = unanswered;
        let url_bytes = url.len() as u64;
        if status == FetchResult::REFUSED_BY_ROBOTS {
            self.robots_blocked.push(url);
            return url_bytes;
        }
        let error = error.unwrap_or_else(|| status.clone());
        let bytes = url_bytes + error.len() as u64 + BYTES_PER_ERROR;
        self.errors.push(ScrapeError {
            id: message.to_string(),
            timestamp: rfc3339(created_at),
            url,
            error,
            code: code_of(&status).to_owned(),
        });
        bytes
    }
}

/// The status of a batch in one word.
fn word(batch: &MessageBatch) -> &'static str {
    match (batch.cancelled_at, batch.ended_at) {
        (Some(_), _) => "cancelled",
        (None, Some(_)) => "completed",
        (None, None) => "scraping",
    }
}

/// A page of documents.
struct Page {
    documents: Vec<Document>,
    /// The cursor after which there may be more results now.
    next: Option<i64>,
    share: Held,
}

impl Api {
    /// The documents of the results after a cursor: at least one if any are left, because some clients take an empty
    /// page for the last one.
    async fn documents(
        &self,
        id: BatchId,
        identity: &Identity,
        asked: &AskedPage,
    ) -> Result<Page, Problem> {
        let limit = asked.limit.unwrap_or(DEFAULT_LIMIT);
        let mut most = limit;
        let mut after = asked.after;
        loop {
            // One result more than the page has shows that it is not the last one.
            let (mut results, next, share) =
                self.batch_page(id, identity, after, most.saturating_add(1)).await?;
            let bytes: u64 = results.iter().map(|one| one.result.text_bytes()).sum();
            let is_cut = results.len() > most as usize || bytes >= MAX_PAGE_BYTES;
            results.truncate(most as usize);
            let next = results.last().map_or(next, |last| last.cursor);
            let found = results.into_iter().filter_map(|outbox| {
                let cursor = outbox.cursor;
                Some((cursor, Document::of(outbox, None).ok()?))
            });
            let mut found: Vec<(i64, Document)> = found.collect();
            let is_too_much = found.len() > limit as usize;
            found.truncate(limit as usize);
            let next = match found.last() {
                Some((last, _)) if is_too_much => *last,
                _ => next,
            };
            let has_more = is_too_much || is_cut;
            if !found.is_empty() || !has_more {
                let documents = found.into_iter().map(|(_, document)| document).collect();
                return Ok(Page { documents, next: has_more.then_some(next), share });
            }
            // However small the pages are, few reads skip all failures of a batch.
            most = MAX_LIMIT;
            self.charge_more(&identity.caller, 1);
            after = Some(next);
        }
    }
}

/// A parsed query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AskedPage {
    after: Option<i64>,
    limit: Option<u32>,
}

impl AskedPage {
    fn read(query: &str) -> Result<AskedPage, Problem> {
        let mut asked = AskedPage::default();
        parameters::read_known(query, &["after", "limit", "skip"], |name, value| {
            match name {
                "after" => asked.after = Some(cursor(value).ok_or(("after", CURSOR))?),
                "skip" if value == "0" => {}
                "skip" => return Err(("skip", NO_SKIP)),
                _ => {
                    let limit = limit(value, MAX_LIMIT).ok_or(("limit", "must be 1 to 1000"))?;
                    asked.limit = Some(limit);
                }
            }
            Ok(())
        })?;
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::ports::inbox::MessageId;
    use fetchwell_policy::time::Time;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_query_is_read_strictly() {
        let read = |query| AskedPage::read(query).map(|asked| (asked.after, asked.limit)).ok();
        for (query, expected) in [
            ("", Some((None, None))),
            ("after=42&limit=1000&skip=0", Some((Some(42), Some(1_000)))),
            ("skip=1", None),
            ("limit=0", None),
            ("after=x", None),
            ("page=2", None),
        ] {
            assert_eq!(read(query), expected, "{query}");
        }
    }

    #[test]
    fn each_page_without_a_document_is_an_error_or_blocked() {
        let mut errors = Errors::default();
        for status in ["refused_by_robots", "timeout", "success", "cancelled"] {
            errors.add(Unanswered {
                cursor: 1,
                message: MessageId([1; 16]),
                url: format!("http://a.test/{status}"),
                created_at: Time::EPOCH,
                status: status.to_owned(),
                error: Some("why".to_owned()),
            });
        }
        let told = json!(errors);
        assert_eq!(told["robotsBlocked"], json!(["http://a.test/refused_by_robots"]));
        let codes: Vec<_> = errors.errors.iter().map(|error| &*error.code).collect();
        assert_eq!(codes, ["timeout", "not-text", "cancelled"]);
        assert_eq!(told["errors"][0]["url"], "http://a.test/timeout");
    }
}
