//! Deletes old data: messages with their results, deliveries, idempotency keys, audit entries and unused lanes. Works
//! in small transactions, so that nothing waits for long.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::LeaseId;
use sqlx::Row;

use super::lanes::LaneId;
use super::moves::Moves;
use super::queue::PostgresQueue;
use crate::shared::job_state::sql;

/// How long audit entries are kept, except those of submissions, which are deleted with their messages.
const AUDIT_KEPT: Duration = Duration::from_secs(90 * 86_400);
/// Rows to delete per transaction.
const STEP: u32 = 500;

/// Deletes messages that ended longer ago than `keep`. Returns how many, at most `most`.
pub(super) async fn prune(
    queue: &PostgresQueue,
    keep: Duration,
    most: u32,
) -> Result<u64, StoreError> {
    let query =
        sqlx::query("SELECT name FROM fetchwell_caller WHERE pruned < results ORDER BY name");
    let callers: Vec<(String,)> = queue.db.read_as(query).await?;
    let mut left = most;
    for (caller,) in callers {
        while left > 0 {
            let step = left.min(STEP);
            let mut moves = Moves::begin(queue).await?;
            let gone = prune_caller(&mut moves, &caller, keep, step).await;
            let gone = moves.end(gone).await?;
            left -= gone;
            if gone < step {
                break;
            }
        }
    }
    let mut moves = Moves::begin(queue).await?;
    let gone = prune_the_rest(&mut moves, keep, left).await;
    Ok(u64::from(most - left) + moves.end(gone).await?)
}

/// Deletes a caller's results in cursor order, so that a reader never finds a gap.
async fn prune_caller(
    moves: &mut Moves<'_>,
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
    let before = (moves.now() - keep).as_micros();
    let rows: Vec<(LeaseId, i64, i64)> =
        moves.tx.fetch_as(query.bind(caller).bind(i64::from(most))).await?;
    let old = rows.into_iter().take_while(|(_, _, stored_at)| *stored_at < before);
    let (jobs, cursors): (Vec<LeaseId>, Vec<i64>) =
        old.map(|(job, cursor, _)| (job, cursor)).unzip();
    let Some(&last) = cursors.last() else { return Ok(0) };
    let query = sqlx::query("DELETE FROM fetchwell_outbox WHERE job = ANY($1)");
    moves.tx.execute(query.bind(&jobs)).await?;
    let query = sqlx::query("DELETE FROM fetchwell_job WHERE id = ANY($1) RETURNING id, batch");
    let deleted: Vec<(LeaseId, Option<Vec<u8>>)> = moves.tx.fetch_as(query.bind(&jobs)).await?;
    let query =
        sqlx::query("UPDATE fetchwell_caller SET pruned = $2 WHERE name = $1 AND pruned < $2");
    moves.tx.execute(query.bind(caller).bind(last)).await?;
    let places: HashMap<LeaseId, i64> = jobs.iter().copied().zip(cursors).collect();
    let (batches, places): (Vec<Vec<u8>>, Vec<i64>) = deleted
        .into_iter()
        .filter_map(|(job, batch)| Some((batch?, places.get(&job).copied()?)))
        .unzip();
    if !batches.is_empty() {
        moves.tx.execute(sqlx::query(PRUNE_BATCHES).bind(batches).bind(places)).await?;
    }
    Ok(u32::try_from(jobs.len()).unwrap_or(u32::MAX))
}

/// Deletes the entries of results that batches had, and records up to where.
const PRUNE_BATCHES: &str = "
    WITH old AS (
        DELETE FROM fetchwell_message_batch_result AS entry
        USING unnest($1::BYTEA[], $2::BIGINT[]) AS gone (batch, place)
        WHERE entry.batch = gone.batch AND entry.place = gone.place
        RETURNING entry.batch, entry.place
    )
    UPDATE fetchwell_message_batch AS batch SET pruned = old.place
    FROM (SELECT batch, max(place) AS place FROM old GROUP BY batch) AS old
    WHERE batch.id = old.batch AND batch.pruned < old.place";

/// Deletes data that is not tied to a caller's cursor. Returns how many messages were deleted: those that ended without
/// a result.
async fn prune_the_rest(moves: &mut Moves<'_>, keep: Duration, most: u32) -> sqlx::Result<u64> {
    let before = (moves.now() - keep).as_micros();
    let audit_before = (moves.now() - AUDIT_KEPT).as_micros();
    let query = sqlx::query(sql!(
        "DELETE FROM fetchwell_job WHERE id IN (
             SELECT id FROM fetchwell_job WHERE queue = $1 AND state = {dead} AND ended_at < $2
             ORDER BY id LIMIT $3)"
    ));
    let query = query.bind(moves.queue.id).bind(before).bind(i64::from(most));
    let dead = moves.tx.execute(query).await?;
    // From now on they count as skipped, like dropped dead letters.
    let gone = i64::try_from(dead).unwrap_or(0);
    moves.change().dead -= gone;
    moves.change().skipped += gone;
    for (statement, before) in [
        (
            // A batch goes when all of its results are gone. An earlier release leaves their entries behind.
            "WITH gone AS (
                 DELETE FROM fetchwell_message_batch WHERE id IN (
                     SELECT id FROM fetchwell_message_batch AS old WHERE ended_at < $1
                         AND NOT EXISTS (SELECT FROM fetchwell_message_batch_result AS entry
                                         JOIN fetchwell_outbox AS outbox ON outbox.job = entry.job
                                         WHERE entry.batch = old.id)
                     ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED)
                 RETURNING id)
             DELETE FROM fetchwell_message_batch_result AS entry USING gone
             WHERE entry.batch = gone.id",
            before,
        ),
        (
            "DELETE FROM fetchwell_idempotency WHERE (caller, key) IN (
                 SELECT caller, key FROM fetchwell_idempotency WHERE created_at < $1
                 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
            before,
        ),
        (
            "DELETE FROM fetchwell_delivery WHERE id IN (
                 SELECT id FROM fetchwell_delivery WHERE created_at < $1
                 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
            before,
        ),
        (
            "DELETE FROM fetchwell_audit WHERE id IN (
                 SELECT id FROM fetchwell_audit WHERE action = 'submit' AND at < $1
                 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED)",
            before,
        ),
        (
            "DELETE FROM fetchwell_audit WHERE id IN (
                 SELECT id FROM fetchwell_audit WHERE action <> 'submit' AND at < $1
                 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED)",
            audit_before,
        ),
    ] {
        moves.tx.execute(sqlx::query(statement).bind(before).bind(i64::from(STEP))).await?;
    }
    prune_lanes(moves).await?;
    Ok(dead)
}

/// A lane is in use while it has waiting or leased jobs, and while a transaction that inserts jobs holds its row. Once
/// the row is locked here, no new insert can begin, and jobs inserted before are visible.
async fn prune_lanes(moves: &mut Moves<'_>) -> sqlx::Result<()> {
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
