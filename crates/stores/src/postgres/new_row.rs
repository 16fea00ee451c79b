//! New rows in the table of jobs.

use std::collections::HashSet;

use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;
use sqlx::Row;

use super::database::{Tx, writable};
use super::lanes::LaneId;
use super::moves::QueueId;
use crate::shared::job_state::{JobState, sql};

/// A row to be put in.
pub(super) struct NewRow {
    pub(super) id: LeaseId,
    pub(super) queue: QueueId,
    pub(super) lane: LaneId,
    pub(super) key: Option<[u8; 16]>,
    pub(super) site: String,
    pub(super) url: String,
    pub(super) payload: Vec<u8>,
    pub(super) deadline: Option<Time>,
    pub(super) due: Time,
    pub(super) state: JobState,
    pub(super) message: Option<MessagePart>,
}

/// What a message has besides.
pub(super) struct MessagePart {
    pub(super) caller: String,
    pub(super) retailer: String,
    pub(super) correlation_id: String,
    pub(super) callback_url: Option<String>,
    pub(super) kind: [u8; 16],
    pub(super) shares: bool,
    pub(super) follows: Option<LeaseId>,
}

impl NewRow {
    /// Whether it is to be handed out; else it has ended already.
    pub(super) fn waits(&self) -> bool {
        self.state.waits()
    }
}

/// In the order of their keys: two that put in the same ones do not wait for each other. Of two with one
/// key the first goes in.
const INSERT: &str = sql!("
    INSERT INTO fetchwell_job (id, queue, lane, key, site, url, odd_url, payload, deadline, due, state,
        caller, retailer, correlation_id, callback_url, kind, shares, follows, accepted_at, ended_at)
    SELECT id, queue, lane, key, site, url, odd_url, payload, deadline, due, state,
        caller, retailer, correlation_id, callback_url, kind, shares, follows, $19,
        CASE WHEN state > {leased} THEN $19 END
    FROM unnest($1::BIGINT[], $2::INTEGER[], $3::BIGINT[], $4::BYTEA[], $5::TEXT[], $6::TEXT[],
            $7::BYTEA[], $8::BYTEA[], $9::BIGINT[], $10::BIGINT[], $11::SMALLINT[], $12::TEXT[],
            $13::TEXT[], $14::TEXT[], $15::TEXT[], $16::BYTEA[], $17::BOOLEAN[], $18::BIGINT[])
        AS new (id, queue, lane, key, site, url, odd_url, payload, deadline, due, state,
            caller, retailer, correlation_id, callback_url, kind, shares, follows)
    ORDER BY key, id
    ON CONFLICT (queue, key) WHERE key IS NOT NULL DO NOTHING
    RETURNING id");

/// Puts rows in, but for those whose keys are there already. Returns which went in.
pub(super) async fn insert(
    tx: &mut Tx,
    rows: &[NewRow],
    now: Time,
) -> sqlx::Result<HashSet<LeaseId>> {
    let odd_url = |row: &NewRow| row.url.contains('\0').then(|| row.url.clone().into_bytes());
    let message = |row: &NewRow, read: fn(&MessagePart) -> &str| -> Option<String> {
        row.message.as_ref().map(|message| read(message).to_owned())
    };
    let query = sqlx::query(INSERT)
        .bind(each(rows, |row| row.id))
        .bind(each(rows, |row| row.queue))
        .bind(each(rows, |row| row.lane))
        .bind(each(rows, |row| row.key.map(|key| key.to_vec())))
        .bind(each(rows, |row| row.site.as_str()))
        .bind(each(rows, |row| writable(&row.url)))
        .bind(each(rows, odd_url))
        .bind(each(rows, |row| row.payload.as_slice()))
        .bind(each(rows, |row| row.deadline.map(Time::as_micros)))
        .bind(each(rows, |row| row.due.as_micros()))
        .bind(each(rows, |row| row.state.number()))
        .bind(each(rows, |row| message(row, |message| &message.caller)))
        .bind(each(rows, |row| message(row, |message| &message.retailer)))
        .bind(each(rows, |row| message(row, |message| &message.correlation_id)))
        .bind(each(rows, |row| row.message.as_ref().and_then(|m| m.callback_url.clone())))
        .bind(each(rows, |row| row.message.as_ref().map(|m| m.kind.to_vec())))
        .bind(each(rows, |row| row.message.as_ref().is_some_and(|m| m.shares)))
        .bind(each(rows, |row| row.message.as_ref().and_then(|m| m.follows)))
        .bind(now.as_micros());
    tx.fetch(query).await?.iter().map(|row| row.try_get(0)).collect()
}

/// A column of the rows.
fn each<'a, T>(rows: &'a [NewRow], read: impl Fn(&'a NewRow) -> T) -> Vec<T> {
    rows.iter().map(read).collect()
}
