//! Feeds on Redis: `rss:feeds:subscriptions`, `rss:feeds:memory` and `rss:feeds:claims`, each a hash.

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::feeds::{Claim, FeedMemory, Feeds, Subscription};
use redis::Pipeline;
use serde::{Deserialize, Serialize};

use super::link::RedisConnection;

/// Field: the feed and the category as a JSON array. Value: [`Details`] as JSON.
const SUBSCRIPTIONS: &str = "rss:feeds:subscriptions";
/// Field: the feed. Value: its memory as JSON.
const MEMORY: &str = "rss:feeds:memory";
/// Field: the feed. Value: when the claim ends, in microseconds, and who holds it.
const CLAIMS: &str = "rss:feeds:claims";

/// Feeds per command or script. A script blocks all other clients.
const FEEDS_AT_ONCE: usize = 500;
/// Long enough to read a long list.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Feeds on a Redis server.
pub struct RedisFeeds {
    link: RedisConnection,
}

/// The fields of a subscription besides its feed and category.
#[derive(Serialize, Deserialize)]
struct Details {
    interval_s: Option<u64>,
    #[serde(default)]
    title: String,
}

impl RedisFeeds {
    /// Connects to the server.
    pub async fn open(url: &str) -> Result<RedisFeeds, StoreError> {
        Ok(RedisFeeds { link: RedisConnection::open_patiently(url, ANSWER_WITHIN).await? })
    }
}

#[async_trait]
impl Feeds for RedisFeeds {
    async fn subscribe(&self, subscriptions: &[Subscription]) -> Result<u64, StoreError> {
        self.link.warn_of_forgetting().await?;
        let mut new = 0;
        for some in subscriptions.chunks(FEEDS_AT_ONCE) {
            let mut command = redis::cmd("HSET");
            command.arg(SUBSCRIPTIONS);
            for subscription in some {
                let interval_s = subscription.interval.map(|interval| interval.as_secs());
                let details = Details { interval_s, title: subscription.title.clone() };
                command.arg(field(subscription)?).arg(json(&details)?);
            }
            new += self.link.query::<u64>(&command).await?;
        }
        Ok(new)
    }

    async fn unsubscribe(&self, subscriptions: &[Subscription]) -> Result<u64, StoreError> {
        let mut gone = 0;
        for some in subscriptions.chunks(FEEDS_AT_ONCE) {
            let mut command = redis::cmd("HDEL");
            command.arg(SUBSCRIPTIONS);
            for subscription in some {
                command.arg(field(subscription)?);
            }
            gone += self.link.query::<u64>(&command).await?;
        }
        Ok(gone)
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError> {
        let all: Vec<(String, String)> =
            self.link.query(redis::cmd("HGETALL").arg(SUBSCRIPTIONS)).await?;
        let mut subscriptions: Vec<Subscription> = all
            .iter()
            .map(|(field, details)| subscription(field, details))
            .collect::<Result<_, _>>()?;
        subscriptions.sort_unstable();
        Ok(subscriptions)
    }

    async fn memories(&self, urls: &[&str]) -> Result<Vec<Option<FeedMemory>>, StoreError> {
        let mut memories = Vec::with_capacity(urls.len());
        for urls in urls.chunks(FEEDS_AT_ONCE) {
            let texts: Vec<Option<String>> =
                self.link.query(redis::cmd("HMGET").arg(MEMORY).arg(urls)).await?;
            // An invalid record counts as missing: the feed is read again.
            memories.extend(texts.into_iter().map(|text| serde_json::from_str(&text?).ok()));
        }
        Ok(memories)
    }

    async fn claim(&self, urls: &[&str], claim: &Claim<'_>) -> Result<Vec<bool>, StoreError> {
        let mut granted = Vec::with_capacity(urls.len());
        for urls in urls.chunks(FEEDS_AT_ONCE) {
            let mut call = plain_script!("claim_feeds.lua").key(CLAIMS);
            call.arg(claim.now.as_micros()).arg(claim.until.as_micros()).arg(claim.holder);
            let answer: Vec<i64> = self.link.run(call.arg(urls)).await?;
            granted.extend(answer.into_iter().map(|granted| granted == 1));
        }
        Ok(granted)
    }

    async fn keep(&self, url: &str, holder: &str, memory: &FeedMemory) -> Result<bool, StoreError> {
        let mut call = plain_script!("keep_feed.lua").key(CLAIMS);
        call.key(MEMORY).arg(url).arg(holder).arg(json(memory)?);
        self.link.run(&call).await
    }

    async fn release(&self, urls: &[&str], holder: &str) -> Result<(), StoreError> {
        for urls in urls.chunks(FEEDS_AT_ONCE) {
            let mut call = plain_script!("release_feeds.lua").key(CLAIMS);
            self.link.run::<()>(call.arg(holder).arg(urls)).await?;
        }
        Ok(())
    }

    async fn forget(&self, urls: &[&str]) -> Result<(), StoreError> {
        for urls in urls.chunks(FEEDS_AT_ONCE) {
            let mut both = Pipeline::new();
            both.atomic().hdel(MEMORY, urls).ignore().hdel(CLAIMS, urls).ignore();
            self.link.query_all::<()>(&both).await?;
        }
        Ok(())
    }
}

fn field(subscription: &Subscription) -> Result<String, StoreError> {
    json(&(&subscription.url, &subscription.category))
}

fn subscription(field: &str, details: &str) -> Result<Subscription, StoreError> {
    let damaged = |error: serde_json::Error| {
        StoreError::corrupt(format!("{SUBSCRIPTIONS} has an invalid field {field:?}"))
            .with_source(error)
    };
    let (url, category) = serde_json::from_str(field).map_err(damaged)?;
    let Details { interval_s, title } = serde_json::from_str(details).map_err(damaged)?;
    Ok(Subscription { category, url, interval: interval_s.map(Duration::from_secs), title })
}

fn json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|error| StoreError::bug("cannot encode a feed record").with_source(error))
}
