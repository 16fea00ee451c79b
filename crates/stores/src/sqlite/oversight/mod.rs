//! What operators can see and do in a SQLite file.

mod acting;
mod looking;
mod overview;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{MessageId, ResultNotifier};
use fetchwell_engine::ports::oversight::{
    Action, ActionResult, Count, Failures, InstanceView, MESSAGES_PER_ACT, MessageDetail,
    MessageFilter, MessageSummaries, OutboxExtent, Oversight, QueueLedger, Recount,
};
use fetchwell_policy::time::Time;
use fetchwell_sqlite::db::Db;
use rusqlite::Connection;

use super::SqliteQueue;
use crate::shared::looking::{Look, told_by_ledger};

/// The messages of a file, as operators see them.
pub(super) struct SqliteOversight {
    /// A separate connection, so that its queries block neither writers nor callers.
    reader: Db,
    messages: SqliteQueue,
    deliveries: SqliteQueue,
    results: ResultNotifier,
}

impl SqliteOversight {
    pub(super) fn open(
        path: &Path,
        messages: SqliteQueue,
        deliveries: SqliteQueue,
        results: ResultNotifier,
    ) -> Result<SqliteOversight, StoreError> {
        Ok(SqliteOversight { reader: Db::open_for_reading(path)?, messages, deliveries, results })
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.reader.write(work).await
    }

    /// The current time, read while no writer is active: everything committed after this has a later time.
    async fn moment(&self) -> Result<Time, StoreError> {
        let clock = self.messages.clock.clone();
        self.messages.db.write(move |_| Ok(clock.now())).await
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
impl Oversight for SqliteOversight {
    async fn list(
        &self,
        filter: &MessageFilter,
        from: Option<i64>,
        most: u32,
    ) -> Result<MessageSummaries, StoreError> {
        let queue = self.messages.queue;
        let look = self.look(filter).await?;
        self.read(move |tx| looking::list(tx, queue, &look, from, most)).await
    }

    async fn count(&self, filter: &MessageFilter) -> Result<Count, StoreError> {
        let queue = self.messages.queue;
        let look = self.look(filter).await?;
        self.read(move |tx| {
            let ledger = super::queue::read_ledger(tx, queue)?;
            match told_by_ledger(&look, &ledger) {
                Some(found) => Ok(Count { found, is_exact: true, as_of: look.as_of }),
                None => looking::count(tx, queue, &look),
            }
        })
        .await
    }

    async fn detail(&self, id: MessageId) -> Result<Option<MessageDetail>, StoreError> {
        let queue = self.messages.queue;
        self.read(move |tx| looking::detail(tx, queue, id)).await
    }

    async fn failures(&self) -> Result<Failures, StoreError> {
        let queue = self.messages.queue;
        let as_of = self.moment().await?;
        self.read(move |tx| looking::failures(tx, queue, as_of)).await
    }

    async fn act_on(
        &self,
        act: Action,
        ids: &[MessageId],
        as_of: Option<Time>,
    ) -> Result<Vec<ActionResult>, StoreError> {
        let ids: Vec<MessageId> = ids.iter().copied().take(MESSAGES_PER_ACT).collect();
        let messages = self.messages.queue;
        let deliveries = self.deliveries.queue;
        let clock = self.messages.clock.clone();
        let work = move |tx: &Connection| {
            let at = acting::Moment { messages, deliveries, now: clock.now(), wall: clock.wall() };
            acting::act_on(tx, act, &ids, as_of, &at)
        };
        let (deeds, callers) = self.messages.db.write(work).await?;
        self.messages.news.notify_one();
        for caller in callers {
            self.deliveries.news.notify_one();
            self.results.notify(&caller);
        }
        Ok(deeds)
    }

    async fn instances(&self) -> Result<Vec<InstanceView>, StoreError> {
        self.read(overview::instances).await
    }

    async fn outboxes(&self) -> Result<Vec<OutboxExtent>, StoreError> {
        self.read(overview::outboxes).await
    }

    async fn ledgers(&self) -> Result<Vec<QueueLedger>, StoreError> {
        self.read(overview::ledgers).await
    }

    async fn oldest_waiting(&self) -> Result<BTreeMap<String, Duration>, StoreError> {
        let since = self.read(overview::waiting_since).await?;
        let now = self.moment().await?;
        Ok(since.into_iter().map(|(queue, at)| (queue, now.since(at))).collect())
    }

    async fn recount(&self) -> Result<Vec<Recount>, StoreError> {
        self.read(overview::recount).await
    }
}
