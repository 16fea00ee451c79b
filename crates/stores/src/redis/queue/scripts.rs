//! Runs the scripts. Each is one change, and declares all the keys of the queue.

use fetchwell_engine::ports::error::StoreError;
use redis::{FromRedisValue, Script, ToRedisArgs};
use serde::Serialize;

use super::names::QueueNames;
use crate::StoreClock;
use crate::redis::link::RedisConnection;

/// The server that runs the scripts of one queue.
pub(super) struct Scripts {
    link: RedisConnection,
    keys: Vec<String>,
    pub(super) clock: StoreClock,
}

impl Scripts {
    pub(super) fn new(link: RedisConnection, names: &QueueNames, clock: StoreClock) -> Scripts {
        Scripts { link, keys: names.keys(), clock }
    }

    /// Writes a value unless there is one, and returns the stored one. Needs no script: SETNX decides atomically who is
    /// first.
    pub(super) async fn settle_on(&self, key: &str, value: &str) -> Result<String, StoreError> {
        let mut both = redis::pipe();
        both.cmd("SETNX").arg(key).arg(value).ignore().cmd("GET").arg(key);
        let (there,): (Option<String>,) = self.link.query_all(&both).await?;
        Ok(there.unwrap_or_else(|| value.to_owned()))
    }

    pub(super) async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        asked: &impl Serialize,
    ) -> Result<T, StoreError> {
        self.run_with(script, asked, None::<&str>).await
    }

    /// Runs a script with additional arguments, each of which may be any bytes.
    pub(super) async fn run_with<T: FromRedisValue>(
        &self,
        script: &Script,
        asked: &impl Serialize,
        more: impl ToRedisArgs,
    ) -> Result<T, StoreError> {
        let asked = serde_json::to_string(asked)
            .map_err(|error| StoreError::bug("cannot encode a request").with_source(error))?;
        let now = self.clock.given().map_or_else(String::new, |micros| micros.to_string());
        let mut call = script.prepare_invoke();
        call.key(&self.keys).arg(now).arg(asked).arg(more);
        self.link.run(&call).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Vec<(String, String)> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/redis/queue");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let scripts = files.filter(|path| path.extension().is_some_and(|end| end == "lua"));
        let read = |path: std::path::PathBuf| {
            (path.display().to_string(), std::fs::read_to_string(&path).unwrap())
        };
        scripts.map(read).collect()
    }

    /// The names that the prelude gives to the keys.
    fn key_names() -> Vec<String> {
        let prelude = include_str!("prelude.lua");
        let names =
            prelude.split_once("local LIST").unwrap().1.split_once("= unpack(KEYS)").unwrap();
        format!("LIST{}", names.0).split(',').map(|name| name.trim().to_owned()).collect()
    }

    #[test]
    fn every_key_has_a_name_in_the_scripts() {
        let names = QueueNames { input: "in".to_owned(), dead_letters: "dlq".to_owned() };
        assert_eq!(key_names().len(), names.keys().len());
    }

    /// Redis would let a script touch any key on a single server.
    #[test]
    fn scripts_touch_only_keys_that_were_named() {
        let names = key_names();
        let mut calls = 0;
        for (file, source) in sources() {
            assert!(!source.contains("pcall('") && !source.contains("KEYS["), "{file}");
            for call in source.split("redis.call(").skip(1) {
                let mut words = call.split([',', ')']).map(str::trim);
                let command = words.next().unwrap();
                let key = words.next().unwrap_or_default();
                let is_named = names.iter().any(|name| name == key);
                assert!(command == "'TIME'" || is_named, "{file}: {command} {key}");
                calls += 1;
            }
        }
        assert!(calls > 50, "{calls} calls were found");
    }
}
