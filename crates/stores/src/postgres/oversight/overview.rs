//! The instances on a database, and the state of its queues.

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::oversight::{InstanceView, OutboxExtent, QueueLedger, Recount};
use fetchwell_policy::time::Time;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::postgres::database::Database;
use crate::postgres::ledger;
use crate::postgres::moves::QueueId;
use crate::shared::job_state::sql;

pub(super) async fn instances(db: &Database) -> Result<Vec<InstanceView>, StoreError> {
    let query = sqlx::query(sql!(
        "SELECT epoch, queue.name, who, since, heartbeat_at, expires_at,
             (SELECT count(*) FROM fetchwell_job AS job
              WHERE job.state = {leased} AND job.epoch = instance.epoch)
         FROM fetchwell_instance AS instance
         JOIN fetchwell_queue AS queue ON queue.id = instance.queue ORDER BY queue.name, epoch"
    ));
    let time = |micros: Option<i64>| micros.map(Time::from_micros);
    read(db, &db.read(query).await?, |row| {
        Ok(InstanceView {
            epoch: row.try_get(0)?,
            queue: row.try_get(1)?,
            who: row.try_get(2)?,
            since: time(row.try_get(3)?),
            last_heartbeat: time(row.try_get(4)?),
            expires_at: Time::from_micros(row.try_get(5)?),
            in_flight: u64::try_from(row.try_get::<i64, _>(6)?).unwrap_or(0),
        })
    })
}

/// The range of each caller's results.
pub(super) async fn outboxes(db: &Database) -> Result<Vec<OutboxExtent>, StoreError> {
    let query = sqlx::query("SELECT name, pruned, results FROM fetchwell_caller ORDER BY name");
    read(db, &db.read(query).await?, |row| {
        let caller = row.try_get(0)?;
        let pruned = row.try_get(1)?;
        let newest = row.try_get(2)?;
        Ok(OutboxExtent { caller, pruned, newest })
    })
}

/// The ledger of each queue.
pub(super) async fn ledgers(db: &Database) -> Result<Vec<QueueLedger>, StoreError> {
    let mut ledgers = Vec::new();
    for (id, queue) in queues(db).await? {
        ledgers.push(QueueLedger { queue, ledger: ledger::read(db, id).await? });
    }
    Ok(ledgers)
}

/// When the oldest waiting job of each queue was accepted. Ids are in order of acceptance. `id + 0` keeps PostgreSQL
/// from scanning all ended jobs for the first one that waits.
pub(super) async fn waiting_since(db: &Database) -> Result<Vec<(String, Time)>, StoreError> {
    let query = sqlx::query(sql!(
        "SELECT queue.name, job.accepted_at FROM fetchwell_queue AS queue
         JOIN fetchwell_job AS job ON job.id = (
             SELECT min(id + 0) FROM fetchwell_job WHERE queue = queue.id AND state < {leased})"
    ));
    read(db, &db.read(query).await?, |row| {
        Ok((row.try_get(0)?, Time::from_micros(row.try_get(1)?)))
    })
}

/// The ledger of each queue, compared with its rows.
pub(super) async fn recount(db: &Database) -> Result<Vec<Recount>, StoreError> {
    let mut recounts = Vec::new();
    for (id, queue) in queues(db).await? {
        let (ledger, difference) = ledger::recount(db, id).await?;
        recounts.push(Recount { told: QueueLedger { queue, ledger }, difference });
    }
    Ok(recounts)
}

async fn queues(db: &Database) -> Result<Vec<(QueueId, String)>, StoreError> {
    let query = sqlx::query("SELECT id, name FROM fetchwell_queue ORDER BY name");
    read(db, &db.read(query).await?, |row| Ok((row.try_get(0)?, row.try_get(1)?)))
}

fn read<T>(
    db: &Database,
    rows: &[PgRow],
    of: impl Fn(&PgRow) -> sqlx::Result<T>,
) -> Result<Vec<T>, StoreError> {
    rows.iter().map(of).collect::<sqlx::Result<_>>().map_err(|error| db.fault(error))
}
