//! The instances of a queue, and the leases of dead ones.

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::LeaseId;
use sqlx::{FromRow, Row};

use super::moves::{Moves, now_or};
use super::queue::PostgresQueue;
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

impl<'q> Moves<'q> {
    /// Begins a transaction for an instance, and returns whether the instance is alive.
    pub(super) async fn begin_for(
        queue: &'q PostgresQueue,
        epoch: i64,
    ) -> Result<(Moves<'q>, bool), StoreError> {
        let mut tx = queue.db.begin().await?;
        let query = sqlx::query(IS_LIVE).bind(queue.clock.given()).bind(epoch);
        let looked = tx.fetch_one(query).await.and_then(|row| FromRow::from_row(&row));
        let (now, lives): (i64, bool) = queue.db.sense(looked)?;
        Ok((Moves::at(queue, now, tx), lives))
    }

    /// Adds a new instance. The commit must wait for the disk: an epoch that is lost in a crash would be given out
    /// twice.
    pub(super) async fn join(&mut self) -> sqlx::Result<i64> {
        let query = sqlx::query(
            "INSERT INTO fetchwell_instance (queue, expires_at, who, since, heartbeat_at)
             VALUES ($1, $2, $3, $4, $4) RETURNING epoch",
        );
        let expires_at = self.now() + self.queue.lease_ttl;
        let query = query.bind(self.queue.id).bind(expires_at.as_micros()).bind(this_process());
        self.tx.fetch_one(query.bind(self.now().as_micros())).await?.try_get(0)
    }

    /// Deletes expired instances and requeues their leases. Returns how many leases there were.
    pub(super) async fn rescue(&mut self) -> sqlx::Result<usize> {
        let query = sqlx::query(
            "DELETE FROM fetchwell_instance WHERE epoch IN (
                 SELECT epoch FROM fetchwell_instance WHERE queue = $1 AND expires_at <= $2
                 ORDER BY epoch FOR UPDATE SKIP LOCKED)
             RETURNING epoch",
        );
        let query = query.bind(self.queue.id).bind(self.now().as_micros());
        let rows = self.tx.fetch(query).await?;
        let dead: Vec<i64> = rows.iter().map(|row| row.try_get(0)).collect::<sqlx::Result<_>>()?;
        if dead.is_empty() {
            return Ok(0);
        }
        self.orphan(dead, true, &[]).await
    }

    /// Deletes an instance that shuts down, and requeues its leases. Returns how many there were.
    pub(super) async fn leave(&mut self, epoch: i64) -> sqlx::Result<usize> {
        let query = sqlx::query("DELETE FROM fetchwell_instance WHERE epoch = $1");
        self.tx.execute(query.bind(epoch)).await?;
        self.orphan(vec![epoch], false, &[]).await
    }

    /// Requeues all leases of an instance except those in `known`. Returns how many there were.
    pub(super) async fn give_back(&mut self, epoch: i64, known: &[LeaseId]) -> sqlx::Result<usize> {
        // The instance's transactions hold this row, including those whose responses were lost: once it is locked here,
        // they have all ended and their effects are visible.
        let query = sqlx::query("SELECT FROM fetchwell_instance WHERE epoch = $1 FOR UPDATE");
        self.tx.execute(query.bind(epoch)).await?;
        self.orphan(vec![epoch], false, known).await
    }

    /// Requeues the leases of these instances, except those in `known`. If `interrupted`, fetches in progress count as
    /// interrupted.
    async fn orphan(
        &mut self,
        epochs: Vec<i64>,
        interrupted: bool,
        known: &[LeaseId],
    ) -> sqlx::Result<usize> {
        let now = self.now();
        let query = sqlx::query(ORPHANS).bind(epochs).bind(now.as_micros());
        let orphans = self.tx.fetch_as(query.bind(interrupted).bind(known)).await?;
        let count = orphans.len();
        for (site, lane) in orphans {
            self.change().in_flight -= 1;
            self.now_waits(site, lane, now);
        }
        Ok(count)
    }
}

impl PostgresQueue {
    /// Extends the lease of an instance unless it has expired. Does not wait for locks. Returns whether it was
    /// extended, and whether the lease of some instance has expired.
    pub(super) async fn lengthen(&self, epoch: i64) -> Result<(bool, bool), StoreError> {
        let query = sqlx::query(LENGTHEN)
            .bind(self.clock.given())
            .bind(self.id)
            .bind(epoch)
            .bind(i64::try_from(self.lease_ttl.as_micros()).unwrap_or(i64::MAX));
        let rows = self.db.run_brisk(query).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound);
        self.db.sense(row.and_then(FromRow::from_row))
    }
}
