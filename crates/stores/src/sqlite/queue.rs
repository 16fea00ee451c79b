//! The durable queue, with leases, fencing, rescue, and a ledger that changes with each move.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Settle, Settled, Settlement};
use fetchwell_engine::ports::job::{Lease, LeaseId, NewJob};
use fetchwell_engine::ports::queue::{Instance, Ledger, LedgerMismatch, Queue};
use fetchwell_engine::ports::source::{Demand, Renewal, Source, Taken};
use fetchwell_policy::time::Time;
use fetchwell_sqlite::db::Db;
use fetchwell_sqlite::errors::io_fault;
use fetchwell_sqlite::statements::Statements;
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::Notify;

use super::clock::write_at;
use super::files::{length_of, output_name, revise_length_of};
use super::frontier::CRAWL_TABLES;
use super::moves::{MAX_LANES_PER_TAKE, Moves};
use super::presence::{self, Presence};
use crate::shared::job_state::sql;
use crate::shared::who::this_process;

/// How often to check an idle queue for jobs from other processes.
const POLL: Duration = Duration::from_millis(500);

/// A named queue in a SQLite file.
#[derive(Clone)]
pub struct SqliteQueue {
    pub(super) db: Db,
    pub(super) clock: Clock,
    pub(crate) queue: i64,
    pub(super) news: Arc<Notify>,
    lease_ttl: Duration,
    run_once: bool,
    poll: Duration,
}

/// One process that takes leases from a [`SqliteQueue`].
pub struct SqliteInstance {
    pub(super) queue: SqliteQueue,
    epoch: AtomicI64,
    /// The lane to start with at the next take.
    turn: AtomicI64,
    presence: Mutex<Option<Presence>>,
    /// The number of leases of dead instances that this one has requeued.
    rescued: AtomicU64,
}

/// Means no epoch yet: SQLite counts them from 1.
const NO_EPOCH: i64 = 0;

impl SqliteQueue {
    /// Opens or creates the queue of that name. With `run_once`, a run ends when it is empty.
    pub async fn open(
        db: Db,
        name: &str,
        clock: Clock,
        lease_ttl: Duration,
        run_once: bool,
    ) -> Result<SqliteQueue, StoreError> {
        let name = name.to_owned();
        let queue = db
            .write(move |tx| {
                tx.execute("INSERT INTO queue (name) VALUES (?1) ON CONFLICT DO NOTHING", [&name])?;
                tx.query_row("SELECT id FROM queue WHERE name = ?1", [&name], |row| row.get(0))
            })
            .await?;
        Ok(SqliteQueue { db, clock, queue, news: Arc::default(), lease_ttl, run_once, poll: POLL })
    }

    /// Sets how often to check for jobs from other processes.
    pub fn polled_every(self, poll: Duration) -> SqliteQueue {
        SqliteQueue { poll, ..self }
    }

    /// Joins the queue as a new instance.
    pub fn instance(&self) -> SqliteInstance {
        let epoch = AtomicI64::new(NO_EPOCH);
        let turn = AtomicI64::new(0);
        let presence = Mutex::new(None);
        SqliteInstance { queue: self.clone(), epoch, turn, presence, rescued: AtomicU64::new(0) }
    }

    /// Inserts the jobs that `choose` returns. It gets the confirmed length of an output and runs in the same
    /// transaction, so no other process confirms more meanwhile.
    pub async fn enqueue_beside(
        &self,
        output: &Path,
        choose: impl FnOnce(u64) -> io::Result<Vec<NewJob>> + Send + 'static,
    ) -> Result<usize, StoreError> {
        let output = output_name(output)?;
        self.transact(move |moves| {
            let confirmed = length_of(moves.tx, &output)?.unwrap_or(0);
            let jobs = choose(confirmed).map_err(|error| io_fault(output.as_ref(), error))?;
            moves.accept_all(&jobs)
        })
        .await
    }

