//! Inserts rows into the table of jobs.

use std::collections::HashSet;
use std::sync::LazyLock;

use bytes::Bytes;
use fetchwell_engine::ports::inbox::{BatchId, NewMessage};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;
use sqlx::Row;

use super::database::{Tx, column, writable};
use super::lanes::LaneId;
use super::message_row;
use super::moves::QueueId;
use crate::shared::job_state::JobState;

/// A row to insert.
pub(super) struct NewRow<'a> {
    pub(super) id: LeaseId,
    pub(super) queue: QueueId,
    pub(super) lane: LaneId,
    pub(super) key: Option<[u8; 16]>,
    pub(super) site: String,
    pub(super) url: String,
    pub(super) payload: Bytes,
    pub(super) deadline: Option<Time>,
    pub(super) due: Time,
    pub(super) state: JobState,
    pub(super) message: Option<MessagePart<'a>>,
}

/// The columns that only messages have.
#[derive(Clone, Copy)]
pub(super) struct MessagePart<'a> {
    pub(super) new: &'a NewMessage,
    pub(super) caller: &'a str,
    /// The job whose result it gets at once.
    pub(super) copies: Option<LeaseId>,
    /// The job whose result it waits for.
    pub(super) follows: Option<LeaseId>,
    pub(super) batch: Option<BatchId>,
}

/// Values of a row, and the time, beside those of [`message_row::COLUMNS`].
const OWN: usize = 17;

/// In key order, so that two transactions that insert the same keys do not deadlock. Of two rows with one key, the
/// first is inserted.
static INSERT: LazyLock<String> = LazyLock::new(|| {
    let columns = message_row::COLUMN_LIST.as_str();
    let arrays = message_row::arrays(&message_row::COLUMNS.map(|(_, kind)| kind), OWN + 1);
    let leased = JobState::Leased.number();
    format!(
        "INSERT INTO fetchwell_job (id, queue, lane, key, site, url, odd_url, payload, deadline, due,
            state, caller, retailer, shares, follows, batch, {columns}, accepted_at, ended_at)
        SELECT id, queue, lane, key, site, url, odd_url, payload, deadline, due,
            state, caller, retailer, shares, follows, batch, {columns}, $16,
            CASE WHEN state > {leased} THEN $16 END
        FROM unnest($1::BIGINT[], $2::INTEGER[], $3::BIGINT[], $4::BYTEA[], $5::TEXT[], $6::TEXT[],
                $7::BYTEA[], $8::BYTEA[], $9::BIGINT[], $10::BIGINT[], $11::SMALLINT[], $12::TEXT[],
                $13::TEXT[], $14::BOOLEAN[], $15::BIGINT[], $17::BYTEA[], {arrays})
            AS new (id, queue, lane, key, site, url, odd_url, payload, deadline, due,
                state, caller, retailer, shares, follows, batch, {columns})
        ORDER BY key, id
        ON CONFLICT (queue, key) WHERE key IS NOT NULL DO NOTHING
        RETURNING id"
    )
});

/// Inserts rows, except those whose keys exist already. Returns the ids of the inserted ones.
pub(super) async fn insert(
    tx: &mut Tx,
    rows: &[NewRow<'_>],
    now: Time,
) -> sqlx::Result<HashSet<LeaseId>> {
    let odd_url = |row: &NewRow<'_>| row.url.contains('\0').then(|| row.url.clone().into_bytes());
    let messages: Vec<Option<&NewMessage>> =
        column(rows, |row| row.message.map(|message| message.new));
    let query = sqlx::query(INSERT.as_str())
        .bind(column(rows, |row| row.id))
        .bind(column(rows, |row| row.queue))
        .bind(column(rows, |row| row.lane))
        .bind(column(rows, |row| row.key.map(|key| key.to_vec())))
        .bind(column(rows, |row| row.site.as_str()))
        .bind(column(rows, |row| writable(&row.url)))
        .bind(column(rows, odd_url))
        .bind(column(rows, |row| &row.payload[..]))
        .bind(column(rows, |row| row.deadline.map(Time::as_micros)))
        .bind(column(rows, |row| row.due.as_micros()))
        .bind(column(rows, |row| row.state.number()))
        .bind(column(rows, |row| row.message.map(|message| message.caller)))
        .bind(column(rows, |row| row.message.map(|message| message.new.retailer.as_str())))
        .bind(column(rows, |row| row.message.is_some_and(|message| message.new.max_age.is_some())))
        .bind(column(rows, |row| row.message.and_then(|message| message.follows)))
        .bind(now.as_micros())
        .bind(column(rows, |row| row.message.and_then(|message| Some(message.batch?.0.to_vec()))));
    let query = message_row::bind(query, &messages);
    tx.fetch(query).await?.iter().map(|row| row.try_get(0)).collect()
}
