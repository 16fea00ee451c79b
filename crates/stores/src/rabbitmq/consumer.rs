//! Consumes batches. They belong to this instance while the connection that delivered them is open.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use fetchwell_policy::time::Time;
use futures::StreamExt;
use parking_lot::Mutex;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::{Job, Lane, Lease, LeaseId};
use lapin::message::Delivery;
use lapin::options::{BasicConsumeOptions, BasicQosOptions};
use lapin::types::{FieldTable, ShortString};
use lapin::{Acker, BasicProperties, Connection, Consumer};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::declare;
use super::link::ANSWER_WITHIN;
use super::message::{delay_of, history_of, name_of};
use super::{AmqpConnection, Names};

/// The pause before reconnecting after a lost connection.
const RECONNECT_AFTER: Duration = Duration::from_millis(500);
/// A broker closes the channel of a consumer that keeps a batch for 30 minutes without acknowledging it. A batch that
/// waits here is returned well before that.
const MAX_KEPT: Duration = Duration::from_secs(900);

/// The deliveries that this instance has received.
pub(super) struct Deliveries {
    state: Mutex<State>,
    clock: Clock,
    /// A delivery arrived.
    pub(super) news: Arc<Notify>,
    /// The first connection is open.
    began: Notify,
    /// The connection may no longer work.
    doubt: Notify,
}

#[derive(Default)]
struct State {
    /// Counts the connections. The broker redelivers the batches of earlier ones.
    generation: u64,
    /// The connection that did not answer in time and is to be given up.
    doubted: u64,
    /// Why there is no connection at the moment.
    away: Option<StoreError>,
    next_id: LeaseId,
    /// Batches that were not given to the engine yet or were postponed, by their due times.
    waiting: BTreeMap<(Time, LeaseId), Lease>,
    /// All batches that are not settled.
    held: HashMap<LeaseId, Held>,
}

/// A batch that has not been acknowledged.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) acker: Acker,
    pub(super) properties: BasicProperties,
    since: Time,
}

impl Deliveries {
    pub(super) fn new(clock: Clock) -> Deliveries {
        let away = Some(StoreError::transient("RabbitMQ: not connected yet"));
        Deliveries {
            state: Mutex::new(State { away, next_id: 1, ..State::default() }),
            clock,
            news: Arc::default(),
            began: Notify::new(),
            doubt: Notify::new(),
        }
    }

    /// Waits for the first connection, for as long as connecting may take.
    pub(super) async fn first_connection(&self) {
        timeout(2 * ANSWER_WITHIN, self.began.notified()).await.ok();
    }

    /// The number of the current connection, or why there is none.
    pub(super) fn generation(&self) -> Result<u64, StoreError> {
        let state = self.state.lock();
        match &state.away {
            Some(fault) => Err(fault.clone()),
            None => Ok(state.generation),
        }
    }

    /// Takes batches that are due; if there are none, returns when the next is due.
    pub(super) fn take(&self, most: usize) -> Result<Vec<Lease>, Option<Time>> {
        let mut state = self.state.lock();
        let now = self.clock.now();
        let mut leases = Vec::new();
        while leases.len() < most
            && let Some(first) = state.waiting.first_entry()
            && first.key().0 <= now
        {
            leases.push(first.remove());
        }
        match leases.is_empty() {
            true => Err(state.waiting.first_key_value().map(|((due, _), _)| *due)),
            false => Ok(leases),
        }
    }

    /// What is needed to settle a batch; `None` if it is no longer ours.
    pub(super) fn held(&self, id: LeaseId) -> Option<Held> {
        self.state.lock().held.get(&id).cloned()
    }

    /// Gives up a connection that does not answer. The broker redelivers all unsettled batches, so none remains
    /// assigned to a dead connection.
    pub(super) fn give_up_connection(&self) {
        let mut state = self.state.lock();
        state.doubted = state.generation;
        self.doubt.notify_one();
    }

    /// Returns when the current connection is to be given up.
    async fn given_up(&self) {
        loop {
            self.doubt.notified().await;
            let state = self.state.lock();
            if state.doubted == state.generation {
                return;
            }
        }
    }

    /// Removes a settled batch.
    pub(super) fn forget(&self, id: LeaseId) {
        self.state.lock().held.remove(&id);
    }

    /// Postpones a batch until this time.
    pub(super) fn put_off(&self, lease: &Lease, until: Time) {
        let mut state = self.state.lock();
        if state.held.contains_key(&lease.id) {
            state.waiting.insert((until, lease.id), lease.clone());
        }
    }

