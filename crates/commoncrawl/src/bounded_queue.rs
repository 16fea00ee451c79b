//! The batch queue, as its producers use it.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::batches::BatchQueue;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_policy::units::quantity;
use tokio_util::sync::CancellationToken;
use tracing::info;

/// How often a full queue is checked.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A queue with a limit on its depth.
pub struct BoundedQueue {
    pub queue: Arc<dyn BatchQueue>,
    /// The maximum number of unconfirmed batches.
    pub max_unconfirmed: usize,
    /// While this many batches wait, no more are published.
    pub max_waiting: u64,
}

impl BoundedQueue {
    /// How many batches may be published now; waits while the queue is full. Returns 0 on `stop`: what is not published
    /// then stays unpublished.
    pub(crate) async fn room(&self, stop: &CancellationToken) -> Result<usize, StoreError> {
        let mut is_told = false;
        loop {
            let waiting = self.queue.waiting().await?;
            let room = self.max_waiting.saturating_sub(waiting);
            if room > 0 {
                return Ok(usize::try_from(room).unwrap_or(usize::MAX).min(self.max_unconfirmed));
            }
            if !is_told {
                let batches = quantity(waiting, "batch", "batches");
                info!("the queue has {batches}: waiting for workers to take some");
                is_told = true;
            }
            tokio::select! {
                () = stop.cancelled() => return Ok(0),
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }
}
