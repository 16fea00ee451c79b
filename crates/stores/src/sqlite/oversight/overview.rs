//! The instances on a file, and the state of its queues.

use fetchwell_engine::ports::oversight::{InstanceView, OutboxExtent, QueueLedger, Recount};
use fetchwell_policy::time::Time;
use fetchwell_sqlite::statements::Statements;
use rusqlite::Connection;

use crate::shared::job_state::sql;
use crate::sqlite::queue::{read_ledger, recount_rows};

pub(super) fn instances(tx: &Connection) -> rusqlite::Result<Vec<InstanceView>> {
    let time = |micros: Option<i64>| micros.map(Time::from_micros);
    let select = sql!(
        "SELECT epoch, queue.name, who, since, heartbeat_at, expires_at,
             (SELECT count(*) FROM job WHERE state = {leased} AND job.epoch = instance.epoch)
         FROM instance JOIN queue ON queue.id = instance.queue ORDER BY queue.name, epoch"
    );
    tx.list(select, [], |row| {
        Ok(InstanceView {
            epoch: row.get(0)?,
            queue: row.get(1)?,
            who: row.get(2)?,
            since: time(row.get(3)?),
            last_heartbeat: time(row.get(4)?),
            expires_at: Time::from_micros(row.get(5)?),
            in_flight: row.get(6)?,
        })
    })
}

/// The range of each caller's results.
pub(super) fn outboxes(tx: &Connection) -> rusqlite::Result<Vec<OutboxExtent>> {
    tx.list("SELECT name, pruned, results FROM caller ORDER BY name", [], |row| {
        Ok(OutboxExtent { caller: row.get(0)?, pruned: row.get(1)?, newest: row.get(2)? })
    })
}

/// The ledger of each queue.
pub(super) fn ledgers(tx: &Connection) -> rusqlite::Result<Vec<QueueLedger>> {
    let queues = queues(tx)?;
    let ledger = |(id, queue)| Ok(QueueLedger { queue, ledger: read_ledger(tx, id)? });
    queues.into_iter().map(ledger).collect()
}

/// When the oldest waiting job of each queue was accepted. Ids are in order of acceptance, and the index of waiting
/// jobs contains them, so ended jobs are not scanned.
pub(super) fn waiting_since(tx: &Connection) -> rusqlite::Result<Vec<(String, Time)>> {
    let select = sql!(
        "SELECT queue.name, job.accepted_at FROM queue JOIN job ON job.id = (
             SELECT min(id) FROM job INDEXED BY job_waiting
             WHERE queue = queue.id AND state < {leased})"
    );
    tx.list(select, [], |row| Ok((row.get(0)?, Time::from_micros(row.get(1)?))))
}

/// The ledger of each queue, compared with its rows.
pub(super) fn recount(tx: &Connection) -> rusqlite::Result<Vec<Recount>> {
    let recount = |(id, queue)| {
        let ledger = read_ledger(tx, id)?;
        let difference = recount_rows(tx, id, &ledger)?;
        Ok(Recount { told: QueueLedger { queue, ledger }, difference })
    };
    queues(tx)?.into_iter().map(recount).collect()
}

fn queues(tx: &Connection) -> rusqlite::Result<Vec<(i64, String)>> {
    tx.list("SELECT id, name FROM queue ORDER BY name", [], |row| row.try_into())
}
