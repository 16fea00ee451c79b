//! The inbox on PostgreSQL: messages are jobs whose rows remain after they end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::finish::{NoRecords, SinkThenSettle};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::sent::{SentFilter, SentPage};
use fetchwell_engine::ports::inbox::{
    AuditEntry, Caller, CallerRecord, Inbox, Message, MessageId, OutboxMost, OutboxPage,
    ResultNotifier, Role, StoredPage, Submission, Submitted, TokenHash,
};
use fetchwell_engine::ports::queue::{Ledger, Queue};
use fetchwell_engine::ports::retriever_store::{RetrieverStore, Station};
use fetchwell_policy::time::Time;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::database::{Database, Tx, column, writable};
use super::finish::MessageFinish;
use super::moves::Moves;
use super::queue::PostgresQueue;
use super::{message_row, reading, retention, sent};
use crate::shared::coalescer::{BatchRule, Coalescer};
use crate::shared::moment::StoreClock;

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
    let nothing_to_write = SinkThenSettle { sink: NoRecords, source: deliverer.clone() };
    Ok(RetrieverStore {
        inbox: Arc::new(PostgresInbox { retriever: retriever.clone(), submissions }),
        oversight: retriever,
        messages: Station { source: instance, finish: Arc::new(finish) },
        deliveries: Station { source: deliverer, finish: Arc::new(nothing_to_write) },
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
        let query = sqlx::query("SELECT name, role FROM fetchwell_caller WHERE token_hash = $1");
        Ok(self.db().read(query.bind(token.as_slice()), caller_in).await?.pop())
    }

    async fn token_of(&self, caller: &str) -> Result<Option<TokenHash>, StoreError> {
        let query = sqlx::query(
            "SELECT token_hash FROM fetchwell_caller WHERE name = $1 AND token_hash IS NOT NULL",
        );
        Ok(self.db().read(query.bind(caller), |row| row.try_get(0)).await?.pop())
    }

    async fn add_caller(&self, caller: &Caller, token: &TokenHash) -> Result<bool, StoreError> {
        let mut moves = Moves::begin(self.messages()).await?;
        // A revoked caller gets another token.
        let query = sqlx::query(
            "INSERT INTO fetchwell_caller AS caller (name, role, token_hash, created_at)
             VALUES ($1, $2, $3, $4)
             ON CONFLICT (name) DO UPDATE
             SET role = excluded.role, token_hash = excluded.token_hash,
                 created_at = excluded.created_at, revoked_at = NULL
             WHERE caller.token_hash IS NULL",
        );
        let query = query
            .bind(&caller.name)
            .bind(caller.role.as_str())
            .bind(token.as_slice())
            .bind(moves.now().as_micros());
        let added = moves.tx.execute(query).await;
        Ok(moves.end(added).await? == 1)
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

    async fn revoke_caller(&self, name: &str) -> Result<bool, StoreError> {
        let mut moves = Moves::begin(self.messages()).await?;
        let query = sqlx::query(
            "UPDATE fetchwell_caller SET token_hash = NULL, revoked_at = $2
             WHERE name = $1 AND token_hash IS NOT NULL",
        );
        let query = query.bind(name).bind(moves.now().as_micros());
        let revoked = moves.tx.execute(query).await;
        Ok(moves.end(revoked).await? == 1)
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
fn caller_in(row: &PgRow) -> sqlx::Result<Caller> {
    let role = Role::parse(row.try_get(1)?).unwrap_or(Role::Viewer);
    Ok(Caller { name: row.try_get(0)?, role })
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
