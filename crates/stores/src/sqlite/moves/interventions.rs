//! Actions of operators on messages, as moves.

use std::sync::LazyLock;

use fetchwell_engine::ports::inbox::{FetchResult, MessageId};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;

use super::{LaneId, MessageEnding, Moves};
use crate::shared::job_state::JobState;
use crate::sqlite::message_row;

/// As it was sent, but for its name and its times.
static RENEW: LazyLock<String> = LazyLock::new(|| {
    let columns = message_row::COLUMN_LIST.as_str();
    format!(
        "INSERT INTO job (queue, key, url, site, lane, payload, deadline, state, due, accepted_at,
             created_at, retry_of, {columns})
         SELECT queue, ?2, url, site, lane, payload, ?3 + deadline - accepted_at, ?5, ?3, ?3,
             ?4, key, {columns} FROM job WHERE id = ?1
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
        let (state, site): (JobState, String) = self
            .tx
            .prepare_cached("SELECT state, site FROM job WHERE id = ?1")?
            .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let ended = self.end_waiting(id, state, &site, result)?;
        let caller = self.lane_named(ended.lane)?.party.unwrap_or_default();
        self.put_out(ended, &caller, result, ending)?;
        self.free_followers(id)
    }

    /// Inserts a copy of a message that has ended, to fetch it again.
    pub(in crate::sqlite) fn renew(
        &mut self,
        id: LeaseId,
        new: MessageId,
        wall: Time,
    ) -> rusqlite::Result<()> {
        let (site, lane, deadline): (String, LaneId, Option<i64>) =
            self.tx.prepare_cached(&RENEW)?.query_row(
                (id, new.0, self.now.as_micros(), wall.as_micros(), JobState::Queued),
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )?;
        let renewed = self.tx.last_insert_rowid();
        self.tx
            .prepare_cached("UPDATE job SET retried_as = ?2 WHERE id = ?1")?
            .execute((id, new.0))?;
        if let Some(deadline) = deadline {
            self.expires(renewed, Time::from_micros(deadline));
        }
        self.change.accepted += 1;
        *self.messages.entry(lane).or_default() += 1;
        self.count_waiting(self.now);
        self.open_room(&site, lane, self.now)
    }

    /// Makes a delayed job due now.
    pub(in crate::sqlite) fn hasten(&mut self, id: LeaseId) -> rusqlite::Result<()> {
        self.change.delayed -= 1;
        self.wait(id, self.now)
    }
}
