//! Actions of operators. Each depends on the state of a message, whose row stays locked until the commit.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use fetchwell_engine::ports::inbox::{FetchResult, MessageId};
use fetchwell_engine::ports::job::{Lane, LeaseId};
use fetchwell_engine::ports::oversight::{Action, ActionResult};
use fetchwell_policy::time::Time;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::postgres::ending::{End, Ended, ended_of};
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

/// A message to submit again.
struct Renewal {
    old: LeaseId,
    key: MessageId,
    lane: LaneId,
}

/// The work to do, by kind.
#[derive(Default)]
struct Work {
    renewals: Vec<Renewal>,
    hasten: Vec<LeaseId>,
    cancel: Vec<(LeaseId, FetchResult)>,
}

/// Acts on each message, and commits. Returns what was done, and the callers that have a new result.
pub(super) async fn act_on(
    mut moves: Moves,
    (queue, deliveries): (QueueId, QueueId),
    act: Action,
    ids: &[MessageId],
    as_of: Option<Time>,
) -> sqlx::Result<(Vec<ActionResult>, BTreeSet<String>)> {
    let lanes = moves.lanes_of(queue, ids).await?;
    let keys: Vec<Vec<u8>> = ids.iter().map(|id| id.0.to_vec()).collect();
    let rows = moves.tx.fetch(sqlx::query(STANDINGS).bind(queue).bind(keys)).await?;
    let mut found: HashMap<MessageId, &PgRow> = HashMap::new();
    for row in &rows {
        found.insert(MessageId(row.try_get(1)?), row);
    }
    let mut deeds = Vec::with_capacity(ids.len());
    let mut work = Work::default();
    let now = moves.now();
    let mut seen = HashSet::new();
    for id in ids {
        let Some(row) = found.get(id) else {
            deeds.push(ActionResult::Unknown);
            continue;
        };
        let job: LeaseId = row.try_get(0)?;
        let standing: Standing = standing_of(row)?;
        let verdict = match seen.insert(*id) {
            true => standing.verdict(act, as_of),
            // If an id is given twice, act on it once.
            false => Verdict::LeaveAlone(deeds_again(ids, &deeds, *id)),
        };
        deeds.push(match verdict {
            Verdict::LeaveAlone(deed) => deed,
            Verdict::Renew => {
                let key = new_name(*id, now, now);
                let lane = lanes.get(&lane_of(row)?).copied().unwrap_or_default();
                work.renewals.push(Renewal { old: job, key, lane });
                ActionResult::Renewed(key)
            }
            Verdict::Hasten => {
                work.hasten.push(job);
                ActionResult::Hastened
            }
            Verdict::Cancel => {
                work.cancel.push((job, cancelled(standing.attempts)));
                ActionResult::Cancelled
            }
        });
    }
    moves.renew(queue, work.renewals).await?;
    moves.hasten(queue, work.hasten).await?;
    let callers = moves.cancel(queue, deliveries, work.cancel).await?;
    moves.commit().await?;
    Ok((deeds, callers))
}

/// The answer for an id that is given again.
fn deeds_again(ids: &[MessageId], deeds: &[ActionResult], id: MessageId) -> ActionResult {
    let first = ids.iter().zip(deeds).find(|(known, _)| **known == id).map(|(_, deed)| *deed);
    match first {
        Some(ActionResult::Renewed(new)) => ActionResult::RetriedBefore(new),
        Some(ActionResult::Hastened) => ActionResult::IsDue,
        Some(ActionResult::Cancelled) => ActionResult::HasEnded,
        Some(deed) => deed,
        None => ActionResult::Unknown,
    }
}

impl Moves {
    /// The lanes of messages, which may have been deleted after the messages ended. Called before the jobs are locked,
    /// to keep the lock order.
    async fn lanes_of(
        &mut self,
        queue: QueueId,
        ids: &[MessageId],
    ) -> sqlx::Result<HashMap<Lane, LaneId>> {
        let query = sqlx::query(sql!(
            "SELECT DISTINCT retailer, caller FROM fetchwell_job
             WHERE queue = $1 AND key = ANY($2) AND state > {leased}"
        ));
        let keys: Vec<Vec<u8>> = ids.iter().map(|id| id.0.to_vec()).collect();
        let rows = self.tx.fetch(query.bind(queue).bind(keys)).await?;
        let lane =
            |row: &PgRow| Ok(Lane { group: Some(row.try_get(0)?), party: Some(row.try_get(1)?) });
        let lanes = rows.iter().map(lane).collect::<sqlx::Result<_>>()?;
        self.lane_ids(queue, lanes).await
    }

