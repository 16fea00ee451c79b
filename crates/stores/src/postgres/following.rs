//! Followers of a message: they get its result, or are fetched on their own.

use fetchwell_engine::ports::job::LeaseId;

use super::database::column;
use super::ending::{End, Ended};
use super::moves::Moves;
use crate::shared::conclusion::end_state;
use crate::shared::job_state::sql;

impl Moves<'_> {
    /// Ends the followers of these messages with their results. A follower that is being handed out right now, because
    /// its deadline has passed, is skipped and fetched on its own. The rooms of the followers are updated when they are
    /// next due.
    pub(super) async fn end_followers(&mut self, ends: &[End<'_>]) -> sqlx::Result<Vec<Ended>> {
        let query = sqlx::query(sql!(
            "WITH follower AS (
                 SELECT id, job.state, leader.state AS end_state, leader.reason AS end_reason
                 FROM unnest($1::BIGINT[], $2::SMALLINT[], $4::TEXT[])
                     AS leader (leader, state, reason)
                 JOIN fetchwell_job AS job ON follows = leader
                 WHERE job.state < {leased} AND follows IS NOT NULL
                 ORDER BY id FOR UPDATE OF job SKIP LOCKED
             )
             UPDATE fetchwell_job AS job SET state = end_state, ended_at = $3, reason = end_reason
             FROM follower WHERE job.id = follower.id
             RETURNING job.id, key, caller, callback_url, kind, follows, follower.state, batch"
        ));
        let query = query
            .bind(column(ends, |(id, _)| *id))
            .bind(column(ends, |(_, result)| end_state(result).number()))
            .bind(self.now().as_micros())
            .bind(column(ends, |(_, result)| result.reason()));
        let rows = self.tx.fetch(query).await?;
        self.ended_while_waiting(&rows)
    }

    /// Makes the followers of messages without a result due at once, to be fetched on their own.
    pub(super) async fn free_followers(&mut self, leaders: Vec<LeaseId>) -> sqlx::Result<()> {
        let now = self.now();
        let query = sqlx::query(sql!(
            "WITH follower AS (
                 SELECT id, state FROM fetchwell_job
                 WHERE follows = ANY($1) AND follows IS NOT NULL AND state < {leased}
                 ORDER BY id FOR UPDATE SKIP LOCKED
             )
             UPDATE fetchwell_job AS job SET state = {queued}, due = $2, follows = NULL
             FROM follower WHERE job.id = follower.id
             RETURNING site, lane, follower.state"
        ));
        let query = query.bind(leaders).bind(now.as_micros());
        for (site, lane, was) in self.tx.fetch_as(query).await? {
            self.no_longer_waits(was);
            self.now_waits(site, lane, now);
        }
        Ok(())
    }
}
