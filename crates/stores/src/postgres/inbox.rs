//! The inbox on PostgreSQL: messages are jobs whose rows remain after they end.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::finish::{NoRecords, SinkThenSettle};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{
    AuditEntry, Caller, CallerRecord, Inbox, Message, MessageId, OutboxMost, OutboxPage,
    ResultNotifier, Submission, Submitted, TokenHash,
};
use fetchwell_engine::ports::queue::{Ledger, Queue};
use fetchwell_engine::ports::retriever_store::{RetrieverStore, Station};

use super::database::Database;
use super::finish::MessageFinish;
use super::moment::StoreClock;
use super::moves::Moves;
use super::oversight::PostgresOversight;
use super::queue::PostgresQueue;
use super::submission::Queues;
use super::submitting::Desk;
use super::{callers, ledger, message_row, reading, retention};
use crate::shared::coalescer::{BatchRule, Coalescer};

/// Opens everything that a retriever needs in a PostgreSQL database. Checks every `poll` for jobs from other processes.
pub async fn open_retriever(
    db: Database,
    clock: StoreClock,
    lease_ttl: Duration,
    poll: Duration,
) -> Result<RetrieverStore, StoreError> {
    let queue = async |name| {
        PostgresQueue::open(db.clone(), name, clock.clone(), lease_ttl, false, poll).await
    };
    let messages = queue("messages").await?;
    let deliveries = queue("webhooks").await?;
    let results = ResultNotifier::default();
    let desk = Desk {
        db: db.clone(),
        clock: clock.clone(),
        queues: Queues { messages: messages.queue, deliveries: deliveries.queue },
        messages_news: messages.news.clone(),
        deliveries_news: deliveries.news.clone(),
        results: results.clone(),
    };
    let submissions = Coalescer::start(&Arc::new(desk), BatchRule::SUBMISSIONS);
    let instance = Arc::new(messages.instance());
    let finish = MessageFinish {
        instance: instance.clone(),
        deliveries: deliveries.clone(),
        results: results.clone(),
    };
    let deliverer = Arc::new(deliveries.instance());
    let nothing_to_write = SinkThenSettle { sink: NoRecords, source: deliverer.clone() };
    let oversight = PostgresOversight {
        db: db.clone(),
        clock: clock.clone(),
        messages: messages.clone(),
        deliveries: deliveries.clone(),
        results: results.clone(),
    };
    Ok(RetrieverStore {
        inbox: Arc::new(PostgresInbox { db, clock, messages, submissions }),
        oversight: Arc::new(oversight),
        messages: Station { source: instance, finish: Arc::new(finish) },
        deliveries: Station { source: deliverer, finish: Arc::new(nothing_to_write) },
        results,
    })
}

struct PostgresInbox {
    db: Database,
    clock: StoreClock,
    messages: PostgresQueue,
    submissions: Coalescer<Submission, Submitted>,
}

impl PostgresInbox {
    fn sense<T>(&self, read: sqlx::Result<T>) -> Result<T, StoreError> {
        read.map_err(|error| self.db.fault(error))
    }
}

#[async_trait]
impl Inbox for PostgresInbox {
    async fn submit(&self, submission: Submission) -> Result<Submitted, StoreError> {
        self.submissions.call(submission).await
    }

    async fn message(
        &self,
        id: MessageId,
        of: Option<&str>,
    ) -> Result<Option<Message>, StoreError> {
        message_row::read(&self.db, self.messages.queue, id, of).await
    }

    async fn outbox(
        &self,
        caller: &str,
        after: Option<i64>,
        most: OutboxMost,
    ) -> Result<OutboxPage, StoreError> {
        reading::page(&self.db, caller, after, most).await
    }

    async fn caller_of(&self, token: &TokenHash) -> Result<Option<Caller>, StoreError> {
        callers::caller_of(&self.db, token).await
    }

    async fn token_of(&self, caller: &str) -> Result<Option<TokenHash>, StoreError> {
        callers::token_of(&self.db, caller).await
    }

    async fn add_caller(&self, caller: &Caller, token: &TokenHash) -> Result<bool, StoreError> {
        let mut moves = Moves::begin(&self.db, &self.clock).await?;
        let now = moves.now();
        let added = self.sense(callers::add(&mut moves.tx, caller, token, now).await)?;
        self.sense(moves.commit().await)?;
        Ok(added)
    }

    async fn callers(&self) -> Result<Vec<CallerRecord>, StoreError> {
        callers::all(&self.db).await
    }

    async fn revoke_caller(&self, name: &str) -> Result<bool, StoreError> {
        let mut moves = Moves::begin(&self.db, &self.clock).await?;
        let now = moves.now();
        let revoked = self.sense(callers::revoke(&mut moves.tx, name, now).await)?;
        self.sense(moves.commit().await)?;
        Ok(revoked)
    }

    async fn audit(&self, entries: &[AuditEntry]) -> Result<(), StoreError> {
        let mut tx = self.db.begin().await?;
        self.sense(callers::put_audit(&mut tx, entries).await)?;
        self.sense(tx.commit().await)
    }

    async fn audit_trail(&self, most: u32) -> Result<Vec<AuditEntry>, StoreError> {
        callers::audit_trail(&self.db, most).await
    }

    async fn prune(&self, keep: Duration, most: u32) -> Result<u64, StoreError> {
        retention::prune(&self.db, &self.clock, self.messages.queue, keep, most).await
    }

    async fn ledger(&self) -> Result<Ledger, StoreError> {
        self.messages.ledger().await
    }

    async fn check(&self) -> Result<(), StoreError> {
        let mut tx = self.db.begin().await?;
        self.sense(ledger::touch(&mut tx, self.messages.queue).await)?;
        self.sense(tx.commit().await)
    }
}
