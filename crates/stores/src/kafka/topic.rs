//! Makes sure that a topic exists.

use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::metadata::MetadataTopic;
use rdkafka::producer::Producer as _;
use tracing::info;

use super::errors::kind_of_code;
use super::place::TopicAddress;
use super::producer::{Producer, Words, connect};

/// A cluster that does not answer within this time counts as unreachable.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// The cluster's default for the number of partitions and replicas.
const CLUSTER_DEFAULT: i32 = -1;

/// Creates the topic unless it exists.
pub(super) async fn ensure(place: &TopicAddress, producer: &Producer) -> Result<(), StoreError> {
    if !is_there(place, producer).await? {
        create(place).await?;
        info!("{place} did not exist: created it with the cluster's defaults");
    }
    Ok(())
}

/// Fails unless the topic exists.
pub(super) async fn check(place: &TopicAddress, producer: &Producer) -> Result<(), StoreError> {
    if is_there(place, producer).await? {
        return Ok(());
    }
    Err(place.fault(KafkaError::MetadataFetch(RDKafkaErrorCode::UnknownTopicOrPartition)))
}

async fn is_there(place: &TopicAddress, producer: &Producer) -> Result<bool, StoreError> {
    let producer = producer.clone();
    let topic = place.topic.clone();
    let looked = tokio::task::spawn_blocking(move || look(&producer, &topic)).await;
    let looked = looked.map_err(|error| {
        StoreError::bug(format!("{place}: the lookup of the topic did not finish"))
            .with_source(error)
    })?;
    looked.map_err(|error| place.fault(error))
}

fn look(producer: &Producer, topic: &str) -> KafkaResult<bool> {
    let metadata = producer.client().fetch_metadata(Some(topic), ANSWER_WITHIN)?;
    let found = metadata.topics().iter().find(|found| found.name() == topic);
    let Some(error) = found.and_then(MetadataTopic::error) else {
        return Ok(found.is_some_and(|found| !found.partitions().is_empty()));
    };
    match RDKafkaErrorCode::from(error) {
        RDKafkaErrorCode::UnknownTopicOrPartition => Ok(false),
        // The topic is being created, perhaps because of our request.
        RDKafkaErrorCode::LeaderNotAvailable => Ok(true),
        code => Err(KafkaError::MetadataFetch(code)),
    }
}

async fn create(place: &TopicAddress) -> Result<(), StoreError> {
    let admin: AdminClient<Words> = connect(place)?;
    let replicas = TopicReplication::Fixed(CLUSTER_DEFAULT);
    let topic = NewTopic::new(&place.topic, CLUSTER_DEFAULT, replicas);
    let options = AdminOptions::new()
        .request_timeout(Some(ANSWER_WITHIN))
        .operation_timeout(Some(ANSWER_WITHIN));
    let created = admin.create_topics([&topic], &options).await;
    match created.map_err(|error| place.fault(error))?.pop() {
        Some(Err((_, RDKafkaErrorCode::TopicAlreadyExists))) | Some(Ok(_)) | None => Ok(()),
        Some(Err((_, code))) => {
            let context = format!("{place} does not exist and cannot be created");
            let advice = format!("create it: {}", place.how_to_make_it());
            Err(StoreError::new(kind_of_code(code), context).with_source(code).with_advice(advice))
        }
    }
}
