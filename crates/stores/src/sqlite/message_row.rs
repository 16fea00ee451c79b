//! The row of a message: the columns that other jobs leave empty, how they are written, and how a message is read.

use fetchwell_engine::ports::inbox::{Message, MessageId, NewMessage};
use fetchwell_policy::time::Time;
use fetchwell_sqlite::statements::Statements;
use rusqlite::{Connection, ToSql};

use super::outbox;
use crate::shared::job_state::JobState;

/// Columns that hold what a message was sent with. Retries copy them.
pub(super) const COLUMNS: &str = "correlation_id, callback_url, kind";

/// The number of [`COLUMNS`].
pub(super) const COLUMN_COUNT: usize = 3;

/// Their values, in the same order.
pub(super) fn values(new: &NewMessage) -> [&dyn ToSql; COLUMN_COUNT] {
    [&new.correlation_id, &new.callback_url, &new.kind]
}

/// A message with its result; `of`: only if it is this caller's.
pub(super) fn read(
    tx: &Connection,
    queue: i64,
    id: MessageId,
    of: Option<&str>,
) -> rusqlite::Result<Option<Message>> {
    tx.find(
        "SELECT job.id, url, grp, correlation_id, party, state, created_at,
             attempts + url_failures + site_failures + paced
         FROM job JOIN lane ON lane.id = job.lane
         WHERE job.queue = ?1 AND key = ?2 AND (?3 IS NULL OR party = ?3)",
        (queue, id.0, of),
        |row| {
            let failures = row.get(7)?;
            let outbox = outbox::of_job(tx, row.get(0)?)?;
            Ok(Message {
                id,
                url: row.get(1)?,
                retailer: row.get(2)?,
                correlation_id: row.get(3)?,
                caller: row.get(4)?,
                status: row.get::<_, JobState>(5)?.into(),
                created_at: Time::from_micros(row.get(6)?),
                attempts: outbox.as_ref().map_or(failures, |ended| ended.result.attempts),
                outbox,
            })
        },
    )
}
