//! The instances of a queue, and the leases of dead ones.

use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;
use sqlx::Row;

use super::database::{Database, Tx};
use super::moment::{StoreClock, now_or};
use super::moves::{Moves, QueueId};
use crate::shared::job_state::sql;
use crate::shared::who::this_process;

/// While an instance holds this lock, it cannot be declared dead before the commit: a rescue skips it. A renewal does
/// not wait for the lock.
const IS_LIVE: &str = concat!(
    "WITH clock AS MATERIALIZED (SELECT ",
    now_or!("$1"),
    " AS now)
    SELECT now, (SELECT TRUE FROM fetchwell_instance WHERE epoch = $2 AND expires_at > now
                 FOR KEY SHARE) IS NOT NULL
    FROM clock"
);

const LENGTHEN: &str = concat!(
    "WITH clock AS MATERIALIZED (SELECT ",
    now_or!("$1"),
    " AS now), lengthened AS (
        UPDATE fetchwell_instance SET expires_at = now + $4, heartbeat_at = now FROM clock
        WHERE epoch = $3 AND expires_at > now RETURNING epoch
    )
    SELECT EXISTS (SELECT FROM lengthened),
        EXISTS (SELECT FROM fetchwell_instance, clock WHERE queue = $2 AND expires_at <= now)"
);

/// Requeues the leases of instances.
const ORPHANS: &str = sql!(
    "
    WITH orphan AS (
        SELECT id FROM fetchwell_job
        WHERE state = {leased} AND epoch = ANY($1) AND id <> ALL($4) ORDER BY id FOR UPDATE
    )
    UPDATE fetchwell_job AS job SET
        state = {queued}, due = $2, epoch = NULL, started = FALSE,
        interruptions = job.interruptions + (job.started AND $3)::INTEGER
    FROM orphan WHERE job.id = orphan.id
    RETURNING site, lane"
);

impl Moves {
    /// Begins a transaction for an instance, and returns whether the instance is alive.
    pub(super) async fn begin_for(
        db: &Database,
        clock: &StoreClock,
        epoch: i64,
    ) -> Result<(Moves, bool), StoreError> {
        let mut tx = db.begin().await?;
        let looked = async {
            let row = tx.fetch_one(sqlx::query(IS_LIVE).bind(clock.given()).bind(epoch)).await?;
            Ok((row.try_get::<i64, _>(0)?, row.try_get::<bool, _>(1)?))
        };
        let (now, lives) = looked.await.map_err(|error| db.fault(error))?;
        Ok((Moves::at(db, clock.moment(now), tx), lives))
    }

    /// Deletes expired instances and requeues their leases. Returns how many leases there were.
    pub(super) async fn rescue(&mut self, queue: QueueId) -> sqlx::Result<usize> {
        let query = sqlx::query(
            "DELETE FROM fetchwell_instance WHERE epoch IN (
                 SELECT epoch FROM fetchwell_instance WHERE queue = $1 AND expires_at <= $2
                 ORDER BY epoch FOR UPDATE SKIP LOCKED)
             RETURNING epoch",
        );
        let rows = self.tx.fetch(query.bind(queue).bind(self.now().as_micros())).await?;
        let dead: Vec<i64> = rows.iter().map(|row| row.try_get(0)).collect::<sqlx::Result<_>>()?;
        if dead.is_empty() {
            return Ok(0);
        }
        self.orphan(queue, dead, true, &[]).await
    }

    /// Deletes an instance that shuts down.
    pub(super) async fn leave(&mut self, queue: QueueId, epoch: i64) -> sqlx::Result<()> {
        let query = sqlx::query("DELETE FROM fetchwell_instance WHERE epoch = $1");
        self.tx.execute(query.bind(epoch)).await?;
        self.orphan(queue, vec![epoch], false, &[]).await.map(|_| ())
    }

    /// Requeues all leases of an instance except those in `known`.
    pub(super) async fn give_back(
        &mut self,
        queue: QueueId,
        epoch: i64,
        known: &[LeaseId],
    ) -> sqlx::Result<()> {
        // The instance's transactions hold this row, including those whose responses were lost: once it is locked here,
        // they have all ended and their effects are visible.
        let query = sqlx::query("SELECT FROM fetchwell_instance WHERE epoch = $1 FOR UPDATE");
        self.tx.execute(query.bind(epoch)).await?;
        self.orphan(queue, vec![epoch], false, known).await.map(|_| ())
    }

    /// Requeues the leases of these instances, except those in `known`. If `interrupted`, fetches in progress count as
    /// interrupted.
    async fn orphan(
        &mut self,
        queue: QueueId,
        epochs: Vec<i64>,
        interrupted: bool,
        known: &[LeaseId],
    ) -> sqlx::Result<usize> {
        let now = self.now();
        let query =
            sqlx::query(ORPHANS).bind(epochs).bind(now.as_micros()).bind(interrupted).bind(known);
        let orphans = self.tx.fetch(query).await?;
        for row in &orphans {
            self.change(queue).in_flight -= 1;
            self.now_waits(queue, row.try_get(0)?, row.try_get(1)?, now);
        }
        Ok(orphans.len())
    }
}

/// The outcome of a renewal.
pub(super) struct Lengthened {
    /// The lease had not expired, and was extended.
    pub(super) is_held: bool,
    /// The lease of some instance has expired.
    pub(super) has_dead: bool,
}

/// Extends the lease of an instance unless it has expired. Does not wait for locks.
pub(super) async fn lengthen(
    db: &Database,
    clock: &StoreClock,
    queue: QueueId,
    epoch: i64,
    ttl: Duration,
) -> Result<Lengthened, StoreError> {
    let query = sqlx::query(LENGTHEN)
        .bind(clock.given())
        .bind(queue)
        .bind(epoch)
        .bind(i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX));
    let row = db.run_brisk(query).await?;
    let read = || Ok(Lengthened { is_held: row.try_get(0)?, has_dead: row.try_get(1)? });
    read().map_err(|error| db.fault(error))
}

/// Adds a new instance. The commit must wait for the disk: an epoch that is lost in a crash would be given out twice.
pub(super) async fn join(
    tx: &mut Tx,
    queue: QueueId,
    now: Time,
    ttl: Duration,
) -> sqlx::Result<i64> {
    let query = sqlx::query(
        "INSERT INTO fetchwell_instance (queue, expires_at, who, since, heartbeat_at)
         VALUES ($1, $2, $3, $4, $4) RETURNING epoch",
    );
    let query = query.bind(queue).bind((now + ttl).as_micros()).bind(this_process());
    tx.fetch_one(query.bind(now.as_micros())).await?.try_get(0)
}