    /// Removes the batches that have waited here for too long, to be returned to the broker.
    pub(super) fn kept_too_long(&self) -> Vec<Acker> {
        let mut state = self.state.lock();
        let now = self.clock.now();
        let State { waiting, held, .. } = &mut *state;
        let mut ackers = Vec::new();
        waiting.retain(|(_, id), _| match held.get(id) {
            Some(kept) if now.since(kept.since) >= MAX_KEPT => {
                ackers.extend(held.remove(id).map(|kept| kept.acker));
                false
            }
            _ => true,
        });
        ackers
    }

    fn begin(&self) {
        let mut state = self.state.lock();
        state.generation += 1;
        state.away = None;
        self.began.notify_one();
    }

    /// Returns whether there was a connection before.
    fn lose(&self, fault: StoreError) -> bool {
        let mut state = self.state.lock();
        state.waiting.clear();
        state.held.clear();
        state.away.replace(fault).is_none()
    }

    fn came(&self, delivery: Delivery) {
        let Delivery { data, properties, acker, .. } = delivery;
        let now = self.clock.now();
        let mut state = self.state.lock();
        let due = now + delay_of(&properties, self.clock.wall());
        let id = state.next_id;
        state.next_id += 1;
        let url = name_of(&properties, &data);
        let job = Job { url, site: None, lane: Lane::default(), deadline: None, payload: data };
        let history = history_of(&properties, now);
        let lease = Lease { id, job, history, interruptions: 0, accepted_at: now };
        state.waiting.insert((due, id), lease);
        state.held.insert(id, Held { acker, properties, since: now });
        drop(state);
        self.news.notify_one();
    }
}

/// Keeps a consumer on the queue until it is stopped.
pub(super) struct Reconnector {
    pub(super) link: AmqpConnection,
    pub(super) names: Arc<Names>,
    pub(super) prefetch: u16,
    pub(super) deliveries: Arc<Deliveries>,
    pub(super) stop: CancellationToken,
}

impl Reconnector {
    pub(super) async fn run(self) {
        while let Err(fault) = self.consume().await {
            let line =
                format!("{fault}; unacknowledged batches are delivered again after reconnecting");
            if self.deliveries.lose(fault) {
                warn!("{line}");
            }
            tokio::select! {
                () = sleep(RECONNECT_AFTER) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Runs one connection from its start to its end. `Ok` if it was stopped.
    async fn consume(&self) -> Result<(), StoreError> {
        let connection = self.link.connect("worker").await?;
        let mut consumer = self.link.answered(self.begin(&connection)).await?;
        self.deliveries.begin();
        info!("taking batches from {} at {}", self.names.queue, self.link.address());
        loop {
            tokio::select! {
                delivery = consumer.next() => match delivery {
                    Some(Ok(delivery)) => self.deliveries.came(delivery),
                    Some(Err(error)) => return Err(self.link.fault(error)),
                    None => {
                        return Err(self.link.unavailable("the queue was deleted; creating it again"));
                    }
                },
                () = self.deliveries.given_up() => return Err(self.link.silent()),
                () = self.stop.cancelled() => {
                    self.close(&connection).await;
                    return Ok(());
                }
            }
        }
    }

    async fn begin(&self, connection: &Connection) -> lapin::Result<Consumer> {
        declare::ensure(connection, &self.names).await?;
        let channel = connection.create_channel().await?;
        channel.basic_qos(self.prefetch, BasicQosOptions::default()).await?;
        let queue = self.names.queue.clone();
        let tag = ShortString::default();
        let options = BasicConsumeOptions::default();
        channel.basic_consume(queue, tag, options, FieldTable::default()).await
    }

    /// Closing the connection returns all unsettled batches to the broker.
    async fn close(&self, connection: &Connection) {
        let closing = connection.close(200, "bye".into());
        if !matches!(timeout(ANSWER_WITHIN, closing).await, Ok(Ok(()))) {
            warn!(
                "could not close the connection to RabbitMQ at {}; the broker will detect it",
                self.link.address()
            );
        }
        self.deliveries.lose(StoreError::transient("the connection was closed"));
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_doubt_ends_the_connection_that_it_is_about_and_no_other() {
        let deliveries = Deliveries::new(Clock::system());
        deliveries.begin();
        assert!(deliveries.given_up().now_or_never().is_none());
        deliveries.give_up_connection();
        assert!(deliveries.given_up().now_or_never().is_some());
        deliveries.give_up_connection();
        deliveries.begin();
        assert!(deliveries.given_up().now_or_never().is_none(), "the next one is as good as new");
    }
}
