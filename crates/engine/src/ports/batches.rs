//! The port for the queue of batches between batchers and workers.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::ports::error::StoreError;
use crate::ports::queue::Instance;

/// The queue that batches wait in, on a server or embedded.
pub const QUEUE: &str = "batches";

/// What a worker takes at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Names it: a batch that is made again has the same id and the same body.
    pub id: String,
    /// JSON.
    pub body: Bytes,
}

/// A queue of batches.
#[async_trait]
pub trait BatchQueue: DeadBatches {
    /// Returns once all are confirmed. An error means that nothing is known: the same batches are
    /// published again, and whoever takes one twice knows it by its id.
    async fn publish(&self, batches: &[Batch]) -> Result<(), StoreError>;

    /// How many wait, so that there need not be more of them than workers can do with.
    async fn waiting(&self) -> Result<u64, StoreError>;

    /// Joins as a worker. A broker gives it `prefetch` batches before it has settled one.
    fn worker(&self, prefetch: u16) -> Arc<dyn Instance>;
}

/// A batch that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadBatch {
    /// Its name.
    pub id: String,
    /// Why; empty where nobody said so.
    pub reason: String,
}

/// Result of retrying dead batches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetriedBatches {
    /// How many are back on the queue.
    pub count: usize,
    /// Names that match no dead batch.
    pub unknown: Vec<String>,
}

/// The dead batches of a queue: lets an operator list and retry them.
#[async_trait]
pub trait DeadBatches: Send + Sync {
    /// All of them.
    async fn dead_batches(&self) -> Result<Vec<DeadBatch>, StoreError>;

    /// Requeues the named dead batches, or all, and resets their history.
    async fn retry_dead(&self, ids: Option<&[String]>) -> Result<RetriedBatches, StoreError>;
}
