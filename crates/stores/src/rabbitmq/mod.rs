//! RabbitMQ: a queue of batches that any number of machines can share.
//!
//! The broker confirms what is published, and a batch is acknowledged when it is settled. A batch that moves (another
//! attempt, a dead letter) is confirmed in its new place before the old message is acknowledged. So a crash in between
//! leaves two copies, never none.

mod consumer;
mod dead_letters;
mod declare;
mod errors;
mod examination;
mod instance;
mod link;
mod message;
mod publisher;
mod transport;

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::batches::{Batch, BatchQueue};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::queue::Instance;

use self::declare::Names;
use self::link::AmqpConnection;
use self::message::Outgoing;
use self::publisher::Publisher;

pub use self::examination::{QueueFacts, RabbitFacts, examine};
pub use self::instance::RabbitInstance;
pub use self::message::{ATTEMPTS_HEADER, REASON_HEADER};

/// A named queue at a broker, and its dead-letter queue, `NAME.dead`.
#[derive(Clone)]
pub struct RabbitQueue {
    link: AmqpConnection,
    names: Arc<Names>,
    publisher: Arc<Publisher>,
    clock: Clock,
}

impl RabbitQueue {
    /// Connects and makes sure that the queue exists. An existing queue is used as it was declared; a new one is
    /// durable unless `transient`.
    pub async fn open(
        url: &str,
        queue: &str,
        transient: bool,
        clock: Clock,
    ) -> Result<RabbitQueue, StoreError> {
        let link = AmqpConnection::to(url)?;
        let names = Arc::new(Names::of(queue, transient)?);
        let publisher = Publisher::open(link.clone(), names.clone()).await?;
        Ok(RabbitQueue { link, names, publisher: Arc::new(publisher), clock })
    }

    /// Joins as a consumer that receives up to `prefetch` unsettled batches.
    pub fn instance(&self, prefetch: u16) -> RabbitInstance {
        RabbitInstance::join(self, prefetch)
    }

    /// The number of dead letters.
    pub async fn dead(&self) -> Result<u64, StoreError> {
        self.publisher.depth(&self.names.dead).await
    }
}

#[async_trait]
impl BatchQueue for RabbitQueue {
    async fn publish(&self, batches: &[Batch]) -> Result<(), StoreError> {
        let queue = &self.names.queue;
        let messages: Vec<Outgoing<'_>> = batches
            .iter()
            .map(|batch| Outgoing { queue, body: &batch.body, properties: message::first(batch) })
            .collect();
        self.publisher.publish(&messages).await
    }

    async fn waiting(&self) -> Result<u64, StoreError> {
        self.publisher.depth(&self.names.queue).await
    }

    fn worker(&self, prefetch: u16) -> Arc<dyn Instance> {
        Arc::new(self.instance(prefetch))
    }
}
