//! Lists the messages of one caller, newest first.

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::sent::{MOST_SENT, SentFilter, SentMessage, SentPage};
use fetchwell_engine::ports::inbox::{Message, MessageId};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::queue::PostgresQueue;
use super::reading::url_of;
use crate::shared::job_state::JobState;

/// The maximum number of messages that one page reads to find those that match.
const MOST_READ: i64 = 50_000;

/// The caller's messages between two ids. The bounds are written so that only the index of callers gives this order:
/// PostgreSQL would otherwise expect to find enough of them among the newest messages of all callers.
macro_rules! own {
    ($columns:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM fetchwell_job
             WHERE caller IS NOT NULL AND (caller, id) <= ($1, $2) AND (caller, id) >= ($1, $3)
             ORDER BY caller DESC, id DESC ",
            $rest
        )
    };
}

const FOUND: &str = concat!(
    "SELECT job.id, key, url, odd_url, retailer, job.correlation_id, job.caller, job.state, accepted_at,
         CASE WHEN outbox.job IS NULL THEN url_failures + site_failures + paced ELSE attempts END
             AS requests,
         outbox.status AS result_status
     FROM (SELECT id FROM (",
    own!("caller, id, correlation_id, state, batch", "LIMIT $7"),
    ") AS own
           WHERE ($4::TEXT IS NULL OR correlation_id = $4)
               AND ($5::SMALLINT IS NULL OR state = $5 OR state = $6)
               AND ($8::BYTEA IS NULL OR batch = $8)
           ORDER BY caller DESC, id DESC LIMIT $9) AS found
     JOIN fetchwell_job AS job ON job.id = found.id
     LEFT JOIN fetchwell_outbox AS outbox ON outbox.job = job.id
     ORDER BY job.id DESC"
);

/// The first of the caller's messages that a page did not read.
const UNREAD: &str = own!("id", "OFFSET $4 LIMIT 1");

/// The range of ids that contains the batch's messages. It may also contain other jobs.
const BATCH: &str =
    "SELECT first_job, last_job FROM fetchwell_message_batch WHERE id = $1 AND caller = $2";

/// Messages of the caller that match, from the newest one or from the `next` of another page on.
pub(super) async fn list(
    queue: &PostgresQueue,
    caller: &str,
    filter: &SentFilter,
    from: Option<i64>,
    most: u32,
) -> Result<SentPage, StoreError> {
    let most = most.clamp(1, MOST_SENT) as usize;
    let batch = filter.batch.map(|batch| batch.0.to_vec());
    let range: Option<(LeaseId, LeaseId)> = match &batch {
        Some(batch) => {
            let query = sqlx::query(BATCH).bind(batch).bind(caller);
            queue.db.read_as(query).await?.pop()
        }
        None => Some((0, LeaseId::MAX)),
    };
    let Some((oldest, newest)) = range else {
        return Ok(SentPage { messages: Vec::new(), next: None });
    };
    let from = from.map_or(newest, |from| from.min(newest));
    let states = filter.status.map(JobState::of_status);
    let query = sqlx::query(FOUND)
        .bind(caller)
        .bind(from)
        .bind(oldest)
        .bind(&filter.correlation_id)
        .bind(states.map(|(one, _)| one.number()))
        .bind(states.map(|(_, other)| other.number()))
        .bind(MOST_READ)
        .bind(&batch)
        .bind(i64::try_from(most + 1).unwrap_or(i64::MAX));
    let mut found = queue.db.read(query, sent_of).await?;
    let next = match found.get(most) {
        Some((id, _)) => Some(*id),
        // Without a filter, all that were read were found.
        None if *filter == SentFilter::default() => None,
        None => {
            let query = sqlx::query(UNREAD).bind(caller).bind(from).bind(oldest).bind(MOST_READ);
            let unread: Vec<(LeaseId,)> = queue.db.read_as(query).await?;
            unread.first().map(|(id,)| *id)
        }
    };
    found.truncate(most);
    Ok(SentPage { messages: found.into_iter().map(|(_, message)| message).collect(), next })
}

fn sent_of(row: &PgRow) -> sqlx::Result<(LeaseId, SentMessage)> {
    let requests: i64 = row.try_get("requests")?;
    let message = Message {
        id: MessageId(row.try_get("key")?),
        url: url_of(row)?,
        retailer: row.try_get("retailer")?,
        correlation_id: row.try_get("correlation_id")?,
        caller: row.try_get("caller")?,
        status: row.try_get::<JobState, _>("state")?.into(),
        created_at: Time::from_micros(row.try_get("accepted_at")?),
        attempts: u32::try_from(requests).unwrap_or(u32::MAX),
        outbox: None,
    };
    Ok((row.try_get("id")?, SentMessage { message, result_status: row.try_get("result_status")? }))
}
