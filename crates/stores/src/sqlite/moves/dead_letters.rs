//! Removes dead letters, to retry or to drop them.

use fetchwell_engine::ports::dead_letters::Revision;
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;
use fetchwell_sqlite::statements::Statements;

use super::{LaneId, Moves};
use crate::shared::job_state::sql;

impl Moves<'_> {
    /// Removes a dead letter. Returns whether it existed.
    pub(in crate::sqlite) fn take_off(
        &mut self,
        id: LeaseId,
        revision: Revision,
    ) -> rusqlite::Result<bool> {
        let sql = match revision {
            // Resets its history, except for the time of acceptance. A batch has counted its end.
            Revision::Retry => {
                sql!(
                    "UPDATE job SET reason = NULL, details = NULL, interruptions = 0, batch = NULL,
                         ended_at = NULL, url_failures = 0, site_failures = 0, paced = 0,
                         first_site_failure = NULL
                     WHERE id = ?1 AND queue = ?2 AND state = {dead} RETURNING deadline"
                )
            }
            Revision::Drop => {
                sql!(
                    "DELETE FROM job WHERE id = ?1 AND queue = ?2 AND state = {dead}
                     RETURNING deadline"
                )
            }
        };
        let deadline: Option<Option<i64>> =
            self.tx.find(sql, (id, self.queue), |row| row.get(0))?;
        let Some(deadline) = deadline else { return Ok(false) };
        self.change.dead -= 1;
        match revision {
            Revision::Retry => {
                // The run may have been deleted while the job was dead.
                if let Some(deadline) = deadline {
                    self.expires(id, Time::from_micros(deadline));
                }
                self.wait(id, self.now)?;
            }
            Revision::Drop => self.change.skipped += 1,
        }
        Ok(true)
    }

    /// Deletes messages that ended without a result before this time. Returns their lanes.
    pub(in crate::sqlite) fn forget_dead(
        &mut self,
        before: Time,
        most: u64,
    ) -> rusqlite::Result<Vec<LaneId>> {
        let lanes: Vec<LaneId> = self.tx.list(
            sql!(
                "DELETE FROM job WHERE id IN (
                     SELECT id FROM job WHERE queue = ?1 AND state = {dead} AND ended_at < ?2
                     ORDER BY id LIMIT ?3)
                 RETURNING lane"
            ),
            (self.queue, before.as_micros(), most),
            |row| row.get(0),
        )?;
        // From now on they count as skipped, like dropped dead letters.
        let gone = i64::try_from(lanes.len()).unwrap_or(i64::MAX);
        self.change.dead -= gone;
        self.change.skipped += gone;
        Ok(lanes)
    }
}
