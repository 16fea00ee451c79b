//! The page cache: bodies by key, with an expiry in Redis.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::page_cache::PageCache;
use redis::Cmd;

use super::link::RedisConnection;

/// Long enough to transfer the longest body.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// A page cache on a Redis server.
pub struct RedisPages {
    link: RedisConnection,
}

impl RedisPages {
    /// The longest body that Redis holds under one key.
    pub const MAX_BODY_BYTES: usize = 512 * 1024 * 1024;

    /// Connects to the server.
    pub async fn open(url: &str) -> Result<RedisPages, StoreError> {
        Ok(RedisPages { link: RedisConnection::open_patiently(url, ANSWER_WITHIN).await? })
    }
}

#[async_trait]
impl PageCache for RedisPages {
    async fn put(&self, key: &str, body: Bytes, ttl: Duration) -> Result<(), StoreError> {
        if body.len() > RedisPages::MAX_BODY_BYTES {
            return Err(StoreError::too_large(format!(
                "{key} has {} bytes, and Redis holds {} under one key; fetch less of it, or cache pages \
                 elsewhere",
                body.len(),
                RedisPages::MAX_BODY_BYTES
            )));
        }
        let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).max(1);
        self.link.query(&Cmd::pset_ex(key, body.as_ref(), ttl_ms)).await
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let body: Option<Vec<u8>> = self.link.query(&Cmd::get(key)).await?;
        Ok(body.map(Bytes::from))
    }

    /// Redis expires keys by itself.
    async fn sweep(&self) -> Result<u64, StoreError> {
        Ok(0)
    }
}
