//! Lists, counts and groups messages. Ids grow with time, so the newest messages have the highest ids.

use std::collections::HashMap;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{FetchResult, MessageId, attempts_of};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_engine::ports::oversight::{
    Count, FailureGroup, Failures, MESSAGES_PER_PAGE, MOST_COUNTED, MessageDetail,
    MessageSummaries, MessageSummary,
};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_policy::time::Time;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row};

use crate::postgres::bodies::join_body;
use crate::postgres::connections::PgQuery;
use crate::postgres::queue::PostgresQueue;
use crate::postgres::reading::{result_of, url_of};
use crate::shared::job_state::{JobState, sql};
use crate::shared::looking::{
    Among, FAILURES_PER_LOOK, Look, MOST_GROUPS, ROWS_PER_LOOK, state_of,
};

macro_rules! summary {
    () => {
        "SELECT job.id, job.key, job.url, job.odd_url, job.site, job.retailer, job.correlation_id,
            job.caller, job.state, job.reason, job.accepted_at, job.due, job.ended_at,
            CASE WHEN job.state > {dead} THEN job.attempts
                 ELSE job.url_failures + job.site_failures + job.paced END AS requests,
            job.retry_of, job.retried_as "
    };
}

/// The filter. $1 is the queue; $2 and $3 are the bounds of the ids.
const MATCHES: &str = "
    ($4::BIGINT IS NULL OR job.state = $4 OR job.state = $5)
    AND ($6::TEXT IS NULL OR job.site = $6) AND ($7::TEXT IS NULL OR job.reason = $7)
    AND ($8::TEXT IS NULL OR job.retailer = $8) AND ($9::TEXT IS NULL OR job.caller = $9)
    AND ($10::TEXT IS NULL OR strpos(lower(job.url), lower($10)) > 0)
    AND ($11::TEXT IS NULL OR job.correlation_id = $11)
    AND job.accepted_at <= $12 AND (job.ended_at IS NULL OR job.ended_at <= $12)";

/// All rows in the range of ids.
const ALL: &str = "FROM fetchwell_job AS job
    WHERE job.queue = $1 AND job.id BETWEEN $2 AND $3 AND ";

/// Finds a few rows through a small index first, and reads them afterwards. Otherwise PostgreSQL would scan all rows by
/// id, because it does not know how many lie between two ids. `OFFSET 0` keeps it from flattening the subquery, and the
/// bounds are written so that no other index matches them.
macro_rules! few {
    ($condition:literal) => {
        concat!(
            "FROM (SELECT queue, id FROM fetchwell_job WHERE ",
            $condition,
            " OFFSET 0) AS few
            CROSS JOIN LATERAL (SELECT * FROM fetchwell_job AS one WHERE one.id = few.id OFFSET 0) AS job
            WHERE job.queue = $1 AND "
        )
    };
}

/// The order of the index of failures.
const BY_ID_OF_FEW: &str = "few.queue DESC, few.id DESC";

const FAILED: &str = few!(
    "reason IS NOT NULL AND (queue, id) >= ($1, $2) AND (queue, id) <= ($1, $3)
    AND ($6::TEXT IS NULL OR site = $6) AND ($7::TEXT IS NULL OR reason = $7)
    ORDER BY queue DESC, id DESC"
);
const WAITING: &str = sql!(few!("queue = $1 AND state < {leased} AND id + 0 BETWEEN $2 AND $3"));
const LEASED: &str = sql!(few!("state = {leased} AND id + 0 BETWEEN $2 AND $3"));

const MESSAGE_DETAIL: &str = sql!(concat!(
    summary!(),
    ", job.deadline, job.callback_url, job.story, leader.key AS leader,
        cursor, stored_at, status, content, content_type, http_status, error, extracted, details,
        cached_age, job.attempts, body_of, body_expires_at, body_bytes
    FROM fetchwell_job AS job
    LEFT JOIN fetchwell_outbox AS outbox ON outbox.job = job.id
    LEFT JOIN fetchwell_job AS leader ON leader.id = job.follows",
    join_body!("outbox.body_of"),
    "WHERE job.queue = $1 AND job.key = $2"
));

const FAILURES: &str = "
    SELECT reason COLLATE \"C\", site, count(*), max(id) FROM fetchwell_job
    WHERE reason IS NOT NULL AND (queue, id) >= ($1, $2) AND (queue, id) <= ($1, $3)
        AND reason <> $4 AND retried_as IS NULL
    GROUP BY reason COLLATE \"C\", site ORDER BY count(*) DESC, 1, site LIMIT $5";

