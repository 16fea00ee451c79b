//! The inbox on PostgreSQL: messages are jobs whose rows remain after they end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::finish::SinkThenSettle;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::sent::{SentFilter, SentPage};
use fetchwell_engine::ports::inbox::{
    AuditEntry, Caller, CallerRecord, DeliveryFilter, DeliveryLogEntry, FIRST_TOKEN, Inbox,
    KeyRotated, Message, MessageBody, MessageId, NewToken, OutboxMost, OutboxPage, ReplayRange,
    Replayed, ReplayedOne, ResultNotifier, Role, StoredPage, Submission, Submitted, TokenAdded,
    TokenHash, TokenRecord, WebhookKey, WebhookKeys,
};
use fetchwell_engine::ports::queue::{Ledger, Queue};
use fetchwell_engine::ports::retriever_store::{RetrieverStore, Station};
use fetchwell_policy::time::Time;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::database::{Database, Tx, column, writable};
use super::deliveries::DeliveryLog;
use super::finish::MessageFinish;
use super::moves::Moves;
use super::queue::PostgresQueue;
use super::{bodies, deliveries, message_row, reading, retention, sent, tokens};
use crate::shared::moment::StoreClock;
use fetchwell_engine::coalescer::{BatchRule, Coalescer};

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
    let instance = Arc::new(messages.instance());
    let deliverer = Arc::new(deliveries.instance());
    let results = ResultNotifier::default();
    let retriever = Arc::new(PostgresRetriever { messages, deliveries, results: results.clone() });
    let submissions = Coalescer::start(&retriever, BatchRule::SUBMISSIONS);
    let finish = MessageFinish { instance: instance.clone(), retriever: retriever.clone() };
    let delivered =
        SinkThenSettle { sink: DeliveryLog(retriever.clone()), source: deliverer.clone() };
    Ok(RetrieverStore {
        batches: retriever.clone(),
        inbox: Arc::new(PostgresInbox { retriever: retriever.clone(), submissions }),
        oversight: retriever,
        messages: Station { source: instance, finish: Arc::new(finish) },
        deliveries: Station { source: deliverer, finish: Arc::new(delivered) },
        // It has no frontier.
        crawls: None,
        results,
    })
}

/// The queues of a retriever.
pub(super) struct PostgresRetriever {
    pub(super) messages: PostgresQueue,
    pub(super) deliveries: PostgresQueue,
    results: ResultNotifier,
}

impl PostgresRetriever {
    /// Announces new results of these callers, and their deliveries.
    pub(super) fn notify(&self, callers: &BTreeSet<String>) {
        if !callers.is_empty() {
            self.deliveries.news.notify_one();
        }
        for caller in callers {
            self.results.notify(caller);
        }
    }
}

struct PostgresInbox {
    retriever: Arc<PostgresRetriever>,
    submissions: Coalescer<Submission, Submitted>,
}

impl PostgresInbox {
    fn messages(&self) -> &PostgresQueue {
        &self.retriever.messages
    }

    fn db(&self) -> &Database {
        &self.messages().db
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
        message_row::read(self.messages(), id, of).await
    }

    async fn body(
        &self,
        id: MessageId,
        of: Option<&str>,
    ) -> Result<Option<MessageBody>, StoreError> {
        bodies::read(self.messages(), id, of).await
    }

    async fn newest_page(&self, kind: [u8; 16]) -> Result<Option<StoredPage>, StoreError> {
        reading::newest_page(self.messages(), kind).await
    }

    async fn sent(
        &self,
        caller: &str,
        filter: &SentFilter,
        from: Option<i64>,
        most: u32,
    ) -> Result<SentPage, StoreError> {
        sent::list(self.messages(), caller, filter, from, most).await
    }

    async fn outbox(
        &self,
        caller: &str,
        after: Option<i64>,
        most: OutboxMost,
    ) -> Result<OutboxPage, StoreError> {
        reading::page(self.db(), caller, after, most).await
    }

    async fn newest_cursor(&self, caller: &str) -> Result<i64, StoreError> {
        let query = sqlx::query("SELECT results FROM fetchwell_caller WHERE name = $1");
        let newest = self.db().read(query.bind(caller), |row| row.try_get(0)).await?.pop();
        Ok(newest.unwrap_or(0))
    }

    async fn caller_of(&self, token: &TokenHash) -> Result<Option<Caller>, StoreError> {
        tokens::caller_of(self.messages(), token).await
    }

