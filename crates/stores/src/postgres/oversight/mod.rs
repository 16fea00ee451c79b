//! What operators can see and do in a PostgreSQL database.

mod acting;
mod looking;
mod overview;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{MessageId, ResultNotifier};
use fetchwell_engine::ports::oversight::{
    Action, ActionResult, Count, Failures, InstanceView, MESSAGES_PER_ACT, MessageDetail,
    MessageFilter, MessageSummaries, OutboxExtent, Oversight, QueueLedger, Recount,
};
use fetchwell_engine::ports::queue::Queue;
use fetchwell_policy::time::Time;
use sqlx::Row;

use super::database::Database;
use super::moment::StoreClock;
use super::moves::Moves;
use super::queue::PostgresQueue;
use crate::shared::looking::{Look, told_by_ledger};

/// The messages of a database, as operators see them.
pub(super) struct PostgresOversight {
    pub(super) db: Database,
    pub(super) clock: StoreClock,
    pub(super) messages: PostgresQueue,
    pub(super) deliveries: PostgresQueue,
    pub(super) results: ResultNotifier,
}

/// A time such that everything with an earlier timestamp is committed: no transaction in progress read the clock before
/// it.
const SETTLED: &str = "
    SELECT coalesce($1, (extract(epoch FROM least(clock_timestamp(), (
        SELECT min(xact_start) - INTERVAL '1 microsecond' FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'fetchwell'
            AND pid <> pg_backend_pid()))) * 1000000)::BIGINT)";

impl PostgresOversight {
    async fn moment(&self) -> Result<Time, StoreError> {
        let rows = self.db.read(sqlx::query(SETTLED).bind(self.clock.given())).await?;
        let micros = rows.first().map_or(Ok(0), |row| row.try_get(0));
        micros.map(Time::from_micros).map_err(|error| self.db.fault(error))
    }

    async fn look(&self, filter: &MessageFilter) -> Result<Look, StoreError> {
        let as_of = match filter.as_of {
            Some(as_of) => as_of,
            None => self.moment().await?,
        };
        Ok(Look { filter: filter.clone(), as_of })
    }
}

#[async_trait]
impl Oversight for PostgresOversight {
    async fn list(
        &self,
        filter: &MessageFilter,
        from: Option<i64>,
        most: u32,
    ) -> Result<MessageSummaries, StoreError> {
        let look = self.look(filter).await?;
        let ledger = self.messages.ledger().await?;
        looking::list(&self.db, self.messages.queue, &look, &ledger, from, most).await
    }

    async fn count(&self, filter: &MessageFilter) -> Result<Count, StoreError> {
        let look = self.look(filter).await?;
        let ledger = self.messages.ledger().await?;
        match told_by_ledger(&look, &ledger) {
            Some(found) => Ok(Count { found, is_exact: true, as_of: look.as_of }),
            None => looking::count(&self.db, self.messages.queue, &look, &ledger).await,
        }
    }

    async fn detail(&self, id: MessageId) -> Result<Option<MessageDetail>, StoreError> {
        looking::detail(&self.db, self.messages.queue, id).await
    }

    async fn failures(&self) -> Result<Failures, StoreError> {
        let as_of = self.moment().await?;
        looking::failures(&self.db, self.messages.queue, as_of).await
    }

    async fn act_on(
        &self,
        act: Action,
        ids: &[MessageId],
        as_of: Option<Time>,
    ) -> Result<Vec<ActionResult>, StoreError> {
        let ids = ids.get(..MESSAGES_PER_ACT).unwrap_or(ids);
        let moves = Moves::begin(&self.db, &self.clock).await?;
        let queues = (self.messages.queue, self.deliveries.queue);
        let acted = acting::act_on(moves, queues, act, ids, as_of).await;
        let (deeds, callers) = acted.map_err(|error| self.db.fault(error))?;
        self.messages.news.notify_one();
        for caller in callers {
            self.deliveries.news.notify_one();
            self.results.notify(&caller);
        }
        Ok(deeds)
    }

    async fn instances(&self) -> Result<Vec<InstanceView>, StoreError> {
        overview::instances(&self.db).await
    }

    async fn outboxes(&self) -> Result<Vec<OutboxExtent>, StoreError> {
        overview::outboxes(&self.db).await
    }

    async fn ledgers(&self) -> Result<Vec<QueueLedger>, StoreError> {
        overview::ledgers(&self.db).await
    }

    async fn oldest_waiting(&self) -> Result<BTreeMap<String, Duration>, StoreError> {
        let since = overview::waiting_since(&self.db).await?;
        let now = self.moment().await?;
        Ok(since.into_iter().map(|(queue, at)| (queue, now.since(at))).collect())
    }

    async fn recount(&self) -> Result<Vec<Recount>, StoreError> {
        overview::recount(&self.db).await
    }
}