    /// Runs `work` on the moves of this queue in one transaction, and updates the ledger.
    pub(super) async fn transact<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Moves<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let queue = self.queue;
        write_at(&self.db, &self.clock, move |tx, now| {
            let mut moves = Moves::new(tx, queue, now);
            let done = work(&mut moves)?;
            moves.enter()?;
            Ok(done)
        })
        .await
    }

    /// Runs `work`, which must not write, in one transaction. It gets the id of the queue.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let queue = self.queue;
        self.db.read(move |tx| work(tx, queue)).await
    }

    /// Runs `work` unless an instance is using the queue. Returns whether it did.
    async fn unless_in_use(
        &self,
        work: impl FnOnce(&Moves<'_>) -> rusqlite::Result<()> + Send + 'static,
    ) -> Result<bool, StoreError> {
        let store = self.db.path().to_owned();
        self.transact(move |moves| {
            let free = !is_in_use(moves.tx, moves.queue, &store, moves.now)?;
            if free {
                work(moves)?;
            }
            Ok(free)
        })
        .await
    }

    /// Whether an instance is using the queue.
    pub async fn is_in_use(&self) -> Result<bool, StoreError> {
        Ok(!self.unless_in_use(|_| Ok(())).await?)
    }

    /// Updates the length of an output, like [`revise_length`](super::revise_length), unless an instance is using the
    /// queue. Returns whether it did.
    pub async fn revise_length_unless_in_use(
        &self,
        output: &Path,
        revise: impl FnOnce(Option<u64>) -> io::Result<u64> + Send + 'static,
    ) -> Result<bool, StoreError> {
        let output = output_name(output)?;
        self.unless_in_use(move |moves| revise_length_of(moves.tx, &output, revise)).await
    }

    /// Empties the queue, including dead letters and ledger, unless an instance is using it. Returns whether it did.
    pub async fn reset_unless_in_use(&self) -> Result<bool, StoreError> {
        self.unless_in_use(|moves| {
            empty(moves.tx, moves.queue)?;
            moves.tx.execute(
                "UPDATE queue SET accepted = 0, done = 0, skipped = 0, queued = 0,
                     in_flight = 0, delayed = 0, dead = 0 WHERE id = ?1",
                [moves.queue],
            )?;
            Ok(())
        })
        .await
    }

    /// Deletes the queue with everything in it.
    pub async fn discard(&self) -> Result<(), StoreError> {
        self.transact(|moves| discard(moves.tx, moves.queue)).await
    }

    /// Deletes the queues whose names begin with `prefix` and that no instance is using.
    pub async fn discard_abandoned(db: &Db, prefix: &str, clock: &Clock) -> Result<(), StoreError> {
        let prefix = prefix.to_owned();
        let store = db.path().to_owned();
        write_at(db, clock, move |tx, now| {
            let select = "SELECT id FROM queue WHERE substr(name, 1, length(?1)) = ?1";
            for queue in tx.list(select, [prefix], |row| row.get(0))? {
                if !is_in_use(tx, queue, &store, now)? {
                    discard(tx, queue)?;
                }
            }
            Ok(())
        })
        .await
    }

    /// When the oldest waiting job (delayed or not) was accepted. Uses the index of waiting jobs, so ended jobs are not
    /// scanned.
    pub(super) async fn oldest_waiting(&self) -> Result<Option<Time>, StoreError> {
        let select = sql!(
            "SELECT accepted_at FROM job WHERE id = (
                 SELECT min(id) FROM job INDEXED BY job_waiting
                 WHERE queue = ?1 AND state < {leased})"
        );
        self.transact(move |moves| {
            moves.tx.find(select, [moves.queue], |row| row.get(0).map(Time::from_micros))
        })
        .await
    }
}

#[async_trait]
impl Queue for SqliteQueue {
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<usize, StoreError> {
        let accepted = self.transact(move |moves| moves.accept_all(&jobs)).await?;
        self.news.notify_one();
        Ok(accepted)
    }

    fn instance(&self) -> Arc<dyn Instance> {
        Arc::new(SqliteQueue::instance(self))
    }

    async fn ledger(&self) -> Result<Ledger, StoreError> {
        self.transact(|moves| read_ledger(moves.tx, moves.queue)).await
    }

    async fn audit(&self) -> Result<Result<Ledger, LedgerMismatch>, StoreError> {
        self.transact(|moves| {
            let ledger = read_ledger(moves.tx, moves.queue)?;
            let difference = recount_rows(moves.tx, moves.queue, &ledger)?;
            Ok(difference.map(LedgerMismatch).map_or(Ok(ledger), Err))
        })
        .await
    }
}

