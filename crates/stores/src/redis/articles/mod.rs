//! Articles on Redis. Each change is one script, which uses the server's clock and declares all its keys.

mod names;
mod reading;
mod trimming;

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::articles::{
    ARTICLE_TTL, ATTEMPTED_FOR, ArticleResult, Articles, Counts, Fields, RUNS_UNTIL_ATTEMPTED,
    SITE_FAILURES_TTL, Wanted,
};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_policy::time::Time;
use redis::{Script, ScriptInvocation};

use super::link::RedisConnection;
use crate::StoreClock;
use reading::readable;

/// Long enough to transfer the longest article.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Links per script call. A script blocks all other clients.
const LINKS_AT_ONCE: usize = 500;

/// Articles on a Redis server.
pub struct RedisArticles {
    link: RedisConnection,
    clock: StoreClock,
}

impl RedisArticles {
    /// Connects to the server.
    pub async fn open(url: &str, clock: StoreClock) -> Result<RedisArticles, StoreError> {
        let link = RedisConnection::open_patiently(url, ANSWER_WITHIN).await?;
        Ok(RedisArticles { link, clock })
    }

    /// Prepares a script with the keys and arguments that all of them share.
    fn call<'a>(&self, script: &'a Script) -> ScriptInvocation<'a> {
        let now = self.clock.given().map_or_else(String::new, |micros| micros.to_string());
        let mut call = script.prepare_invoke();
        call.key(names::ATTEMPTED).key(names::ATTEMPTED_AT);
        call.arg(now).arg(ATTEMPTED_FOR.as_secs());
        call
    }

    async fn keep_one(&self, article_result: &ArticleResult, run: Time) -> Result<(), StoreError> {
        let ArticleResult { uid, categories, fetched_ts, fields, failure } = article_result;
        let mut call = self.call(script!("keep.lua"));
        call.key(names::INDEX).key(names::FAILURES);
        call.key(names::article(uid)).key(names::site_failures(uid));
        for category in categories {
            call.key(names::category(category));
        }
        call.arg(run.as_micros()).arg(uid).arg(fetched_ts);
        call.arg(failure.as_ref().map_or("", |failure| failure.code));
        call.arg(u8::from(failure.as_ref().is_some_and(|failure| failure.is_of_site)));
        call.arg(ARTICLE_TTL.as_secs()).arg(SITE_FAILURES_TTL.as_secs()).arg(RUNS_UNTIL_ATTEMPTED);
        for (name, value) in fields {
            call.arg(name).arg(value);
        }
        self.link.run(&call).await
    }
}

#[async_trait]
impl Articles for RedisArticles {
    async fn now(&self) -> Result<Time, StoreError> {
        match self.clock.given() {
            Some(micros) => Ok(Time::from_micros(micros)),
            None => self.link.server_time().await,
        }
    }

    async fn pending(&self, uids: &[String], run: Time) -> Result<Vec<bool>, StoreError> {
        let mut pending = Vec::with_capacity(uids.len());
        for uids in uids.chunks(LINKS_AT_ONCE) {
            let mut call = self.call(script!("pending.lua"));
            call.arg(run.as_micros());
            for uid in uids {
                call.key(names::article(uid)).key(names::site_failures(uid)).arg(uid);
            }
            pending.extend(self.link.run::<Vec<bool>>(&call).await?);
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
        let fields = self.link.query(redis::cmd("HGETALL").arg(names::article(uid))).await?;
        Ok(Some(readable(fields)).filter(|fields| !fields.is_empty()))
    }

    async fn list(&self, wanted: &Wanted) -> Result<Vec<Fields>, StoreError> {
        self.read_newest(wanted).await
    }

    async fn count(&self) -> Result<Counts, StoreError> {
        self.count_all().await
    }
}
