//! Diagnostic facts about a Kafka cluster and a topic. Read-only.

use fetchwell_engine::ports::error::StoreError;
use rdkafka::producer::Producer as _;

use super::place::TopicAddress;
use super::producer::{Producer, connect};
use super::topic::ANSWER_WITHIN;

/// Facts about a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaFacts {
    /// The number of brokers.
    pub brokers: usize,
    /// `None` if the topic does not exist.
    pub topic: Option<TopicFacts>,
}

/// Facts about a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicFacts {
    /// The number of partitions.
    pub partitions: usize,
    /// The replica count of the partition with the fewest replicas.
    pub least_replicas: usize,
    /// The number of partitions without a leader, which cannot be written to.
    pub leaderless: usize,
}

/// Connects and collects the facts. Requests the metadata of the whole cluster, because a request for one topic may
/// create it.
pub async fn examine(servers: &str, topic: &str) -> Result<KafkaFacts, StoreError> {
    let place = TopicAddress { servers: servers.to_owned(), topic: topic.to_owned() };
    let asked = tokio::task::spawn_blocking(move || look(&place)).await;
    asked
        .map_err(|error| StoreError::bug("the query to Kafka did not finish").with_source(error))?
}

fn look(place: &TopicAddress) -> Result<KafkaFacts, StoreError> {
    let producer: Producer = connect(place)?;
    let metadata = producer.client().fetch_metadata(None, ANSWER_WITHIN);
    let metadata = metadata.map_err(|error| place.fault(error))?;
    let found = metadata.topics().iter().find(|found| found.name() == place.topic);
    let topic = found.map(|found| {
        let partitions = found.partitions();
        let copies = partitions.iter().map(|partition| partition.replicas().len());
        TopicFacts {
            partitions: partitions.len(),
            least_replicas: copies.min().unwrap_or(0),
            leaderless: partitions.iter().filter(|partition| partition.leader() < 0).count(),
        }
    });
    Ok(KafkaFacts { brokers: metadata.brokers().len(), topic })
}
