//! What the answers of stores and servers mean. Pure, so that every case can be shown.

use std::time::Duration;

use fetchwell_engine::adapters::kafka::{KafkaFacts, TopicFacts};
use fetchwell_engine::adapters::postgres::PostgresFacts;
use fetchwell_engine::adapters::rabbitmq::{QueueFacts, RabbitFacts};
use fetchwell_engine::adapters::redis::RedisFacts;
use fetchwell_engine::adapters::sqlite::SqliteFacts;
use fetchwell_policy::time::Time;

use super::finding::Finding;

/// Clocks that differ by less are as good as equal.
const MAX_SKEW: Duration = Duration::from_secs(2);

/// What a Redis server is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RedisUse {
    /// URLs, results or the pace of sites: none of it may get lost.
    Store,
    /// Pages, which can be fetched again.
    Cache,
}

/// A Redis server. Only what keeps what must not be lost needs to be careful.
pub(super) fn redis(check: &str, facts: &RedisFacts, used_as: RedisUse) -> Vec<Finding> {
    let mut findings = vec![Finding::ok(check, format!("Redis {} answers", facts.version))];
    if used_as == RedisUse::Cache {
        return findings;
    }
    if facts.eviction_policy != "noeviction" {
        let mend = "set maxmemory-policy noeviction in redis.conf, and: redis-cli CONFIG SET \
                    maxmemory-policy noeviction";
        let what = format!("maxmemory-policy is {}", facts.eviction_policy);
        let why =
            "when its memory is full it throws keys away: URLs are lost, and sites asked too early";
        findings.push(match facts.max_memory_bytes {
            0 => {
                Finding::warn(format!("{check}: eviction"), what + ", with no limit yet", why, mend)
            }
            _ => Finding::fail(format!("{check}: eviction"), what, why, mend),
        });
    }
    findings.extend(redis_durability(check, facts));
    findings
}

fn redis_durability(check: &str, facts: &RedisFacts) -> Option<Finding> {
    let (what, why) = match (facts.is_logged, facts.log_reaches_disk.as_deref()) {
        (true, Some("always") | None) => return None,
        (true, Some(when)) => (
            format!("appendfsync is {when}"),
            "what was accepted in the last moments before a power cut is lost",
        ),
        (false, _) => (
            "appendonly is no".to_owned(),
            "what was accepted since the last snapshot is lost when the server restarts",
        ),
    };
    let mend = "set appendonly yes and appendfsync always, where \"accepted\" is to mean that it is on the disk";
    Some(Finding::warn(format!("{check}: durability"), what, why, mend))
}

/// A PostgreSQL server.
pub(super) fn postgres(check: &str, facts: &PostgresFacts) -> Vec<Finding> {
    if facts.is_replica {
        return vec![Finding::fail(
            check,
            format!("PostgreSQL {} answers, and is a replica", facts.version),
            "nothing can be written to it",
            "name the primary server in the address",
        )];
    }
    let mut findings = vec![Finding::ok(check, format!("PostgreSQL {} answers", facts.version))];
    if !facts.is_durable {
        findings.push(Finding::warn(
            format!("{check}: durability"),
            "fsync or full_page_writes is off",
            "a power cut may damage the database, not only lose the last moments",
            "set fsync = on and full_page_writes = on in postgresql.conf",
        ));
    }
    findings
}

/// The file of an embedded store.
pub(super) fn sqlite(check: &str, path: &str, facts: &SqliteFacts) -> Finding {
    if let Some(first) = facts.damage.first() {
        return Finding::fail(
            check,
            format!("{path} is damaged: {first}"),
            "what stands on the damaged pages can't be read",
            format!("stop all processes on it, then: sqlite3 {path} .recover | sqlite3 mended.db"),
        );
    }
    if !facts.journal_mode.eq_ignore_ascii_case("wal") {
        return Finding::warn(
            check,
            format!("{path} is sound, and its journal mode is {}", facts.journal_mode),
            "those who read and those who write hold each other up",
            "open it once with this program, which sets it to wal; file systems over a network can't do that",
        );
    }
    Finding::ok(check, format!("{path} is sound (SQLite {}, wal)", facts.version))
}