    async fn webhook_keys(&self, caller: &str) -> Result<Option<WebhookKeys>, StoreError> {
        tokens::webhook_keys(self.messages(), caller).await
    }

    async fn rotate_webhook_key(
        &self,
        caller: &str,
        key: &WebhookKey,
        overlap: Duration,
        entry: &AuditEntry,
    ) -> Result<KeyRotated, StoreError> {
        let mut moves = Moves::begin(self.messages()).await?;
        let rotated = tokens::rotate(&mut moves, caller, key, overlap).await;
        let is_change = |rotated: &KeyRotated| matches!(rotated, KeyRotated::Rotated { .. });
        end_audited(moves, rotated, is_change, entry).await
    }

    async fn tokens(&self, of: Option<&str>) -> Result<Vec<TokenRecord>, StoreError> {
        tokens::list(self.messages(), of).await
    }

    async fn add_token(
        &self,
        caller: &str,
        token: &NewToken,
        entry: &AuditEntry,
    ) -> Result<TokenAdded, StoreError> {
        let mut moves = Moves::begin(self.messages()).await?;
        let added = tokens::add(&mut moves, caller, token).await;
        let is_change = |added: &TokenAdded| matches!(added, TokenAdded::Added(_));
        end_audited(moves, added, is_change, entry).await
    }

    async fn revoke_token(
        &self,
        caller: &str,
        name: &str,
        entry: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut moves = Moves::begin(self.messages()).await?;
        let revoked = tokens::revoke(&mut moves, caller, name).await;
        end_audited(moves, revoked, |revoked| *revoked, entry).await
    }

    async fn tokens_used(&self, tokens: &[TokenHash]) -> Result<(), StoreError> {
        let mut moves = Moves::begin(self.messages()).await?;
        let used = tokens::used(&mut moves, tokens).await;
        moves.end(used).await
    }

    async fn deliveries(
        &self,
        caller: &str,
        filter: DeliveryFilter,
    ) -> Result<Vec<DeliveryLogEntry>, StoreError> {
        deliveries::list(self.messages(), caller, filter).await
    }

    async fn replay_one(&self, caller: &str, webhook: &str) -> Result<ReplayedOne, StoreError> {
        let queue = &self.retriever.deliveries;
        let mut moves = Moves::begin(queue).await?;
        let replayed = deliveries::replay_one(&mut moves, queue.id, caller, webhook).await;
        let replayed = moves.end(replayed).await?;
        queue.news.notify_one();
        Ok(replayed)
    }

    async fn replay(&self, caller: &str, range: ReplayRange) -> Result<Replayed, StoreError> {
        let queue = &self.retriever.deliveries;
        let mut moves = Moves::begin(queue).await?;
        let replayed = deliveries::replay(&mut moves, queue.id, caller, range).await;
        let replayed = moves.end(replayed).await?;
        queue.news.notify_one();
        Ok(replayed)
    }

    async fn add_caller(
        &self,
        caller: &Caller,
        token: &TokenHash,
        entry: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut moves = Moves::begin(self.messages()).await?;
        // A revoked caller gets another token.
        let query = sqlx::query(
            "INSERT INTO fetchwell_caller AS caller (name, role, token_hash, created_at)
             VALUES ($1, $2, $3, $4)
             ON CONFLICT (name) DO UPDATE
             SET role = excluded.role, token_hash = excluded.token_hash,
                 created_at = excluded.created_at, revoked_at = NULL, webhook_since = NULL
             WHERE caller.revoked_at IS NOT NULL",
        );
        let now = moves.now();
        let query = query
            .bind(&caller.name)
            .bind(caller.role.as_str())
            .bind(token.as_slice())
            .bind(now.as_micros());
        let added = async {
            let is_added = moves.tx.execute(query).await? == 1;
            if is_added {
                tokens::delete_all(&mut moves.tx, &caller.name).await?;
                let name = FIRST_TOKEN.to_owned();
                let first = NewToken { name, hash: *token, expires_in: None };
                tokens::insert(&mut moves, &caller.name, &first, now).await?;
            }
            Ok(is_added)
        };
        let added = added.await;
        end_audited(moves, added, |added| *added, entry).await
    }

