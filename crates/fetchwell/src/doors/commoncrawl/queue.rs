//! Where batches wait: at a broker, or in the store.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::batches::BatchQueue;
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

/// Opens the queue that the settings name.
#[cfg_attr(
    not(feature = "rabbitmq"),
    expect(unused_variables, reason = "the store has a clock of its own, a broker has none")
)]
pub(crate) async fn open_batches(
    settings: &Settings,
    clock: &Clock,
) -> Result<Arc<dyn BatchQueue>, Exit> {
    let values = &settings.values;
    let queue = &values.commoncrawl_queue;
    #[cfg(feature = "rabbitmq")]
    if let Some(url) = &values.commoncrawl_rabbitmq_url {
        let transient = values.commoncrawl_queue_transient;
        let queue = RabbitQueue::open(url.reveal(), queue, transient, clock.clone()).await?;
        return Ok(Arc::new(queue));
    }
    if values.store.file().is_none() {
        return Err(Exit::Usage(format!(
            "batches need RabbitMQ or SQLite, but the store is {}; set a broker with \
             commoncrawl.rabbitmq_url or RABBITMQ_CONNECTION_STRING, or use --store sqlite:PATH",
            values.store
        )));
    }
    let db = open_queue_db(settings).await?;
    let clock = sqlite::clock(&db).await?;
    let queue = SqliteQueue::open(db, queue, clock, values.lease_ttl, false).await?;
    Ok(Arc::new(queue))
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
    /// The queue, filled within the bounds of the settings.
    pub(super) fn new(queue: Arc<dyn BatchQueue>, settings: &Settings) -> BoundedQueue {
        BoundedQueue {
            queue,
            max_unconfirmed: settings.values.commoncrawl_max_unconfirmed,
            max_waiting: settings.values.commoncrawl_max_queue,
        }
    }

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
