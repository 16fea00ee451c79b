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
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension};
use tokio::sync::Notify;

use super::files::{length_of, output_name, revise_length_of};
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
        let queue = self.queue;
        let clock = self.clock.clone();
        let output = output_name(output)?;
        self.db
            .write(move |tx| {
                let confirmed = length_of(tx, &output)?.unwrap_or(0);
                let mut moves = Moves::new(tx, queue, clock.now());
                let jobs = choose(confirmed).map_err(|error| io_fault(output.as_ref(), error))?;
                for new in &jobs {
                    moves.accept(new)?;
                }
                Ok(usize::try_from(moves.enter()?.accepted).unwrap_or(0))
            })
            .await
    }

    /// Whether an instance is using the queue.
    pub async fn is_in_use(&self) -> Result<bool, StoreError> {
        let queue = self.queue;
        let clock = self.clock.clone();
        let store = self.db.path().to_owned();
        self.db.write(move |tx| is_in_use(tx, queue, &store, clock.now())).await
    }

    /// Updates the length of an output, like [`revise_length`](super::revise_length), unless an instance is using the
    /// queue. Returns whether it did.
    pub async fn revise_length_unless_in_use(
        &self,
        output: &Path,
        revise: impl FnOnce(Option<u64>) -> io::Result<u64> + Send + 'static,
    ) -> Result<bool, StoreError> {
        let queue = self.queue;
        let clock = self.clock.clone();
        let store = self.db.path().to_owned();
        let output = output_name(output)?;
        self.db
            .write(move |tx| {
                let free = !is_in_use(tx, queue, &store, clock.now())?;
                if free {
                    revise_length_of(tx, &output, revise)?;
                }
                Ok(free)
            })
            .await
    }

    /// Empties the queue, including dead letters and ledger, unless an instance is using it. Returns whether it did.
    pub async fn reset_unless_in_use(&self) -> Result<bool, StoreError> {
        let queue = self.queue;
        let clock = self.clock.clone();
        let store = self.db.path().to_owned();
        self.db
            .write(move |tx| {
                let free = !is_in_use(tx, queue, &store, clock.now())?;
                if free {
                    empty(tx, queue)?;
                    tx.execute(
                        "UPDATE queue SET accepted = 0, done = 0, skipped = 0, queued = 0,
                             in_flight = 0, delayed = 0, dead = 0 WHERE id = ?1",
                        [queue],
                    )?;
                }
                Ok(free)
            })
            .await
    }

    /// Deletes the queue with everything in it.
    pub async fn discard(&self) -> Result<(), StoreError> {
        let queue = self.queue;
        self.db.write(move |tx| discard(tx, queue)).await
    }

    /// Deletes the queues whose names begin with `prefix` and that no instance is using.
    pub async fn discard_abandoned(db: &Db, prefix: &str, clock: &Clock) -> Result<(), StoreError> {
        let prefix = prefix.to_owned();
        let clock = clock.clone();
        let store = db.path().to_owned();
        db.write(move |tx| {
            let queues: Vec<i64> = tx
                .prepare("SELECT id FROM queue WHERE substr(name, 1, length(?1)) = ?1")?
                .query_map([prefix], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            for queue in queues {
                if !is_in_use(tx, queue, &store, clock.now())? {
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
        let queue = self.queue;
        self.db
            .write(move |tx| {
                tx.prepare_cached(sql!(
                    "SELECT accepted_at FROM job WHERE id = (
                         SELECT min(id) FROM job INDEXED BY job_waiting
                         WHERE queue = ?1 AND state < {leased})"
                ))?
                .query_row([queue], |row| row.get(0).map(Time::from_micros))
                .optional()
            })
            .await
    }
}

#[async_trait]
impl Queue for SqliteQueue {
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<usize, StoreError> {
        let queue = self.queue;
        let clock = self.clock.clone();
        let accepted = self
            .db
            .write(move |tx| {
                let mut moves = Moves::new(tx, queue, clock.now());
                for new in &jobs {
                    moves.accept(new)?;
                }
                Ok(usize::try_from(moves.enter()?.accepted).unwrap_or(0))
            })
            .await?;
        self.news.notify_one();
        Ok(accepted)
    }

    fn instance(&self) -> Arc<dyn Instance> {
        Arc::new(SqliteQueue::instance(self))
    }

    async fn ledger(&self) -> Result<Ledger, StoreError> {
        let queue = self.queue;
        self.db.write(move |tx| read_ledger(tx, queue)).await
    }

    async fn audit(&self) -> Result<Result<Ledger, LedgerMismatch>, StoreError> {
        let queue = self.queue;
        self.db
            .write(move |tx| {
                let ledger = read_ledger(tx, queue)?;
                let difference = recount_rows(tx, queue, &ledger)?;
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
    let mut counted = [0i64; 4];
    let mut rows = tx.prepare("SELECT state, count(*) FROM job WHERE queue = ?1 GROUP BY state")?;
    let mut rows = rows.query([queue])?;
    while let Some(row) = rows.next()? {
        let state: usize = row.get(0)?;
        if let Some(count) = counted.get_mut(state) {
            *count = row.get(1)?;
        }
    }
    Ok(ledger.difference_from(counted))
}

impl SqliteInstance {
    pub(super) fn epoch(&self) -> i64 {
        self.epoch.load(Ordering::Relaxed)
    }

    fn show(&self, presence: Option<Presence>) {
        *self.presence.lock() = presence;
    }
}

#[async_trait]
impl Source for SqliteInstance {
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreError> {
        let SqliteQueue { queue, run_once, lease_ttl, poll, .. } = self.queue;
        let epoch = self.epoch();
        let clock = self.queue.clock.clone();
        let demand = demand.clone();
        let turn = self.turn.load(Ordering::Relaxed);
        let (next_turn, taken) = self
            .queue
            .db
            .write(move |tx| {
                let now = clock.now();
                let mut moves = Moves::new(tx, queue, now);
                moves.close_rooms(&demand)?;
                if !is_live(tx, epoch, now)? {
                    return Ok((turn, Taken::Idle { until: now + lease_ttl / 4 }));
                }
                let mut lanes = moves.busy_lanes(turn)?;
                // The next take starts with the second of these, or with those that were not considered.
                let last = lanes.get(MAX_LANES_PER_TAKE - 1).or(lanes.first());
                let turn = last.map_or(turn, |lane| lane.id + 1);
                lanes.retain(|lane| !lane.rests(&demand.resting));
                let next_due = lanes.iter().map(|lane| lane.due).min();
                let leases = moves.lease(epoch, &demand, &lanes)?;
                let deadline = if leases.is_empty() { moves.first_deadline()? } else { None };
                moves.enter()?;
                if !leases.is_empty() {
                    return Ok((turn, Taken::Jobs(leases)));
                }
                let ledger = read_ledger(tx, queue)?;
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
        let queue = self.queue.queue;
        let clock = self.queue.clock.clone();
        self.queue
            .db
            .write(move |tx| {
                let mut moves = Moves::new(tx, queue, clock.now());
                moves.orphan(epoch, false)?;
                moves.enter()
            })
            .await?;
        self.show(None);
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
        let SqliteQueue { queue, lease_ttl, .. } = self.queue;
        let before = self.epoch();
        let clock = self.queue.clock.clone();
        let store = self.queue.db.path().to_owned();
        let (epoch, presence, rescued) = self
            .queue
            .db
            .write(move |tx| {
                let now = clock.now();
                let expires_at = (now + lease_ttl).as_micros();
                let held = tx.execute(
                    "UPDATE instance SET expires_at = ?1, heartbeat_at = ?3
                     WHERE epoch = ?2 AND expires_at > ?3",
                    (expires_at, before, now.as_micros()),
                )? == 1;
                let rescued = rescue(tx, queue, &store, now)?;
                if held {
                    return Ok((before, None, rescued));
                }
                tx.execute(
                    "INSERT INTO instance (queue, expires_at, who, since, heartbeat_at)
                     VALUES (?1, ?2, ?3, ?4, ?4)",
                    (queue, expires_at, this_process(), now.as_micros()),
                )?;
                let epoch = tx.last_insert_rowid();
                // Before others see the row; otherwise they would consider this instance gone.
                let presence = Presence::announce(&store, epoch)
                    .map_err(|error| io_fault(&presence::file_of(&store, epoch), error))?;
                Ok((epoch, Some(presence), rescued))
            })
            .await?;
        self.rescued.fetch_add(rescued, Ordering::Relaxed);
        self.epoch.store(epoch, Ordering::Relaxed);
        if presence.is_some() {
            self.show(presence);
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
        let queue = self.queue.queue;
        let epoch = self.epoch();
        let clock = self.queue.clock.clone();
        self.queue.db.write(move |tx| settle_batch(tx, queue, epoch, &batch, clock.now())).await
    }
}

/// Settles the leases that the epoch still holds, and updates the ledger.
pub(super) fn settle_batch(
    tx: &Connection,
    queue: i64,
    epoch: i64,
    batch: &[(LeaseId, Settlement)],
    now: Time,
) -> rusqlite::Result<Vec<Settled>> {
    if !is_live(tx, epoch, now)? {
        return Ok(vec![Settled::Stale; batch.len()]);
    }
    let mut moves = Moves::new(tx, queue, now);
    let settled = batch
        .iter()
        .map(|(id, settlement)| moves.settle(epoch, *id, settlement))
        .collect::<rusqlite::Result<_>>()?;
    moves.enter()?;
    Ok(settled)
}

/// Requeues the leases of dead instances: those whose lease expired, and those whose process ended. Returns the number
/// of leases.
fn rescue(tx: &Connection, queue: i64, store: &Path, now: Time) -> rusqlite::Result<u64> {
    let mut moves = Moves::new(tx, queue, now);
    let mut rescued = 0;
    for (epoch, expires_at) in instances(tx, queue)? {
        if expires_at <= now || presence::is_gone(store, epoch) {
            rescued += moves.orphan(epoch, true)? as u64;
            presence::clear(store, epoch);
        }
    }
    moves.enter().map(|_| rescued)
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
    tx.prepare_cached("SELECT epoch, expires_at FROM instance WHERE queue = ?1")?
        .query_map([queue], |row| Ok((row.get(0)?, Time::from_micros(row.get(1)?))))?
        .collect()
}

fn discard(tx: &Connection, queue: i64) -> rusqlite::Result<()> {
    empty(tx, queue)?;
    tx.execute("DELETE FROM queue WHERE id = ?1", [queue])?;
    Ok(())
}

fn empty(tx: &Connection, queue: i64) -> rusqlite::Result<()> {
    tx.execute("DELETE FROM job WHERE queue = ?1", [queue])?;
    tx.execute("DELETE FROM room WHERE queue = ?1", [queue])?;
    tx.execute("DELETE FROM expiry WHERE queue = ?1", [queue])?;
    tx.execute("DELETE FROM lane WHERE queue = ?1", [queue])?;
    tx.execute("DELETE FROM instance WHERE queue = ?1", [queue])?;
    tx.execute("DELETE FROM round WHERE queue = ?1", [queue])?;
    Ok(())
}

pub(super) fn is_live(tx: &Connection, epoch: i64, now: Time) -> rusqlite::Result<bool> {
    tx.prepare_cached("SELECT 1 FROM instance WHERE epoch = ?1 AND expires_at > ?2")?
        .exists((epoch, now.as_micros()))
}

pub(super) fn read_ledger(tx: &Connection, queue: i64) -> rusqlite::Result<Ledger> {
    tx.prepare_cached(
        "SELECT accepted, done, skipped, queued, in_flight, delayed, dead
         FROM queue WHERE id = ?1",
    )?
    .query_row([queue], |row| {
        Ok(Ledger {
            accepted: row.get(0)?,
            done: row.get(1)?,
            skipped: row.get(2)?,
            queued: row.get(3)?,
            in_flight: row.get(4)?,
            delayed: row.get(5)?,
            dead: row.get(6)?,
        })
    })
}