    async fn callers(&self) -> Result<Vec<CallerRecord>, StoreError> {
        let query = sqlx::query(
            "SELECT name, role, created_at, revoked_at FROM fetchwell_caller ORDER BY name",
        );
        let record = |row: &PgRow| {
            Ok(CallerRecord {
                caller: caller_in(row)?,
                created_at: Time::from_micros(row.try_get(2)?),
                revoked_at: row.try_get::<Option<i64>, _>(3)?.map(Time::from_micros),
            })
        };
        self.db().read(query, record).await
    }

    async fn revoke_caller(&self, name: &str, entry: &AuditEntry) -> Result<bool, StoreError> {
        let mut moves = Moves::begin(self.messages()).await?;
        let revoked = tokens::revoke_all(&mut moves, name).await;
        end_audited(moves, revoked, |revoked| *revoked, entry).await
    }

    async fn audit(&self, entries: &[AuditEntry]) -> Result<(), StoreError> {
        let mut tx = self.db().begin().await?;
        let audited = put_audit(&mut tx, entries).await;
        tx.end(audited).await
    }

    async fn audit_trail(&self, most: u32) -> Result<Vec<AuditEntry>, StoreError> {
        let query = sqlx::query(
            "SELECT at, caller, action, detail, origin FROM fetchwell_audit ORDER BY id DESC LIMIT $1",
        );
        let entry = |row: &PgRow| {
            Ok(AuditEntry {
                at: Time::from_micros(row.try_get(0)?),
                caller: row.try_get(1)?,
                action: row.try_get(2)?,
                detail: row.try_get(3)?,
                from: row.try_get(4)?,
            })
        };
        self.db().read(query.bind(i64::from(most)), entry).await
    }

    async fn prune(&self, keep: Duration, most: u32) -> Result<u64, StoreError> {
        retention::prune(self.messages(), keep, most).await
    }

    async fn prune_bodies(&self, most: u32) -> Result<u64, StoreError> {
        bodies::prune(self.messages(), most).await
    }

    async fn ledger(&self) -> Result<Ledger, StoreError> {
        self.messages().ledger().await
    }

    /// Writes without changing anything, which fails on a server that cannot write (a standby, a full disk).
    async fn check(&self) -> Result<(), StoreError> {
        let mut tx = self.db().begin().await?;
        // No other transaction uses this shard, so none waits for this.
        let query = sqlx::query(
            "INSERT INTO fetchwell_ledger AS ledger (queue, shard) VALUES ($1, -1)
             ON CONFLICT (queue, shard) DO UPDATE SET accepted = ledger.accepted",
        );
        let touched = tx.execute(query.bind(self.messages().id)).await;
        tx.end(touched).await.map(|_| ())
    }
}

/// A role that this program does not know gets the fewest rights.
pub(super) fn caller_in(row: &PgRow) -> sqlx::Result<Caller> {
    let role = Role::parse(row.try_get(1)?).unwrap_or(Role::Viewer);
    Ok(Caller { name: row.try_get(0)?, role })
}

/// Commits a change of callers, and adds the entry to the audit log if the change was made.
async fn end_audited<T>(
    mut moves: Moves<'_>,
    done: sqlx::Result<T>,
    is_change: fn(&T) -> bool,
    entry: &AuditEntry,
) -> Result<T, StoreError> {
    let audited = match done {
        Ok(done) if is_change(&done) => {
            put_audit(&mut moves.tx, std::slice::from_ref(entry)).await.map(|()| done)
        }
        other => other,
    };
    moves.end(audited).await
}

/// Stores audit entries. They contain text from unauthenticated clients, so NUL characters are possible.
pub(super) async fn put_audit(tx: &mut Tx, entries: &[AuditEntry]) -> sqlx::Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let query = sqlx::query(
        "INSERT INTO fetchwell_audit (at, caller, action, detail, origin)
         SELECT at, caller, action, detail, origin
         FROM unnest($1::BIGINT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[]) WITH ORDINALITY
             AS new (at, caller, action, detail, origin, place)
         ORDER BY place",
    );
    let query = query
        .bind(column(entries, |entry| entry.at.as_micros()))
        .bind(column(entries, |entry| entry.caller.as_deref().map(writable)))
        .bind(column(entries, |entry| writable(&entry.action)))
        .bind(column(entries, |entry| writable(&entry.detail)))
        .bind(column(entries, |entry| writable(&entry.from)));
    tx.execute(query).await?;
    Ok(())
}
