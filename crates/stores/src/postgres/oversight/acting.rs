//! Actions of operators. Each depends on the state of a message, whose row stays locked until the commit.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use fetchwell_engine::ports::inbox::{FetchResult, MessageId};
use fetchwell_engine::ports::job::{Lane, LeaseId};
use fetchwell_engine::ports::oversight::{Action, ActionResult};
use fetchwell_policy::time::Time;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::postgres::database::column;
use crate::postgres::lanes::LaneId;
use crate::postgres::message_row;
use crate::postgres::moves::{Moves, QueueId};
use crate::shared::intervening::{Standing, Verdict, cancelled, new_name};
use crate::shared::job_state::{JobState, sql};

const STANDINGS: &str = "
    SELECT id, key, state, follows IS NOT NULL, accepted_at, ended_at, retried_as,
        url_failures + site_failures + paced, retailer, caller
    FROM fetchwell_job WHERE queue = $1 AND key = ANY($2) ORDER BY id FOR UPDATE";

/// Copies a message, except for its id and its times.
static RENEW: LazyLock<String> = LazyLock::new(|| {
    let columns = message_row::COLUMN_LIST.as_str();
    format!(
        "INSERT INTO fetchwell_job (id, queue, lane, key, site, url, odd_url, payload, deadline, due,
            state, caller, retailer, accepted_at, retry_of, {columns})
        SELECT new.id, queue, new.lane, new.key, site, url, odd_url, payload,
            $5 + deadline - accepted_at, $5, $6, caller, retailer, $5, job.key, {columns}
        FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BYTEA[], $4::BIGINT[]) AS new (old, id, key, lane)
        JOIN fetchwell_job AS job ON job.id = new.old ORDER BY new.key
        RETURNING site, lane"
    )
});

/// A message to submit again: its job, the id and the lane of the new one.
type Renewal = (LeaseId, Vec<u8>, LaneId);

