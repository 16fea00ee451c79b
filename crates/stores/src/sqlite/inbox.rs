//! The inbox on SQLite: messages are jobs whose rows remain after they end.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::finish::SinkThenSettle;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::sent::{SentFilter, SentPage};
use fetchwell_engine::ports::inbox::{
    AuditEntry, Caller, CallerRecord, DeliveryFilter, DeliveryLogEntry, Inbox, KeyRotated, Message,
    MessageBody, MessageId, NewToken, OutboxMost, OutboxPage, ReplayRange, Replayed, ReplayedOne,
    ResultNotifier, StoredPage, Submission, Submitted, TokenAdded, TokenHash, TokenRecord,
    WebhookKey, WebhookKeys,
};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_engine::ports::retriever_store::{CrawlStore, RetrieverStore, Station};
use fetchwell_sqlite::db::{Db, Durability};
use fetchwell_sqlite::statements::Statements;
use rusqlite::Connection;

use super::crawls::{CRAWL_JOBS, CrawlPagesFinish, CrawlQueues, SqliteCrawls};
use super::deliveries::DeliveryLog;
use super::finish::MessageFinish;
use super::message_batches::SqliteMessageBatches;
use super::oversight::SqliteOversight;
use super::queue::read_ledger;
use super::retriever_queues::RetrieverQueues;
use super::{
    SqliteQueue, bodies, callers, deliveries, message_row, open, outbox, retention, sent, tokens,
};
use fetchwell_engine::coalescer::{BatchRule, Coalescer};

/// Opens everything that a retriever needs in a SQLite file. Checks every `poll` for jobs from other processes.
pub async fn open_retriever(
    path: &Path,
    clock: Clock,
    lease_ttl: Duration,
    poll: Duration,
) -> Result<RetrieverStore, StoreError> {
    let writer = open(path, Durability::Disk)?;
    let queue = async |name| {
        let queue =
            SqliteQueue::open(writer.clone(), name, clock.clone(), lease_ttl, false).await?;
        Ok::<_, StoreError>(queue.polled_every(poll))
    };
    let messages = queue("messages").await?;
    let deliveries = queue("webhooks").await?;
    let results = ResultNotifier::default();
    let instance = Arc::new(messages.instance());
    let deliverer = Arc::new(deliveries.instance());
    let delivered = SinkThenSettle { sink: DeliveryLog(writer.clone()), source: deliverer.clone() };
    let queues =
        RetrieverQueues { messages: messages.clone(), deliveries, results: results.clone() };
    let finish = MessageFinish { instance: instance.clone(), queues: queues.clone() };
    // Each has its own connection, so that long reads block neither writers nor callers.
    let reader = Db::open_for_reading(path)?;
    let oversight = SqliteOversight { reader: Db::open_for_reading(path)?, queues: queues.clone() };
    let batches =
        SqliteMessageBatches { reader: Db::open_for_reading(path)?, queues: queues.clone() };
    let jobs = queue(CRAWL_JOBS).await?;
    let fetcher = Arc::new(jobs.instance());
    let crawl_queues = CrawlQueues { retriever: queues.clone(), jobs };
    let crawl_finish = CrawlPagesFinish { instance: fetcher.clone(), queues: crawl_queues.clone() };
    let crawls = SqliteCrawls { reader: Db::open_for_reading(path)?, queues: crawl_queues };
    let submissions = Coalescer::start(&Arc::new(queues.clone()), BatchRule::SUBMISSIONS);
    Ok(RetrieverStore {
        batches: Arc::new(batches),
        inbox: Arc::new(SqliteInbox { reader, messages, queues, submissions }),
        oversight: Arc::new(oversight),
        messages: Station { source: instance, finish: Arc::new(finish) },
        deliveries: Station { source: deliverer, finish: Arc::new(delivered) },
        crawls: Some(CrawlStore {
            crawls: Arc::new(crawls),
            pages: Station { source: fetcher, finish: Arc::new(crawl_finish) },
        }),
        results,
    })
}

struct SqliteInbox {
    /// For long reads, which do not block writers.
    reader: Db,
    messages: SqliteQueue,
    queues: RetrieverQueues,
    submissions: Coalescer<Submission, Submitted>,
}

