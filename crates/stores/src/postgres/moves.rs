//! Moves jobs between states in one transaction, and updates the ledger with each move.
//!
//! Locks are taken in one order, so that no two transactions deadlock: the instance, idempotency keys of submissions,
//! lanes of messages, jobs by id, results that are copied, callers by name, lanes of deliveries, rooms by queue, site
//! and lane, and the ledger. Taking goes from rooms to jobs and waits for neither: it skips what others have locked.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering};

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::{LeaseId, NewJob};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;

use super::database::{Database, Tx};
use super::id_stock::IdStock;
use super::lanes::{LaneId, NO_LANE};
use super::moment::{ServerTime, StoreClock, now_or};
use super::new_row::{NewRow, insert};
use super::rooms::RoomName;
use crate::shared::job_state::JobState;

/// The id of a queue in the database.
pub(super) type QueueId = i32;

/// The number of rows in which the ledger of a queue is kept.
const SHARDS: i32 = 64;
/// Moves at one time, in one transaction.
pub(super) struct Moves {
    pub(super) tx: Tx,
    pub(super) moment: ServerTime,
    changes: BTreeMap<QueueId, Ledger>,
    /// Rooms with new jobs, and when the first of these is due.
    opened: BTreeMap<RoomName, Time>,
    ids: IdStock,
}

impl Moves {
    pub(super) async fn begin(db: &Database, clock: &StoreClock) -> Result<Moves, StoreError> {
        let given = clock.given().map_or("NULL".to_owned(), |given| given.to_string());
        let question = format!(concat!("SELECT ", now_or!("{}::BIGINT")), given);
        let (tx, now) = db.begin_asking(&question).await?;
        Ok(Moves::at(db, clock.moment(now), tx))
    }

    pub(super) fn at(db: &Database, moment: ServerTime, tx: Tx) -> Moves {
        let ids = db.ids.clone();
        Moves { tx, moment, changes: BTreeMap::new(), opened: BTreeMap::new(), ids }
    }

    pub(super) fn now(&self) -> Time {
        self.moment.now
    }

    /// The pending change to the ledger of a queue.
    pub(super) fn change(&mut self, queue: QueueId) -> &mut Ledger {
        self.changes.entry(queue).or_default()
    }

    /// Counts a job as waiting, and opens its room.
    pub(super) fn now_waits(&mut self, queue: QueueId, site: String, lane: LaneId, due: Time) {
        if due > self.now() {
            self.change(queue).delayed += 1;
        } else {
            self.change(queue).queued += 1;
        }
        let first = self.opened.entry((queue, site, lane)).or_insert(due);
        *first = due.min(*first);
    }

    /// The state of a waiting job that is due at this time.
    pub(super) fn waiting_state(&self, due: Time) -> JobState {
        if due > self.now() { JobState::Delayed } else { JobState::Queued }
    }

    /// Writes the changes to rooms and ledger, and commits.
    pub(super) async fn commit(mut self) -> sqlx::Result<()> {
        let opened = std::mem::take(&mut self.opened);
        self.open_rooms(opened).await?;
        self.enter().await?;
        self.tx.commit().await
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
                payload: job.payload,
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
            self.change(row.queue).accepted += 1;
            if row.waits() {
                self.now_waits(row.queue, row.site, row.lane, row.due);
            } else {
                self.change(row.queue).done += 1;
            }
        }
        Ok(inserted.len())
    }

    /// New job ids, in ascending order.
    pub(super) async fn new_ids(&mut self, count: usize) -> sqlx::Result<Vec<LeaseId>> {
        self.ids.take(&mut self.tx, count).await
    }

    async fn enter(&mut self) -> sqlx::Result<()> {
        let changes: Vec<(QueueId, Ledger)> = std::mem::take(&mut self.changes)
            .into_iter()
            .filter(|(_, change)| *change != Ledger::default())
            .collect();
        if changes.is_empty() {
            return Ok(());
        }
        let column = |read: fn(&Ledger) -> i64| -> Vec<i64> {
            changes.iter().map(|(_, change)| read(change)).collect()
        };
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
            .bind(changes.iter().map(|(queue, _)| *queue).collect::<Vec<_>>())
            .bind(column(|change| change.accepted))
            .bind(column(|change| change.done))
            .bind(column(|change| change.skipped))
            .bind(column(|change| change.queued))
            .bind(column(|change| change.in_flight))
            .bind(column(|change| change.delayed))
            .bind(column(|change| change.dead));
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
