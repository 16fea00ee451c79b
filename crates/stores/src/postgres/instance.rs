//! An instance: one process that takes leases from a queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Settle, Settled, Settlement};
use fetchwell_engine::ports::job::{Lease, LeaseId};
use fetchwell_engine::ports::source::{Demand, Renewal, Source, Taken};
use fetchwell_policy::time::Time;
use tokio::sync::{Mutex as AsyncMutex, Notify};

use super::moves::Moves;
use super::queue::PostgresQueue;
use crate::shared::held::Held;
use crate::shared::job_state::sql;

/// One process that takes leases from a [`PostgresQueue`].
pub struct PostgresInstance {
    pub(super) queue: PostgresQueue,
    epoch: AtomicI64,
    /// The lane to start with at the next take.
    turn: AtomicI64,
    pub(super) held: Held,
    /// Allows one take at a time, so that leases of a concurrent take are not mistaken for unknown ones.
    taking: AsyncMutex<()>,
    /// The number of leases of dead instances that this one has requeued.
    rescued: AtomicU64,
}

/// Means no epoch yet: PostgreSQL counts them from 1.
const NO_EPOCH: i64 = 0;

impl PostgresInstance {
    pub(super) fn new(queue: PostgresQueue) -> PostgresInstance {
        PostgresInstance {
            queue,
            epoch: AtomicI64::new(NO_EPOCH),
            turn: AtomicI64::new(0),
            held: Held::default(),
            taking: AsyncMutex::default(),
            rescued: AtomicU64::new(0),
        }
    }

    pub(super) fn epoch(&self) -> i64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Returns leases from a take whose response was lost, so that the server and this instance agree on what it holds.
    async fn give_back_the_unknown(&self) -> Result<(), StoreError> {
        let Some(known) = self.held.if_unsure() else { return Ok(()) };
        let mut moves = Moves::begin(&self.queue).await?;
        let given_back = moves.give_back(self.epoch(), &known).await;
        moves.end(given_back).await?;
        self.held.is_sure_again();
        Ok(())
    }

    /// Requeues the leases of dead instances.
    async fn rescue(&self) -> Result<(), StoreError> {
        let mut moves = Moves::begin(&self.queue).await?;
        let rescued = moves.rescue().await;
        let rescued = moves.end(rescued).await?;
        self.rescued.fetch_add(rescued as u64, Ordering::Relaxed);
        Ok(())
    }

    async fn take_now(&self, moves: &mut Moves<'_>, demand: &Demand) -> sqlx::Result<Taken> {
        let deadline = moves.first_deadline().await?;
        let mut lanes = moves.busy_lanes(self.turn.load(Ordering::Relaxed)).await?;
        let turn = Moves::next_turn(&lanes);
        lanes.retain(|lane| !lane.rests(&demand.resting));
        let opens_at = lanes.iter().map(|lane| lane.opens_at).min();
        let is_overdue = deadline.is_some_and(|deadline| deadline <= moves.now());
        let leases = moves.lease(self.epoch(), demand, &lanes, is_overdue).await?;
        if leases.is_empty() {
            return self.queue.nothing_to_give(moves, opens_at, deadline).await;
        }
        self.turn.store(turn, Ordering::Relaxed);
        Ok(Taken::Jobs(leases))
    }
}

#[async_trait]
impl Source for PostgresInstance {
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreError> {
        let _taking = self.taking.lock().await;
        self.give_back_the_unknown().await?;
        let (mut moves, lives) = Moves::begin_for(&self.queue, self.epoch()).await?;
        if lives {
            self.held.take_begins();
        }
        let taken = async {
            moves.close_rooms(demand).await?;
            if lives {
                return self.take_now(&mut moves, demand).await;
            }
            let until = moves.now() + self.queue.lease_ttl / 4;
            Ok(Taken::Idle { until: moves.moment.to_local(until) })
        };
        let taken = taken.await;
        let taken = moves.end(taken).await?;
        self.held.took(match &taken {
            Taken::Jobs(leases) => leases,
            Taken::Idle { .. } | Taken::Exhausted => &[],
        });
        Ok(taken)
    }

    async fn started(&self, leases: &[LeaseId]) -> Result<(), StoreError> {
        let mut tx = self.queue.db.begin_brisk().await?;
        // In id order, like every statement that locks jobs.
        let query = sqlx::query(sql!(
            "WITH ours AS (
                 SELECT id FROM fetchwell_job
                 WHERE id = ANY($1) AND state = {leased} AND epoch = $2 ORDER BY id FOR UPDATE
             )
             UPDATE fetchwell_job AS job SET started = TRUE FROM ours WHERE job.id = ours.id"
        ));
        let noted = tx.execute(query.bind(leases).bind(self.epoch())).await;
        tx.end(noted).await.map(|_| ())
    }

    async fn renew(&self) -> Result<Renewal, StoreError> {
        let before = self.epoch();
        let ttl = self.queue.lease_ttl;
        // A renewal that is lost in a server crash only ends a lease early; a new epoch must not be lost.
        let (is_held, has_dead) = self.queue.lengthen(before).await?;
        if has_dead && let Err(fault) = self.rescue().await {
            // Our own lease is valid even if rescuing others failed: the next renewal tries again.
            if !is_held {
                return Err(fault);
            }
            tracing::warn!(%fault, "could not rescue the leases of dead instances; trying \
                                    again at the next renewal");
        }
        if is_held {
            return Ok(Renewal::Held { ttl });
        }
        let mut moves = Moves::begin(&self.queue).await?;
        let joined = moves.join().await;
        let epoch = moves.end(joined).await?;
        self.epoch.store(epoch, Ordering::Relaxed);
        self.held.let_all_go();
        Ok(if before == NO_EPOCH { Renewal::Held { ttl } } else { Renewal::Lost })
    }

    fn rescued(&self) -> u64 {
        self.rescued.load(Ordering::Relaxed)
    }

    async fn oldest_waiting(&self) -> Result<Option<Time>, StoreError> {
        self.queue.oldest_waiting().await
    }

    async fn leave(&self) -> Result<(), StoreError> {
        let mut moves = Moves::begin(&self.queue).await?;
        let left = moves.leave(self.epoch()).await;
        moves.end(left).await?;
        self.epoch.store(NO_EPOCH, Ordering::Relaxed);
        self.held.let_all_go();
        Ok(())
    }

    fn news(&self) -> Option<Arc<Notify>> {
        Some(self.queue.news.clone())
    }
}

#[async_trait]
impl Settle for PostgresInstance {
    async fn settle(&self, batch: &[(&Lease, &Settlement)]) -> Result<Vec<Settled>, StoreError> {
        let batch: Vec<(LeaseId, &Settlement)> =
            batch.iter().map(|(lease, settlement)| (lease.id, *settlement)).collect();
        let (mut moves, lives) = Moves::begin_for(&self.queue, self.epoch()).await?;
        let settled = match lives {
            true => moves.settle(self.epoch(), &batch).await,
            false => Ok(vec![Settled::Stale; batch.len()]),
        };
        let settled = moves.end(settled).await?;
        self.held.let_go(batch.iter().map(|(id, _)| *id));
        Ok(settled)
    }
}