/// The range of ids that one query covers.
struct Stretch {
    first: LeaseId,
    last: LeaseId,
    /// Whether there are no rows before it.
    is_last: bool,
}

/// The FROM clause, and the expression that orders by id in it.
fn place(among: Among) -> (&'static str, &'static str) {
    match among {
        Among::All => (ALL, "job.id DESC"),
        Among::Failed => (FAILED, BY_ID_OF_FEW),
        Among::Waiting => (WAITING, BY_ID_OF_FEW),
        Among::Leased => (LEASED, BY_ID_OF_FEW),
    }
}

async fn stretch(
    queue: &PostgresQueue,
    among: Among,
    from: Option<i64>,
) -> Result<Stretch, StoreError> {
    let from = from.unwrap_or(LeaseId::MAX);
    let (query, most) = match among {
        // Starts at the newest existing row, so that deleted ids are not scanned.
        Among::All => {
            let newest = "SELECT last - $3 + 1, last,
                    NOT EXISTS (SELECT FROM fetchwell_job WHERE id < last - $3 + 1)
                FROM (SELECT max(id) AS last FROM fetchwell_job WHERE id <= $2 AND $1 = $1) AS newest";
            (newest, ROWS_PER_LOOK)
        }
        Among::Failed => {
            let newest = "SELECT first, last, NOT EXISTS (SELECT FROM fetchwell_job
                    WHERE queue = $1 AND reason IS NOT NULL AND id < first)
                FROM (SELECT min(id) AS first, max(id) AS last FROM (
                    SELECT id FROM fetchwell_job
                    WHERE queue = $1 AND reason IS NOT NULL AND id <= $2
                    ORDER BY queue DESC, id DESC LIMIT $3) AS few) AS newest";
            (newest, FAILURES_PER_LOOK)
        }
        Among::Waiting | Among::Leased => {
            return Ok(Stretch { first: 0, last: from, is_last: true });
        }
    };
    let query = sqlx::query(query).bind(queue.id).bind(from).bind(most);
    let found: Vec<(Option<LeaseId>, Option<LeaseId>, bool)> = queue.db.read_as(query).await?;
    Ok(match found.first() {
        Some((Some(first), Some(last), is_last)) => {
            Stretch { first: *first, last: *last, is_last: *is_last }
        }
        _ => Stretch { first: 0, last: 0, is_last: true },
    })
}

/// Messages that match, newest first.
pub(super) async fn list(
    queue: &PostgresQueue,
    look: &Look,
    ledger: &Ledger,
    from: Option<i64>,
    most: u32,
) -> Result<MessageSummaries, StoreError> {
    let most = most.clamp(1, MESSAGES_PER_PAGE) as usize;
    let among = look.among(ledger);
    let stretch = stretch(queue, among, from).await?;
    let (place, order) = place(among);
    let summary = sql!(summary!());
    let sql = format!("{summary}{place}{MATCHES} ORDER BY {order} LIMIT $13");
    let query = asked(sql, queue, look, &stretch, most + 1);
    let mut seen = queue.db.read(query, summary_by_id).await?;
    let next = match seen.get(most) {
        Some((id, _)) => Some(*id),
        None => (!stretch.is_last).then_some(stretch.first - 1),
    };
    seen.truncate(most);
    let messages = seen.into_iter().map(|(_, summary)| summary).collect();
    Ok(MessageSummaries { messages, next, as_of: look.as_of })
}

/// The number of matches, as far as one query reaches.
pub(super) async fn count(
    queue: &PostgresQueue,
    look: &Look,
    ledger: &Ledger,
) -> Result<Count, StoreError> {
    let among = look.among(ledger);
    let stretch = stretch(queue, among, None).await?;
    let (place, _) = place(among);
    let sql = format!("SELECT count(*) FROM (SELECT 1 {place}{MATCHES} LIMIT $13) AS found");
    let most = usize::try_from(MOST_COUNTED).unwrap_or(usize::MAX);
    let query = asked(sql, queue, look, &stretch, most + 1);
    let found: Vec<(i64,)> = queue.db.read_as(query).await?;
    let found = found.first().map_or(0, |(found,)| u64::try_from(*found).unwrap_or(0));
    let is_exact = stretch.is_last && found <= MOST_COUNTED;
    Ok(Count { found: found.min(MOST_COUNTED), is_exact, as_of: look.as_of })
}

