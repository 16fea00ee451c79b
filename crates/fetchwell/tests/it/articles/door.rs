//! A `fetchwell articles` on a simulated web, and what it leaves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fetchwell::doors::articles::uid;
use fetchwell_engine::adapters::StoreClock;
use fetchwell_engine::adapters::redis::{
    DEFAULT_POLL, QueueNames, RedisArticles, RedisLinks, RedisQueue,
};
use fetchwell_engine::adapters::sqlite::{
    self, Db, Durability, SqliteArticles, SqliteLinks, SqliteQueue,
};
use fetchwell_engine::articles::{Articles, Counts, Fields};
use fetchwell_engine::clock::Clock;
use fetchwell_engine::links::CategoryLinks;
use fetchwell_engine::ports::Ledger;
use fetchwell_simweb::{HitKind, SiteScript};
use fetchwell_testkit::conformance::servers::{server_url, unused_redis_database};
use fetchwell_testkit::crash::{Ended, Origin, Process, Program};
use redis::aio::MultiplexedConnection;
use tokio::time::{Instant, sleep};

/// Far longer than anything here takes.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(10);
const LEASE_TTL: Duration = Duration::from_secs(20);
const QUEUE: &str = "rss:canonical_queue";

/// The door's program on a store, and the web that it is let loose on.
pub(crate) struct Door {
    pub(crate) origin: Origin,
    pub(crate) program: Program,
    store: Store,
}

enum Store {
    Embedded,
    Redis(String),
}

impl Door {
    /// One without any server, and one on a database of its own where a server is named.
    pub(crate) async fn on_each_store(sites: &[SiteScript]) -> Vec<Door> {
        let origin = || Origin::start(sites.iter().cloned());
        let mut doors = vec![Door::new(origin(), Store::Embedded)];
        doors.extend(Door::on_redis(sites).await);
        doors
    }

    /// On a database of its own; `None`, said aloud, where no server is named.
    pub(crate) async fn on_redis(sites: &[SiteScript]) -> Option<Door> {
        let url = unused_redis_database(server_url("FETCHWELL_TEST_REDIS_URL")?).await;
        Some(Door::on_server(sites, url))
    }

    /// On this Redis.
    pub(crate) fn on_server(sites: &[SiteScript], url: String) -> Door {
        Door::new(Origin::start(sites.iter().cloned()), Store::Redis(url))
    }

    fn new(origin: Origin, store: Store) -> Door {
        let mut program = Program::new(env!("CARGO_BIN_EXE_fetchwell"))
            .on(&origin)
            .flags(["--rate", "50", "--no-color"])
            .variable("FETCHWELL_BREAKER__JITTER", "0")
            .variable("FETCHWELL_LEASE__HEARTBEAT", "300ms")
            .variable("FETCHWELL_LEASE__TTL", "2s");
        if let Store::Redis(url) = &store {
            program = program.flags(["--store", url]);
        }
        Door { origin, program, store }
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Door {
        self.program = self.program.variable(name, value);
        self
    }

    pub(crate) fn flags(mut self, flags: &[&str]) -> Door {
        self.program = self.program.flags(flags.iter().copied());
        self
    }

    /// Puts links into a category, as feeds do.
    pub(crate) async fn add(&self, category: &str, urls: &[&str]) {
        let urls: Vec<String> = urls.iter().map(|url| (*url).to_owned()).collect();
        self.links().await.add(category, &urls).await.unwrap();
    }

    /// A run that ends well.
    pub(crate) async fn run(&self) -> Ended {
        self.program.run(&["articles", "run"]).await.expect_code(0)
    }

    pub(crate) fn start(&self) -> Process {
        self.program.start(&["articles", "run"])
    }

    /// What another command says.
    pub(crate) async fn say(&self, arguments: &[&str]) -> String {
        self.program.run(&[&["articles"], arguments].concat()).await.expect_code(0).stdout
    }

    /// What is kept of a link.
    pub(crate) async fn find(&self, url: &str) -> Option<Fields> {
        self.articles().await.find(&uid(url)).await.unwrap()
    }

    pub(crate) async fn counts(&self) -> Counts {
        self.articles().await.count().await.unwrap()
    }

    /// How many links stand where in the queue, counted and compared.
    pub(crate) async fn ledger(&self) -> Ledger {
        match &self.store {
            Store::Embedded => {
                let (db, clock) = self.file().await;
                let queue = SqliteQueue::open(db, QUEUE, clock, LEASE_TTL, true).await.unwrap();
                queue.audit().await.unwrap().unwrap()
            }
            Store::Redis(url) => {
                let dead_letters = format!("{QUEUE}_given_up");
                let names = QueueNames { input: QUEUE.to_owned(), dead_letters };
                let queue =
                    RedisQueue::open(url, &names, server_clock(), LEASE_TTL, true, DEFAULT_POLL);
                queue.await.unwrap().audit().await.unwrap().unwrap()
            }
        }
    }

    /// How often each page was asked for, by its path.
    pub(crate) fn asked(&self) -> BTreeMap<String, usize> {
        let mut asked = BTreeMap::new();
        for hit in self.origin.hits().iter().filter(|hit| hit.kind == HitKind::Page) {
            *asked.entry(format!("http://{}{}", hit.site, hit.path)).or_default() += 1;
        }
        asked
    }

    /// Waits until so many pages were asked for.
    pub(crate) async fn until_asked(&self, pages: usize) {
        let began = Instant::now();
        while self.origin.page_hits() < pages {
            assert!(began.elapsed() < DEADLINE, "{} were asked for", self.origin.page_hits());
            sleep(POLL).await;
        }
    }

    /// A line to the server, for those who look at what is there.
    pub(crate) async fn line(&self) -> MultiplexedConnection {
        let Store::Redis(url) = &self.store else { panic!("there is no server") };
        let client = redis::Client::open(url.as_str()).unwrap();
        client.get_multiplexed_async_connection().await.unwrap()
    }

    pub(crate) async fn articles(&self) -> Arc<dyn Articles> {
        match &self.store {
            Store::Embedded => {
                let (db, clock) = self.file().await;
                Arc::new(SqliteArticles::new(db, clock))
            }
            Store::Redis(url) => Arc::new(RedisArticles::open(url, server_clock()).await.unwrap()),
        }
    }

    async fn links(&self) -> Arc<dyn CategoryLinks> {
        match &self.store {
            Store::Embedded => {
                let (db, clock) = self.file().await;
                Arc::new(SqliteLinks::new(db, clock))
            }
            Store::Redis(url) => Arc::new(RedisLinks::open(url).await.unwrap()),
        }
    }

    async fn file(&self) -> (Db, Clock) {
        let db = sqlite::open(&self.program.file("fetchwell.db"), Durability::Process).unwrap();
        let clock = sqlite::clock(&db).await.unwrap();
        (db, clock)
    }
}

fn server_clock() -> StoreClock {
    StoreClock::Server(Clock::system())
}
