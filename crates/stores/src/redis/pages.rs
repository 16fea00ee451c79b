//! The page cache: bodies by key, with an expiry in Redis.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::page_cache::PageCache;
use redis::AsyncCommands;

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
        let mut connection = self.link.standing().await?.connection;
        let answer: Result<(), _> = connection.pset_ex(key, body.as_ref(), ttl_ms).await;
        match answer {
            Ok(()) => Ok(()),
            Err(error) => Err(self.link.fault(error).await),
        }
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let mut connection = self.link.standing().await?.connection;
        let answer: Result<Option<Vec<u8>>, _> = connection.get(key).await;
        match answer {
            Ok(body) => Ok(body.map(Bytes::from)),
            Err(error) => Err(self.link.fault(error).await),
        }
    }

    /// Redis expires keys by itself.
    async fn sweep(&self) -> Result<u64, StoreError> {
        Ok(0)
    }
}
