//! A queue of batches under test.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fetchwell_engine::ports::batches::Batch;
use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::queue::Instance;
use fetchwell_engine::ports::source::{Demand, Taken};
use tokio::time::timeout;

use super::{BatchStore, Batches, PREFETCH};
use crate::DEADLINE;
use crate::conformance::HandClock;

/// How long to wait before asking again, if the queue sends no notification.
const ASK_AGAIN: Duration = Duration::from_millis(5);

/// A queue, with a producer and a consumer.
pub(super) struct Trial<'a> {
    store: &'a dyn BatchStore,
    pub(super) clock: HandClock,
    pub(super) queue: Box<dyn Batches>,
    pub(super) worker: Arc<dyn Instance>,
}

impl<'a> Trial<'a> {
    pub(super) async fn of(store: &'a dyn BatchStore) -> Trial<'a> {
        let clock = HandClock::new();
        let queue = store.open_batches(clock.clock()).await;
        let worker = queue.worker(PREFETCH);
        Trial { store, clock, queue, worker }
    }

    /// The queue, as seen by another process.
    pub(super) async fn reopened(&self) -> Box<dyn Batches> {
        self.store.open_batches(self.clock.clock()).await
    }

    /// A worker in another process.
    pub(super) async fn another(&self) -> Arc<dyn Instance> {
        self.reopened().await.worker(PREFETCH)
    }

    pub(super) async fn publish(&self, ids: &[&str]) {
        let batches: Vec<Batch> = ids.iter().map(|id| batch(id)).collect();
        self.queue.publish(&batches).await.expect("batches go in");
    }

    /// Takes one, which must exist.
    pub(super) async fn take_one(&self) -> Lease {
        take(&*self.worker, 1).await.remove(0)
    }

    pub(super) async fn settle(&self, lease: &Lease, settlement: Settlement) -> Settled {
        settle(&*self.worker, lease, settlement).await
    }
}

pub(super) fn batch(id: &str) -> Batch {
    Batch { id: id.to_owned(), body: Bytes::from(format!("[\"{id}\"]")) }
}

/// Takes this many, which must exist. Delivery from a broker takes a moment.
pub(super) async fn take(worker: &dyn Instance, many: usize) -> Vec<Lease> {
    let mut leases = Vec::new();
    let taking = async {
        while leases.len() < many {
            leases.extend(take_what_is_there(worker, many - leases.len()).await);
        }
    };
    timeout(DEADLINE, taking).await.expect("what was published is delivered");
    leases
}

/// Takes at most `most` of the available ones; waits a moment if there are none.
pub(super) async fn take_what_is_there(worker: &dyn Instance, most: usize) -> Vec<Lease> {
    let demand = Demand { most, most_per_site: most, ..Demand::default() };
    if worker.renew().await.is_ok()
        && let Taken::Jobs(taken) = worker.take(&demand).await.expect("a take is answered")
    {
        return taken;
    }
    tokio::time::sleep(ASK_AGAIN).await;
    Vec::new()
}

pub(super) async fn settle(
    worker: &dyn Instance,
    lease: &Lease,
    settlement: Settlement,
) -> Settled {
    worker.settle(&[(lease, &settlement)]).await.expect("a settlement is answered")[0]
}

pub(super) fn ids(leases: &[Lease]) -> Vec<&str> {
    leases.iter().map(|lease| lease.job.url.as_str()).collect()
}
