//! What operators can see and do in a PostgreSQL database.

mod acting;
mod looking;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::MessageId;
use fetchwell_engine::ports::oversight::{
    Action, ActionResult, Count, Failures, InstanceView, MESSAGES_PER_ACT, MessageDetail,
    MessageFilter, MessageSummaries, OutboxExtent, Oversight, QueueLedger, Recount,
};
use fetchwell_engine::ports::queue::Queue;
use fetchwell_policy::time::Time;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::inbox::PostgresRetriever;
use super::ledger;
use super::moves::{Moves, QueueId};
use super::queue::PostgresQueue;
use crate::shared::job_state::sql;
use crate::shared::looking::{Look, told_by_ledger};

/// A time such that everything with an earlier timestamp is committed: no transaction in progress read the clock before
/// it.
const SETTLED: &str = "
    SELECT coalesce($1, (extract(epoch FROM least(clock_timestamp(), (
        SELECT min(xact_start) - INTERVAL '1 microsecond' FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'fetchwell'
            AND pid <> pg_backend_pid()))) * 1000000)::BIGINT)";

impl PostgresRetriever {
    async fn moment(&self) -> Result<Time, StoreError> {
        let PostgresQueue { db, clock, .. } = &self.messages;
        let times: Vec<(i64,)> = db.read_as(sqlx::query(SETTLED).bind(clock.given())).await?;
        Ok(times.first().map_or(Time::EPOCH, |(micros,)| Time::from_micros(*micros)))
    }

    async fn look(&self, filter: &MessageFilter) -> Result<Look, StoreError> {
        let as_of = match filter.as_of {
            Some(as_of) => as_of,
            None => self.moment().await?,
        };
        Ok(Look { filter: filter.clone(), as_of })
    }

    async fn queues(&self) -> Result<Vec<(QueueId, String)>, StoreError> {
        let query = sqlx::query("SELECT id, name FROM fetchwell_queue ORDER BY name");
        self.messages.db.read_as(query).await
    }
}

#[async_trait]
impl Oversight for PostgresRetriever {
    async fn list(
        &self,
        filter: &MessageFilter,
        from: Option<i64>,
        most: u32,
    ) -> Result<MessageSummaries, StoreError> {
        let look = self.look(filter).await?;
        let ledger = self.messages.ledger().await?;
        looking::list(&self.messages, &look, &ledger, from, most).await
    }

    async fn count(&self, filter: &MessageFilter) -> Result<Count, StoreError> {
        let look = self.look(filter).await?;
        let ledger = self.messages.ledger().await?;
        match told_by_ledger(&look, &ledger) {
            Some(found) => Ok(Count { found, is_exact: true, as_of: look.as_of }),
            None => looking::count(&self.messages, &look, &ledger).await,
        }
    }

    async fn detail(&self, id: MessageId) -> Result<Option<MessageDetail>, StoreError> {
        looking::detail(&self.messages, id).await
    }

    async fn failures(&self) -> Result<Failures, StoreError> {
        looking::failures(&self.messages, self.moment().await?).await
    }

    async fn act_on(
        &self,
        act: Action,
        ids: &[MessageId],
        as_of: Option<Time>,
    ) -> Result<Vec<ActionResult>, StoreError> {
        let ids = ids.get(..MESSAGES_PER_ACT).unwrap_or(ids);
        let mut moves = Moves::begin(&self.messages).await?;
        let acted = moves.act_on(self.deliveries.id, act, ids, as_of).await;
        let (deeds, callers) = moves.end(acted).await?;
        self.messages.news.notify_one();
        self.notify(&callers);
        Ok(deeds)
    }

    async fn instances(&self) -> Result<Vec<InstanceView>, StoreError> {
        let query = sqlx::query(sql!(
            "SELECT epoch, queue.name, who, since, heartbeat_at, expires_at,
                 (SELECT count(*) FROM fetchwell_job AS job
                  WHERE job.state = {leased} AND job.epoch = instance.epoch)
             FROM fetchwell_instance AS instance
             JOIN fetchwell_queue AS queue ON queue.id = instance.queue ORDER BY queue.name, epoch"
        ));
        let time = |micros: Option<i64>| micros.map(Time::from_micros);
        let instance = |row: &PgRow| {
            Ok(InstanceView {
                epoch: row.try_get(0)?,
                queue: row.try_get(1)?,
                who: row.try_get(2)?,
                since: time(row.try_get(3)?),
                last_heartbeat: time(row.try_get(4)?),
                expires_at: Time::from_micros(row.try_get(5)?),
                in_flight: u64::try_from(row.try_get::<i64, _>(6)?).unwrap_or(0),
            })
        };
        self.messages.db.read(query, instance).await
    }

    async fn outboxes(&self) -> Result<Vec<OutboxExtent>, StoreError> {
        let query = sqlx::query("SELECT name, pruned, results FROM fetchwell_caller ORDER BY name");
        let outbox = |row: &PgRow| {
            let caller = row.try_get(0)?;
            Ok(OutboxExtent { caller, pruned: row.try_get(1)?, newest: row.try_get(2)? })
        };
        self.messages.db.read(query, outbox).await
    }

    async fn ledgers(&self) -> Result<Vec<QueueLedger>, StoreError> {
        let mut ledgers = Vec::new();
        for (id, queue) in self.queues().await? {
            let ledger = ledger::read(&self.messages.db, id).await?;
            ledgers.push(QueueLedger { queue, ledger });
        }
        Ok(ledgers)
    }

    /// Ids do not follow the order of acceptance, because each process reserves them in blocks.
    async fn oldest_waiting(&self) -> Result<BTreeMap<String, Duration>, StoreError> {
        let query = sqlx::query(sql!(
            "SELECT queue.name, min(job.accepted_at) FROM fetchwell_queue AS queue
             JOIN fetchwell_job AS job ON job.queue = queue.id AND job.state < {leased}
             GROUP BY queue.name"
        ));
        let since: Vec<(String, i64)> = self.messages.db.read_as(query).await?;
        let now = self.moment().await?;
        let age = |(queue, at)| (queue, now.since(Time::from_micros(at)));
        Ok(since.into_iter().map(age).collect())
    }

    async fn recount(&self) -> Result<Vec<Recount>, StoreError> {
        let mut recounts = Vec::new();
        for (id, queue) in self.queues().await? {
            let (ledger, difference) = ledger::recount(&self.messages.db, id).await?;
            recounts.push(Recount { told: QueueLedger { queue, ledger }, difference });
        }
        Ok(recounts)
    }
}
