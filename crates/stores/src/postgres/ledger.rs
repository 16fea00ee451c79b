//! The number of jobs in each state: the sum of a queue's shards.

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::queue::Ledger;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::database::{Database, Tx};
use super::moves::QueueId;
use crate::shared::job_state::sql;

macro_rules! sums {
    () => {
        "coalesce(sum(accepted), 0)::BIGINT, coalesce(sum(done), 0)::BIGINT,
         coalesce(sum(skipped), 0)::BIGINT, coalesce(sum(queued), 0)::BIGINT,
         coalesce(sum(in_flight), 0)::BIGINT, coalesce(sum(delayed), 0)::BIGINT,
         coalesce(sum(dead), 0)::BIGINT"
    };
}

const SUM: &str = concat!("SELECT ", sums!(), " FROM fetchwell_ledger WHERE queue = $1");

/// One statement, so that both sides are read at the same moment.
const BESIDE_THE_ROWS: &str = sql!(concat!(
    "SELECT ",
    sums!(),
    ", ARRAY(SELECT (SELECT count(*) FROM fetchwell_job AS job
                     WHERE job.queue = $1 AND job.state = wanted.state)
             FROM generate_series({queued}, {dead}) AS wanted (state) ORDER BY wanted.state)
     FROM fetchwell_ledger WHERE queue = $1"
));

/// The sum as committed.
pub(super) async fn read(db: &Database, queue: QueueId) -> Result<Ledger, StoreError> {
    let mut ledgers = db.read(sqlx::query(SUM).bind(queue), ledger_of).await?;
    Ok(ledgers.pop().unwrap_or_default())
}

/// The sum as seen by a transaction.
pub(super) async fn sum(tx: &mut Tx, queue: QueueId) -> sqlx::Result<Ledger> {
    ledger_of(&tx.fetch_one(sqlx::query(SUM).bind(queue)).await?)
}

/// Compares the ledger with the number of jobs. Returns the ledger and a description of the difference.
pub(super) async fn recount(
    db: &Database,
    queue: QueueId,
) -> Result<(Ledger, Option<String>), StoreError> {
    let both = |row: &PgRow| Ok((ledger_of(row)?, row.try_get(7)?));
    let mut both = db.read(sqlx::query(BESIDE_THE_ROWS).bind(queue), both).await?;
    let (ledger, counted): (Ledger, Vec<i64>) = both.pop().unwrap_or_default();
    Ok((ledger, ledger.difference_from(counted.try_into().unwrap_or_default())))
}

fn ledger_of(row: &PgRow) -> sqlx::Result<Ledger> {
    Ok(Ledger {
        accepted: row.try_get(0)?,
        done: row.try_get(1)?,
        skipped: row.try_get(2)?,
        queued: row.try_get(3)?,
        in_flight: row.try_get(4)?,
        delayed: row.try_get(5)?,
        dead: row.try_get(6)?,
    })
}