impl Moves<'_> {
    /// Acts on each message. Returns what was done, and the callers that have a new result.
    pub(super) async fn act_on(
        &mut self,
        deliveries: QueueId,
        act: Action,
        ids: &[MessageId],
        as_of: Option<Time>,
    ) -> sqlx::Result<(Vec<ActionResult>, BTreeSet<String>)> {
        let keys = column(ids, |id| id.0.to_vec());
        let lanes = self.lanes_of(&keys).await?;
        let query = sqlx::query(STANDINGS).bind(self.queue.id).bind(keys);
        let rows = self.tx.fetch(query).await?;
        let mut found: HashMap<MessageId, (LeaseId, Lane, Standing)> =
            rows.iter().map(standing_of).collect::<sqlx::Result<_>>()?;
        let now = self.now();
        let mut deeds = Vec::with_capacity(ids.len());
        let mut renewals: Vec<Renewal> = Vec::new();
        let mut hastened = Vec::new();
        let mut cancellations = Vec::new();
        for id in ids {
            let Some((job, lane, standing)) = found.get_mut(id) else {
                deeds.push(ActionResult::Unknown);
                continue;
            };
            // If an id is given twice, the second verdict sees what the first one does.
            deeds.push(match standing.verdict(act, as_of) {
                Verdict::LeaveAlone(deed) => deed,
                Verdict::Renew => {
                    let new = new_name(*id, now, now);
                    standing.retried_as = Some(new);
                    let lane = lanes.get(lane).copied().unwrap_or_default();
                    renewals.push((*job, new.0.to_vec(), lane));
                    ActionResult::Renewed(new)
                }
                Verdict::Hasten => {
                    standing.state = JobState::Queued;
                    hastened.push(*job);
                    ActionResult::Hastened
                }
                Verdict::Cancel => {
                    standing.state = JobState::Failed;
                    cancellations.push((*job, cancelled(standing.attempts)));
                    ActionResult::Cancelled
                }
            });
        }
        self.renew(renewals).await?;
        self.hasten(hastened).await?;
        let callers = self.cancel(deliveries, &cancellations).await?;
        Ok((deeds, callers))
    }

    /// The lanes of messages, which may have been deleted after the messages ended. Called before the jobs are locked,
    /// to keep the lock order.
    async fn lanes_of(&mut self, keys: &[Vec<u8>]) -> sqlx::Result<HashMap<Lane, LaneId>> {
        let query = sqlx::query(sql!(
            "SELECT DISTINCT retailer, caller FROM fetchwell_job
             WHERE queue = $1 AND key = ANY($2) AND state > {leased}"
        ));
        let lanes = self.tx.fetch_as(query.bind(self.queue.id).bind(keys)).await?;
        let lane = |(group, party)| Lane { group: Some(group), party: Some(party) };
        self.lane_ids(self.queue.id, lanes.into_iter().map(lane).collect()).await
    }

    async fn renew(&mut self, renewals: Vec<Renewal>) -> sqlx::Result<()> {
        if renewals.is_empty() {
            return Ok(());
        }
        let ids = self.new_ids(renewals.len()).await?;
        let now = self.now();
        let (old, keys, lanes): (Vec<LeaseId>, Vec<Vec<u8>>, Vec<LaneId>) =
            renewals.into_iter().collect();
        let query = sqlx::query(RENEW.as_str()).bind(&old).bind(ids).bind(&keys).bind(lanes);
        let query = query.bind(now.as_micros()).bind(JobState::Queued.number());
        for (site, lane) in self.tx.fetch_as(query).await? {
            self.change().accepted += 1;
            self.now_waits(site, lane, now);
        }
        let query = sqlx::query(
            "UPDATE fetchwell_job AS job SET retried_as = new.key
             FROM unnest($1::BIGINT[], $2::BYTEA[]) AS new (old, key) WHERE job.id = new.old",
        );
        self.tx.execute(query.bind(old).bind(keys)).await?;
        Ok(())
    }

    async fn hasten(&mut self, jobs: Vec<LeaseId>) -> sqlx::Result<()> {
        if jobs.is_empty() {
            return Ok(());
        }
        let now = self.now();
        let query = sqlx::query(sql!(
            "UPDATE fetchwell_job SET state = {queued}, due = $2 WHERE id = ANY($1)
             RETURNING site, lane"
        ));
        for (site, lane) in self.tx.fetch_as(query.bind(jobs).bind(now.as_micros())).await? {
            self.change().delayed -= 1;
            self.now_waits(site, lane, now);
        }
        Ok(())
    }

    /// Followers of cancelled messages are fetched on their own.
    pub(in crate::postgres) async fn cancel(
        &mut self,
        deliveries: QueueId,
        jobs: &[(LeaseId, FetchResult)],
    ) -> sqlx::Result<BTreeSet<String>> {
        if jobs.is_empty() {
            return Ok(BTreeSet::new());
        }
        let ids = column(jobs, |(id, _)| *id);
        let query = sqlx::query(sql!(
            "WITH waiting AS (SELECT id, state FROM fetchwell_job WHERE id = ANY($1))
             UPDATE fetchwell_job AS job SET state = {failed}, ended_at = $2, reason = $3,
                 attempts = url_failures + site_failures + paced
             FROM waiting WHERE job.id = waiting.id
             RETURNING job.id, key, caller, callback_url, kind, NULL::BIGINT, waiting.state, batch"
        ));
        let query = query.bind(&ids).bind(self.now().as_micros()).bind(FetchResult::CANCELLED);
        let rows = self.tx.fetch(query).await?;
        let ended = self.ended_while_waiting(&rows)?;
        self.free_followers(ids).await?;
        let ends = column(jobs, |(id, result)| (*id, result));
        self.put_out(deliveries, ended, &ends).await
    }
}

fn standing_of(row: &PgRow) -> sqlx::Result<(MessageId, (LeaseId, Lane, Standing))> {
    let ended_at: Option<i64> = row.try_get(5)?;
    let retried_as: Option<[u8; 16]> = row.try_get(6)?;
    let attempts: i64 = row.try_get(7)?;
    let standing = Standing {
        state: row.try_get(2)?,
        follows: row.try_get(3)?,
        accepted_at: Time::from_micros(row.try_get(4)?),
        ended_at: ended_at.map(Time::from_micros),
        retried_as: retried_as.map(MessageId),
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
    };
    let lane = Lane { group: Some(row.try_get(8)?), party: Some(row.try_get(9)?) };
    Ok((MessageId(row.try_get(1)?), (row.try_get(0)?, lane, standing)))
}
