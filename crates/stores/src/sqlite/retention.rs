//! Deletes old data: messages with their results, deliveries, idempotency keys and audit entries.

use std::collections::BTreeMap;
use std::time::Duration;

use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;
use fetchwell_sqlite::statements::Statements;
use rusqlite::Connection;

use super::crawls;
use super::moves::{LaneId, Moves};

/// How long audit entries are kept, except those of submissions, which are deleted with their messages.
const AUDIT_KEPT: Duration = Duration::from_secs(90 * 86_400);

/// Deletes messages that ended longer ago than `keep`. Returns how many, at most `most`.
pub(super) fn prune(
    moves: &mut Moves<'_>,
    keep: Duration,
    most: u32,
    wall: Time,
) -> rusqlite::Result<u64> {
    let tx = moves.tx;
    let now = moves.now;
    let select = "SELECT name, pruned FROM caller WHERE pruned < results";
    let callers: Vec<(String, i64)> = tx.list(select, [], |row| row.try_into())?;
    let mut gone = 0;
    for (caller, pruned) in callers {
        let left = u64::from(most) - gone;
        gone += prune_caller(tx, &caller, pruned, (now - keep).as_micros(), left)?;
    }
    let without_result = moves.forget_dead(now - keep, u64::from(most) - gone)?;
    for lane in &without_result {
        count_off(tx, *lane)?;
    }
    gone += without_result.len() as u64;
    let delete = |statement: &str, before: Time| tx.run(statement, (before.as_micros(), most));
    delete(
        "DELETE FROM idempotency WHERE (caller, key) IN (
             SELECT caller, key FROM idempotency WHERE created_at < ?1
             ORDER BY created_at LIMIT ?2)",
        now - keep,
    )?;
    delete(
        "DELETE FROM delivery WHERE id IN (
             SELECT id FROM delivery WHERE created_at < ?1 ORDER BY created_at LIMIT ?2)",
        wall - keep,
    )?;
    delete(
        "DELETE FROM audit WHERE id IN (
             SELECT id FROM audit WHERE action = 'submit' AND at < ?1 ORDER BY at LIMIT ?2)",
        wall - keep,
    )?;
    delete(
        "DELETE FROM audit WHERE id IN (
             SELECT id FROM audit WHERE action <> 'submit' AND at < ?1 ORDER BY at LIMIT ?2)",
        wall - AUDIT_KEPT,
    )?;
    // A batch goes when all of its messages are gone: the list of messages finds them by it. An earlier release leaves
    // the entries of results behind.
    let batches: Vec<[u8; 16]> = tx.list(
        "DELETE FROM message_batch WHERE key IN (
             SELECT key FROM message_batch AS old WHERE ended_at < ?1
                 AND NOT EXISTS (SELECT 1 FROM message_batch_result AS entry
                                 CROSS JOIN outbox ON outbox.job = entry.job
                                 WHERE entry.batch = old.id)
                 AND NOT EXISTS (SELECT 1 FROM job WHERE job.id BETWEEN old.first_job AND old.last_job
                                     AND job.batch = old.id)
             ORDER BY ended_at LIMIT ?2)
         RETURNING id",
        ((wall - keep).as_micros(), most),
        |row| row.get(0),
    )?;
    for batch in batches {
        tx.run("DELETE FROM message_batch_result WHERE batch = ?1", [batch])?;
    }
    crawls::prune(tx, wall - keep)?;
    Ok(gone)
}

/// Counts a deleted message of a lane. The lane goes with the last one.
fn count_off(tx: &Connection, lane: LaneId) -> rusqlite::Result<()> {
    let count = "UPDATE lane SET messages = messages - 1 WHERE id = ?1 RETURNING messages";
    let messages: i64 = tx.one(count, [lane], |row| row.get(0))?;
    if messages == 0 {
        tx.run("DELETE FROM lane WHERE id = ?1", [lane])?;
    }
    Ok(())
}

/// Deletes a caller's results in cursor order, so that a reader never finds a gap.
fn prune_caller(
    tx: &Connection,
    caller: &str,
    pruned: i64,
    before: i64,
    most: u64,
) -> rusqlite::Result<u64> {
    let oldest: Vec<(LeaseId, i64, i64)> = tx.list(
        "SELECT job, cursor, stored_at FROM outbox WHERE caller = ?1 AND cursor > ?2
         ORDER BY cursor LIMIT ?3",
        (caller, pruned, most),
        |row| row.try_into(),
    )?;
    let mut gone = 0;
    let mut last = pruned;
    let mut batches: BTreeMap<[u8; 16], i64> = BTreeMap::new();
    let mut crawls: BTreeMap<i64, i64> = BTreeMap::new();
    for (job, cursor, _) in oldest.iter().take_while(|(_, _, stored_at)| *stored_at < before) {
        tx.run("DELETE FROM outbox WHERE job = ?1", [job])?;
        let delete = "DELETE FROM job WHERE id = ?1 RETURNING lane, batch, crawl";
        let (lane, batch, crawl): (i64, Option<[u8; 16]>, Option<i64>) =
            tx.one(delete, [job], |row| row.try_into())?;
        if let Some(batch) = batch {
            let delete = "DELETE FROM message_batch_result WHERE batch = ?1 AND place = ?2";
            tx.run(delete, (batch, cursor))?;
            batches.insert(batch, *cursor);
        }
        if let Some(crawl) = crawl {
            let delete = "DELETE FROM message_crawl_result WHERE crawl = ?1 AND place = ?2";
            tx.run(delete, (crawl, cursor))?;
            crawls.insert(crawl, *cursor);
        }
        count_off(tx, lane)?;
        gone += 1;
        last = *cursor;
    }
    for (batch, last) in batches {
        tx.run("UPDATE message_batch SET pruned = ?2 WHERE id = ?1", (batch, last))?;
    }
    for (crawl, last) in crawls {
        tx.run("UPDATE message_crawl SET pruned = ?2 WHERE key = ?1", (crawl, last))?;
    }
    if gone > 0 {
        tx.run("UPDATE caller SET pruned = ?2 WHERE name = ?1", (caller, last))?;
    }
    Ok(gone)
}
