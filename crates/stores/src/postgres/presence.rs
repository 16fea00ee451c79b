//! Who is at work on a queue, and what becomes of what the dead held.

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

/// Whoever holds this row can't be taken for dead before the commit: a rescue passes it by. A renewal does
/// not wait for it.
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

/// What a dead instance held waits again.
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
    /// Begins a transaction of an instance, and says whether that is alive.
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

    /// Takes out the instances whose time is over, and lets what they held wait again. Returns how much
    /// that was.
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

    /// Takes an instance out that leaves of its own accord.
    pub(super) async fn leave(&mut self, queue: QueueId, epoch: i64) -> sqlx::Result<()> {
        let query = sqlx::query("DELETE FROM fetchwell_instance WHERE epoch = $1");
        self.tx.execute(query.bind(epoch)).await?;
        self.orphan(queue, vec![epoch], false, &[]).await.map(|_| ())
    }

    /// Lets what an instance holds without knowing it wait again: all but what is `known`.
    pub(super) async fn give_back(
        &mut self,
        queue: QueueId,
        epoch: i64,
        known: &[LeaseId],
    ) -> sqlx::Result<()> {
        // Its transactions hold this row, those too that nobody hears of any more: after this they have
        // all ended, and there is to see what they did.
        let query = sqlx::query("SELECT FROM fetchwell_instance WHERE epoch = $1 FOR UPDATE");
        self.tx.execute(query.bind(epoch)).await?;
        self.orphan(queue, vec![epoch], false, known).await.map(|_| ())
    }

    /// Lets what these instances hold wait again, but for what is `known`. What was being fetched was
    /// `interrupted`, unless they say otherwise.
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

/// How an instance's lease stands after it asked for more.
pub(super) struct Lengthened {
    /// It had not run out, and is longer now.
    pub(super) is_held: bool,
    /// Somebody's lease has run out.
    pub(super) has_dead: bool,
}

/// Lengthens an instance's lease, if it still has one. It waits for nobody.
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

/// A new instance. Its transaction must wait for the disk: a number that was lost with the server would be
/// given to two.
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
