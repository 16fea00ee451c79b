//! What the broker gives: batches that are this instance's for as long as the connection stands that
//! brought them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use fetchwell_policy::time::Time;
use futures::StreamExt;
use parking_lot::{Mutex, MutexGuard};

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
use super::{Link, Names};

/// After a connection is lost, another one is tried this much later.
const RECONNECT_AFTER: Duration = Duration::from_millis(500);
/// A broker closes the channel of whoever keeps a batch for 30 minutes without a word. One that waits here
/// goes back well before that.
const MAX_KEPT: Duration = Duration::from_secs(900);

/// What this instance has of the broker.
pub(super) struct Deliveries {
    state: Mutex<State>,
    clock: Clock,
    /// Something came in.
    pub(super) news: Arc<Notify>,
    /// The first connection stands, for the one who waits for it.
    began: Notify,
    /// Somebody doubts that the connection still works.
    doubt: Notify,
}

struct State {
    /// Counts the connections. What an earlier one brought is the broker's again: it delivers it anew.
    generation: u64,
    /// The connection that did not answer in time: it is to be given up.
    doubted: u64,
    /// Why there is no connection now.
    away: Option<StoreError>,
    next_id: LeaseId,
    /// Not given to the flow yet, or back from it for a while, by when each is due.
    waiting: BTreeMap<(Time, LeaseId), Lease>,
    /// All that is not settled.
    held: HashMap<LeaseId, Held>,
}

/// A batch that is ours.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) acker: Acker,
    pub(super) properties: BasicProperties,
    since: Time,
}

impl Deliveries {
    pub(super) fn new(clock: Clock) -> Deliveries {
        let away = Some(StoreError::transient("RabbitMQ: not connected yet"));
        let waiting = BTreeMap::new();
        let held = HashMap::new();
        let state = State { generation: 0, doubted: 0, away, next_id: 1, waiting, held };
        let news = Arc::default();
        let began = Notify::new();
        let doubt = Notify::new();
        Deliveries { state: Mutex::new(state), clock, news, began, doubt }
    }

    /// Waits for the first connection, as long as one may take.
    pub(super) async fn first_connection(&self) {
        timeout(2 * ANSWER_WITHIN, self.began.notified()).await.ok();
    }

    /// The number of the connection that stands, or why there is none.
    pub(super) fn generation(&self) -> Result<u64, StoreError> {
        let state = self.state();
        match &state.away {
            Some(fault) => Err(fault.clone()),
            None => Ok(state.generation),
        }
    }

    /// Takes what is due; else says when something is.
    pub(super) fn take(&self, most: usize) -> Result<Vec<Lease>, Option<Time>> {
        let mut state = self.state();
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

    /// How to settle a batch, while it is ours.
    pub(super) fn held(&self, id: LeaseId) -> Option<Held> {
        self.state().held.get(&id).cloned()
    }

    /// The connection does not answer. With it all goes back that is not settled, so that nothing stays
    /// with a broker that takes it for ours.
    pub(super) fn give_up_connection(&self) {
        let mut state = self.state();
        state.doubted = state.generation;
        self.doubt.notify_one();
    }

    /// Returns when the connection that stands is to be given up.
    async fn given_up(&self) {
        loop {
            self.doubt.notified().await;
            let state = self.state();
            if state.doubted == state.generation {
                return;
            }
        }
    }

    /// A batch was settled.
    pub(super) fn forget(&self, id: LeaseId) {
        self.state().held.remove(&id);
    }

    /// Keeps a batch here until then.
    pub(super) fn put_off(&self, lease: &Lease, until: Time) {
        let mut state = self.state();
        if state.held.contains_key(&lease.id) {
            state.waiting.insert((until, lease.id), lease.clone());
        }
    }

    /// Those that have waited here so long that the broker is to have them back.
    pub(super) fn kept_too_long(&self) -> Vec<Acker> {
        let mut state = self.state();
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
        let mut state = self.state();
        state.generation += 1;
        state.away = None;
        self.began.notify_one();
    }

    /// Whether that is news.
    fn lose(&self, fault: StoreError) -> bool {
        let mut state = self.state();
        state.waiting.clear();
        state.held.clear();
        state.away.replace(fault).is_none()
    }

    fn came(&self, delivery: Delivery) {
        let Delivery { data, properties, acker, .. } = delivery;
        let now = self.clock.now();
        let mut state = self.state();
        let due = now + delay_of(&properties, self.clock.wall());
        let id = state.next_id;
        state.next_id += 1;
        let lane = Lane::default();
        let site = None;
        let deadline = None;
        let url = name_of(&properties, &data);
        let job = Job { url, site, lane, deadline, payload: data };
        let history = history_of(&properties, now);
        let lease = Lease { id, job, history, interruptions: 0, accepted_at: now };
        state.waiting.insert((due, id), lease);
        state.held.insert(id, Held { acker, properties, since: now });
        drop(state);
        self.news.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Keeps a consumer at the queue until it is told to stop.
pub(super) struct Keeper {
    pub(super) link: Link,
    pub(super) names: Arc<Names>,
    pub(super) prefetch: u16,
    pub(super) deliveries: Arc<Deliveries>,
    pub(super) stop: CancellationToken,
}

impl Keeper {
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

    /// One connection, from its beginning to its end. `Ok`: it was told to stop.
    async fn consume(&self) -> Result<(), StoreError> {
        let connection = self.link.connect("worker").await?;
        let beginning = timeout(ANSWER_WITHIN, self.begin(&connection)).await;
        let mut consumer = beginning.unwrap_or_else(|_| Err(self.link.silent()))?;
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

    async fn begin(&self, connection: &Connection) -> Result<Consumer, StoreError> {
        declare::ensure(&self.link, connection, &self.names).await?;
        let fault = |error: lapin::Error| self.link.fault(error);
        let channel = connection.create_channel().await.map_err(fault)?;
        channel.basic_qos(self.prefetch, BasicQosOptions::default()).await.map_err(fault)?;
        let queue = self.names.queue.clone();
        let tag = ShortString::default();
        let options = BasicConsumeOptions::default();
        channel.basic_consume(queue, tag, options, FieldTable::default()).await.map_err(fault)
    }

    /// With its connection all that was not settled goes back.
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
