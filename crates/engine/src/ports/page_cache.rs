//! The port for a cache of page bodies.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::ports::error::StoreError;

/// A cache of page bodies, each with a time to live.
#[async_trait]
pub trait PageCache: Send + Sync {
    /// Stores a body, replacing an existing one.
    async fn put(&self, key: &str, body: Bytes, ttl: Duration) -> Result<(), StoreError>;

    /// The body, unless it has expired.
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError>;

    /// Removes expired bodies. Returns how many were removed.
    async fn sweep(&self) -> Result<u64, StoreError>;
}
