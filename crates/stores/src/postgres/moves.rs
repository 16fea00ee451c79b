//! Moves jobs between states in one transaction, and updates the ledger with each move.
//!
//! Locks are taken in one order, so that no two transactions deadlock: the instance, idempotency keys of submissions,
//! lanes of messages, jobs by id, results that are copied, callers by name (and then their bodies), tokens by hash,
//! batches of messages, the log of deliveries by `webhook-id`, lanes of deliveries, rooms by queue, site and lane, and
//! the ledger. Hashes and ids sort by their bytes. Taking goes from rooms to jobs and waits for neither: it skips what
//! others have locked.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering};

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::BatchId;
use fetchwell_engine::ports::job::{LeaseId, NewJob};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;

use super::database::{Tx, column};
use super::lanes::{LaneId, NO_LANE};
use super::new_row::{NewRow, insert};
use super::queue::PostgresQueue;
use super::rooms::RoomName;
use crate::shared::job_state::JobState;
use crate::shared::moment::ServerTime;

/// The id of a queue in the database.
pub(super) type QueueId = i32;

/// The number of rows in which the ledger of a queue is kept.
const SHARDS: i32 = 64;

/// The server's clock in microseconds, unless a time is given. `now()` would be the start of the transaction.
macro_rules! now_or {
    ($given:literal) => {
        concat!("coalesce(", $given, ", (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT)")
    };
}
pub(super) use now_or;

/// Moves at one time, in one transaction. Those of messages may add deliveries to another queue.
pub(super) struct Moves<'q> {
    pub(super) queue: &'q PostgresQueue,
    pub(super) tx: Tx,
    pub(super) moment: ServerTime,
    changes: BTreeMap<QueueId, Ledger>,
    /// Rooms with new jobs, and when the first of these is due.
    opened: BTreeMap<RoomName, Time>,
    /// The batches of messages that ended without a result, with their callers.
    pub(super) ended_without_result: Vec<(BatchId, String)>,
}

