//! Where batches wait: at a broker, or in the store.

use std::sync::Arc;

use fetchwell_engine::adapters::rabbitmq::RabbitQueue;
use fetchwell_engine::adapters::sqlite::{self, SqliteQueue};
use fetchwell_engine::batches::BatchQueue;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::{Settle, Source};

use crate::cli::Exit;
use crate::plant::open_queue_db;
use crate::settings::{Settings, StoreUrl};

/// A queue of batches.
pub(crate) enum BatchPlace {
    /// At RabbitMQ.
    Broker(RabbitQueue),
    /// In the store.
    Embedded(SqliteQueue),
}

/// A worker's hold on a queue: where batches come from, and where they end.
pub(crate) type Hold = (Arc<dyn Source>, Arc<dyn Settle>);

impl BatchPlace {
    /// Opens the queue that the settings name.
    pub(crate) async fn open(settings: &Settings, clock: &Clock) -> Result<BatchPlace, Exit> {
        let values = &settings.values;
        let queue = &values.commoncrawl_queue;
        if let Some(url) = &values.commoncrawl_rabbitmq_url {
            let (transient, clock) = (values.commoncrawl_queue_transient, clock.clone());
            let queue = RabbitQueue::open(url.reveal(), queue, transient, clock).await?;
            return Ok(BatchPlace::Broker(queue));
        }
        if !matches!(values.store, StoreUrl::Sqlite(_)) {
            return Err(Exit::Usage(format!(
                "batches wait at RabbitMQ or in SQLite, and the store is {}; name a broker with \
                 commoncrawl.rabbitmq_url or RABBITMQ_CONNECTION_STRING, or --store sqlite:PATH",
                values.store
            )));
        }
        let db = open_queue_db(settings).await?;
        let clock = sqlite::clock(&db).await?;
        let queue = SqliteQueue::open(db, queue, clock, values.lease_ttl, false).await?;
        Ok(BatchPlace::Embedded(queue))
    }

    /// The queue as those see it who make batches.
    pub(crate) fn as_port(&self) -> Arc<dyn BatchQueue> {
        match self {
            BatchPlace::Broker(queue) => Arc::new(queue.clone()),
            BatchPlace::Embedded(queue) => Arc::new(queue.clone()),
        }
    }

    /// Joins it as a worker.
    pub(crate) fn join(&self, prefetch: u16) -> Hold {
        match self {
            BatchPlace::Broker(queue) => {
                let instance = Arc::new(queue.instance(prefetch));
                (instance.clone(), instance)
            }
            BatchPlace::Embedded(queue) => {
                let instance = Arc::new(queue.instance());
                (instance.clone(), instance)
            }
        }
    }
}