impl SqliteInbox {
    /// Changes callers, and adds the entry to the audit log if the change was made.
    async fn change_callers<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
        is_change: fn(&T) -> bool,
        entry: &AuditEntry,
    ) -> Result<T, StoreError> {
        let entry = entry.clone();
        self.messages
            .db
            .write(move |tx| {
                let done = change(tx)?;
                if is_change(&done) {
                    callers::audit(tx, &entry)?;
                }
                Ok(done)
            })
            .await
    }
}

#[async_trait]
impl Inbox for SqliteInbox {
    async fn submit(&self, submission: Submission) -> Result<Submitted, StoreError> {
        self.submissions.call(submission).await
    }

    async fn message(
        &self,
        id: MessageId,
        of: Option<&str>,
    ) -> Result<Option<Message>, StoreError> {
        let queue = self.messages.queue;
        let of = of.map(str::to_owned);
        self.reader.write(move |tx| message_row::read(tx, queue, id, of.as_deref())).await
    }

    async fn body(
        &self,
        id: MessageId,
        of: Option<&str>,
    ) -> Result<Option<MessageBody>, StoreError> {
        let queue = self.messages.queue;
        let of = of.map(str::to_owned);
        self.reader.write(move |tx| bodies::read(tx, queue, id, of.as_deref())).await
    }

    async fn newest_page(&self, kind: [u8; 16]) -> Result<Option<StoredPage>, StoreError> {
        let found = self.reader.write(move |tx| outbox::newest_page(tx, &kind)).await?;
        let now = self.messages.clock.now();
        Ok(found.map(|(outbox, stored_at)| StoredPage { outbox, age: now.since(stored_at) }))
    }

    async fn sent(
        &self,
        caller: &str,
        filter: &SentFilter,
        from: Option<i64>,
        most: u32,
    ) -> Result<SentPage, StoreError> {
        let queue = self.messages.queue;
        let caller = caller.to_owned();
        let filter = filter.clone();
        self.reader.write(move |tx| sent::list(tx, queue, &caller, &filter, from, most)).await
    }

    async fn outbox(
        &self,
        caller: &str,
        after: Option<i64>,
        most: OutboxMost,
    ) -> Result<OutboxPage, StoreError> {
        let caller = caller.to_owned();
        self.reader.write(move |tx| outbox::page(tx, &caller, after, most)).await
    }

    async fn newest_cursor(&self, caller: &str) -> Result<i64, StoreError> {
        let caller = caller.to_owned();
        self.reader.write(move |tx| outbox::newest(tx, &caller)).await
    }

    async fn caller_of(&self, token: &TokenHash) -> Result<Option<Caller>, StoreError> {
        let token = *token;
        let wall = self.messages.clock.wall();
        self.reader.write(move |tx| callers::caller_of(tx, &token, wall)).await
    }

    async fn webhook_keys(&self, caller: &str) -> Result<Option<WebhookKeys>, StoreError> {
        let caller = caller.to_owned();
        let wall = self.messages.clock.wall();
        self.reader.write(move |tx| tokens::webhook_keys(tx, &caller, wall)).await
    }

    async fn rotate_webhook_key(
        &self,
        caller: &str,
        key: &WebhookKey,
        overlap: Duration,
        entry: &AuditEntry,
    ) -> Result<KeyRotated, StoreError> {
        let caller = caller.to_owned();
        let key = *key;
        let wall = self.messages.clock.wall();
        let is_change = |rotated: &KeyRotated| matches!(rotated, KeyRotated::Rotated { .. });
        let rotate = move |tx: &_| tokens::rotate(tx, &caller, &key, overlap, wall);
        self.change_callers(rotate, is_change, entry).await
    }

    async fn tokens(&self, of: Option<&str>) -> Result<Vec<TokenRecord>, StoreError> {
        let of = of.map(str::to_owned);
        self.reader.write(move |tx| tokens::list(tx, of.as_deref())).await
    }

    async fn add_token(
        &self,
        caller: &str,
        token: &NewToken,
        entry: &AuditEntry,
    ) -> Result<TokenAdded, StoreError> {
        let caller = caller.to_owned();
        let token = token.clone();
        let wall = self.messages.clock.wall();
        let is_change = |added: &TokenAdded| matches!(added, TokenAdded::Added(_));
        let add = move |tx: &_| tokens::add(tx, &caller, &token, wall);
        self.change_callers(add, is_change, entry).await
    }

