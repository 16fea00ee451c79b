//! The row of a message: the columns that other jobs leave empty, how they are written, and how a message is read.

use std::sync::LazyLock;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{Message, MessageId, MessageStatus, NewMessage};
use fetchwell_policy::time::Time;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{Postgres, Row};

use super::database::Database;
use super::moves::QueueId;
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

/// Placeholders for arrays of their values, numbered from `first` on.
pub(super) fn arrays(first: usize) -> String {
    let array = |((_, kind), number): ((&str, ColumnKind), usize)| {
        format!("${number}::{}[]", kind.sql_type())
    };
    let arrays: Vec<String> = COLUMNS.into_iter().zip(first..).map(array).collect();
    arrays.join(", ")
}

/// Binds their values, in the order of [`COLUMNS`]. A job that is no message has none.
pub(super) fn bind<'q>(
    query: Query<'q, Postgres, PgArguments>,
    messages: &[Option<&NewMessage>],
) -> Query<'q, Postgres, PgArguments> {
    query
        .bind(each(messages, |new| Some(new.correlation_id.as_str())))
        .bind(each(messages, |new| new.callback_url.as_deref()))
        .bind(each(messages, |new| Some(new.kind.as_slice())))
}

fn each<'a, T>(
    messages: &[Option<&'a NewMessage>],
    read: impl Fn(&'a NewMessage) -> Option<T>,
) -> Vec<Option<T>> {
    messages.iter().map(|message| message.and_then(&read)).collect()
}

const MESSAGE: &str = "
    SELECT key, url, odd_url, retailer, correlation_id, job.caller, state, accepted_at,
        url_failures + site_failures + paced AS failures,
        cursor, stored_at, status, content, content_type, http_status, error, extracted, attempts
    FROM fetchwell_job AS job LEFT JOIN fetchwell_outbox AS outbox ON outbox.job = job.id
    WHERE queue = $1 AND key = $2 AND ($3::TEXT IS NULL OR job.caller = $3)";

/// A message with its result; `of`: only if it is this caller's. It is one statement, and so one moment.
pub(super) async fn read(
    db: &Database,
    queue: QueueId,
    id: MessageId,
    of: Option<&str>,
) -> Result<Option<Message>, StoreError> {
    let rows = db.read(sqlx::query(MESSAGE).bind(queue).bind(id.0.to_vec()).bind(of)).await?;
    rows.first().map(message_of).transpose().map_err(|error| db.fault(error))
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
        status: match row.try_get::<JobState, _>("state")? {
            JobState::Queued | JobState::Delayed => MessageStatus::Queued,
            JobState::Leased => MessageStatus::Processing,
            JobState::Completed => MessageStatus::Completed,
            JobState::Dead | JobState::Failed => MessageStatus::Failed,
        },
        created_at: Time::from_micros(row.try_get("accepted_at")?),
        attempts,
        outbox,
    })
}
