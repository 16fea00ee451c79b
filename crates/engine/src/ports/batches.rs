//! The port for the queue of batches between batchers and workers.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::ports::error::StoreError;
use crate::ports::queue::Instance;

/// The name of the queue for batches, on a server or embedded.
pub const QUEUE: &str = "batches";

/// The unit of work that a worker takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Identifies the batch. If a batch is created again, it has the same ID and the same body.
    pub id: String,
    /// JSON.
    pub body: Bytes,
}

/// A queue of batches.
#[async_trait]
pub trait BatchQueue: DeadBatches {
    /// Returns once all batches are confirmed. After an error the outcome is unknown, so the same batches are published
    /// again; a worker recognises a duplicate by its ID.
    async fn publish(&self, batches: &[Batch]) -> Result<(), StoreError>;

    /// The number of waiting batches. Batchers pause while workers have enough.
    async fn waiting(&self) -> Result<u64, StoreError>;

    /// Joins as a worker. A broker delivers up to `prefetch` batches before the first one is settled.
    fn worker(&self, prefetch: u16) -> Arc<dyn Instance>;
}

/// A batch that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadBatch {
    /// Its ID.
    pub id: String,
    /// Why it was given up; empty if unknown.
    pub reason: String,
}

/// Result of retrying dead batches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetriedBatches {
    /// The number of batches that are back on the queue.
    pub count: usize,
    /// IDs that match no dead batch.
    pub unknown: Vec<String>,
}

/// The dead batches of a queue: lets an operator list and retry them.
#[async_trait]
pub trait DeadBatches: Send + Sync {
    /// Lists all dead batches.
    async fn dead_batches(&self) -> Result<Vec<DeadBatch>, StoreError>;

    /// Requeues the named dead batches, or all, and resets their history.
    async fn retry_dead(&self, ids: Option<&[String]>) -> Result<RetriedBatches, StoreError>;
}
