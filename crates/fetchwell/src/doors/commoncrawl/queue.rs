//! Where batches wait: at a broker, or in the store.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::batches::{BatchQueue, DeadBatches};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_settings::Settings;
#[cfg(feature = "rabbitmq")]
use fetchwell_stores::rabbitmq::RabbitQueue;
use fetchwell_stores::sqlite::{self, SqliteQueue};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::console::exit::Exit;
use crate::plant::open_queue_db;

/// How often a full queue is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

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
                "batches need RabbitMQ or SQLite, but the store is {}; set a broker with \
                 commoncrawl.rabbitmq_url or RABBITMQ_CONNECTION_STRING, or use --store \
                 sqlite:PATH",
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

    /// Its batches that were given up.
    pub(super) fn dead(&self) -> Arc<dyn DeadBatches> {
        match self {
            #[cfg(feature = "rabbitmq")]
            BatchPlace::Broker(queue) => Arc::new(queue.clone()),
            BatchPlace::Embedded(queue) => Arc::new(queue.clone()),
        }
    }

    /// The queue, filled within the bounds of the settings.
    pub(super) fn filled_within_bounds(&self, settings: &Settings) -> BoundedQueue {
        BoundedQueue {
            queue: self.as_port(),
            max_unconfirmed: settings.values.commoncrawl_max_unconfirmed,
            max_waiting: settings.values.commoncrawl_max_queue,
        }
    }
}

/// A queue that is not filled without end.
pub(super) struct BoundedQueue {
    pub(super) queue: Arc<dyn BatchQueue>,
    /// Batches that may be unconfirmed at once.
    max_unconfirmed: usize,
    /// While so many wait, no more are published.
    max_waiting: u64,
}

impl BoundedQueue {
    /// How many batches may go, after a wait where the queue is full. 0: the run is to stop, and what is
    /// not published stays so.
    pub(super) async fn room(&self, stop: &CancellationToken) -> Result<usize, StoreError> {
        let mut is_told = false;
        loop {
            let waiting = self.queue.waiting().await?;
            let room = self.max_waiting.saturating_sub(waiting);
            if room > 0 {
                return Ok(usize::try_from(room).unwrap_or(usize::MAX).min(self.max_unconfirmed));
            }
            if !is_told {
                info!("the queue has {waiting} batches: waiting for workers to take some");
                is_told = true;
            }
            tokio::select! {
                () = stop.cancelled() => return Ok(0),
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }
}
