//! The row of a message: the columns that other jobs leave empty, how they are written, and how a message is read.

use std::sync::LazyLock;

use fetchwell_engine::ports::inbox::{Message, MessageId, MessageStatus, NewMessage};
use fetchwell_policy::time::Time;
use rusqlite::{Connection, OptionalExtension, Row, ToSql};

use super::outbox;
use crate::shared::job_state::JobState;

/// Columns that hold what a message was sent with. Retries copy them.
pub(super) const COLUMNS: [&str; 3] = ["correlation_id", "callback_url", "kind"];

/// Their names, as a statement lists them.
pub(super) static COLUMN_LIST: LazyLock<String> = LazyLock::new(|| COLUMNS.join(", "));

/// Placeholders for their values, numbered from `first` on.
pub(super) fn places(first: usize) -> String {
    let places: Vec<String> =
        (first..first + COLUMNS.len()).map(|number| format!("?{number}")).collect();
    places.join(", ")
}

/// Their values, in the order of [`COLUMNS`].
pub(super) fn values(new: &NewMessage) -> [&dyn ToSql; COLUMNS.len()] {
    [&new.correlation_id, &new.callback_url, &new.kind]
}

/// A message with its result; `of`: only if it is this caller's.
pub(super) fn read(
    tx: &Connection,
    queue: i64,
    id: MessageId,
    of: Option<&str>,
) -> rusqlite::Result<Option<Message>> {
    let found = tx
        .prepare_cached(
            "SELECT job.id, url, grp, correlation_id, party, state, created_at,
                 attempts + url_failures + site_failures + paced
             FROM job JOIN lane ON lane.id = job.lane
             WHERE job.queue = ?1 AND key = ?2 AND (?3 IS NULL OR party = ?3)",
        )?
        .query_row((queue, id.0, of), |row| Ok((row.get(0)?, message_of(row, id)?)))
        .optional()?;
    let Some((job, mut message)) = found else { return Ok(None) };
    message.outbox = outbox::of_job(tx, job)?;
    if let Some(ended) = &message.outbox {
        message.attempts = ended.result.attempts;
    }
    Ok(Some(message))
}

fn message_of(row: &Row<'_>, id: MessageId) -> rusqlite::Result<Message> {
    Ok(Message {
        id,
        url: row.get(1)?,
        retailer: row.get(2)?,
        correlation_id: row.get(3)?,
        caller: row.get(4)?,
        status: match row.get::<_, JobState>(5)? {
            JobState::Queued | JobState::Delayed => MessageStatus::Queued,
            JobState::Leased => MessageStatus::Processing,
            JobState::Completed => MessageStatus::Completed,
            JobState::Dead | JobState::Failed => MessageStatus::Failed,
        },
        created_at: Time::from_micros(row.get(6)?),
        attempts: row.get(7)?,
        outbox: None,
    })
}
