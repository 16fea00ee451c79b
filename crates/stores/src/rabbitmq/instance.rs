//! An instance: one process that takes from a queue. Leases are deliveries that are not acknowledged yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Settle, Settled, Settlement};
use fetchwell_engine::ports::job::{Lease, LeaseId};
use fetchwell_engine::ports::source::{Demand, Renewal, Source, Taken};
use lapin::options::{BasicAckOptions, BasicNackOptions};
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::RabbitQueue;
use super::consumer::{Deliveries, Held, Reconnector};
use super::link::ANSWER_WITHIN;
use super::message::{self, Outgoing};

/// The connection is checked at least this often.
const LEASE_TTL: Duration = Duration::from_secs(20);
/// When to check again after a reconnect, until a renewal has told the engine that earlier deliveries are lost.
const SOON: Duration = Duration::from_millis(50);
/// How often to check an idle queue. Deliveries announce themselves, so this only makes sure that the clock is read
/// again.
const POLL: Duration = Duration::from_secs(5);
/// Means no connection yet: they are counted from 1.
const NONE: u64 = 0;

/// One process that takes from a [`RabbitQueue`]. Dropping it returns all unsettled batches.
pub struct RabbitInstance {
    queue: RabbitQueue,
    deliveries: Arc<Deliveries>,
    /// The connection whose deliveries the engine has. It gets those of the next one only after it has learned that the
    /// earlier ones are lost.
    generation: AtomicU64,
    stop: CancellationToken,
    keeping: Mutex<Option<JoinHandle<()>>>,
}

impl RabbitInstance {
    pub(super) fn join(queue: &RabbitQueue, prefetch: u16) -> RabbitInstance {
        let deliveries = Arc::new(Deliveries::new(queue.clock.clone()));
        let stop = CancellationToken::new();
        let reconnector = Reconnector {
            link: queue.link.clone(),
            names: queue.names.clone(),
            prefetch,
            deliveries: deliveries.clone(),
            stop: stop.clone(),
        };
        let keeping = Mutex::new(Some(tokio::spawn(reconnector.run())));
        let generation = AtomicU64::new(NONE);
        RabbitInstance { queue: queue.clone(), deliveries, generation, stop, keeping }
    }

    /// The message to publish before the old one is acknowledged.
    fn moved<'a>(
        &'a self,
        lease: &'a Lease,
        settlement: &'a Settlement,
        held: &Held,
    ) -> Option<Outgoing<'a>> {
        let names = &*self.queue.names;
        match settlement {
            Settlement::Retry { at, history, payload } => {
                let body = payload.as_deref().unwrap_or(&lease.job.payload);
                let clock = &self.queue.clock;
                let at = clock.wall() + at.since(clock.now());
                let properties = message::again(&held.properties, history, at);
                Some(Outgoing { queue: &names.queue, body, properties })
            }
            Settlement::Dead { reason } => {
                let properties = message::dead(&held.properties, reason);
                Some(Outgoing { queue: &names.dead, body: &lease.job.payload, properties })
            }
            Settlement::Done | Settlement::Skipped | Settlement::HandBack { .. } => None,
        }
    }

    async fn end(&self, lease: &Lease, settlement: &Settlement) -> Settled {
        let Some(held) = self.deliveries.held(lease.id) else { return Settled::Stale };
        let done = match settlement {
            Settlement::HandBack { at } if *at > self.queue.clock.now() => {
                // The broker would redeliver it at once.
                self.deliveries.put_off(lease, *at);
                return Settled::Confirmed;
            }
            Settlement::HandBack { .. } => self.heard(held.acker.nack(requeue())).await,
            _ => self.heard(held.acker.ack(BasicAckOptions::default())).await,
        };
        self.deliveries.forget(lease.id);
        // If the connection is gone, the broker redelivers it.
        if matches!(done, Ok(true)) { Settled::Confirmed } else { Settled::Stale }
    }

    /// Gives up a connection that takes too long, because it may be dead without an error.
    async fn heard<T>(
        &self,
        word: impl Future<Output = lapin::Result<T>> + Send,
    ) -> Result<T, StoreError> {
        match timeout(ANSWER_WITHIN, word).await {
            Ok(heard) => heard.map_err(|error| self.queue.link.fault(error)),
            Err(_) => {
                self.deliveries.give_up_connection();
                Err(self.queue.link.silent())
            }
        }
    }
}

#[async_trait]
impl Source for RabbitInstance {
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreError> {
        let now = self.queue.clock.now();
        if self.deliveries.generation()? != self.generation.load(Ordering::Relaxed) {
            return Ok(Taken::Idle { until: now + SOON });
        }
        Ok(match self.deliveries.take(demand.most) {
            Ok(leases) => Taken::Jobs(leases),
            Err(due) => Taken::Idle { until: due.unwrap_or(now + POLL).min(now + POLL) },
        })
    }

    /// A broker does not count how many processes died while working on a batch.
    async fn started(&self, _: &[LeaseId]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn renew(&self) -> Result<Renewal, StoreError> {
        if self.generation.load(Ordering::Relaxed) == NONE {
            self.deliveries.first_connection().await;
        }
        let current = self.deliveries.generation()?;
        for kept in self.deliveries.kept_too_long() {
            self.heard(kept.nack(requeue())).await?;
        }
        let before = self.generation.swap(current, Ordering::Relaxed);
        let kept = before == NONE || before == current;
        Ok(if kept { Renewal::Held { ttl: LEASE_TTL } } else { Renewal::Lost })
    }

    async fn leave(&self) -> Result<(), StoreError> {
        self.stop.cancel();
        if let Some(keeping) = self.keeping.lock().await.take() {
            keeping.await.map_err(|error| {
                StoreError::bug("the consumer of RabbitMQ failed").with_source(error)
            })?;
        }
        Ok(())
    }

    fn news(&self) -> Option<Arc<Notify>> {
        Some(self.deliveries.news.clone())
    }
}

#[async_trait]
impl Settle for RabbitInstance {
    async fn settle(&self, batch: &[(&Lease, &Settlement)]) -> Result<Vec<Settled>, StoreError> {
        let mut moved = Vec::new();
        for (lease, settlement) in batch {
            let held = self.deliveries.held(lease.id);
            moved.extend(held.and_then(|held| self.moved(lease, settlement, &held)));
        }
        if !moved.is_empty() {
            self.queue.publisher.publish(&moved).await?;
        }
        let mut settled = Vec::with_capacity(batch.len());
        for (lease, settlement) in batch {
            settled.push(self.end(lease, settlement).await);
        }
        Ok(settled)
    }
}

impl Drop for RabbitInstance {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn requeue() -> BasicNackOptions {
    BasicNackOptions { multiple: false, requeue: true }
}
