//! Moves jobs between states, and updates the ledger in the same transaction.

mod batches;
mod dead_letters;
mod deadlines;
mod interventions;
mod lanes;
mod messages;
mod rows;

use std::collections::{BTreeMap, HashMap};

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::job::{Job, Lane, Lease, LeaseId, NewJob};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_engine::ports::source::Demand;
use fetchwell_policy::retry::History;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use fetchwell_sqlite::errors::own_error;
use fetchwell_sqlite::statements::Statements;
use rusqlite::{Connection, Row};

use crate::shared::job_state::{JobState, sql};

pub(super) use batches::BatchChanges;
pub(super) use messages::MessageEnding;
pub(super) use rows::NewRow;

/// The maximum number of sites that one take considers.
const MAX_ROOMS_PER_TAKE: usize = 4_096;
/// The maximum number of lanes that one take considers; the others get their turn at the next take.
pub(super) const MAX_LANES_PER_TAKE: usize = 1_024;

macro_rules! select_lease {
    () => {
        "SELECT id, url, site, lane, payload, deadline, url_failures, site_failures, paced,
             first_site_failure, interruptions, accepted_at, state FROM job"
    };
}
use select_lease;

/// Moves in one queue, at one time, in one transaction.
pub(super) struct Moves<'a> {
    pub(super) tx: &'a Connection,
    pub(super) queue: i64,
    pub(super) now: Time,
    change: Ledger,
    /// Rooms that were opened here, and when they are due, so that they are not opened again for each job.
    opened: HashMap<(String, LaneId), Time>,
    lanes: HashMap<Lane, LaneId>,
    /// The number of messages added to each lane.
    messages: HashMap<LaneId, i64>,
    /// The first and last job by deadline.
    runs: BTreeMap<Time, (LeaseId, LeaseId)>,
}

/// The id of a lane in the file.
pub(super) type LaneId = i64;
/// The lane of jobs without a group and a party.
const NO_LANE: LaneId = 0;

/// A lane with waiting jobs.
pub(super) struct BusyLane {
    pub(super) id: LaneId,
    lane: Lane,
    /// When its first job is due.
    pub(super) due: Time,
}

impl BusyLane {
    pub(super) fn rests(&self, resting: &[String]) -> bool {
        self.lane.group.as_ref().is_some_and(|group| resting.contains(group))
    }
}

