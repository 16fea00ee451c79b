//! Removes the waiting jobs of a lane.

use std::collections::BTreeSet;

use fetchwell_engine::ports::job::{Lane, LeaseId};
use fetchwell_sqlite::statements::Statements;

use super::{LaneId, Moves};
use crate::shared::job_state::{JobState, sql};

/// The rooms lead to the jobs, so the cost does not depend on the number of jobs in other lanes.
const WAITING: &str = sql!(
    "SELECT job.id, job.state, job.site FROM room
     CROSS JOIN job INDEXED BY job_waiting
         ON job.queue = room.queue AND job.site = room.site AND job.lane = room.lane
             AND job.state < {leased}
     WHERE room.queue = ?1 AND room.lane = ?2 LIMIT ?3"
);

impl Moves<'_> {
    /// Removes waiting jobs of a lane, at most so many. They count as skipped. Returns how many.
    pub(in crate::sqlite) fn remove_waiting(
        &mut self,
        lane: &Lane,
        most: u32,
    ) -> rusqlite::Result<u32> {
        let Some(lane) = self.known_lane(lane)? else { return Ok(0) };
        let found: Vec<(LeaseId, JobState, String)> =
            self.tx.list(WAITING, (self.queue, lane, most), |row| row.try_into())?;
        let mut sites = BTreeSet::new();
        let mut removed = 0;
        for (id, state, site) in found {
            self.tx.run("DELETE FROM job WHERE id = ?1", [id])?;
            *state.waiting(&mut self.change) -= 1;
            self.change.skipped += 1;
            removed += 1;
            sites.insert(site);
        }
        for site in sites {
            self.close_room_after_lease(&site, lane)?;
        }
        Ok(removed)
    }

    /// Forgets a lane that has no jobs.
    pub(in crate::sqlite) fn forget_lane(&self, lane: &Lane) -> rusqlite::Result<()> {
        if let Some(lane) = self.known_lane(lane)? {
            self.tx.run("DELETE FROM lane WHERE id = ?1", [lane])?;
        }
        Ok(())
    }

    fn known_lane(&self, lane: &Lane) -> rusqlite::Result<Option<LaneId>> {
        let name =
            (self.queue, lane.group.as_deref().unwrap_or(""), lane.party.as_deref().unwrap_or(""));
        let select = "SELECT id FROM lane WHERE queue = ?1 AND grp = ?2 AND party = ?3";
        self.tx.find(select, name, |row| row.get(0))
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::sqlite::schema;

    /// A crawl may be cancelled while millions of jobs of others wait.
    #[test]
    fn the_jobs_of_a_lane_are_found_without_a_scan() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {WAITING}")).unwrap();
        let plan: Vec<String> =
            explain.query_map((1, 1, 1), |row| row.get(3)).unwrap().map(Result::unwrap).collect();
        let plan = plan.join("\n");
        for step in ["room_due (queue=? AND lane=?)", "job_waiting (queue=? AND site=? AND lane=?)"]
        {
            assert!(plan.contains(step), "{step}:\n{plan}");
        }
    }
}