    async fn renew(&mut self, queue: QueueId, renewals: Vec<Renewal>) -> sqlx::Result<()> {
        if renewals.is_empty() {
            return Ok(());
        }
        let ids = self.new_ids(renewals.len()).await?;
        let now = self.now();
        let old: Vec<LeaseId> = renewals.iter().map(|renewal| renewal.old).collect();
        let keys: Vec<Vec<u8>> = renewals.iter().map(|renewal| renewal.key.0.to_vec()).collect();
        let lanes: Vec<LaneId> = renewals.iter().map(|renewal| renewal.lane).collect();
        let query = sqlx::query(RENEW.as_str()).bind(&old).bind(ids).bind(&keys).bind(lanes);
        for row in
            self.tx.fetch(query.bind(now.as_micros()).bind(JobState::Queued.number())).await?
        {
            self.change(queue).accepted += 1;
            self.now_waits(queue, row.try_get(0)?, row.try_get(1)?, now);
        }
        let query = sqlx::query(
            "UPDATE fetchwell_job AS job SET retried_as = new.key
             FROM unnest($1::BIGINT[], $2::BYTEA[]) AS new (old, key) WHERE job.id = new.old",
        );
        self.tx.execute(query.bind(old).bind(keys)).await?;
        Ok(())
    }

    async fn hasten(&mut self, queue: QueueId, jobs: Vec<LeaseId>) -> sqlx::Result<()> {
        if jobs.is_empty() {
            return Ok(());
        }
        let now = self.now();
        let query = sqlx::query(
            "UPDATE fetchwell_job SET state = $2, due = $3 WHERE id = ANY($1) RETURNING site, lane",
        );
        for row in self
            .tx
            .fetch(query.bind(jobs).bind(JobState::Queued.number()).bind(now.as_micros()))
            .await?
        {
            self.change(queue).delayed -= 1;
            self.now_waits(queue, row.try_get(0)?, row.try_get(1)?, now);
        }
        Ok(())
    }

    /// Followers of cancelled messages are fetched on their own.
    async fn cancel(
        &mut self,
        queue: QueueId,
        deliveries: QueueId,
        jobs: Vec<(LeaseId, FetchResult)>,
    ) -> sqlx::Result<BTreeSet<String>> {
        if jobs.is_empty() {
            return Ok(BTreeSet::new());
        }
        let ids: Vec<LeaseId> = jobs.iter().map(|(id, _)| *id).collect();
        let query = sqlx::query(
            "WITH waiting AS (SELECT id, state FROM fetchwell_job WHERE id = ANY($1))
             UPDATE fetchwell_job AS job SET state = $2, ended_at = $3, reason = $4,
                 attempts = url_failures + site_failures + paced
             FROM waiting WHERE job.id = waiting.id
             RETURNING job.id, key, caller, callback_url, kind, NULL::BIGINT, waiting.state",
        );
        let query = query.bind(&ids).bind(JobState::Failed.number()).bind(self.now().as_micros());
        let rows = self.tx.fetch(query.bind(FetchResult::CANCELLED)).await?;
        for row in &rows {
            let change = self.change(queue);
            match row.try_get::<JobState, _>(6)? {
                JobState::Delayed => change.delayed -= 1,
                _ => change.queued -= 1,
            }
            change.done += 1;
        }
        let mut ended: Vec<Ended> = rows.iter().map(ended_of).collect::<sqlx::Result<_>>()?;
        ended.sort_by_key(|ended| ended.job);
        self.free_followers(queue, ids).await?;
        let ends: Vec<End<'_>> = jobs.iter().map(|(id, result)| End { id: *id, result }).collect();
        self.put_out(deliveries, ended, &ends).await
    }
}

fn standing_of(row: &PgRow) -> sqlx::Result<Standing> {
    let ended_at: Option<i64> = row.try_get(5)?;
    let retried_as: Option<[u8; 16]> = row.try_get(6)?;
    let attempts: i64 = row.try_get(7)?;
    Ok(Standing {
        state: row.try_get(2)?,
        follows: row.try_get(3)?,
        accepted_at: Time::from_micros(row.try_get(4)?),
        ended_at: ended_at.map(Time::from_micros),
        retried_as: retried_as.map(MessageId),
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
    })
}

fn lane_of(row: &PgRow) -> sqlx::Result<Lane> {
    Ok(Lane { group: Some(row.try_get(8)?), party: Some(row.try_get(9)?) })
}
