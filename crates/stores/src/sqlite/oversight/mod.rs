//! What operators can see and do in a SQLite file.

mod acting;
mod looking;
mod overview;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::MessageId;
use fetchwell_engine::ports::oversight::{
    Action, ActionResult, Count, Failures, InstanceView, MESSAGES_PER_ACT, MessageDetail,
    MessageFilter, MessageSummaries, OutboxExtent, Oversight, QueueLedger, Recount,
};
use fetchwell_policy::time::Time;
use fetchwell_sqlite::db::Db;

use super::retriever_queues::RetrieverQueues;
use crate::shared::looking::Look;

/// The messages of a file, as operators see them.
pub(super) struct SqliteOversight {
    /// A separate connection, so that its queries block neither writers nor callers.
    pub(super) reader: Db,
    pub(super) queues: RetrieverQueues,
}

impl SqliteOversight {
    /// The current time, read while no writer is active: everything committed after this has a later time.
    async fn moment(&self) -> Result<Time, StoreError> {
        self.queues.messages.transact(|moves| Ok(moves.now)).await
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
        let queue = self.queues.messages.queue;
        let look = self.look(filter).await?;
        self.reader.write(move |tx| looking::list(tx, queue, &look, from, most)).await
    }

    async fn count(&self, filter: &MessageFilter) -> Result<Count, StoreError> {
        let queue = self.queues.messages.queue;
        let look = self.look(filter).await?;
        self.reader.write(move |tx| looking::count(tx, queue, &look)).await
    }

    async fn detail(&self, id: MessageId) -> Result<Option<MessageDetail>, StoreError> {
        let queue = self.queues.messages.queue;
        self.reader.write(move |tx| looking::detail(tx, queue, id)).await
    }

    async fn failures(&self) -> Result<Failures, StoreError> {
        let queue = self.queues.messages.queue;
        let as_of = self.moment().await?;
        self.reader.write(move |tx| looking::failures(tx, queue, as_of)).await
    }

    async fn act_on(
        &self,
        act: Action,
        ids: &[MessageId],
        as_of: Option<Time>,
    ) -> Result<Vec<ActionResult>, StoreError> {
        let ids: Vec<MessageId> = ids.iter().copied().take(MESSAGES_PER_ACT).collect();
        let deeds = self
            .queues
            .transact(move |moves, ending| acting::act_on(moves, ending, act, &ids, as_of))
            .await?;
        self.queues.messages.news.notify_one();
        Ok(deeds)
    }

    async fn instances(&self) -> Result<Vec<InstanceView>, StoreError> {
        self.reader.write(overview::instances).await
    }

    async fn outboxes(&self) -> Result<Vec<OutboxExtent>, StoreError> {
        self.reader.write(overview::outboxes).await
    }

    async fn ledgers(&self) -> Result<Vec<QueueLedger>, StoreError> {
        self.reader.write(overview::ledgers).await
    }

    async fn oldest_waiting(&self) -> Result<BTreeMap<String, Duration>, StoreError> {
        let since = self.reader.write(overview::waiting_since).await?;
        let now = self.moment().await?;
        Ok(since.into_iter().map(|(queue, at)| (queue, now.since(at))).collect())
    }

    async fn recount(&self) -> Result<Vec<Recount>, StoreError> {
        self.reader.write(overview::recount).await
    }
}
