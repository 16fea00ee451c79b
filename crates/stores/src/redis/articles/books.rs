//! The bookkeeping of runs: which links are pending, and which were fetched.

use fetchwell_engine::ports::articles::{
    ARTICLE_TTL, ATTEMPTED_FOR, ArticleResult, RUNS_UNTIL_ATTEMPTED, SITE_FAILURES_TTL,
};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_policy::time::Time;
use redis::{Cmd, FromRedisValue, Script, ScriptInvocation};

use super::{RedisArticles, names};

pub(super) struct Scripts {
    pending: Script,
    keep: Script,
    pub(super) forget: Script,
    pub(super) first_sight: Script,
    pub(super) drop_expired: Script,
}

macro_rules! script {
    ($file:literal) => {
        Script::new(concat!(include_str!("prelude.lua"), include_str!($file)))
    };
}

impl Default for Scripts {
    fn default() -> Scripts {
        Scripts {
            pending: script!("pending.lua"),
            keep: script!("keep.lua"),
            forget: script!("forget.lua"),
            first_sight: script!("first_sight.lua"),
            drop_expired: script!("drop_expired.lua"),
        }
    }
}

impl RedisArticles {
    /// The time on the server's clock.
    pub(super) async fn server_time(&self) -> Result<Time, StoreError> {
        let (secs, micros): (i64, i64) = self.ask(&redis::cmd("TIME")).await?;
        Ok(Time::from_micros(secs.saturating_mul(1_000_000).saturating_add(micros)))
    }

    pub(super) async fn ask_pending(
        &self,
        uids: &[String],
        run: Time,
    ) -> Result<Vec<bool>, StoreError> {
        let mut call = self.call(&self.scripts.pending);
        call.arg(run.as_micros());
        for uid in uids {
            call.key(names::article(uid)).key(names::site_failures(uid)).arg(uid);
        }
        self.run(&call).await
    }

    pub(super) async fn keep_one(
        &self,
        article_result: &ArticleResult,
        run: Time,
    ) -> Result<(), StoreError> {
        let ArticleResult { uid, categories, fetched_ts, fields, failure } = article_result;
        let mut call = self.call(&self.scripts.keep);
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
        self.run(&call).await
    }

    /// Prepares a script with the keys and arguments that all of them share.
    pub(super) fn call<'a>(&self, script: &'a Script) -> ScriptInvocation<'a> {
        let now = self.clock.given().map_or_else(String::new, |micros| micros.to_string());
        let mut call = script.prepare_invoke();
        call.key(names::ATTEMPTED).key(names::ATTEMPTED_AT);
        call.arg(now).arg(ATTEMPTED_FOR.as_secs());
        call
    }

    pub(super) async fn run<T: FromRedisValue>(
        &self,
        call: &ScriptInvocation<'_>,
    ) -> Result<T, StoreError> {
        let mut connection = self.link.standing().await?.connection;
        match call.invoke_async(&mut connection).await {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.link.fault(error).await),
        }
    }

    pub(super) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        let mut connection = self.link.standing().await?.connection;
        match command.query_async(&mut connection).await {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.link.fault(error).await),
        }
    }
}
