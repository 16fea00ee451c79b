//! Where batches wait: at a broker, or in the store.

use std::sync::Arc;

#[cfg(feature = "rabbitmq")]
use fetchwell_engine::adapters::rabbitmq::RabbitQueue;
use fetchwell_engine::adapters::sqlite::{self, SqliteQueue};
use fetchwell_engine::batches::BatchQueue;
use fetchwell_engine::clock::Clock;

use crate::cli::Exit;
use crate::plant::open_queue_db;
use crate::settings::Settings;

/// A queue of batches.
pub(crate) enum BatchPlace {
    /// At RabbitMQ.
    #[cfg(feature = "rabbitmq")]
    Broker(RabbitQueue),
    /// In the store.
    Embedded(SqliteQueue),
}

impl BatchPlace {
    /// Opens the queue that the settings name.
    #[cfg_attr(
        not(feature = "rabbitmq"),
        expect(unused_variables, reason = "the store has a clock of its own, a broker has none")
    )]
    pub(crate) async fn open(settings: &Settings, clock: &Clock) -> Result<BatchPlace, Exit> {
        let values = &settings.values;
        let queue = &values.commoncrawl_queue;
        #[cfg(feature = "rabbitmq")]
        if let Some(url) = &values.commoncrawl_rabbitmq_url {
            let (transient, clock) = (values.commoncrawl_queue_transient, clock.clone());
            let queue = RabbitQueue::open(url.reveal(), queue, transient, clock).await?;
            return Ok(BatchPlace::Broker(queue));
        }
        if values.store.file().is_none() {
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
            #[cfg(feature = "rabbitmq")]
            BatchPlace::Broker(queue) => Arc::new(queue.clone()),
            BatchPlace::Embedded(queue) => Arc::new(queue.clone()),
        }
    }
}