/// Describes the difference between the counters of a queue and its rows; `None` if they agree.
pub(super) fn recount_rows(
    tx: &Connection,
    queue: i64,
    ledger: &Ledger,
) -> rusqlite::Result<Option<String>> {
    let mut counted = [0; 4];
    let select = "SELECT state, count(*) FROM job WHERE queue = ?1 GROUP BY state";
    let rows: Vec<(usize, i64)> = tx.list(select, [queue], |row| row.try_into())?;
    for (state, count) in rows {
        if let Some(counted) = counted.get_mut(state) {
            *counted = count;
        }
    }
    Ok(ledger.difference_from(counted))
}

impl SqliteInstance {
    pub(super) fn epoch(&self) -> i64 {
        self.epoch.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Source for SqliteInstance {
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreError> {
        let SqliteQueue { run_once, lease_ttl, poll, .. } = self.queue;
        let epoch = self.epoch();
        let demand = demand.clone();
        let turn = self.turn.load(Ordering::Relaxed);
        let (next_turn, taken) = self
            .queue
            .transact(move |moves| {
                let now = moves.now;
                moves.close_rooms(&demand)?;
                if !is_live(moves.tx, epoch, now)? {
                    return Ok((turn, Taken::Idle { until: now + lease_ttl / 4 }));
                }
                let mut lanes = moves.busy_lanes(turn)?;
                // The next take starts with the second of these, or with those that were not considered.
                let last = lanes.get(MAX_LANES_PER_TAKE - 1).or(lanes.first());
                let turn = last.map_or(turn, |lane| lane.id + 1);
                lanes.retain(|lane| !lane.rests(&demand.resting));
                let next_due = lanes.iter().map(|lane| lane.due).min();
                let leases = moves.lease(epoch, &demand, &lanes)?;
                if !leases.is_empty() {
                    return Ok((turn, Taken::Jobs(leases)));
                }
                let deadline = moves.first_deadline()?;
                // Nothing was leased, so the stored ledger is up to date.
                let ledger = read_ledger(moves.tx, moves.queue)?;
                if run_once && ledger.unfinished() == 0 {
                    return Ok((turn, Taken::Exhausted));
                }
                let next = next_due.into_iter().chain(deadline).min();
                let poll = now + poll;
                let until = next.map_or(poll, |due| due.max(now).min(poll));
                Ok((turn, Taken::Idle { until }))
            })
            .await?;
        self.turn.store(next_turn, Ordering::Relaxed);
        Ok(taken)
    }

    async fn leave(&self) -> Result<(), StoreError> {
        let epoch = self.epoch.swap(NO_EPOCH, Ordering::Relaxed);
        self.queue.transact(move |moves| moves.orphan(epoch, false)).await?;
        *self.presence.lock() = None;
        Ok(())
    }

    fn news(&self) -> Option<Arc<Notify>> {
        Some(self.queue.news.clone())
    }

    async fn started(&self, leases: &[LeaseId]) -> Result<(), StoreError> {
        let epoch = self.epoch();
        let leases = leases.to_vec();
        self.queue
            .db
            .write(move |tx| {
                let mut update = tx.prepare_cached(sql!(
                    "UPDATE job SET started = 1 WHERE id = ?1 AND state = {leased} AND epoch = ?2"
                ))?;
                for id in leases {
                    update.execute((id, epoch))?;
                }
                Ok(())
            })
            .await
    }

    async fn renew(&self) -> Result<Renewal, StoreError> {
        let lease_ttl = self.queue.lease_ttl;
        let before = self.epoch();
        let store = self.queue.db.path().to_owned();
        let (epoch, presence, rescued) = self
            .queue
            .transact(move |moves| {
                let now = moves.now.as_micros();
                let expires_at = (moves.now + lease_ttl).as_micros();
                let held = moves.tx.execute(
                    "UPDATE instance SET expires_at = ?1, heartbeat_at = ?3
                     WHERE epoch = ?2 AND expires_at > ?3",
                    (expires_at, before, now),
                )? == 1;
                let rescued = rescue(moves, &store)?;
                if held {
                    return Ok((before, None, rescued));
                }
                moves.tx.execute(
                    "INSERT INTO instance (queue, expires_at, who, since, heartbeat_at)
                     VALUES (?1, ?2, ?3, ?4, ?4)",
                    (moves.queue, expires_at, this_process(), now),
                )?;
                let epoch = moves.tx.last_insert_rowid();
                // Before others see the row; otherwise they would consider this instance gone.
                let presence = Presence::announce(&store, epoch)
                    .map_err(|error| io_fault(&presence::file_of(&store, epoch), error))?;
                Ok((epoch, Some(presence), rescued))
            })
            .await?;
        self.rescued.fetch_add(rescued, Ordering::Relaxed);
        self.epoch.store(epoch, Ordering::Relaxed);
        if presence.is_some() {
            *self.presence.lock() = presence;
        }
        let kept = before == NO_EPOCH || before == epoch;
        Ok(if kept { Renewal::Held { ttl: lease_ttl } } else { Renewal::Lost })
    }

    fn rescued(&self) -> u64 {
        self.rescued.load(Ordering::Relaxed)
    }

    async fn oldest_waiting(&self) -> Result<Option<Time>, StoreError> {
        self.queue.oldest_waiting().await
    }
}

#[async_trait]
impl Settle for SqliteInstance {
    async fn settle(&self, batch: &[(&Lease, &Settlement)]) -> Result<Vec<Settled>, StoreError> {
        let batch: Vec<(LeaseId, Settlement)> =
            batch.iter().map(|(lease, settlement)| (lease.id, (*settlement).clone())).collect();
        let epoch = self.epoch();
        self.queue.transact(move |moves| settle_batch(moves, epoch, &batch)).await
    }
}

/// Settles the leases that the epoch still holds.
pub(super) fn settle_batch(
    moves: &mut Moves<'_>,
    epoch: i64,
    batch: &[(LeaseId, Settlement)],
) -> rusqlite::Result<Vec<Settled>> {
    if !is_live(moves.tx, epoch, moves.now)? {
        return Ok(vec![Settled::Stale; batch.len()]);
    }
    batch.iter().map(|(id, settlement)| moves.settle(epoch, *id, settlement)).collect()
}

/// Requeues the leases of dead instances: those whose lease expired, and those whose process ended. Returns the number
/// of leases.
fn rescue(moves: &mut Moves<'_>, store: &Path) -> rusqlite::Result<u64> {
    let mut rescued = 0;
    for (epoch, expires_at) in instances(moves.tx, moves.queue)? {
        if expires_at <= moves.now || presence::is_gone(store, epoch) {
            rescued += moves.orphan(epoch, true)? as u64;
            presence::clear(store, epoch);
        }
    }
    Ok(rescued)
}

pub(super) fn is_in_use(
    tx: &Connection,
    queue: i64,
    store: &Path,
    now: Time,
) -> rusqlite::Result<bool> {
    let lives =
        |(epoch, expires_at): &(i64, Time)| *expires_at > now && !presence::is_gone(store, *epoch);
    Ok(instances(tx, queue)?.iter().any(lives))
}

fn instances(tx: &Connection, queue: i64) -> rusqlite::Result<Vec<(i64, Time)>> {
    tx.list("SELECT epoch, expires_at FROM instance WHERE queue = ?1", [queue], |row| {
        Ok((row.get(0)?, Time::from_micros(row.get(1)?)))
    })
}

fn discard(tx: &Connection, queue: i64) -> rusqlite::Result<()> {
    empty(tx, queue)?;
    tx.execute("DELETE FROM queue WHERE id = ?1", [queue])?;
    Ok(())
}

fn empty(tx: &Connection, queue: i64) -> rusqlite::Result<()> {
    for table in ["job", "room", "expiry", "lane", "instance", "round"].iter().chain(CRAWL_TABLES) {
        tx.execute(&format!("DELETE FROM {table} WHERE queue = ?1"), [queue])?;
    }
    Ok(())
}

pub(super) fn is_live(tx: &Connection, epoch: i64, now: Time) -> rusqlite::Result<bool> {
    let select = "SELECT 1 FROM instance WHERE epoch = ?1 AND expires_at > ?2";
    tx.has(select, (epoch, now.as_micros()))
}

pub(super) fn read_ledger(tx: &Connection, queue: i64) -> rusqlite::Result<Ledger> {
    let select = "SELECT accepted, done, skipped, queued, in_flight, delayed, dead
         FROM queue WHERE id = ?1";
    tx.one(select, [queue], |row| {
        let (accepted, done, skipped, queued, in_flight, delayed, dead) =
            <(_, _, _, _, _, _, _)>::try_from(row)?;
        Ok(Ledger { accepted, done, skipped, queued, in_flight, delayed, dead })
    })
}