    async fn revoke_token(
        &self,
        caller: &str,
        name: &str,
        entry: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let caller = caller.to_owned();
        let name = name.to_owned();
        let wall = self.messages.clock.wall();
        let revoke = move |tx: &_| tokens::revoke(tx, &caller, &name, wall);
        self.change_callers(revoke, |revoked| *revoked, entry).await
    }

    async fn tokens_used(&self, tokens: &[TokenHash]) -> Result<(), StoreError> {
        let used = tokens.to_vec();
        let wall = self.messages.clock.wall();
        self.messages.db.write(move |tx| tokens::used(tx, &used, wall)).await
    }

    async fn deliveries(
        &self,
        caller: &str,
        filter: DeliveryFilter,
    ) -> Result<Vec<DeliveryLogEntry>, StoreError> {
        let caller = caller.to_owned();
        self.reader.write(move |tx| deliveries::list(tx, &caller, filter)).await
    }

    async fn replay_one(&self, caller: &str, webhook: &str) -> Result<ReplayedOne, StoreError> {
        let caller = caller.to_owned();
        let webhook = webhook.to_owned();
        let replayed = self.queues.transact(move |moves, ending| {
            deliveries::replay_one(moves.tx, ending, &caller, &webhook)
        });
        let replayed = replayed.await?;
        self.queues.deliveries.news.notify_one();
        Ok(replayed)
    }

    async fn replay(&self, caller: &str, range: ReplayRange) -> Result<Replayed, StoreError> {
        let caller = caller.to_owned();
        let replayed = self
            .queues
            .transact(move |moves, ending| deliveries::replay(moves.tx, ending, &caller, range));
        let replayed = replayed.await?;
        self.queues.deliveries.news.notify_one();
        Ok(replayed)
    }

    async fn add_caller(
        &self,
        caller: &Caller,
        token: &TokenHash,
        entry: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let caller = caller.clone();
        let token = *token;
        let wall = self.messages.clock.wall();
        let add = move |tx: &_| callers::add(tx, &caller, &token, wall);
        self.change_callers(add, |added| *added, entry).await
    }

    async fn callers(&self) -> Result<Vec<CallerRecord>, StoreError> {
        self.reader.write(callers::all).await
    }

    async fn revoke_caller(&self, name: &str, entry: &AuditEntry) -> Result<bool, StoreError> {
        let name = name.to_owned();
        let wall = self.messages.clock.wall();
        let revoke = move |tx: &_| callers::revoke(tx, &name, wall);
        self.change_callers(revoke, |revoked| *revoked, entry).await
    }

    async fn audit(&self, entries: &[AuditEntry]) -> Result<(), StoreError> {
        let entries = entries.to_vec();
        self.messages
            .db
            .write(move |tx| entries.iter().try_for_each(|entry| callers::audit(tx, entry)))
            .await
    }

    async fn audit_trail(&self, most: u32) -> Result<Vec<AuditEntry>, StoreError> {
        self.reader.write(move |tx| callers::audit_trail(tx, most)).await
    }

    async fn prune(&self, keep: Duration, most: u32) -> Result<u64, StoreError> {
        let wall = self.messages.clock.wall();
        self.messages.transact(move |moves| retention::prune(moves, keep, most, wall)).await
    }

    async fn prune_bodies(&self, most: u32) -> Result<u64, StoreError> {
        self.messages.transact(move |moves| bodies::prune(moves.tx, most, moves.now)).await
    }

    async fn ledger(&self) -> Result<Ledger, StoreError> {
        let queue = self.messages.queue;
        self.reader.write(move |tx| read_ledger(tx, queue)).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        let now = self.messages.clock.wall().as_micros().to_string();
        // Something must be written; otherwise a full disk would not be noticed.
        let write = "INSERT INTO meta VALUES ('checked_at', ?1)
                     ON CONFLICT (key) DO UPDATE SET value = excluded.value";
        self.messages.db.write(move |tx| tx.run(write, [now]).map(drop)).await
    }
}