/// A topic of a Kafka cluster.
pub(super) fn kafka(topic: &str, facts: &KafkaFacts) -> Finding {
    let brokers = facts.brokers;
    match facts.topic {
        None => Finding::warn(
            "kafka",
            format!("{brokers} brokers answer; there is no topic {topic} yet"),
            "\"pages\" makes it when it starts, with the cluster's defaults, if it may",
            format!(
                "make it with the partitions and replicas that you want: kafka-topics.sh --create --topic {topic}"
            ),
        ),
        Some(TopicFacts { leaderless, partitions, .. }) if leaderless > 0 => Finding::fail(
            "kafka",
            format!("{leaderless} of {partitions} partitions of {topic} have no leader"),
            "events for these can't be written, and their pages wait",
            "bring back the brokers that have them",
        ),
        Some(TopicFacts { least_replicas, .. }) if least_replicas < 2 && brokers > 1 => {
            Finding::warn(
                "kafka",
                format!("{topic} has partitions with one copy, though there are {brokers} brokers"),
                "what is confirmed is lost with the disk of one broker",
                "raise the topic's replication factor",
            )
        }
        Some(TopicFacts { partitions, .. }) => Finding::ok(
            "kafka",
            format!("{brokers} brokers answer; {topic} has {partitions} partitions"),
        ),
    }
}

/// A queue of a broker.
pub(super) fn rabbitmq(queue: &str, facts: &RabbitFacts) -> Finding {
    match facts.queue {
        None => Finding::ok(
            "rabbitmq",
            format!("answers; the queue {queue} is made when it is first used"),
        ),
        Some(QueueFacts { is_durable: false, waiting }) => Finding::warn(
            "rabbitmq",
            format!("the queue {queue} was declared transient; {waiting} batches wait in it"),
            "what waits in it is lost when the broker restarts",
            "when it is empty, delete it, and start \"commoncrawl\" before any other program",
        ),
        Some(QueueFacts { is_durable: true, waiting }) => {
            Finding::ok("rabbitmq", format!("the queue {queue} is durable; {waiting} batches wait"))
        }
    }
}

/// The clock of a server beside ours, which was read before and after.
pub(super) fn skew(check: &str, server: Time, before: Time, after: Time) -> Finding {
    let ahead = server.since(after);
    let behind = before.since(server);
    let (skew, word) = if ahead > behind { (ahead, "ahead") } else { (behind, "behind") };
    let check = format!("{check}: clock");
    if skew <= MAX_SKEW {
        return Finding::ok(check, "agrees with this machine's");
    }
    Finding::warn(
        check,
        format!("is {:.1} s {word} of this machine's", skew.as_secs_f64()),
        "the pace of sites goes by the server's clock alone; but what callers are told, deadlines and \
         Retry-After dates go by this one",
        "let both machines set their clocks by NTP",
    )
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

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
            assert_eq!(verdicts(&redis("store", facts, RedisUse::Store)), expected, "{facts:?}");
            assert_eq!(verdicts(&redis("cache", facts, RedisUse::Cache)), [Ok], "{facts:?}");
        }
    }

    #[test]
    fn a_clock_is_judged_by_what_it_may_have_shown_while_we_asked() {
        let at = Time::from_secs;
        for (server_s, expected) in [
            (100, Verdict::Ok),
            (105, Verdict::Ok),
            (112, Verdict::Ok),
            (113, Verdict::Warn),
            (98, Verdict::Ok),
            (97, Verdict::Warn),
        ] {
            let finding = skew("store", at(server_s), at(100), at(110));
            assert_eq!(finding.verdict, expected, "{server_s}: {finding:?}");
        }
    }

    #[test]
    fn what_is_declared_so_that_it_may_get_lost_is_told() {
        let queue = |is_durable| RabbitFacts { queue: Some(QueueFacts { is_durable, waiting: 3 }) };
        assert_eq!(rabbitmq("q", &queue(true)).verdict, Verdict::Ok);
        assert_eq!(rabbitmq("q", &queue(false)).verdict, Verdict::Warn);
        assert_eq!(rabbitmq("q", &RabbitFacts { queue: None }).verdict, Verdict::Ok);
        let topic = |brokers, least_replicas, leaderless| KafkaFacts {
            brokers,
            topic: Some(TopicFacts { partitions: 4, least_replicas, leaderless }),
        };
        assert_eq!(kafka("t", &topic(1, 1, 0)).verdict, Verdict::Ok);
        assert_eq!(kafka("t", &topic(3, 1, 0)).verdict, Verdict::Warn);
        assert_eq!(kafka("t", &topic(3, 3, 0)).verdict, Verdict::Ok);
        assert_eq!(kafka("t", &topic(3, 3, 1)).verdict, Verdict::Fail);
        assert_eq!(kafka("t", &KafkaFacts { brokers: 1, topic: None }).verdict, Verdict::Warn);
    }
}