impl<'q> Moves<'q> {
    pub(super) async fn begin(queue: &'q PostgresQueue) -> Result<Moves<'q>, StoreError> {
        let given = queue.clock.given().map_or("NULL".to_owned(), |given| given.to_string());
        let question = format!(concat!("SELECT ", now_or!("{}::BIGINT")), given);
        let (tx, now) = queue.db.begin_asking(&question).await?;
        Ok(Moves::at(queue, now, tx))
    }

    pub(super) fn at(queue: &'q PostgresQueue, now: i64, tx: Tx) -> Moves<'q> {
        let moment = queue.clock.moment(now);
        let ended_without_result = Vec::new();
        let changes = BTreeMap::new();
        let opened = BTreeMap::new();
        Moves { queue, tx, moment, changes, opened, ended_without_result }
    }

    pub(super) fn now(&self) -> Time {
        self.moment.now
    }

    /// The pending change to the ledger of the queue.
    pub(super) fn change(&mut self) -> &mut Ledger {
        self.change_of(self.queue.id)
    }

    fn change_of(&mut self, queue: QueueId) -> &mut Ledger {
        self.changes.entry(queue).or_default()
    }

    /// Counts a job as waiting, and opens its room.
    pub(super) fn now_waits(&mut self, site: String, lane: LaneId, due: Time) {
        self.now_waits_in(self.queue.id, site, lane, due);
    }

    fn now_waits_in(&mut self, queue: QueueId, site: String, lane: LaneId, due: Time) {
        *self.waiting_state(due).waiting(self.change_of(queue)) += 1;
        let first = self.opened.entry((queue, site, lane)).or_insert(due);
        *first = due.min(*first);
    }

    /// Stops counting a job as waiting. `was` is the state in which it waited.
    pub(super) fn no_longer_waits(&mut self, was: JobState) {
        *was.waiting(self.change()) -= 1;
    }

    /// The state of a waiting job that is due at this time.
    pub(super) fn waiting_state(&self, due: Time) -> JobState {
        if due > self.now() { JobState::Delayed } else { JobState::Queued }
    }

    /// Writes the changes to rooms and ledger, and commits, unless what was done failed.
    pub(super) async fn end<T>(mut self, done: sqlx::Result<T>) -> Result<T, StoreError> {
        let written = match done {
            Ok(done) => self.write_changes().await.map(|()| done),
            Err(error) => Err(error),
        };
        self.tx.end(written).await
    }

    async fn write_changes(&mut self) -> sqlx::Result<()> {
        let opened = std::mem::take(&mut self.opened);
        self.open_rooms(opened).await?;
        self.enter().await
    }

    /// Inserts jobs, except those whose keys exist already. Returns the number inserted.
    pub(super) async fn accept(
        &mut self,
        queue: QueueId,
        jobs: Vec<NewJob>,
    ) -> sqlx::Result<usize> {
        let lanes = jobs.iter().map(|new| new.job.lane.clone()).collect();
        let lanes = self.lane_ids(queue, lanes).await?;
        let ids = self.new_ids(jobs.len()).await?;
        let moment = self.moment;
        let now = self.now();
        let rows = jobs.into_iter().zip(ids).map(|(NewJob { job, key, due }, id)| {
            let due = due.map_or(now, |due| moment.to_store(due));
            NewRow {
                id,
                queue,
                lane: lanes.get(&job.lane).copied().unwrap_or(NO_LANE),
                key,
                site: job.site.as_ref().map_or(String::new(), |site: &Site| site.as_str().into()),
                url: job.url,
                payload: job.payload.into(),
                deadline: job.deadline.map(|deadline| moment.to_store(deadline)),
                state: self.waiting_state(due),
                due,
                message: None,
            }
        });
        self.put_in(rows.collect()).await
    }

    /// Inserts rows, except those whose keys exist already. Returns the number inserted.
    pub(super) async fn put_in(&mut self, rows: Vec<NewRow<'_>>) -> sqlx::Result<usize> {
        if rows.is_empty() {
            return Ok(0);
        }
        let inserted = insert(&mut self.tx, &rows, self.moment.now).await?;
        for row in rows.into_iter().filter(|row| inserted.contains(&row.id)) {
            self.change_of(row.queue).accepted += 1;
            if row.state.waits() {
                self.now_waits_in(row.queue, row.site, row.lane, row.due);
            } else {
                self.change_of(row.queue).done += 1;
            }
        }
        Ok(inserted.len())
    }

    /// New job ids, in ascending order.
    pub(super) async fn new_ids(&mut self, count: usize) -> sqlx::Result<Vec<LeaseId>> {
        self.queue.db.ids.take(&mut self.tx, count).await
    }

    async fn enter(&mut self) -> sqlx::Result<()> {
        let changes: Vec<(QueueId, Ledger)> = std::mem::take(&mut self.changes)
            .into_iter()
            .filter(|(_, change)| *change != Ledger::default())
            .collect();
        if changes.is_empty() {
            return Ok(());
        }
        let query = sqlx::query(
            "INSERT INTO fetchwell_ledger AS ledger
                 (queue, shard, accepted, done, skipped, queued, in_flight, delayed, dead)
             SELECT queue, $1, accepted, done, skipped, queued, in_flight, delayed, dead
             FROM unnest($2::INTEGER[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[],
                     $7::BIGINT[], $8::BIGINT[], $9::BIGINT[])
                 AS change (queue, accepted, done, skipped, queued, in_flight, delayed, dead)
             ORDER BY queue
             ON CONFLICT (queue, shard) DO UPDATE SET
                 accepted = ledger.accepted + excluded.accepted,
                 done = ledger.done + excluded.done,
                 skipped = ledger.skipped + excluded.skipped,
                 queued = ledger.queued + excluded.queued,
                 in_flight = ledger.in_flight + excluded.in_flight,
                 delayed = ledger.delayed + excluded.delayed,
                 dead = ledger.dead + excluded.dead",
        );
        let query = query
            .bind(some_shard())
            .bind(column(&changes, |(queue, _)| *queue))
            .bind(column(&changes, |(_, change)| change.accepted))
            .bind(column(&changes, |(_, change)| change.done))
            .bind(column(&changes, |(_, change)| change.skipped))
            .bind(column(&changes, |(_, change)| change.queued))
            .bind(column(&changes, |(_, change)| change.in_flight))
            .bind(column(&changes, |(_, change)| change.delayed))
            .bind(column(&changes, |(_, change)| change.dead));
        self.tx.execute(query).await?;
        Ok(())
    }
}

/// Rotates through the shards, starting at one that depends on the process.
fn some_shard() -> i32 {
    static NEXT: AtomicI32 = AtomicI32::new(0);
    let first = i32::try_from(std::process::id() % 0x7fff).unwrap_or(0);
    (first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed))).rem_euclid(SHARDS)
}
