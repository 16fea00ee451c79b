//! A durable queue that many machines share, with leases, fencing, rescue, and a ledger that changes with each move.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::NewJob;
use fetchwell_engine::ports::queue::{Instance, Ledger, LedgerMismatch, Queue};
use fetchwell_engine::ports::source::Taken;
use fetchwell_policy::time::Time;
use sqlx::Row;
use sqlx::postgres::PgRow;
use tokio::sync::Notify;

use super::database::Database;
use super::instance::PostgresInstance;
use super::ledger;
use super::moves::{Moves, QueueId, now_or};
use crate::shared::job_state::sql;
use crate::shared::moment::StoreClock;

/// Jobs per INSERT statement.
const MAX_JOBS_PER_STATEMENT: usize = 4_096;
/// When to check again for jobs that others have locked right now.
const SOON: Duration = Duration::from_millis(5);

/// A named queue in a PostgreSQL database.
#[derive(Clone)]
pub struct PostgresQueue {
    pub(super) db: Database,
    pub(super) clock: StoreClock,
    pub(super) id: QueueId,
    pub(super) news: Arc<Notify>,
    pub(super) lease_ttl: Duration,
    run_once: bool,
    poll: Duration,
}

impl PostgresQueue {
    /// Opens or creates the queue of that name. Checks it every `poll` for jobs from other processes; with `run_once`,
    /// a run ends when it is empty.
    pub async fn open(
        db: Database,
        name: &str,
        clock: StoreClock,
        lease_ttl: Duration,
        run_once: bool,
        poll: Duration,
    ) -> Result<PostgresQueue, StoreError> {
        let mut tx = db.begin().await?;
        let opened = async {
            let insert = "INSERT INTO fetchwell_queue (name) VALUES ($1) ON CONFLICT DO NOTHING";
            tx.execute(sqlx::query(insert).bind(name)).await?;
            let select = "SELECT id FROM fetchwell_queue WHERE name = $1";
            tx.fetch_one(sqlx::query(select).bind(name)).await?.try_get(0)
        };
        let opened = opened.await;
        let id = tx.end(opened).await?;
        Ok(PostgresQueue { db, clock, id, news: Arc::default(), lease_ttl, run_once, poll })
    }

    /// Joins the queue as a new instance.
    pub fn instance(&self) -> PostgresInstance {
        PostgresInstance::new(self.clone())
    }

    /// When the oldest waiting job (delayed or not) was accepted, by the engine's clock. Ids do not follow the
    /// order of acceptance, because each process reserves them in blocks.
    pub async fn oldest_waiting(&self) -> Result<Option<Time>, StoreError> {
        const OLDEST: &str = sql!(concat!(
            "SELECT min(accepted_at), ",
            now_or!("$2"),
            " FROM fetchwell_job WHERE queue = $1 AND state < {leased}"
        ));
        let query = sqlx::query(OLDEST).bind(self.id).bind(self.clock.given());
        let accepted = |row: &PgRow| {
            let moment = self.clock.moment(row.try_get(1)?);
            let accepted_at: Option<i64> = row.try_get(0)?;
            Ok(accepted_at.map(|micros| moment.to_local(Time::from_micros(micros))))
        };
        Ok(self.db.read(query, accepted).await?.pop().flatten())
    }

    /// Dead jobs with their reasons, oldest first.
    pub async fn dead(&self, most: u32) -> Result<Vec<(String, String)>, StoreError> {
        let query = sqlx::query(sql!(
            "SELECT url, coalesce(reason, '') FROM fetchwell_job
             WHERE queue = $1 AND state = {dead} ORDER BY id LIMIT $2"
        ));
        self.db.read_as(query.bind(self.id).bind(i64::from(most))).await
    }

    /// Answers a take that found no jobs.
    pub(super) async fn nothing_to_give(
        &self,
        moves: &mut Moves<'_>,
        next: Option<Time>,
        deadline: Option<Time>,
    ) -> sqlx::Result<Taken> {
        if self.run_once && ledger::sum(&mut moves.tx, self.id).await?.unfinished() == 0 {
            return Ok(Taken::Exhausted);
        }
        let now = moves.now();
        let poll = now + self.poll;
        let soon = now + SOON.min(self.poll);
        let next = next.into_iter().chain(deadline).min().unwrap_or(poll);
        // Jobs that are due but were not given are locked by others, or were a moment ago.
        let until = if next <= now { soon } else { next.min(poll) };
        Ok(Taken::Idle { until: moves.moment.to_local(until) })
    }
}

#[async_trait]
impl Queue for PostgresQueue {
    async fn enqueue(&self, mut jobs: Vec<NewJob>) -> Result<usize, StoreError> {
        let mut moves = Moves::begin(self).await?;
        let put_in = async {
            let mut accepted = 0;
            while !jobs.is_empty() {
                let rest = jobs.split_off(jobs.len().min(MAX_JOBS_PER_STATEMENT));
                accepted += moves.accept(self.id, jobs).await?;
                jobs = rest;
            }
            Ok(accepted)
        };
        let accepted = put_in.await;
        let accepted = moves.end(accepted).await?;
        self.news.notify_one();
        Ok(accepted)
    }

    fn instance(&self) -> Arc<dyn Instance> {
        Arc::new(PostgresQueue::instance(self))
    }

    async fn ledger(&self) -> Result<Ledger, StoreError> {
        ledger::read(&self.db, self.id).await
    }

    async fn audit(&self) -> Result<Result<Ledger, LedgerMismatch>, StoreError> {
        let (ledger, difference) = ledger::recount(&self.db, self.id).await?;
        Ok(difference.map(LedgerMismatch).map_or(Ok(ledger), Err))
    }
}
