//! Links by category, on Redis: `rss:category_links:{category}`.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::links::{CategoryLinks, CategorySet, LINKS_TTL};
use tracing::warn;

use super::link::{RedisConnection, members_of, sets_with_prefix};

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
}

#[async_trait]
impl CategoryLinks for RedisLinks {
    async fn add(&self, category: &str, urls: &[String]) -> Result<u64, StoreError> {
        self.link.warn_of_forgetting().await?;
        let key = format!("{PREFIX}{category}");
        let mut added = 0;
        for urls in urls.chunks(LINKS_AT_ONCE) {
            let mut transaction = redis::pipe();
            transaction.atomic().sadd(&key, urls).expire(&key, ttl_s()).ignore();
            let (new,): (u64,) = self.link.query_all(&transaction).await?;
            added += new;
        }
        Ok(added)
    }

    async fn snapshot(&self) -> Result<Vec<CategorySet>, StoreError> {
        let mut sets = Vec::new();
        let keys = self.link.scan(sets_with_prefix(PREFIX, LINKS_AT_ONCE)).await?;
        for key in distinct_texts(keys) {
            let Some(category) = key.strip_prefix(PREFIX) else { continue };
            let urls = distinct_texts(self.link.scan(members_of(&key, LINKS_AT_ONCE)).await?);
            // It may have expired since the scan found it.
            if !urls.is_empty() {
                sets.push(CategorySet { category: category.to_owned(), urls });
            }
        }
        Ok(sets)
    }
}

/// Skips what is not UTF-8, which cannot be a URL or a category of ours.
fn distinct_texts(found: Vec<Vec<u8>>) -> BTreeSet<String> {
    let text = |bytes| {
        String::from_utf8(bytes)
            .inspect_err(|fault| {
                warn!("skipped, because it is not UTF-8: {}", fault.as_bytes().escape_ascii());
            })
            .ok()
    };
    found.into_iter().filter_map(text).collect()
}

fn ttl_s() -> i64 {
    i64::try_from(LINKS_TTL.as_secs()).unwrap_or(i64::MAX)
}
