//! The producer, and how it is set.

use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::KafkaError;
use rdkafka::producer::FutureProducer;
use tracing::debug;

use super::place::Place;

/// An event that is not confirmed by then has failed.
pub(super) const CONFIRMED_WITHIN: Duration = Duration::from_secs(10);
/// After this a topic that no broker knows is taken to be missing, not new.
const TOPIC_KNOWN_WITHIN: Duration = Duration::from_secs(5);
/// A topic that was missing is found within this when it is there.
const TOPIC_REFRESH: Duration = Duration::from_secs(5);
/// A server that is back is found again within this.
const RECONNECT_WITHIN: Duration = Duration::from_secs(1);
/// How long events wait for company in one request: those of a batch are queued within this.
const LINGER: Duration = Duration::from_millis(1);
/// What the producer's own queue holds; more waits in its callers.
const MAX_QUEUED_EVENTS: usize = 20_000;
const MAX_QUEUED_KIB: usize = 64 << 10;

/// Cheap to clone; what it sends goes by one connection a broker.
pub(super) type Producer = FutureProducer<Words>;

/// librdkafka's log goes to `tracing` as it is.
#[derive(Clone)]
pub(super) struct Words;

impl ClientContext for Words {
    /// What it tries again by itself. Where that does not help, the fault of a batch says so.
    fn error(&self, error: KafkaError, reason: &str) {
        debug!(target: "librdkafka", "{error}: {reason}");
    }
}

/// A client of the cluster. A producer's confirmations hold: all replicas in sync have the event, once for
/// each time that it was sent, and in order.
pub(super) fn connect<T: FromClientConfigAndContext<Words>>(
    place: &Place,
) -> Result<T, StoreError> {
    settings(place).create_with_context(Words).map_err(|error| place.fault(error))
}

fn settings(place: &Place) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &place.servers)
        .set("client.id", "fetchwell")
        .set("acks", "all")
        .set("enable.idempotence", "true")
        // As the Java client and most others place a key.
        .set("partitioner", "murmur2_random")
        .set("message.timeout.ms", millis(CONFIRMED_WITHIN))
        .set("topic.metadata.propagation.max.ms", millis(TOPIC_KNOWN_WITHIN))
        .set("topic.metadata.refresh.interval.ms", millis(TOPIC_REFRESH))
        .set("reconnect.backoff.max.ms", millis(RECONNECT_WITHIN))
        .set("linger.ms", millis(LINGER))
        .set("queue.buffering.max.messages", MAX_QUEUED_EVENTS.to_string())
        .set("queue.buffering.max.kbytes", MAX_QUEUED_KIB.to_string())
        // Brokers close idle connections; that is nothing to tell.
        .set("log.connection.close", "false");
    config
}

fn millis(span: Duration) -> String {
    span.as_millis().to_string()
}
