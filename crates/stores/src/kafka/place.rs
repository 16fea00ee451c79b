//! A topic of a cluster, for connecting and for error messages.

use std::fmt;

use fetchwell_engine::ports::event_log::LogEvent;
use rdkafka::error::KafkaError;

#[derive(Clone)]
pub(super) struct TopicAddress {
    pub(super) servers: String,
    pub(super) topic: String,
}

impl fmt::Display for TopicAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kafka's topic {} at {}", self.topic, self.servers)
    }
}

impl TopicAddress {
    /// The command that creates the topic.
    pub(super) fn how_to_make_it(&self) -> String {
        let TopicAddress { servers, topic } = self;
        format!("kafka-topics.sh --bootstrap-server {servers} --create --topic {topic}")
    }

    /// Why an event was refused for good.
    pub(super) fn refusal(&self, event: &LogEvent, error: &KafkaError) -> String {
        let reason =
            error.rdkafka_error_code().map_or_else(|| error.to_string(), |c| c.to_string());
        format!("{self} refused its event of {} bytes: {reason}", event.value.len())
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::error::RDKafkaErrorCode;

    use super::*;

    #[test]
    fn a_fault_names_servers_and_topic_and_says_what_to_do() {
        use RDKafkaErrorCode as Code;
        let place =
            TopicAddress { servers: "k1:9092,k2:9092".to_owned(), topic: "pages".to_owned() };
        for (code, advice) in [
            (Code::MessageTimedOut, "within 10 s; check that the servers run"),
            (Code::AllBrokersDown, "check that the servers run"),
            (Code::BrokerTransportFailure, "check that the servers run"),
            (
                Code::UnknownTopicOrPartition,
                "--bootstrap-server k1:9092,k2:9092 --create --topic pages",
            ),
            (Code::TopicAuthorizationFailed, "allow this program to write to the topic"),
            (Code::NotEnoughReplicas, "Not enough in-sync replicas"),
        ] {
            let fault = place.fault(KafkaError::MessageProduction(code)).to_string();
            assert!(fault.contains("topic pages at k1:9092,k2:9092"), "{fault}");
            assert!(fault.contains(advice), "{fault}");
        }
    }
}
