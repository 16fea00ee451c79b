//! Followers of a message: they get its result, or are fetched on their own.

use fetchwell_engine::ports::job::LeaseId;
use sqlx::Row;

use super::ending::{End, Ended, end_state, ended_of};
use super::moves::{Moves, QueueId};
use crate::shared::job_state::{JobState, sql};

impl Moves {
    /// Ends the followers of these messages with their results. A follower that is being handed out right now, because
    /// its deadline has passed, is skipped and fetched on its own. The rooms of the followers are updated when they are
    /// next due.
    pub(super) async fn end_followers(
        &mut self,
        queue: QueueId,
        ends: &[End<'_>],
    ) -> sqlx::Result<Vec<Ended>> {
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
             RETURNING job.id, key, caller, callback_url, kind, follows, follower.state"
        ));
        let query = query
            .bind(ends.iter().map(|end| end.id).collect::<Vec<_>>())
            .bind(ends.iter().map(|end| end_state(end.result).number()).collect::<Vec<_>>())
            .bind(self.now().as_micros())
            .bind(ends.iter().map(|end| end.result.reason()).collect::<Vec<_>>());
        let rows = self.tx.fetch(query).await?;
        for row in &rows {
            let change = self.change(queue);
            match row.try_get::<JobState, _>(6)? {
                JobState::Delayed => change.delayed -= 1,
                _ => change.queued -= 1,
            }
            change.done += 1;
        }
        let mut followers: Vec<Ended> = rows.iter().map(ended_of).collect::<sqlx::Result<_>>()?;
        followers.sort_by_key(|follower| follower.job);
        Ok(followers)
    }

    /// Makes the followers of messages without a result due at once, to be fetched on their own.
    pub(super) async fn free_followers(
        &mut self,
        queue: QueueId,
        leaders: Vec<LeaseId>,
    ) -> sqlx::Result<()> {
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
        for row in self.tx.fetch(query.bind(leaders).bind(now.as_micros())).await? {
            match row.try_get::<JobState, _>(2)? {
                JobState::Delayed => self.change(queue).delayed -= 1,
                _ => self.change(queue).queued -= 1,
            }
            self.now_waits(queue, row.try_get(0)?, row.try_get(1)?, now);
        }
        Ok(())
    }
}
