//! What a Redis server says of itself, for those who look after it. Nothing is changed.

use fetchwell_engine::ports::error::StoreError;
use fetchwell_policy::time::Time;

use super::link::{Link, field};

/// What a server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedisFacts {
    /// Its version.
    pub version: String,
    /// What it does when its memory is full.
    pub eviction_policy: String,
    /// How much memory it may use; 0: any.
    pub max_memory_bytes: u64,
    /// Whether it logs its changes.
    pub is_logged: bool,
    /// When those reach the disk; `None`: it does not tell us.
    pub log_reaches_disk: Option<String>,
    /// What its clock shows.
    pub now: Time,
}

/// Connects and asks. A server that can't be used at all is a fault.
pub async fn examine(url: &str) -> Result<RedisFacts, StoreError> {
    let link = Link::open(url).await?;
    let mut connection = link.standing().await?.connection;
    let info: redis::RedisResult<String> = redis::cmd("INFO").query_async(&mut connection).await;
    let info = match info {
        Ok(info) => info,
        Err(error) => return Err(link.fault(error).await),
    };
    let time: redis::RedisResult<(i64, i64)> =
        redis::cmd("TIME").query_async(&mut connection).await;
    let (seconds, micros) = match time {
        Ok(time) => time,
        Err(error) => return Err(link.fault(error).await),
    };
    // Where others run the server, asking for its configuration is often not allowed.
    let fsync: redis::RedisResult<(String, String)> =
        redis::cmd("CONFIG").arg("GET").arg("appendfsync").query_async(&mut connection).await;
    let value = |name: &str| field(&info, name).unwrap_or_default();
    Ok(RedisFacts {
        version: value("redis_version").to_owned(),
        eviction_policy: value("maxmemory_policy").to_owned(),
        max_memory_bytes: value("maxmemory").parse().unwrap_or(0),
        is_logged: value("aof_enabled") == "1",
        log_reaches_disk: fsync.ok().map(|(_, when)| when),
        now: Time::from_micros(seconds.saturating_mul(1_000_000).saturating_add(micros)),
    })
}
