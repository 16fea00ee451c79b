//! The producer and its settings.

use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::KafkaError;
use rdkafka::producer::FutureProducer;
use tracing::debug;

use super::place::TopicAddress;

/// The timeout for the confirmation of an event.
pub(super) const CONFIRMED_WITHIN: Duration = Duration::from_secs(10);
/// After this, a topic that no broker knows counts as missing rather than as just created.
const TOPIC_KNOWN_WITHIN: Duration = Duration::from_secs(5);
/// The interval of metadata refreshes, which discover a topic that was missing.
const TOPIC_REFRESH: Duration = Duration::from_secs(5);
/// The longest pause between attempts to reconnect to a server.
const RECONNECT_WITHIN: Duration = Duration::from_secs(1);
/// How long events wait to be sent in one request. The events of a batch are queued within this time.
const LINGER: Duration = Duration::from_millis(1);
/// The limits of the producer's own queue; further events wait in their callers.
const MAX_QUEUED_EVENTS: usize = 20_000;
const MAX_QUEUED_KIB: usize = 64 << 10;

/// Cheap to clone. Clones share one connection per broker.
pub(super) type Producer = FutureProducer<Words>;

/// Forwards librdkafka's log to `tracing`.
#[derive(Clone)]
pub(super) struct Words;

impl ClientContext for Words {
    /// librdkafka retries after these errors; if that does not help, the batch fails with an error of its own.
    fn error(&self, error: KafkaError, reason: &str) {
        debug!(target: "librdkafka", "{error}: {reason}");
    }
}

/// Creates a client. A producer confirms an event only once all in-sync replicas have it; it writes each sent event
/// exactly once, and in order.
pub(super) fn connect<T: FromClientConfigAndContext<Words>>(
    place: &TopicAddress,
) -> Result<T, StoreError> {
    settings(place).create_with_context(Words).map_err(|error| place.fault(error))
}

fn settings(place: &TopicAddress) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &place.servers)
        .set("client.id", "fetchwell")
        .set("acks", "all")
        .set("enable.idempotence", "true")
        // The partitioner of the Java client and most others.
        .set("partitioner", "murmur2_random")
        .set("message.timeout.ms", millis(CONFIRMED_WITHIN))
        .set("topic.metadata.propagation.max.ms", millis(TOPIC_KNOWN_WITHIN))
        .set("topic.metadata.refresh.interval.ms", millis(TOPIC_REFRESH))
        .set("reconnect.backoff.max.ms", millis(RECONNECT_WITHIN))
        .set("linger.ms", millis(LINGER))
        .set("queue.buffering.max.messages", MAX_QUEUED_EVENTS.to_string())
        .set("queue.buffering.max.kbytes", MAX_QUEUED_KIB.to_string())
        // Brokers close idle connections, which is not worth logging.
        .set("log.connection.close", "false");
    config
}

fn millis(span: Duration) -> String {
    span.as_millis().to_string()
}
