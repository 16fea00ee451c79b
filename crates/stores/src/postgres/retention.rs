//! Deletes old data: messages with their results, idempotency keys, audit entries and unused lanes. Works in small
//! transactions, so that nothing waits for long.

use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;
use sqlx::Row;

use super::database::Database;
use super::lanes::LaneId;
use super::moment::StoreClock;
use super::moves::{Moves, QueueId};
use crate::shared::job_state::sql;

/// How long audit entries are kept, except those of submissions, which are deleted with their messages.
const AUDIT_KEPT: Duration = Duration::from_secs(90 * 86_400);
/// Rows to delete per transaction.
const STEP: u32 = 500;

/// Deletes messages that ended longer ago than `keep`. Returns how many, at most `most`.
pub(super) async fn prune(
    db: &Database,
    clock: &StoreClock,
    queue: QueueId,
    keep: Duration,
    most: u32,
) -> Result<u64, StoreError> {
    let callers = db
        .read(sqlx::query("SELECT name FROM fetchwell_caller WHERE pruned < results ORDER BY name"))
        .await?;
    let mut left = most;
    for caller in callers {
        let caller: String = caller.try_get(0).map_err(|error| db.fault(error))?;
        while left > 0 {
            let step = left.min(STEP);
            let moves = Moves::begin(db, clock).await?;
            let gone = prune_caller(moves, &caller, keep, step).await;
            let gone = gone.map_err(|error| db.fault(error))?;
            left -= gone;
            if gone < step {
                break;
            }
        }
    }
    let moves = Moves::begin(db, clock).await?;
    let gone = prune_the_rest(moves, queue, keep, left).await.map_err(|error| db.fault(error))?;
    Ok(u64::from(most - left) + gone)
}

/// Deletes a caller's results in cursor order, so that a reader never finds a gap.
async fn prune_caller(
    mut moves: Moves,
    caller: &str,
    keep: Duration,
    most: u32,
) -> sqlx::Result<u32> {
    let query = sqlx::query(
        "SELECT outbox.job, outbox.cursor, outbox.stored_at
         FROM fetchwell_caller AS caller
         JOIN fetchwell_outbox AS outbox
             ON outbox.caller = caller.name AND outbox.cursor > caller.pruned
         WHERE caller.name = $1 ORDER BY outbox.cursor LIMIT $2 FOR UPDATE OF outbox",
    );
    let before = moves.now() - keep;
    let mut jobs: Vec<LeaseId> = Vec::new();
    let mut last: i64 = 0;
    for row in moves.tx.fetch(query.bind(caller).bind(i64::from(most))).await? {
        if Time::from_micros(row.try_get(2)?) >= before {
            break;
        }
        jobs.push(row.try_get(0)?);
        last = row.try_get(1)?;
    }
    if jobs.is_empty() {
        moves.commit().await?;
        return Ok(0);
    }
    let query = sqlx::query("DELETE FROM fetchwell_outbox WHERE job = ANY($1)");
    moves.tx.execute(query.bind(&jobs)).await?;
    let query = sqlx::query("DELETE FROM fetchwell_job WHERE id = ANY($1)");
    moves.tx.execute(query.bind(&jobs)).await?;
    let query =
        sqlx::query("UPDATE fetchwell_caller SET pruned = $2 WHERE name = $1 AND pruned < $2");
    moves.tx.execute(query.bind(caller).bind(last)).await?;
    moves.commit().await?;
    Ok(u32::try_from(jobs.len()).unwrap_or(u32::MAX))
}

/// Deletes data that is not tied to a caller's cursor. Returns how many messages were deleted: those that ended without
/// a result.
async fn prune_the_rest(
    mut moves: Moves,
    queue: QueueId,
    keep: Duration,
    most: u32,
) -> sqlx::Result<u64> {
    let before = (moves.now() - keep).as_micros();
    let audit_before = (moves.now() - AUDIT_KEPT).as_micros();
    let query = sqlx::query(sql!(
        "DELETE FROM fetchwell_job WHERE id IN (
             SELECT id FROM fetchwell_job WHERE queue = $1 AND state = {dead} AND ended_at < $2
             ORDER BY id LIMIT $3)"
    ));
    let dead = moves.tx.execute(query.bind(queue).bind(before).bind(i64::from(most))).await?;
    // From now on they count as skipped, like dropped dead letters.
    let gone = i64::try_from(dead).unwrap_or(0);
    let change = moves.change(queue);
    (change.dead, change.skipped) = (change.dead - gone, change.skipped + gone);
    let query = sqlx::query(
        "DELETE FROM fetchwell_idempotency WHERE (caller, key) IN (
             SELECT caller, key FROM fetchwell_idempotency WHERE created_at < $1
             ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
    );
    moves.tx.execute(query.bind(before).bind(i64::from(STEP))).await?;
    let query = sqlx::query(
        "DELETE FROM fetchwell_audit WHERE id IN (
             SELECT id FROM fetchwell_audit WHERE action = 'submit' AND at < $1
             ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED)",
    );
    moves.tx.execute(query.bind(before).bind(i64::from(STEP))).await?;
    let query = sqlx::query(
        "DELETE FROM fetchwell_audit WHERE id IN (
             SELECT id FROM fetchwell_audit WHERE action <> 'submit' AND at < $1
             ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED)",
    );
    moves.tx.execute(query.bind(audit_before).bind(i64::from(STEP))).await?;
    prune_lanes(&mut moves).await?;
    moves.commit().await?;
    Ok(dead)
}

/// A lane is in use while it has waiting or leased jobs, and while a transaction that inserts jobs holds its row. Once
/// the row is locked here, no new insert can begin, and jobs inserted before are visible.
async fn prune_lanes(moves: &mut Moves) -> sqlx::Result<()> {
    let query = sqlx::query(
        "SELECT id FROM fetchwell_lane AS lane
         WHERE NOT EXISTS (SELECT FROM fetchwell_room AS room
                           WHERE room.queue = lane.queue AND room.lane = lane.id)
         ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED",
    );
    let rows = moves.tx.fetch(query.bind(i64::from(STEP))).await?;
    let unused: Vec<LaneId> = rows.iter().map(|row| row.try_get(0)).collect::<sqlx::Result<_>>()?;
    let query = sqlx::query(sql!(
        "DELETE FROM fetchwell_lane AS lane
         WHERE id = ANY($1)
             AND NOT EXISTS (SELECT FROM fetchwell_room AS room
                             WHERE room.queue = lane.queue AND room.lane = lane.id)
             AND id <> ALL(ARRAY(
                 SELECT job.lane FROM fetchwell_job AS job WHERE job.state = {leased}))"
    ));
    moves.tx.execute(query.bind(unused)).await?;
    Ok(())
}
