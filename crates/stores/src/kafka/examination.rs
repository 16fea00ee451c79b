//! What a Kafka cluster says of itself and of a topic, for those who look after it. Nothing is changed.

use fetchwell_engine::ports::error::StoreError;
use rdkafka::producer::Producer as _;

use super::place::Place;
use super::producer::{Producer, connect};
use super::topic::ANSWER_WITHIN;

/// What a cluster says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaFacts {
    /// How many brokers there are.
    pub brokers: usize,
    /// The topic; `None`: there is none of that name.
    pub topic: Option<TopicFacts>,
}

/// What it says of the topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicFacts {
    /// How many partitions it has.
    pub partitions: usize,
    /// Copies of the partition that has the fewest.
    pub least_replicas: usize,
    /// Partitions that nobody leads now: nothing can be written to those.
    pub leaderless: usize,
}

/// Connects and asks. The whole cluster is asked for: asking for one topic may make it.
pub async fn examine(servers: &str, topic: &str) -> Result<KafkaFacts, StoreError> {
    let place = Place { servers: servers.to_owned(), topic: topic.to_owned() };
    let asked = tokio::task::spawn_blocking(move || look(&place)).await;
    asked
        .map_err(|error| StoreError::bug("the query to Kafka did not finish").with_source(error))?
}

fn look(place: &Place) -> Result<KafkaFacts, StoreError> {
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
