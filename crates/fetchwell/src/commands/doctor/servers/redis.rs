//! Checks a Redis server.

use fetchwell_stores::redis::RedisFacts;

use super::StoreUse;
use crate::commands::doctor::finding::Finding;

/// A cache needs no checks of eviction and durability: its pages can be fetched again.
pub(super) fn judge(check: &str, facts: &RedisFacts, used_as: StoreUse) -> Vec<Finding> {
    let mut findings = vec![Finding::ok(check, format!("Redis {} answers", facts.version))];
    if used_as == StoreUse::Cache {
        return findings;
    }
    if facts.eviction_policy != "noeviction" {
        let mend = "set maxmemory-policy noeviction in redis.conf, and run: redis-cli CONFIG SET \
                    maxmemory-policy noeviction";
        let what = format!("maxmemory-policy is {}", facts.eviction_policy);
        let why = "when its memory is full, it evicts keys: URLs are lost, and sites get requests \
                   too early";
        findings.push(match facts.max_memory_bytes {
            0 => Finding::warn(
                format!("{check}: eviction"),
                what + ", but no maxmemory is set",
                why,
                mend,
            ),
            _ => Finding::fail(format!("{check}: eviction"), what, why, mend),
        });
    }
    findings.extend(redis_durability(check, facts));
    findings
}

fn redis_durability(check: &str, facts: &RedisFacts) -> Option<Finding> {
    let (what, why) = match (facts.is_logged, facts.log_reaches_disk.as_deref()) {
        (true, Some("always") | None) => return None,
        (true, Some(when)) => {
            (format!("appendfsync is {when}"), "URLs accepted just before a power failure are lost")
        }
        (false, _) => (
            "appendonly is no".to_owned(),
            "URLs accepted since the last snapshot are lost when the server restarts",
        ),
    };
    let mend = "set appendonly yes and appendfsync always, if accepted URLs must be on disk";
    Some(Finding::warn(format!("{check}: durability"), what, why, mend))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Verdict;

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
            assert_eq!(verdicts(&judge("store", facts, StoreUse::Store)), expected, "{facts:?}");
            assert_eq!(verdicts(&judge("cache", facts, StoreUse::Cache)), [Ok], "{facts:?}");
        }
    }
}
