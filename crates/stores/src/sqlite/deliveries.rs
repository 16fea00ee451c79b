//! The log of webhook deliveries, and their replay.

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::Sink;
use fetchwell_engine::ports::inbox::{
    DeliveryFilter, DeliveryLogEntry, DeliveryRecord, DeliveryStatus, MAX_REPLAYS, ReplayRange,
    Replayed, ReplayedOne, delivery_attempts_of,
};
use fetchwell_policy::time::Time;
use fetchwell_sqlite::db::Db;
use fetchwell_sqlite::statements::Statements;
use rusqlite::{Connection, Row};

use super::moves::MessageEnding;
use crate::shared::conclusion::delivery_job;

/// Records the attempts of deliveries.
pub(super) struct DeliveryLog(pub(super) Db);

#[async_trait]
impl Sink<DeliveryRecord> for DeliveryLog {
    async fn write(&self, records: &[&DeliveryRecord]) -> Result<(), StoreError> {
        let records: Vec<DeliveryRecord> = records.iter().copied().cloned().collect();
        self.0.write(move |tx| records.iter().try_for_each(|record| enter(tx, record))).await
    }
}

/// Records an attempt. A batch may be repeated: what is the last line already is not added again. If the story is long
/// already, which takes about ten attempts, its oldest line is dropped. An instance that has lost its lease may record
/// an attempt after another one ended the delivery: that leaves the delivery ended, because nothing waits for it.
fn enter(tx: &Connection, record: &DeliveryRecord) -> rusqlite::Result<()> {
    let DeliveryRecord { webhook, caller, url, status, attempt } = record;
    tx.run(
        "INSERT INTO delivery (webhook, caller, url, status, attempts, created_at, story)
         VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6)
         ON CONFLICT (webhook) DO UPDATE SET
             status = CASE excluded.status WHEN 'pending' THEN status ELSE excluded.status END,
             attempts = attempts + 1,
             story = CASE WHEN story IS NULL THEN excluded.story
                 WHEN length(story) < 2500 THEN story || char(10) || excluded.story
                 ELSE substr(story, instr(story, char(10)) + 1) || char(10) || excluded.story END
         WHERE story IS NULL OR substr(story, -length(excluded.story)) <> excluded.story",
        (webhook, caller, url, status.as_str(), attempt.at.as_micros(), attempt.to_line()),
    )?;
    Ok(())
}

/// Records a delivery that waits for its first attempt.
pub(super) fn begin(
    tx: &Connection,
    webhook: &str,
    caller: &str,
    url: &str,
    wall: Time,
) -> rusqlite::Result<()> {
    tx.run(
        "INSERT INTO delivery (webhook, caller, url, status, created_at)
         VALUES (?1, ?2, ?3, 'pending', ?4) ON CONFLICT DO NOTHING",
        (webhook, caller, url, wall.as_micros()),
    )?;
    Ok(())
}

/// Deliveries to a caller, newest first.
pub(super) fn list(
    tx: &Connection,
    caller: &str,
    filter: DeliveryFilter,
) -> rusqlite::Result<Vec<DeliveryLogEntry>> {
    let DeliveryFilter { status, before, most } = filter;
    let before = before.unwrap_or(i64::MAX);
    match status {
        None => tx.list(
            "SELECT id, webhook, url, status, attempts, created_at, story FROM delivery
             WHERE caller = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3",
            (caller, before, most),
            entry_in,
        ),
        Some(status) => tx.list(
            "SELECT id, webhook, url, status, attempts, created_at, story FROM delivery
             WHERE caller = ?1 AND id < ?2 AND status = ?4 ORDER BY id DESC LIMIT ?3",
            (caller, before, most, status.as_str()),
            entry_in,
        ),
    }
}

fn entry_in(row: &Row<'_>) -> rusqlite::Result<DeliveryLogEntry> {
    let status: String = row.get(3)?;
    let story: Option<String> = row.get(6)?;
    Ok(DeliveryLogEntry {
        position: row.get(0)?,
        webhook: row.get(1)?,
        url: row.get(2)?,
        status: DeliveryStatus::parse(&status).unwrap_or(DeliveryStatus::Pending),
        attempts: row.get(4)?,
        created_at: Time::from_micros(row.get(5)?),
        last_attempts: delivery_attempts_of(&story.unwrap_or_default()),
    })
}

/// Puts a delivery that has ended on the queue again.
fn put_again(
    tx: &Connection,
    ending: &mut MessageEnding<'_>,
    caller: &str,
    position: i64,
) -> rusqlite::Result<bool> {
    let update = "UPDATE delivery SET status = 'pending' WHERE id = ?1 AND status <> 'pending'
         RETURNING webhook, url";
    let ended: Option<(String, String)> = tx.find(update, [position], |row| row.try_into())?;
    let Some((webhook, url)) = ended else { return Ok(false) };
    ending.deliveries.accept(&delivery_job(url, webhook.into_bytes(), caller))?;
    Ok(true)
}

pub(super) fn replay_one(
    tx: &Connection,
    ending: &mut MessageEnding<'_>,
    caller: &str,
    webhook: &str,
) -> rusqlite::Result<ReplayedOne> {
    let select = "SELECT id FROM delivery WHERE webhook = ?1 AND caller = ?2";
    let position: Option<i64> = tx.find(select, (webhook, caller), |row| row.get(0))?;
    let Some(position) = position else { return Ok(ReplayedOne::Unknown) };
    match put_again(tx, ending, caller, position)? {
        true => Ok(ReplayedOne::Again),
        false => Ok(ReplayedOne::StillPending),
    }
}

pub(super) fn replay(
    tx: &Connection,
    ending: &mut MessageEnding<'_>,
    caller: &str,
    range: ReplayRange,
) -> rusqlite::Result<Replayed> {
    let ReplayRange { since, until, status, after, most } = range;
    let most = most.min(MAX_REPLAYS);
    let (after_at, after_position) = after.unwrap_or((since.as_micros(), 0));
    let matching: Vec<(i64, i64)> = tx.list(
        "SELECT created_at, id FROM delivery
         WHERE caller = ?1 AND (created_at, id) > (?2, ?3) AND created_at >= ?4 AND created_at < ?5
             AND status <> 'pending' AND (?6 IS NULL OR status = ?6)
         ORDER BY created_at, id LIMIT ?7",
        (
            caller,
            after_at,
            after_position,
            since.as_micros(),
            until.as_micros(),
            status.map(DeliveryStatus::as_str),
            most,
        ),
        |row| row.try_into(),
    )?;
    let mut count = 0;
    for (_, position) in &matching {
        count += u32::from(put_again(tx, ending, caller, *position)?);
    }
    let is_full = matching.len() == most as usize;
    Ok(Replayed { count, next: matching.last().copied().filter(|_| is_full) })
}
