//! Kafka, for the suites: a new topic on the cluster that an environment variable names.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fetchwell_engine::ports::event_log::{EventLog, LogEvent};
use fetchwell_stores::kafka::{ID_HEADER, KafkaLog};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::{Headers, Message};
use rdkafka::metadata::MetadataPartition;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use tokio::sync::OnceCell;

use super::events::EventStore;
use super::servers::{server_url, unique};
use crate::DEADLINE;

/// More than one, so that the partition of a key matters.
const PARTITIONS: i32 = 3;

/// A new topic on the cluster that `FETCHWELL_TEST_KAFKA_BOOTSTRAP` names.
pub struct KafkaStore {
    servers: String,
    topic: String,
    is_made: OnceCell<()>,
}

impl KafkaStore {
    /// `None` if no cluster is named; the skip is reported.
    pub fn if_there() -> Option<KafkaStore> {
        Some(KafkaStore::on(server_url("FETCHWELL_TEST_KAFKA_BOOTSTRAP")?))
    }

    /// A topic that no test has used yet.
    pub fn on(servers: String) -> KafkaStore {
        let topic = unused_topic();
        KafkaStore { servers, topic, is_made: OnceCell::new() }
    }

    async fn make(&self) {
        let topic = NewTopic::new(&self.topic, PARTITIONS, TopicReplication::Fixed(1));
        create_topic(&self.servers, &topic).await;
    }
}

#[async_trait]
impl EventStore for KafkaStore {
    async fn open(&self) -> Arc<dyn EventLog> {
        self.is_made.get_or_init(|| self.make()).await;
        Arc::new(KafkaLog::open(&self.servers, &self.topic).await.expect("the cluster answers"))
    }

    async fn read(&self) -> Vec<LogEvent> {
        read_topic(&self.servers, &self.topic).await
    }
}

/// A name that no other test uses.
pub fn unused_topic() -> String {
    format!("fetchwell_test_{:016x}", unique())
}

pub async fn create_topic(servers: &str, topic: &NewTopic<'_>) {
    let admin: AdminClient<DefaultClientContext> = config(servers).create().expect("an address");
    let options = AdminOptions::new().operation_timeout(Some(DEADLINE));
    let created = admin.create_topics([topic], &options).await.expect("the cluster answers");
    assert!(created.iter().all(Result::is_ok), "{created:?}");
}

/// All events of a topic, partition by partition.
pub async fn read_topic(servers: &str, topic: &str) -> Vec<LogEvent> {
    let config = config(servers);
    let topic = topic.to_owned();
    let read = tokio::task::spawn_blocking(move || read_to_the_end(&config, &topic)).await;
    read.expect("the reader ends")
}

fn config(servers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", servers).set("group.id", "fetchwell-test");
    config.set("enable.auto.commit", "false");
    config
}

fn read_to_the_end(config: &ClientConfig, topic: &str) -> Vec<LogEvent> {
    let consumer: BaseConsumer = config.create().expect("an address");
    let metadata = consumer.fetch_metadata(Some(topic), DEADLINE).expect("the cluster answers");
    let partitions = metadata.topics()[0].partitions().iter().map(MetadataPartition::id);
    partitions.flat_map(|partition| read_partition(&consumer, topic, partition)).collect()
}

fn read_partition(consumer: &BaseConsumer, topic: &str, partition: i32) -> Vec<LogEvent> {
    let (first, end) = watermarks(consumer, topic, partition);
    let mut place = TopicPartitionList::new();
    place.add_partition_offset(topic, partition, Offset::Beginning).expect("an offset");
    consumer.assign(&place).expect("a partition");
    let mut events = Vec::new();
    let mut next = first;
    while next < end {
        let message = consumer.poll(DEADLINE).expect("there is more").expect("it is readable");
        next = message.offset() + 1;
        events.push(event_in(&message));
    }
    events
}

/// The first and the next offset of a partition. A broker that has just created the partition may not lead it yet.
fn watermarks(consumer: &BaseConsumer, topic: &str, partition: i32) -> (i64, i64) {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let error = match consumer.fetch_watermarks(topic, partition, DEADLINE) {
            Ok(marks) => return marks,
            Err(error) => error,
        };
        let without_leader =
            [RDKafkaErrorCode::NotLeaderForPartition, RDKafkaErrorCode::LeaderNotAvailable];
        let may_change = error.rdkafka_error_code().is_some_and(|it| without_leader.contains(&it));
        assert!(may_change && Instant::now() < deadline, "the offsets of {topic}: {error}");
        // The partitions that are assigned were read to their ends, so this only waits.
        drop(consumer.poll(Duration::from_millis(50)));
    }
}

fn event_in(message: &impl Message) -> LogEvent {
    let headers = message.headers().expect("headers");
    assert_eq!(headers.count(), 1);
    let id = headers.get(0);
    assert_eq!(id.key, ID_HEADER);
    let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap_or_default().to_vec());
    LogEvent {
        id: text(id.value).expect("an id is text"),
        key: message.key().and_then(|key| key.try_into().ok()).expect("a key has 32 bytes"),
        value: text(message.payload()).expect("JSON is text"),
    }
}
