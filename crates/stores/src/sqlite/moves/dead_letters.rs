//! Removes dead letters, to retry or to drop them.

use fetchwell_engine::ports::dead_letters::Revision;
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_sqlite::statements::Statements;

use super::Moves;
use crate::shared::job_state::sql;

impl Moves<'_> {
    /// Removes a dead letter. Returns whether it existed.
    pub(in crate::sqlite) fn take_off(
        &mut self,
        id: LeaseId,
        revision: Revision,
    ) -> rusqlite::Result<bool> {
        let sql = match revision {
            // Resets its history, except for the time of acceptance.
            Revision::Retry => {
                sql!(
                    "UPDATE job SET reason = NULL, details = NULL, interruptions = 0,
                         ended_at = NULL, url_failures = 0, site_failures = 0, paced = 0,
                         first_site_failure = NULL
                     WHERE id = ?1 AND queue = ?2 AND state = {dead}"
                )
            }
            Revision::Drop => {
                sql!("DELETE FROM job WHERE id = ?1 AND queue = ?2 AND state = {dead}")
            }
        };
        if self.tx.run(sql, (id, self.queue))? == 0 {
            return Ok(false);
        }
        self.change.dead -= 1;
        match revision {
            Revision::Retry => self.wait(id, self.now)?,
            Revision::Drop => self.change.skipped += 1,
        }
        Ok(true)
    }
}
