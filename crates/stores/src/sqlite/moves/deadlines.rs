//! Finds jobs whose deadline has passed.
//!
//! Jobs that arrive together mostly have the same deadline, so deadlines are stored for runs of jobs: an index entry
//! per job would cost a third of what accepting it costs.

use fetchwell_engine::ports::job::{Lease, LeaseId};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use fetchwell_sqlite::statements::Statements;

use super::{LaneId, Moves, lease_of};
use crate::shared::job_state::{JobState, sql};

/// The maximum number of jobs that one call examines; the next call continues from there.
const MAX_LOOKED_AT: i64 = 4_096;

/// A range of jobs with one deadline. Some may be gone, and others may lie between them.
struct Run {
    deadline: Time,
    first: LeaseId,
    last: LeaseId,
}

/// An overdue job and its state, with its room: its site and lane.
type Late = ((Lease, JobState), (String, LaneId));

impl Moves<'_> {
    /// Records the deadline of a waiting job.
    pub(super) fn expires(&mut self, id: LeaseId, deadline: Time) {
        let (first, last) = self.runs.entry(deadline).or_insert((id, id));
        *first = id.min(*first);
        *last = id.max(*last);
    }

    /// Writes the runs of jobs that were accepted here.
    pub(super) fn enter_runs(&mut self) -> rusqlite::Result<()> {
        for (deadline, (first, last)) in std::mem::take(&mut self.runs) {
            self.insert_run(&Run { deadline, first, last })?;
        }
        Ok(())
    }

    /// Hands out overdue jobs, even if their sites are closed.
    pub(super) fn lease_overdue(
        &mut self,
        epoch: i64,
        most: usize,
    ) -> rusqlite::Result<Vec<Lease>> {
        let mut leases = Vec::new();
        let mut rooms = Vec::new();
        let mut to_look_at = MAX_LOOKED_AT;
        while let Some(run) = self.first_run()?.filter(|run| run.deadline <= self.now) {
            let left = most - leases.len();
            if left == 0 || to_look_at == 0 {
                break;
            }
            let last = run.last.min(run.first + to_look_at - 1);
            let late = self.late_between(run.first, last, left)?;
            // Leased jobs are skipped: their holder watches the deadline, and they get a run again when they are
            // requeued.
            let seen = match late.last() {
                Some(((lease, _), _)) if late.len() == left => lease.id,
                _ => last,
            };
            to_look_at -= seen - run.first + 1;
            self.shorten(&run, seen + 1)?;
            let (found, found_in): (Vec<_>, Vec<_>) = late.into_iter().unzip();
            // Lease these jobs before reading the next run. Runs overlap, so it might contain the same jobs.
            leases.extend(self.take(epoch, found)?);
            rooms.extend(found_in);
        }
        for (site, lane) in rooms {
            self.close_room_after_lease(&site, lane)?;
        }
        Ok(leases)
    }

    /// The earliest deadline of a waiting job. Deletes runs without such jobs on the way.
    pub(in crate::sqlite) fn first_deadline(&self) -> rusqlite::Result<Option<Time>> {
        let mut to_look_at = MAX_LOOKED_AT;
        while let Some(run) = self.first_run()? {
            let last = run.last.min(run.first + to_look_at - 1);
            let first: Option<LeaseId> = self.tx.one(
                sql!(
                    "SELECT min(id) FROM job
                     WHERE id BETWEEN ?1 AND ?2 AND state < {dead} AND deadline = ?3"
                ),
                (run.first, last, run.deadline.as_micros()),
                |row| row.get(0),
            )?;
            if let Some(first) = first {
                self.shorten(&run, first)?;
                return Ok(Some(run.deadline));
            }
            self.shorten(&run, last + 1)?;
            to_look_at -= last - run.first + 1;
            if to_look_at == 0 {
                return Ok(Some(run.deadline));
            }
        }
        Ok(None)
    }

    fn first_run(&self) -> rusqlite::Result<Option<Run>> {
        let select = "SELECT deadline, first, last FROM expiry WHERE queue = ?1
             ORDER BY deadline, first LIMIT 1";
        self.tx.find(select, [self.queue], |row| {
            let deadline = Time::from_micros(row.get(0)?);
            Ok(Run { deadline, first: row.get(1)?, last: row.get(2)? })
        })
    }

    /// Makes a run begin at `first`, or deletes it if it ends before that.
    fn shorten(&self, run: &Run, first: LeaseId) -> rusqlite::Result<()> {
        if first == run.first {
            return Ok(());
        }
        self.tx.run(
            "DELETE FROM expiry WHERE queue = ?1 AND deadline = ?2 AND first = ?3",
            (self.queue, run.deadline.as_micros(), run.first),
        )?;
        if first <= run.last {
            self.insert_run(&Run { first, ..*run })?;
        }
        Ok(())
    }

    /// Stores a run. If jobs were requeued late, a run with the same deadline and first job may already exist; the two
    /// are then merged.
    fn insert_run(&self, run: &Run) -> rusqlite::Result<()> {
        self.tx.run(
            "INSERT INTO expiry VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET last = max(last, excluded.last)",
            (self.queue, run.deadline.as_micros(), run.first, run.last),
        )?;
        Ok(())
    }

    /// The overdue waiting jobs in this range.
    fn late_between(
        &self,
        first: LeaseId,
        last: LeaseId,
        most: usize,
    ) -> rusqlite::Result<Vec<Late>> {
        self.tx.list(
            sql!(concat!(
                super::select_lease!(),
                " WHERE id BETWEEN ?1 AND ?2 AND queue = ?3 AND state < {leased} AND deadline <= ?4
                 ORDER BY id LIMIT ?5"
            )),
            (first, last, self.queue, self.now.as_micros(), most),
            |row| {
                let site: String = row.get(2)?;
                let lane: LaneId = row.get(3)?;
                let parsed = Site::parse(&site).ok();
                Ok((lease_of(row, parsed, self.lane_named(lane)?)?, (site, lane)))
            },
        )
    }
}
