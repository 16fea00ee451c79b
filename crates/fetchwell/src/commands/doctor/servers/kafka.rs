//! Checks a Kafka topic.

use fetchwell_settings::Settings;
use fetchwell_stores::finding::Finding;
use fetchwell_stores::kafka::{self, KafkaFacts, TopicFacts};

use super::unreachable;

pub(super) async fn examine(settings: &Settings) -> Option<Finding> {
    let servers = settings.values.pages_kafka_bootstrap_servers.as_ref()?;
    let topic = &settings.values.pages_webpage_log_topic;
    Some(match kafka::examine(servers, topic).await {
        Ok(facts) => judge(topic, &facts),
        Err(fault) => unreachable("kafka", &fault),
    })
}

fn judge(topic: &str, facts: &KafkaFacts) -> Finding {
    let brokers = facts.brokers;
    match facts.topic {
        None => Finding::warn(
            "kafka",
            format!("{brokers} brokers answer; there is no topic {topic} yet"),
            "\"pages\" creates it at startup with the cluster's defaults, if it is allowed to",
            format!(
                "create it with the partitions and replicas that you want: kafka-topics.sh \
                 --create --topic {topic}"
            ),
        ),
        Some(TopicFacts { leaderless, partitions, .. }) if leaderless > 0 => Finding::fail(
            "kafka",
            format!("{leaderless} of {partitions} partitions of {topic} have no leader"),
            "events for these partitions cannot be written, and their pages wait",
            "restart the brokers that host them",
        ),
        Some(TopicFacts { least_replicas, .. }) if least_replicas < 2 && brokers > 1 => {
            Finding::warn(
                "kafka",
                format!("{topic} has partitions with one copy, though there are {brokers} brokers"),
                "confirmed events are lost if one broker loses its disk",
                "raise the topic's replication factor",
            )
        }
        Some(TopicFacts { partitions, .. }) => Finding::ok(
            "kafka",
            format!("{brokers} brokers answer; {topic} has {partitions} partitions"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_stores::finding::Verdict;

    use super::*;

    #[test]
    fn partitions_that_may_get_lost_are_told() {
        let topic = |brokers, least_replicas, leaderless| KafkaFacts {
            brokers,
            topic: Some(TopicFacts { partitions: 4, least_replicas, leaderless }),
        };
        assert_eq!(judge("t", &topic(1, 1, 0)).verdict, Verdict::Ok);
        assert_eq!(judge("t", &topic(3, 1, 0)).verdict, Verdict::Warn);
        assert_eq!(judge("t", &topic(3, 3, 0)).verdict, Verdict::Ok);
        assert_eq!(judge("t", &topic(3, 3, 1)).verdict, Verdict::Fail);
        assert_eq!(judge("t", &KafkaFacts { brokers: 1, topic: None }).verdict, Verdict::Warn);
    }
}
