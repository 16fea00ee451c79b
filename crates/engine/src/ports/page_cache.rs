//! Bodies by key, for a while.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::ports::error::StoreError;

/// Bodies by key, each with a time to live.
#[async_trait]
pub trait PageCache: Send + Sync {
    /// Keeps a body; one that is there is replaced.
    async fn put(&self, key: &str, body: Bytes, ttl: Duration) -> Result<(), StoreError>;

    /// The body, unless its time is over.
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError>;

    /// Takes out what is over. Returns how many.
    async fn sweep(&self) -> Result<u64, StoreError>;
}
