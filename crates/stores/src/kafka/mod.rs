//! Kafka: an event log that other programs consume.
//!
//! `publish` returns after the delivery report of every event in its batch, so nothing needs to be flushed when a log
//! is dropped: events that are still in flight then were never confirmed.

mod errors;
mod examination;
mod place;
mod producer;
mod topic;

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::{StoreError, StoreErrorKind};
use fetchwell_engine::ports::event_log::{EventLog, LogEvent, Published};
use futures::future::join_all;
use parking_lot::Mutex;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::future_producer::DeliveryFuture;
use rdkafka::producer::{FutureRecord, Producer as _};
use tokio::time::Instant;
use tracing::warn;

pub use self::examination::{KafkaFacts, TopicFacts, examine};
use self::place::TopicAddress;
use self::producer::{CONFIRMED_WITHIN, Producer, connect};

/// The header that holds an event's id.
pub const ID_HEADER: &str = "id";
/// How often to check whether a full producer queue has room.
const QUEUE_POLL: Duration = Duration::from_millis(10);

/// A topic of a Kafka cluster.
pub struct KafkaLog {
    place: TopicAddress,
    producer: Mutex<Producer>,
}

impl KafkaLog {
    /// Connects to a cluster, given some of its servers (`host:port,host:port`). Creates the topic with the cluster's
    /// defaults if it does not exist.
    pub async fn open(servers: &str, topic: &str) -> Result<KafkaLog, StoreError> {
        let place = TopicAddress { servers: servers.to_owned(), topic: topic.to_owned() };
        let producer = connect(&place)?;
        topic::ensure(&place, &producer).await?;
        Ok(KafkaLog { place, producer: Mutex::new(producer) })
    }

    /// Sends all events in order, and waits for the report of each.
    async fn send(&self, producer: &Producer, events: &[LogEvent]) -> Vec<Result<(), KafkaError>> {
        let until = Instant::now() + CONFIRMED_WITHIN;
        let mut queued = Vec::with_capacity(events.len());
        for event in events {
            queued.push(self.queue(producer, event, until).await);
        }
        join_all(queued.into_iter().map(confirmed)).await
    }

    /// Puts an event into the producer's queue, waiting while it is full.
    async fn queue(
        &self,
        producer: &Producer,
        event: &LogEvent,
        until: Instant,
    ) -> Result<DeliveryFuture, KafkaError> {
        let id = Header { key: ID_HEADER, value: Some(&event.id) };
        let mut record = FutureRecord::to(&self.place.topic)
            .key(&event.key)
            .payload(&event.value)
            .headers(OwnedHeaders::new_with_capacity(1).insert(id));
        loop {
            match producer.send_result(record) {
                Ok(delivery) => return Ok(delivery),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), unsent))
                    if Instant::now() < until =>
                {
                    record = unsent;
                    tokio::time::sleep(QUEUE_POLL).await;
                }
                Err((error, _)) => return Err(error),
            }
        }
    }

    /// A broker accepts or refuses a set of messages as a whole, so a refused event may be fine by itself.
    async fn publish_alone(
        &self,
        producer: &Producer,
        event: &LogEvent,
    ) -> Result<Published, KafkaError> {
        match self.send(producer, std::slice::from_ref(event)).await.pop() {
            Some(Err(error)) if is_about_the_event(&error) => {
                Ok(Published::Refused { reason: self.place.refusal(event, &error) })
            }
            Some(Err(error)) => Err(error),
            Some(Ok(())) | None => Ok(Published::Confirmed),
        }
    }

    async fn try_publish(
        &self,
        producer: &Producer,
        events: &[LogEvent],
    ) -> Result<Vec<Published>, KafkaError> {
        // Wait for all reports before acting on any: a retry of the batch must not overtake the first attempt.
        let reports = self.send(producer, events).await;
        let mut published = Vec::with_capacity(events.len());
        for (event, report) in events.iter().zip(reports) {
            published.push(match report {
                Ok(()) => Published::Confirmed,
                Err(error) if is_about_the_event(&error) => {
                    self.publish_alone(producer, event).await?
                }
                Err(error) => return Err(error),
            });
        }
        Ok(published)
    }

    /// Replaces the producer after a fatal error: an idempotent producer that lost its sequence never sends again.
    /// Returns whether it was replaced.
    fn replace_if_it_is_done_for(&self, producer: Producer) -> Result<bool, StoreError> {
        let Some((_, reason)) = producer.client().fatal_error() else { return Ok(false) };
        warn!("the producer for {} failed: {reason}; creating another", self.place);
        let fresh = connect(&self.place)?;
        let old = std::mem::replace(&mut *self.producer.lock(), fresh);
        // Dropping a producer blocks until its threads have ended.
        tokio::task::spawn_blocking(move || drop((old, producer)));
        Ok(true)
    }
}

#[async_trait]
impl EventLog for KafkaLog {
    async fn publish(&self, events: &[LogEvent]) -> Result<Vec<Published>, StoreError> {
        let producer = self.producer.lock().clone();
        match self.try_publish(&producer, events).await {
            Ok(published) => Ok(published),
            Err(error) => {
                let fault = self.place.fault(error);
                match self.replace_if_it_is_done_for(producer)? {
                    // The new producer may succeed.
                    true => Err(fault.with_kind(StoreErrorKind::Transient)),
                    false => Err(fault),
                }
            }
        }
    }

    /// Fails if the cluster does not answer or does not have the topic.
    async fn check(&self) -> Result<(), StoreError> {
        let producer = self.producer.lock().clone();
        topic::check(&self.place, &producer).await
    }
}

async fn confirmed(queued: Result<DeliveryFuture, KafkaError>) -> Result<(), KafkaError> {
    match queued?.await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err((error, _))) => Err(error),
        Err(_) => Err(KafkaError::Canceled),
    }
}

/// Whether the brokers refused the event itself.
fn is_about_the_event(error: &KafkaError) -> bool {
    use RDKafkaErrorCode::{InvalidDifferentRecord, InvalidRecord, MessageSizeTooLarge};
    matches!(
        error.rdkafka_error_code(),
        Some(MessageSizeTooLarge | InvalidRecord | InvalidDifferentRecord)
    )
}
