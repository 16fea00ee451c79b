//! Articles on Redis. Each change is one script, which uses the server's clock and declares all its keys.

mod books;
mod names;
mod reading;
mod trimming;

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::articles::{ArticleResult, Articles, Counts, Fields, Wanted};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_policy::time::Time;

use super::link::RedisConnection;
use crate::StoreClock;
use books::Scripts;
use reading::readable;

/// Long enough to transfer the longest article.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Links per script call. A script blocks all other clients.
const LINKS_AT_ONCE: usize = 500;

/// Articles on a Redis server.
pub struct RedisArticles {
    link: RedisConnection,
    clock: StoreClock,
    scripts: Scripts,
}

impl RedisArticles {
    /// Connects to the server.
    pub async fn open(url: &str, clock: StoreClock) -> Result<RedisArticles, StoreError> {
        let link = RedisConnection::open_patiently(url, ANSWER_WITHIN).await?;
        Ok(RedisArticles { link, clock, scripts: Scripts::default() })
    }
}

#[async_trait]
impl Articles for RedisArticles {
    async fn now(&self) -> Result<Time, StoreError> {
        match self.clock.given() {
            Some(micros) => Ok(Time::from_micros(micros)),
            None => self.server_time().await,
        }
    }

    async fn pending(&self, uids: &[String], run: Time) -> Result<Vec<bool>, StoreError> {
        let mut pending = Vec::with_capacity(uids.len());
        for uids in uids.chunks(LINKS_AT_ONCE) {
            pending.extend(self.ask_pending(uids, run).await?);
        }
        Ok(pending)
    }

    async fn keep(&self, article_results: &[&ArticleResult], run: Time) -> Result<(), StoreError> {
        // All are sent at once, each as a separate change.
        let moves = article_results.iter().map(|article_result| self.keep_one(article_result, run));
        futures::future::try_join_all(moves).await.map(|_| ())
    }

    async fn trim(&self) -> Result<(), StoreError> {
        self.forget_attempts().await?;
        self.time_the_untimed().await?;
        self.trim_index().await?;
        self.trim_categories().await
    }

    async fn find(&self, uid: &str) -> Result<Option<Fields>, StoreError> {
        let fields = self.ask(redis::cmd("HGETALL").arg(names::article(uid))).await?;
        Ok(Some(readable(fields)).filter(|fields| !fields.is_empty()))
    }

    async fn list(&self, wanted: &Wanted) -> Result<Vec<Fields>, StoreError> {
        self.read_newest(wanted).await
    }

    async fn count(&self) -> Result<Counts, StoreError> {
        self.count_all().await
    }
}