impl<'a> Moves<'a> {
    pub(super) fn new(tx: &'a Connection, queue: i64, now: Time) -> Moves<'a> {
        Moves {
            tx,
            queue,
            now,
            change: Ledger::default(),
            opened: HashMap::new(),
            lanes: HashMap::new(),
            messages: HashMap::new(),
            runs: BTreeMap::new(),
        }
    }

    /// Writes the changes to the ledger.
    pub(super) fn enter(mut self) -> rusqlite::Result<()> {
        self.enter_runs()?;
        let Ledger { accepted, done, skipped, queued, in_flight, delayed, dead } = self.change;
        if self.change != Ledger::default() {
            let entered = self.tx.run(
                "UPDATE queue SET accepted = accepted + ?2, done = done + ?3,
                     skipped = skipped + ?4, queued = queued + ?5,
                     in_flight = in_flight + ?6, delayed = delayed + ?7, dead = dead + ?8
                 WHERE id = ?1",
                (self.queue, accepted, done, skipped, queued, in_flight, delayed, dead),
            )?;
            if entered == 0 {
                // Otherwise the new jobs would belong to no queue.
                let gone = StoreError::incompatible("another process has discarded this queue")
                    .with_advice("run the command again");
                return Err(own_error(gone));
            }
        }
        for (lane, came) in self.messages {
            self.tx.run("UPDATE lane SET messages = messages + ?2 WHERE id = ?1", (lane, came))?;
        }
        Ok(())
    }

    /// Inserts the jobs whose keys do not exist yet. Returns how many.
    pub(super) fn accept_all(&mut self, jobs: &[NewJob]) -> rusqlite::Result<usize> {
        jobs.iter().map(|new| self.accept(new).map(usize::from)).sum()
    }

    /// Inserts a job unless its key exists already. Returns whether it did.
    pub(super) fn accept(&mut self, new: &NewJob) -> rusqlite::Result<bool> {
        let NewJob { job, key, due } = new;
        let due = due.unwrap_or(self.now);
        let lane = self.lane_id(&job.lane)?;
        let site = job.site.as_ref().map_or("", Site::as_str);
        let inserted = self.tx.run(
            "INSERT INTO job
                 (queue, key, url, site, lane, payload, deadline, state, due, accepted_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING",
            (
                self.queue,
                key.as_ref().map(<[u8; 16]>::as_slice),
                &job.url,
                site,
                lane,
                &job.payload,
                job.deadline.map(Time::as_micros),
                self.state_until(due),
                due.as_micros(),
                self.now.as_micros(),
            ),
        )?;
        if inserted == 1 {
            self.change.accepted += 1;
            if let Some(deadline) = job.deadline {
                self.expires(self.tx.last_insert_rowid(), deadline);
            }
            self.begin_waiting(site, lane, due)?;
        }
        Ok(inserted == 1)
    }

    /// The lanes with waiting jobs, starting at `turn` and wrapping around.
    pub(super) fn busy_lanes(&self, turn: LaneId) -> rusqlite::Result<Vec<BusyLane>> {
        let mut lanes = self.busy_lanes_between(turn, LaneId::MAX, MAX_LANES_PER_TAKE)?;
        let left = MAX_LANES_PER_TAKE - lanes.len();
        lanes.extend(self.busy_lanes_between(LaneId::MIN, turn, left)?);
        Ok(lanes)
    }

    /// Steps from lane to lane through the index, so the cost does not depend on the number of waiting jobs.
    fn busy_lanes_between(
        &self,
        from: LaneId,
        to: LaneId,
        most: usize,
    ) -> rusqlite::Result<Vec<BusyLane>> {
        self.tx.list(
            "WITH RECURSIVE busy (id) AS (
                 SELECT min(lane) FROM room WHERE queue = ?1 AND lane >= ?2 AND lane < ?3
                 UNION ALL
                 SELECT (SELECT min(lane) FROM room
                         WHERE queue = ?1 AND lane > busy.id AND lane < ?3)
                 FROM busy WHERE busy.id IS NOT NULL
                 LIMIT ?4)
             SELECT busy.id, coalesce(grp, ''), coalesce(party, ''),
                 (SELECT min(due) FROM room WHERE queue = ?1 AND lane = busy.id)
             FROM busy LEFT JOIN lane ON lane.id = busy.id WHERE busy.id IS NOT NULL",
            (self.queue, from, to, most),
            |row| {
                let lane = lane_of(row.get(1)?, row.get(2)?);
                Ok(BusyLane { id: row.get(0)?, lane, due: Time::from_micros(row.get(3)?) })
            },
        )
    }

    /// Hands out jobs that are due: lanes share equally, in this order, and each site gives up to its limit.
    pub(super) fn lease(
        &mut self,
        epoch: i64,
        demand: &Demand,
        lanes: &[BusyLane],
    ) -> rusqlite::Result<Vec<Lease>> {
        let lanes: Vec<&BusyLane> = lanes.iter().filter(|busy| busy.due <= self.now).collect();
        let mut leases = self.lease_overdue(epoch, demand.most)?;
        for (place, busy) in lanes.iter().enumerate() {
            let left = demand.most - leases.len();
            let share = left.div_ceil(lanes.len() - place);
            let share = match (&busy.lane.group, demand.most_per_group) {
                (Some(_), most @ 1..) => share.min(most),
                _ => share,
            };
            self.lease_of_lane(epoch, busy, share, demand.most_per_site, &mut leases)?;
        }
        Ok(leases)
    }

    fn lease_of_lane(
        &mut self,
        epoch: i64,
        busy: &BusyLane,
        share: usize,
        most_per_site: usize,
        leases: &mut Vec<Lease>,
    ) -> rusqlite::Result<()> {
        let rooms: Vec<String> = self.tx.list(
            "SELECT site FROM room WHERE queue = ?1 AND lane = ?2 AND due <= ?3
             ORDER BY due LIMIT ?4",
            (self.queue, busy.id, self.now.as_micros(), share.min(MAX_ROOMS_PER_TAKE)),
            |row| row.get(0),
        )?;
        let full = leases.len() + share;
        for site in rooms {
            let most = most_per_site.min(full - leases.len());
            if most == 0 {
                break;
            }
            let parsed = Site::parse(&site).ok();
            let found = self.tx.list(
                sql!(concat!(
                    select_lease!(),
                    " WHERE queue = ?1 AND site = ?2 AND lane = ?3 AND state < {leased}
                         AND due <= ?4 ORDER BY due, id LIMIT ?5"
                )),
                (self.queue, &site, busy.id, self.now.as_micros(), most),
                |row| lease_of(row, parsed.clone(), busy.lane.clone()),
            )?;
            leases.extend(self.take(epoch, found)?);
            self.close_room_after_lease(&site, busy.id)?;
        }
        Ok(())
    }

    fn lane_id(&mut self, lane: &Lane) -> rusqlite::Result<LaneId> {
        if *lane == Lane::default() {
            return Ok(NO_LANE);
        }
        if let Some(id) = self.lanes.get(lane) {
            return Ok(*id);
        }
        let name =
            (self.queue, lane.group.as_deref().unwrap_or(""), lane.party.as_deref().unwrap_or(""));
        let select = "SELECT id FROM lane WHERE queue = ?1 AND grp = ?2 AND party = ?3";
        let insert = "INSERT INTO lane (queue, grp, party) VALUES (?1, ?2, ?3) RETURNING id";
        let id = match self.tx.find(select, name, |row| row.get(0))? {
            Some(id) => id,
            None => self.tx.one(insert, name, |row| row.get(0))?,
        };
        self.lanes.insert(lane.clone(), id);
        Ok(id)
    }

    fn lane_named(&self, id: LaneId) -> rusqlite::Result<Lane> {
        let name = self.tx.find("SELECT grp, party FROM lane WHERE id = ?1", [id], |row| {
            Ok(lane_of(row.get(0)?, row.get(1)?))
        })?;
        Ok(name.unwrap_or_default())
    }

    fn take(&mut self, epoch: i64, found: Vec<(Lease, JobState)>) -> rusqlite::Result<Vec<Lease>> {
        let mut update = self.tx.prepare_cached(sql!(
            "UPDATE job SET state = {leased}, epoch = ?2, started = 0 WHERE id = ?1"
        ))?;
        for (lease, state) in &found {
            update.execute((lease.id, epoch))?;
            *state.waiting(&mut self.change) -= 1;
            self.change.in_flight += 1;
        }
        Ok(found.into_iter().map(|(lease, _)| lease).collect())
    }

    pub(super) fn close_room_after_lease(&self, site: &str, lane: LaneId) -> rusqlite::Result<()> {
        let next: Option<i64> = self.tx.find(
            sql!(
                "SELECT due FROM job
                 WHERE queue = ?1 AND site = ?2 AND lane = ?3 AND state < {leased}
                 ORDER BY due, id LIMIT 1"
            ),
            (self.queue, site, lane),
            |row| row.get(0),
        )?;
        match next {
            Some(due) => self.tx.run(
                "UPDATE room SET due = max(?4, closed_until)
                 WHERE queue = ?1 AND site = ?2 AND lane = ?3",
                (self.queue, site, lane, due),
            )?,
            None => self.tx.run(
                "DELETE FROM room WHERE queue = ?1 AND site = ?2 AND lane = ?3",
                (self.queue, site, lane),
            )?,
        };
        Ok(())
    }

    /// Settles a lease if the epoch still holds it.
    pub(super) fn settle(
        &mut self,
        epoch: i64,
        id: LeaseId,
        settlement: &Settlement,
    ) -> rusqlite::Result<Settled> {
        let held = (id, epoch);
        let is_ours = match settlement {
            Settlement::Done | Settlement::Skipped => {
                let delete =
                    sql!("DELETE FROM job WHERE id = ?1 AND state = {leased} AND epoch = ?2");
                self.tx.run(delete, held)? == 1
            }
            _ => {
                let select =
                    sql!("SELECT 1 FROM job WHERE id = ?1 AND state = {leased} AND epoch = ?2");
                self.tx.has(select, held)?
            }
        };
        if !is_ours {
            return Ok(Settled::Stale);
        }
        self.change.in_flight -= 1;
        match settlement {
            Settlement::Done => self.change.done += 1,
            Settlement::Skipped => self.change.skipped += 1,
            Settlement::Dead { reason } => {
                self.change.dead += 1;
                self.tx.run(
                    sql!(
                        "UPDATE job SET state = {dead}, epoch = NULL, reason = ?2, ended_at = ?3
                         WHERE id = ?1"
                    ),
                    (id, reason, self.now.as_micros()),
                )?;
            }
            Settlement::Retry { at, history, payload } => {
                let History { url_failures, site_failures, paced, first_site_failure } = *history;
                let first_site_failure = first_site_failure.map(Time::as_micros);
                self.tx.run(
                    "UPDATE job SET url_failures = ?2, site_failures = ?3, paced = ?4,
                         first_site_failure = ?5, payload = coalesce(?6, payload) WHERE id = ?1",
                    (id, url_failures, site_failures, paced, first_site_failure, payload),
                )?;
                self.wait(id, *at)?;
            }
            Settlement::HandBack { at } => self.wait(id, *at)?,
        }
        Ok(Settled::Confirmed)
    }

    /// Deletes an instance and requeues its leases. If `interrupted`, fetches in progress count as interrupted.
    pub(super) fn orphan(&mut self, epoch: i64, interrupted: bool) -> rusqlite::Result<usize> {
        self.tx.execute("DELETE FROM instance WHERE epoch = ?1", [epoch])?;
        if interrupted {
            self.tx.execute(
                sql!(
                    "UPDATE job SET interruptions = interruptions + 1
                     WHERE state = {leased} AND epoch = ?1 AND started = 1"
                ),
                [epoch],
            )?;
        }
        let select = sql!("SELECT id FROM job WHERE state = {leased} AND epoch = ?1");
        let orphans: Vec<LeaseId> = self.tx.list(select, [epoch], |row| row.get(0))?;
        for id in &orphans {
            self.change.in_flight -= 1;
            self.wait(*id, self.now)?;
        }
        Ok(orphans.len())
    }

    /// The latest closing of a site applies; it may also be earlier than the previous one, to take it back.
    pub(super) fn close_rooms(&self, demand: &Demand) -> rusqlite::Result<()> {
        let mut update = self.tx.prepare_cached(sql!(
            "UPDATE room SET closed_until = ?3, due = max(?3, (
                 SELECT min(due) FROM job
                 WHERE queue = ?1 AND site = ?2 AND lane = room.lane AND state < {leased}))
             WHERE queue = ?1 AND site = ?2"
        ))?;
        for (site, until) in &demand.closed {
            update.execute((self.queue, site.as_str(), until.as_micros()))?;
        }
        Ok(())
    }

    /// Makes a leased or dead job wait until `due`.
    fn wait(&mut self, id: LeaseId, due: Time) -> rusqlite::Result<()> {
        let (site, lane, deadline): (String, LaneId, Option<i64>) = self.tx.one(
            "UPDATE job SET state = ?2, due = ?3, epoch = NULL, started = 0 WHERE id = ?1
             RETURNING site, lane, deadline",
            (id, self.state_until(due), due.as_micros()),
            |row| row.try_into(),
        )?;
        // Before the deadline, the run of the job still exists; afterwards it may have been deleted while the job was
        // leased.
        match deadline.map(Time::from_micros) {
            Some(deadline) if deadline <= self.now => self.expires(id, deadline),
            _ => {}
        }
        self.begin_waiting(&site, lane, due)
    }

    /// The state of a job that waits until `due`.
    fn state_until(&self, due: Time) -> JobState {
        if due > self.now { JobState::Delayed } else { JobState::Queued }
    }

    /// Counts a job that waits until `due`, and opens its room.
    fn begin_waiting(&mut self, site: &str, lane: LaneId, due: Time) -> rusqlite::Result<()> {
        *self.state_until(due).waiting(&mut self.change) += 1;
        self.open_room(site, lane, due)
    }

    /// Makes a room open when its first job is due, unless its site is closed, which holds for all lanes.
    fn open_room(&mut self, site: &str, lane: LaneId, due: Time) -> rusqlite::Result<()> {
        let room = (site.to_owned(), lane);
        if self.opened.get(&room).is_some_and(|since| *since <= due) {
            return Ok(());
        }
        self.opened.insert(room, due);
        self.tx.run(
            "INSERT INTO room (queue, site, lane, due, closed_until)
             SELECT ?1, ?2, ?3, max(?4, closed_until), closed_until FROM (
                 SELECT coalesce(max(closed_until), 0) AS closed_until
                 FROM room WHERE queue = ?1 AND site = ?2)
             WHERE true
             ON CONFLICT (queue, site, lane) DO UPDATE
             SET due = max(?4, closed_until) WHERE max(?4, closed_until) < due",
            (self.queue, site, lane, due.as_micros()),
        )?;
        Ok(())
    }
}