/// The details of a message.
pub(super) async fn detail(
    queue: &PostgresQueue,
    id: MessageId,
) -> Result<Option<MessageDetail>, StoreError> {
    let query = sqlx::query(MESSAGE_DETAIL).bind(queue.id).bind(id.0.to_vec());
    Ok(queue.db.read(query, detail_of).await?.pop())
}

/// The newest failures that have not been retried, by reason and site.
pub(super) async fn failures(queue: &PostgresQueue, as_of: Time) -> Result<Failures, StoreError> {
    let stretch = stretch(queue, Among::Failed, None).await?;
    let query = sqlx::query(FAILURES)
        .bind(queue.id)
        .bind(stretch.first)
        .bind(stretch.last)
        .bind(FetchResult::CANCELLED)
        .bind(MOST_GROUPS + 1);
    let groups: Vec<(String, String, i64, LeaseId)> = queue.db.read_as(query).await?;
    let is_exact = stretch.is_last && groups.len() as i64 <= MOST_GROUPS;
    let newest: Vec<LeaseId> = groups.iter().map(|(.., id)| *id).collect();
    let sql = sql!(concat!(summary!(), "FROM fetchwell_job AS job WHERE job.id = ANY($1)"));
    let samples = queue.db.read(sqlx::query(sql).bind(newest), summary_by_id).await?;
    let mut samples: HashMap<LeaseId, MessageSummary> = samples.into_iter().collect();
    let groups = groups
        .into_iter()
        .take(usize::try_from(MOST_GROUPS).unwrap_or(0))
        .filter_map(|(reason, site, messages, id)| {
            let messages = u64::try_from(messages).unwrap_or(0);
            // If the sample was deleted meanwhile, its group is dropped.
            Some(FailureGroup { reason, site, messages, sample: samples.remove(&id)? })
        })
        .collect();
    Ok(Failures { groups, is_exact, as_of })
}

fn asked(
    sql: String,
    queue: &PostgresQueue,
    look: &Look,
    stretch: &Stretch,
    most: usize,
) -> PgQuery<'static> {
    let filter = look.filter.clone();
    let states = look.states();
    sqlx::query(AssertSqlSafe(sql))
        .bind(queue.id)
        .bind(stretch.first)
        .bind(stretch.last)
        .bind(states.map(|(one, _)| i64::from(one.number())))
        .bind(states.map(|(_, other)| i64::from(other.number())))
        .bind(filter.site)
        .bind(filter.reason)
        .bind(filter.retailer)
        .bind(filter.caller)
        .bind(filter.url_contains)
        .bind(filter.correlation_id)
        .bind(look.as_of.as_micros())
        .bind(i64::try_from(most).unwrap_or(i64::MAX))
}

fn detail_of(row: &PgRow) -> sqlx::Result<MessageDetail> {
    let story: Option<String> = row.try_get("story")?;
    let deadline: Option<i64> = row.try_get("deadline")?;
    let leader: Option<[u8; 16]> = row.try_get("leader")?;
    Ok(MessageDetail {
        message: summary_of(row)?,
        deadline: deadline.map(Time::from_micros),
        callback_url: row.try_get("callback_url")?,
        follows: leader.map(MessageId),
        attempts: attempts_of(&story.unwrap_or_default()),
        outbox: result_of(row)?,
    })
}

fn summary_by_id(row: &PgRow) -> sqlx::Result<(LeaseId, MessageSummary)> {
    Ok((row.try_get("id")?, summary_of(row)?))
}

fn summary_of(row: &PgRow) -> sqlx::Result<MessageSummary> {
    let time = |micros: Option<i64>| micros.map(Time::from_micros);
    let name = |key: Option<[u8; 16]>| key.map(MessageId);
    let stored: JobState = row.try_get("state")?;
    let requests: i64 = row.try_get("requests")?;
    Ok(MessageSummary {
        id: MessageId(row.try_get("key")?),
        url: url_of(row)?,
        site: row.try_get("site")?,
        retailer: row.try_get("retailer")?,
        correlation_id: row.try_get("correlation_id")?,
        caller: row.try_get("caller")?,
        state: state_of(stored),
        reason: row.try_get("reason")?,
        created_at: Time::from_micros(row.try_get("accepted_at")?),
        due_at: time(row.try_get("due")?).filter(|_| stored.waits()),
        ended_at: time(row.try_get("ended_at")?),
        attempts: u32::try_from(requests).unwrap_or(u32::MAX),
        retry_of: name(row.try_get("retry_of")?),
        retried_as: name(row.try_get("retried_as")?),
    })
}
