//! `GET /messages`: the messages that a caller sent.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use fetchwell_engine::ports::inbox::MessageStatus;
use fetchwell_engine::ports::inbox::sent::{MOST_SENT, SentFilter};

use super::identity::Identity;
use super::parameters::{BadParameter, CURSOR, cursor, limit, read_known};
use super::problems::{CallerProblems, QueryProblems, StoreProblems};
use super::respond::json;
use super::values::is_correlation_id;
use super::{Api, ApiResult};
use crate::problem::Problem;
use crate::views::sent::SentPageView;

const DEFAULT_LIMIT: u32 = 50;
const KNOWN: [&str; 5] = ["correlation_id", "status", "batch", "after", "limit"];

/// List your messages
///
/// Newest first, and only those that you sent yourself. Continue with `after` = `next` of the last response. Queries on
/// a large store are bounded: a response may have fewer messages than requested, or none, and still a `next` to
/// continue with. The result of a message is at `/messages/{id}`.
#[utoipa::path(
    get,
    path = "/messages",
    tag = "Messages",
    params(
        ("correlation_id" = Option<String>, Query, description = "only messages with this correlation id", min_length = 1, max_length = 256, pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$"),
        ("status" = Option<String>, Query, description = "only messages with this status: queued, processing, completed or failed", pattern = "^(queued|processing|completed|failed)$"),
        ("batch" = Option<String>, Query, description = "only messages of this batch: the batch_id that /fetch/batch returned", example = "batch_018bcfe56800ffffffffffffffffffff", pattern = "^batch_[0-9a-f]{32}$"),
        ("after" = Option<String>, Query, description = "continue a list here: `next` of the last response (default: from the newest message)", pattern = "^[0-9]+$"),
        ("limit" = Option<u32>, Query, description = "maximum number of messages, 1 to 200 (default 50)", minimum = 1, maximum = 200),
    ),
    responses(
        (status = 200, description = "your messages, newest first", body = SentPageView),
        CallerProblems, QueryProblems, StoreProblems,
    ),
    security(("token" = []))
)]
pub(super) async fn messages(
    State(api): State<Arc<Api>>,
    identity: Identity,
    RawQuery(query): RawQuery,
) -> ApiResult {
    api.charge(&identity.caller, 1)?;
    let Asked { filter, after, limit } = Asked::read(query.as_deref().unwrap_or_default())?;
    let sent = api.on.inbox.sent(&identity.caller.name, &filter, after, limit).await;
    Ok(json(&SentPageView::from(api.stored(sent)?)))
}

/// A parsed query.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    filter: SentFilter,
    after: Option<i64>,
    limit: u32,
}

impl Asked {
    fn read(query: &str) -> Result<Asked, Problem> {
        let mut asked = Asked { filter: SentFilter::default(), after: None, limit: DEFAULT_LIMIT };
        read_known(query, &KNOWN, |name, value| asked.set(name, value))?;
        Ok(asked)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), BadParameter> {
        match name {
            "correlation_id" => {
                let is_one = is_correlation_id(value);
                let name = is_one.then(|| value.to_owned()).ok_or(("correlation_id", NAMES))?;
                self.filter.correlation_id = Some(name);
            }
            "status" => self.filter.status = Some(status(value).ok_or(("status", STATUSES))?),
            "batch" => self.filter.batch = Some(value.parse().map_err(|_| ("batch", BATCH))?),
            "after" => self.after = Some(cursor(value).ok_or(("after", CURSOR))?),
            _ => self.limit = limit(value, MOST_SENT).ok_or(("limit", "must be 1 to 200"))?,
        }
        Ok(())
    }
}

const NAMES: &str = "must have 1 to 256 characters, and no control characters";
const STATUSES: &str = "must be queued, processing, completed or failed";
const BATCH: &str = "must be a batch id: batch_ followed by 32 lowercase hexadecimal digits";

fn status(word: &str) -> Option<MessageStatus> {
    match word {
        "queued" => Some(MessageStatus::Queued),
        "processing" => Some(MessageStatus::Processing),
        "completed" => Some(MessageStatus::Completed),
        "failed" => Some(MessageStatus::Failed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::ports::inbox::BatchId;

    use super::*;

    #[test]
    fn a_query_is_read_strictly() {
        let batch: BatchId = "batch_018bcfe56800ffffffffffffffffffff".parse().unwrap();
        let query =
            format!("correlation_id=order%2017&status=failed&batch={batch}&after=9&limit=200");
        let asked = Asked::read(&query);
        let correlation_id = Some("order 17".to_owned());
        let filter =
            SentFilter { correlation_id, status: Some(MessageStatus::Failed), batch: Some(batch) };
        assert_eq!(asked.unwrap(), Asked { filter, after: Some(9), limit: 200 });
        assert_eq!(Asked::read("").unwrap().limit, DEFAULT_LIMIT);
        for wrong in [
            "correlation_id=",
            "correlation_id=a%00",
            "status=cancelled",
            "status=",
            "batch=",
            "batch=018bcfe56800ffffffffffffffffffff",
            "after=-1",
            "limit=0",
            "limit=201",
            "state=failed",
            "other",
        ] {
            assert!(Asked::read(wrong).is_err(), "{wrong}");
        }
    }
}