fn lane_of(group: String, party: String) -> Lane {
    let named = |name: String| (!name.is_empty()).then_some(name);
    Lane { group: named(group), party: named(party) }
}

/// Reads a lease and the state of its job.
fn lease_of(row: &Row<'_>, site: Option<Site>, lane: Lane) -> rusqlite::Result<(Lease, JobState)> {
    let time = |micros: Option<i64>| micros.map(Time::from_micros);
    let lease = Lease {
        id: row.get(0)?,
        job: Job {
            url: row.get(1)?,
            site,
            lane,
            payload: row.get(4)?,
            deadline: time(row.get(5)?),
        },
        history: History {
            url_failures: row.get(6)?,
            site_failures: row.get(7)?,
            paced: row.get(8)?,
            first_site_failure: time(row.get(9)?),
        },
        interruptions: row.get(10)?,
        accepted_at: Time::from_micros(row.get(11)?),
    };
    Ok((lease, row.get(12)?))
}

#[cfg(test)]
mod tests {
    use super::super::schema;
    use super::*;

    #[test]
    fn nothing_comes_into_a_queue_that_is_gone() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        schema::migrate(&mut connection).unwrap();
        let enter = || {
            let mut moves = Moves::new(&connection, 1, Time::from_secs(1));
            moves.change.accepted = 1;
            moves.enter().map_err(|error| error.to_string())
        };
        assert!(enter().unwrap_err().contains("discarded"));
        connection.execute("INSERT INTO queue (id, name) VALUES (1, 'a')", []).unwrap();
        assert!(enter().is_ok());
    }
}
