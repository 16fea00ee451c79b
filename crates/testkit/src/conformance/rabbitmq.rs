//! RabbitMQ, for the suites: a new queue on the broker that an environment variable names.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::batches::{Batch, BatchQueue, DeadBatch, DeadBatches, RetriedBatches};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::queue::Instance;
use fetchwell_stores::rabbitmq::{REASON_HEADER, RabbitQueue};
use lapin::options::{BasicGetOptions, QueueDeleteOptions};
use lapin::types::AMQPValue;
use lapin::{Channel, Connection, ConnectionProperties};

use super::batches::{BatchStore, Batches};
use super::servers::{server_url, unique};

/// A new queue on the broker that `FETCHWELL_TEST_RABBITMQ_URL` names.
#[derive(Clone)]
pub struct RabbitStore {
    /// The URL of the broker.
    pub url: String,
    /// A queue that no other test has used.
    pub queue: String,
}

impl RabbitStore {
    /// `None` if no broker is named; the skip is reported.
    pub fn if_there() -> Option<RabbitStore> {
        let url = server_url("FETCHWELL_TEST_RABBITMQ_URL")?;
        Some(RabbitStore::on(url))
    }

    /// A new queue on that broker.
    pub fn on(url: String) -> RabbitStore {
        RabbitStore { url, queue: format!("fetchwell_test_{:016x}", unique()) }
    }

    /// Opens it as a process does.
    pub async fn open(&self, clock: Clock) -> RabbitQueue {
        RabbitQueue::open(&self.url, &self.queue, false, clock).await.expect("the broker answers")
    }

    /// Deletes the queue, as another program might.
    pub async fn delete(&self) {
        let channel = self.channel().await;
        let options = QueueDeleteOptions::default();
        channel.queue_delete(self.queue.as_str().into(), options).await.expect("it is there");
    }

    async fn channel(&self) -> Channel {
        #[expect(clippy::disallowed_methods, reason = "the broker of the tests has no TLS")]
        let connected = Connection::connect(&self.url, ConnectionProperties::default()).await;
        connected.expect("the broker answers").create_channel().await.expect("a channel")
    }

    /// Removes all waiting batches, in order of arrival.
    pub async fn drain(&self) -> Vec<DrainedBatch> {
        self.drain_queue(&self.queue).await
    }

    /// Removes all batches that were given up.
    pub async fn drain_dead(&self) -> Vec<DrainedBatch> {
        self.drain_queue(&format!("{}.dead", self.queue)).await
    }

    async fn drain_queue(&self, queue: &str) -> Vec<DrainedBatch> {
        let channel = self.channel().await;
        let options = BasicGetOptions { no_ack: true };
        let mut messages = Vec::new();
        while let Some(message) =
            channel.basic_get(queue.into(), options).await.expect("the queue is there")
        {
            let id = message.properties.message_id().as_ref().map(ToString::to_string);
            let headers = message.properties.headers().as_ref();
            let reason = headers.and_then(|table| match table.inner().get(REASON_HEADER) {
                Some(AMQPValue::LongString(text)) => Some(text.to_string()),
                _ => None,
            });
            let id = id.unwrap_or_default();
            let reason = reason.unwrap_or_default();
            messages.push(DrainedBatch { id, body: message.delivery.data, reason });
        }
        messages
    }
}

/// A removed batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainedBatch {
    pub id: String,
    pub body: Vec<u8>,
    /// Why it was given up, if it was.
    pub reason: String,
}

#[async_trait]
impl BatchStore for RabbitStore {
    async fn open_batches(&self, clock: Clock) -> Box<dyn Batches> {
        Box::new(RabbitPlace { queue: self.open(clock).await, store: self.clone() })
    }
}

struct RabbitPlace {
    queue: RabbitQueue,
    store: RabbitStore,
}

#[async_trait]
impl BatchQueue for RabbitPlace {
    async fn publish(&self, batches: &[Batch]) -> Result<(), StoreError> {
        self.queue.publish(batches).await
    }

    async fn waiting(&self) -> Result<u64, StoreError> {
        self.queue.waiting().await
    }

    fn worker(&self, prefetch: u16) -> Arc<dyn Instance> {
        self.queue.worker(prefetch)
    }
}

#[async_trait]
impl DeadBatches for RabbitPlace {
    async fn dead_batches(&self) -> Result<Vec<DeadBatch>, StoreError> {
        self.queue.dead_batches().await
    }

    async fn retry_dead(&self, ids: Option<&[String]>) -> Result<RetriedBatches, StoreError> {
        self.queue.retry_dead(ids).await
    }
}

#[async_trait]
impl Batches for RabbitPlace {
    async fn dead(&self) -> Vec<(String, String)> {
        self.store.drain_dead().await.into_iter().map(|dead| (dead.id, dead.reason)).collect()
    }
}
