//! The row of a message: the columns that other jobs leave empty, how they are written, and how a message is read.

use std::sync::LazyLock;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{Message, MessageId, NewMessage};
use fetchwell_policy::time::Time;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::bodies::join_body;
use super::connections::PgQuery;
use super::database::column;
use super::queue::PostgresQueue;
use super::reading::{result_of, url_of};
use crate::shared::job_state::JobState;
use crate::shared::transfer::ColumnKind;

/// Columns that hold what a message was sent with. Retries copy them.
pub(crate) const COLUMNS: [(&str, ColumnKind); 3] = [
    ("correlation_id", ColumnKind::Text),
    ("callback_url", ColumnKind::Text),
    ("kind", ColumnKind::Bytes),
];

/// Their names, as a statement lists them.
pub(super) static COLUMN_LIST: LazyLock<String> =
    LazyLock::new(|| COLUMNS.map(|(name, _)| name).join(", "));

/// Placeholders for arrays of such values, numbered from `first` on.
pub(super) fn arrays(kinds: &[ColumnKind], first: usize) -> String {
    let array = |(kind, number): (&ColumnKind, usize)| format!("${number}::{}[]", kind.sql_type());
    let arrays: Vec<String> = kinds.iter().zip(first..).map(array).collect();
    arrays.join(", ")
}

/// Binds their values, in the order of [`COLUMNS`]. A job that is no message has none.
pub(super) fn bind<'q>(query: PgQuery<'q>, messages: &[Option<&NewMessage>]) -> PgQuery<'q> {
    query
        .bind(column(messages, |new| new.map(|new| new.correlation_id.as_str())))
        .bind(column(messages, |new| new.and_then(|new| new.callback_url.as_deref())))
        .bind(column(messages, |new| new.map(|new| new.kind.as_slice())))
}

const MESSAGE: &str = concat!(
    "SELECT key, url, odd_url, retailer, correlation_id, job.caller, state, accepted_at,
        url_failures + site_failures + paced AS failures,
        cursor, stored_at, status, content, content_type, http_status, error, extracted, details,
        cached_age, attempts, body_of, body_expires_at, body_bytes
    FROM fetchwell_job AS job LEFT JOIN fetchwell_outbox AS outbox ON outbox.job = job.id",
    join_body!("outbox.body_of"),
    "WHERE queue = $1 AND key = $2 AND ($3::TEXT IS NULL OR job.caller = $3)"
);

/// A message with its result; `of`: only if it is this caller's. It is one statement, and so one moment.
pub(super) async fn read(
    queue: &PostgresQueue,
    id: MessageId,
    of: Option<&str>,
) -> Result<Option<Message>, StoreError> {
    let query = sqlx::query(MESSAGE).bind(queue.id).bind(id.0.to_vec()).bind(of);
    Ok(queue.db.read(query, message_of).await?.pop())
}

fn message_of(row: &PgRow) -> sqlx::Result<Message> {
    let outbox = result_of(row)?;
    let failures: i64 = row.try_get("failures")?;
    let attempts = match &outbox {
        Some(outbox) => outbox.result.attempts,
        None => u32::try_from(failures).unwrap_or(u32::MAX),
    };
    Ok(Message {
        id: MessageId(row.try_get("key")?),
        url: url_of(row)?,
        retailer: row.try_get("retailer")?,
        correlation_id: row.try_get("correlation_id")?,
        caller: row.try_get("caller")?,
        status: row.try_get::<JobState, _>("state")?.into(),
        created_at: Time::from_micros(row.try_get("accepted_at")?),
        attempts,
        outbox,
    })
}
