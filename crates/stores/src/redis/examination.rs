//! Diagnostic facts about a Redis server. Read-only.

use fetchwell_engine::ports::error::StoreError;
use fetchwell_policy::time::Time;

use super::link::{RedisConnection, field};
use crate::finding::{Finding, StoreUse};

/// Facts about a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedisFacts {
    /// The version of the server.
    pub version: String,
    /// The eviction policy for when its memory is full.
    pub eviction_policy: String,
    /// The memory limit; 0 if there is none.
    pub max_memory_bytes: u64,
    /// Whether it writes an append-only file.
    pub is_logged: bool,
    /// The `appendfsync` policy; `None` if the server does not disclose it.
    pub log_reaches_disk: Option<String>,
    /// The time on its clock.
    pub now: Time,
}

impl RedisFacts {
    /// A cache needs no checks of eviction and durability: its pages can be fetched again.
    pub(crate) fn judge(&self, check: &str, used_as: StoreUse) -> Vec<Finding> {
        let mut findings = vec![Finding::ok(check, format!("Redis {} answers", self.version))];
        if used_as == StoreUse::Cache {
            return findings;
        }
        if self.eviction_policy != "noeviction" {
            let mend = "set maxmemory-policy noeviction in redis.conf, and run: redis-cli CONFIG \
                        SET maxmemory-policy noeviction";
            let what = format!("maxmemory-policy is {}", self.eviction_policy);
            let why = "when its memory is full, it evicts keys: URLs are lost, and sites get \
                       requests too early";
            let check = format!("{check}: eviction");
            findings.push(match self.max_memory_bytes {
                0 => Finding::warn(check, what + ", but no maxmemory is set", why, mend),
                _ => Finding::fail(check, what, why, mend),
            });
        }
        findings.extend(self.durability(check));
        findings
    }

    fn durability(&self, check: &str) -> Option<Finding> {
        let (what, why) = match (self.is_logged, self.log_reaches_disk.as_deref()) {
            (true, Some("always") | None) => return None,
            (true, Some(when)) => (
                format!("appendfsync is {when}"),
                "URLs accepted just before a power failure are lost",
            ),
            (false, _) => (
                "appendonly is no".to_owned(),
                "URLs accepted since the last snapshot are lost when the server restarts",
            ),
        };
        let mend = "set appendonly yes and appendfsync always, if accepted URLs must be on disk";
        Some(Finding::warn(format!("{check}: durability"), what, why, mend))
    }
}

/// Connects and collects the facts. Fails if the server cannot be used at all.
pub async fn examine(url: &str) -> Result<RedisFacts, StoreError> {
    let link = RedisConnection::open(url).await?;
    let info: String = link.query(&redis::cmd("INFO")).await?;
    let now = link.server_time().await?;
    // Hosted servers often do not allow reading their configuration.
    let fsync: Result<(String, String), _> =
        link.query(redis::cmd("CONFIG").arg("GET").arg("appendfsync")).await;
    let value = |name: &str| field(&info, name).unwrap_or_default();
    Ok(RedisFacts {
        version: value("redis_version").to_owned(),
        eviction_policy: value("maxmemory_policy").to_owned(),
        max_memory_bytes: value("maxmemory").parse().unwrap_or(0),
        is_logged: value("aof_enabled") == "1",
        log_reaches_disk: fsync.ok().map(|(_, when)| when),
        now,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Verdict;

    fn verdicts(findings: &[Finding]) -> Vec<Verdict> {
        findings.iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn redis_must_not_evict_what_must_not_be_lost() {
        use Verdict::{Fail, Ok, Warn};
        let careful = RedisFacts {
            eviction_policy: "noeviction".to_owned(),
            is_logged: true,
            log_reaches_disk: Some("always".to_owned()),
            ..RedisFacts::default()
        };
        let evicting = RedisFacts { eviction_policy: "allkeys-lru".to_owned(), ..careful.clone() };
        let full = RedisFacts { max_memory_bytes: 1, ..evicting.clone() };
        let hasty = RedisFacts { log_reaches_disk: Some("everysec".to_owned()), ..careful.clone() };
        let forgetful = RedisFacts { is_logged: false, ..careful.clone() };
        let secretive = RedisFacts { log_reaches_disk: None, ..careful.clone() };
        for (facts, expected) in [
            (&careful, vec![Ok]),
            (&evicting, vec![Ok, Warn]),
            (&full, vec![Ok, Fail]),
            (&hasty, vec![Ok, Warn]),
            (&forgetful, vec![Ok, Warn]),
            (&secretive, vec![Ok]),
        ] {
            assert_eq!(verdicts(&facts.judge("store", StoreUse::Store)), expected, "{facts:?}");
            assert_eq!(verdicts(&facts.judge("cache", StoreUse::Cache)), [Ok], "{facts:?}");
        }
    }
}
