//! Links by category, on Redis: `rss:category_links:{category}`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::links::{CategoryLinks, CategorySet, LINKS_TTL};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult};
use tracing::warn;

use super::link::RedisConnection;

/// The prefix of the keys of categories.
const PREFIX: &str = "rss:category_links:";
/// Long enough to read a large set.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Links per transaction, and per step of a scan. Both block other clients.
const LINKS_AT_ONCE: usize = 1_000;

/// Links on a Redis server, which expires categories by itself.
pub struct RedisLinks {
    link: RedisConnection,
}

impl RedisLinks {
    /// Connects to the server.
    pub async fn open(url: &str) -> Result<RedisLinks, StoreError> {
        Ok(RedisLinks { link: RedisConnection::open_patiently(url, ANSWER_WITHIN).await? })
    }

    async fn read(&self) -> Result<Vec<CategorySet>, RedisFault> {
        let mut connection = self.link.standing().await?.connection;
        let mut sets = BTreeMap::new();
        for key in scan(&mut connection, keys_of_categories()).await? {
            let Some(category) = key.strip_prefix(PREFIX) else { continue };
            let mut members = redis::cmd("SSCAN");
            members.arg(&key).cursor_arg(0).arg("COUNT").arg(LINKS_AT_ONCE);
            let urls = scan(&mut connection, members).await?;
            // It may have expired since the scan found it.
            if !urls.is_empty() {
                sets.insert(category.to_owned(), urls);
            }
        }
        Ok(sets.into_iter().map(|(category, urls)| CategorySet { category, urls }).collect())
    }
}

#[async_trait]
impl CategoryLinks for RedisLinks {
    async fn add(&self, category: &str, urls: &[String]) -> Result<u64, StoreError> {
        self.link.warn_of_forgetting().await?;
        let key = format!("{PREFIX}{category}");
        let mut added = 0;
        for urls in urls.chunks(LINKS_AT_ONCE) {
            let mut connection = self.link.standing().await?.connection;
            let mut transaction = redis::pipe();
            transaction.atomic().sadd(&key, urls).expire(&key, ttl_s()).ignore();
            match transaction.query_async::<(u64,)>(&mut connection).await {
                Ok((new,)) => added += new,
                Err(error) => return Err(self.link.fault(error).await),
            }
        }
        Ok(added)
    }

    async fn snapshot(&self) -> Result<Vec<CategorySet>, StoreError> {
        match self.read().await {
            Ok(sets) => Ok(sets),
            Err(RedisFault::Store(fault)) => Err(fault),
            Err(RedisFault::Redis(error)) => Err(self.link.fault(error).await),
        }
    }
}

enum RedisFault {
    Store(StoreError),
    Redis(RedisError),
}

impl From<StoreError> for RedisFault {
    fn from(fault: StoreError) -> RedisFault {
        RedisFault::Store(fault)
    }
}

impl From<RedisError> for RedisFault {
    fn from(error: RedisError) -> RedisFault {
        RedisFault::Redis(error)
    }
}

fn keys_of_categories() -> Cmd {
    let mut keys = redis::cmd("SCAN");
    keys.cursor_arg(0).arg("MATCH").arg(format!("{PREFIX}*"));
    keys.arg("COUNT").arg(LINKS_AT_ONCE).arg("TYPE").arg("set");
    keys
}

/// All distinct results of a scan. Skips what is not UTF-8, which cannot be a URL or a category of ours.
async fn scan(connection: &mut MultiplexedConnection, scan: Cmd) -> RedisResult<BTreeSet<String>> {
    let mut found = scan.iter_async::<Vec<u8>>(connection).await?;
    let mut texts = BTreeSet::new();
    while let Some(bytes) = found.next_item().await {
        match String::from_utf8(bytes?) {
            Ok(text) => {
                texts.insert(text);
            }
            Err(fault) => {
                warn!("skipped, because it is not UTF-8: {}", fault.as_bytes().escape_ascii());
            }
        }
    }
    Ok(texts)
}

fn ttl_s() -> i64 {
    i64::try_from(LINKS_TTL.as_secs()).unwrap_or(i64::MAX)
}
