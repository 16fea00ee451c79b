//! A queue in a database of its own, with a line to the server beside it.

use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::finish::{Settle, Settled, Settlement};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::queue::{Ledger, Queue};
use fetchwell_engine::ports::source::{Demand, Source, Taken};
use fetchwell_engine::ports::url_queue::Unparked;
use fetchwell_stores::StoreClock;
use fetchwell_stores::redis::{QueueNames, RedisInstance, RedisQueue, UnparkStep, Unparking};
use fetchwell_testkit::conformance::HandClock;
use fetchwell_testkit::conformance::servers::{redis_connection, unused_redis};
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, FromRedisValue};

pub(crate) const LEASE_TTL: Duration = Duration::from_secs(20);
pub(crate) const POLL: Duration = Duration::from_millis(500);
pub(crate) const LIST: &str = "crawler_queue";
pub(crate) const DEAD_LIST: &str = "page_fetcher_dlq";

pub(crate) struct Rig {
    pub(crate) address: String,
    pub(crate) clock: HandClock,
    pub(crate) queue: RedisQueue,
    /// What a producer or an operator has.
    pub(crate) line: MultiplexedConnection,
}

impl Rig {
    /// `None`, said aloud, where no server is named.
    pub(crate) async fn if_there() -> Option<Rig> {
        let address = unused_redis().await?;
        let clock = HandClock::new();
        let queue = open(&address, StoreClock::ByHand(clock.clock())).await;
        let line = redis_connection(&address).await;
        Some(Rig { address, clock, queue, line })
    }

    /// Pushes URLs as producers do.
    pub(crate) async fn push(&self, urls: &[&str]) {
        self.line.clone().rpush::<_, _, ()>(LIST, urls).await.unwrap();
    }

    /// An instance that is alive.
    pub(crate) async fn worker(&self) -> RedisInstance {
        let worker = self.queue.instance();
        worker.renew().await.unwrap();
        worker
    }

    /// Takes one URL from the list and gives it up.
    pub(crate) async fn kill(&self, worker: &RedisInstance, url: &str, reason: &str) {
        self.push(&[url]).await;
        let leases = take(worker, 10).await;
        assert_eq!(leases.len(), 1, "{leases:?}");
        settle(worker, &leases[0], Settlement::Dead { reason: reason.to_owned() }).await;
    }

    /// The ledger, which agrees with what is there.
    pub(crate) async fn ledger(&self) -> Ledger {
        self.queue.audit().await.unwrap().unwrap()
    }

    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &str) -> T {
        let mut words = command.split(' ');
        let mut cmd = redis::cmd(words.next().unwrap());
        for word in words {
            cmd.arg(word);
        }
        cmd.query_async(&mut self.line.clone()).await.unwrap()
    }

    pub(crate) async fn list(&self) -> Vec<String> {
        self.ask(&format!("LRANGE {LIST} 0 -1")).await
    }

    /// What the key says that monitoring reads.
    pub(crate) async fn size(&self) -> u64 {
        self.ask(&format!("GET {LIST}:size")).await
    }

    /// Unparks to the end. While that waits, a second passes each time, and these instances renew.
    pub(crate) async fn unpark(&self, renewing: &[&RedisInstance]) -> Unparked {
        self.finish(self.queue.unparking(false), renewing).await
    }

    /// The same for one that has left, and may be the last.
    pub(crate) async fn unpark_when_alone(&self, renewing: &[&RedisInstance]) -> Unparked {
        self.finish(self.queue.unparking(true), renewing).await
    }

    async fn finish(&self, mut unparking: Unparking, renewing: &[&RedisInstance]) -> Unparked {
        loop {
            match unparking.step().await.unwrap() {
                UnparkStep::Over(unparked) => return unparked,
                UnparkStep::Wait { instances, at_most, .. } => {
                    assert!(instances > 0 && at_most <= LEASE_TTL, "{instances} {at_most:?}");
                    self.clock.advance(Duration::from_secs(1));
                    for worker in renewing {
                        worker.renew().await.unwrap();
                    }
                }
            }
        }
    }
}

pub(crate) async fn open(address: &str, clock: StoreClock) -> RedisQueue {
    RedisQueue::open(address, &names(), clock, LEASE_TTL, false, POLL).await.unwrap()
}

pub(crate) fn server_clock() -> StoreClock {
    StoreClock::Server(Clock::system())
}

pub(crate) fn names() -> QueueNames {
    QueueNames { input: LIST.to_owned(), dead_letters: DEAD_LIST.to_owned() }
}

pub(crate) fn at_most(most: usize) -> Demand {
    Demand { most, most_per_site: most, ..Demand::default() }
}

pub(crate) async fn take(worker: &RedisInstance, most: usize) -> Vec<Lease> {
    match worker.take(&at_most(most)).await.unwrap() {
        Taken::Jobs(leases) => leases,
        Taken::Idle { .. } | Taken::Exhausted => Vec::new(),
    }
}

/// All that can be had now.
pub(crate) async fn take_all(worker: &RedisInstance) -> Vec<Lease> {
    let mut all = Vec::new();
    loop {
        let leases = take(worker, usize::MAX).await;
        if leases.is_empty() {
            return all;
        }
        all.extend(leases);
    }
}

pub(crate) async fn settle(worker: &RedisInstance, lease: &Lease, settlement: Settlement) {
    let settled = worker.settle(&[(lease, &settlement)]).await.unwrap();
    assert_eq!(settled, [Settled::Confirmed]);
}

pub(crate) fn urls(leases: &[Lease]) -> Vec<&str> {
    leases.iter().map(|lease| lease.job.url.as_str()).collect()
}
