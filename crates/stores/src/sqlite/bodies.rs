//! Bodies of responses. The row of a caller counts the bytes of its bodies, in the transactions that change them.

use fetchwell_engine::ports::inbox::{MessageBody, MessageId, NewBody};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;
use fetchwell_sqlite::statements::Statements;
use rusqlite::Connection;

use crate::shared::bodies::{BodySize, IS_CONTENT, LOOKED_AT, MAX_PRUNED_BYTES, first_of, sum};

/// Stores the body of a result, and deletes the oldest bodies of the caller that exceed its quota. The caller has a row.
pub(super) fn keep(
    tx: &Connection,
    job: LeaseId,
    caller: &str,
    body: &NewBody,
    now: Time,
    wall: Time,
) -> rusqlite::Result<()> {
    let due = (now + body.keep).as_micros();
    let expires_at = (wall + body.keep).as_micros();
    tx.run(
        "INSERT INTO message_body (job, caller, due, expires_at, bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
        (job, caller, due, expires_at, &body.bytes[..]),
    )?;
    let bytes = i64::try_from(body.bytes.len()).unwrap_or(i64::MAX);
    let count =
        "UPDATE caller SET body_bytes = body_bytes + ?2 WHERE name = ?1 RETURNING body_bytes";
    let total: i64 = tx.one(count, (caller, bytes), |row| row.get(0))?;
    let mut excess = total - i64::try_from(body.quota_bytes).unwrap_or(i64::MAX);
    while excess > 0 {
        let oldest: Vec<BodySize> = tx.list(
            "SELECT job, length(bytes) FROM message_body WHERE caller = ?1
             ORDER BY due, job LIMIT ?2",
            (caller, LOOKED_AT),
            |row| row.try_into(),
        )?;
        if oldest.is_empty() {
            break;
        }
        let oldest = first_of(&oldest, excess);
        delete(tx, caller, oldest)?;
        excess -= sum(oldest);
    }
    Ok(())
}

/// The body of a message; `of`: only if it is this caller's.
pub(super) fn read(
    tx: &Connection,
    queue: i64,
    id: MessageId,
    of: Option<&str>,
) -> rusqlite::Result<Option<MessageBody>> {
    tx.find(
        "SELECT outbox.job IS NOT NULL, body_of, content_type,
             CASE body_of WHEN ?4 THEN CAST(content AS BLOB) ELSE bytes END
         FROM job JOIN lane ON lane.id = job.lane
         LEFT JOIN outbox ON outbox.job = job.id
         LEFT JOIN message_body ON message_body.job = body_of
         WHERE job.queue = ?1 AND key = ?2 AND (?3 IS NULL OR party = ?3)",
        (queue, id.0, of, IS_CONTENT),
        |row| {
            let has_result: bool = row.get(0)?;
            let body_of: Option<LeaseId> = row.get(1)?;
            Ok(match (has_result, body_of, row.get(3)?) {
                (false, ..) => MessageBody::NoResult,
                (true, None, _) => MessageBody::Absent,
                (true, Some(_), None) => MessageBody::Deleted,
                (true, Some(_), Some(bytes)) => {
                    MessageBody::Found { content_type: row.get(2)?, bytes }
                }
            })
        },
    )
}

/// Deletes expired bodies of one caller, at most `most`. Returns the number.
pub(super) fn prune(tx: &Connection, most: u32, now: Time) -> rusqlite::Result<u64> {
    let oldest = "SELECT caller FROM message_body WHERE due < ?1 ORDER BY due LIMIT 1";
    let before = now.as_micros();
    let Some(caller) = tx.find(oldest, [before], |row| row.get::<_, String>(0))? else {
        return Ok(0);
    };
    let expired: Vec<BodySize> = tx.list(
        "SELECT job, length(bytes) FROM message_body WHERE caller = ?1 AND due < ?2
         ORDER BY due, job LIMIT ?3",
        (&caller, before, most),
        |row| row.try_into(),
    )?;
    let expired = first_of(&expired, MAX_PRUNED_BYTES);
    delete(tx, &caller, expired)?;
    Ok(expired.len() as u64)
}

fn delete(tx: &Connection, caller: &str, bodies: &[BodySize]) -> rusqlite::Result<()> {
    for (job, _) in bodies {
        tx.run("DELETE FROM message_body WHERE job = ?1", [job])?;
    }
    let count_off = "UPDATE caller SET body_bytes = body_bytes - ?2 WHERE name = ?1";
    tx.run(count_off, (caller, sum(bodies)))?;
    Ok(())
}
