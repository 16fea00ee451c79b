//! Actions of operators on messages, as moves.

use std::sync::LazyLock;

use fetchwell_engine::ports::inbox::{FetchResult, MessageId};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;
use fetchwell_sqlite::statements::Statements;

use super::{LaneId, MessageEnding, Moves};
use crate::shared::job_state::JobState;
use crate::sqlite::message_row::COLUMNS;

/// As it was sent, but for its name and its times.
static RENEW: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO job (queue, key, url, site, lane, payload, deadline, state, due, accepted_at,
             created_at, retry_of, {COLUMNS})
         SELECT queue, ?2, url, site, lane, payload, ?3 + deadline - accepted_at, ?5, ?3, ?3,
             ?4, key, {COLUMNS} FROM job WHERE id = ?1
         RETURNING site, lane, deadline"
    )
});

impl Moves<'_> {
    /// Ends a waiting message for an operator. Its followers are fetched on their own.
    pub(in crate::sqlite) fn cancel(
        &mut self,
        id: LeaseId,
        result: &FetchResult,
        ending: &mut MessageEnding<'_>,
    ) -> rusqlite::Result<()> {
        let select = "SELECT state, site FROM job WHERE id = ?1";
        let (state, site): (JobState, String) = self.tx.one(select, [id], |row| row.try_into())?;
        let ended = self.end_waiting(id, state, &site, result)?;
        let caller = self.lane_named(ended.lane)?.party.unwrap_or_default();
        self.put_out(ended, &caller, result, None, ending)?;
        self.free_followers(id)
    }

    /// Inserts a copy of a message that has ended, to fetch it again.
    pub(in crate::sqlite) fn renew(
        &mut self,
        id: LeaseId,
        new: MessageId,
        wall: Time,
    ) -> rusqlite::Result<()> {
        let (site, lane, deadline): (String, LaneId, Option<i64>) = self.tx.one(
            &RENEW,
            (id, new.0, self.now.as_micros(), wall.as_micros(), JobState::Queued),
            |row| row.try_into(),
        )?;
        let renewed = self.tx.last_insert_rowid();
        self.tx.run("UPDATE job SET retried_as = ?2 WHERE id = ?1", (id, new.0))?;
        if let Some(deadline) = deadline {
            self.expires(renewed, Time::from_micros(deadline));
        }
        self.change.accepted += 1;
        *self.messages.entry(lane).or_default() += 1;
        self.begin_waiting(&site, lane, self.now)
    }

    /// Makes a delayed job due now.
    pub(in crate::sqlite) fn hasten(&mut self, id: LeaseId) -> rusqlite::Result<()> {
        self.change.delayed -= 1;
        self.wait(id, self.now)
    }
}
