//! The fixture for tests of the built program: the program, a simulated web and a store.

#![expect(
    clippy::expect_used,
    reason = "a test that cannot go on must fail; in a test that is a panic"
)]

use std::sync::Arc;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::links::CategoryLinks;
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_simweb::SiteScript;
use fetchwell_sqlite::db::{Db, Durability};
use fetchwell_stores::StoreClock;
use fetchwell_stores::redis::{DEFAULT_POLL, QueueNames, RedisLinks, RedisQueue};
use fetchwell_stores::sqlite::{self, SqliteLinks, SqliteQueue};
use redis::aio::MultiplexedConnection;

use crate::conformance::queue::LEASE_TTL;
use crate::conformance::servers::{redis_connection, unused_postgres, unused_redis};
use crate::crash::{Program, TestWeb};

/// The stores that a program can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// The file `fetchwell.db` in the program's folder.
    Sqlite,
    /// A database of its own on the server that `FETCHWELL_TEST_REDIS_URL` names.
    Redis,
    /// A schema of its own in the database that `FETCHWELL_TEST_POSTGRES_URL` names.
    Postgres,
}

/// A program, the simulated web that it fetches from, and the store that it uses.
pub struct Scene {
    /// All its processes share the web and the store.
    pub program: Program,
    /// The web, and a record of every request.
    pub origin: TestWeb,
    redis_url: Option<String>,
}

impl Scene {
    /// Without any server.
    pub fn embedded(program: Program, sites: impl IntoIterator<Item = SiteScript>) -> Scene {
        Scene::start(program, sites, None)
    }

    /// On a store of this kind. `None` if no server is named; the skip is reported.
    pub async fn on(
        store: StoreKind,
        program: Program,
        sites: impl IntoIterator<Item = SiteScript>,
    ) -> Option<Scene> {
        Some(match store {
            StoreKind::Sqlite => Scene::embedded(program, sites),
            StoreKind::Redis => Scene::on_redis_at(unused_redis().await?, program, sites),
            StoreKind::Postgres => {
                Scene::start(program.store(&unused_postgres().await?), sites, None)
            }
        })
    }

    /// On the Redis at this address.
    pub fn on_redis_at(
        url: String,
        program: Program,
        sites: impl IntoIterator<Item = SiteScript>,
    ) -> Scene {
        Scene::start(program.store(&url), sites, Some(url))
    }

    fn start(
        program: Program,
        sites: impl IntoIterator<Item = SiteScript>,
        redis_url: Option<String>,
    ) -> Scene {
        let origin = TestWeb::start(sites);
        Scene { program: program.on(&origin), origin, redis_url }
    }

    /// Adds a variable to the environment of the program.
    pub fn variable(self, name: &str, value: &str) -> Scene {
        Scene { program: self.program.variable(name, value), ..self }
    }

    /// The address of the Redis, if the scene is on one.
    pub fn redis_url(&self) -> Option<&str> {
        self.redis_url.as_deref()
    }

    /// A connection to the Redis.
    ///
    /// # Panics
    ///
    /// If the scene is not on Redis.
    pub async fn redis(&self) -> MultiplexedConnection {
        redis_connection(self.redis_url().expect("the scene is on Redis")).await
    }

    /// A queue in SQLite or Redis, opened beside the program.
    pub async fn queue(&self, name: &str) -> Box<dyn UrlQueue> {
        match self.redis_url() {
            None => Box::new(sqlite_queue(&self.program, name).await),
            Some(url) => Box::new(redis_queue(url, name).await.expect("the queue opens")),
        }
    }

    /// The links in SQLite or Redis: `feeds` adds them, `articles` fetches them.
    pub async fn links(&self) -> Arc<dyn CategoryLinks> {
        match self.redis_url() {
            None => {
                let (db, clock) = sqlite_store(&self.program).await;
                Arc::new(SqliteLinks::new(db, clock))
            }
            Some(url) => Arc::new(RedisLinks::open(url).await.expect("the server answers")),
        }
    }
}

/// The SQLite file in the folder of a program, and its clock.
pub async fn sqlite_store(program: &Program) -> (Db, Clock) {
    // No power cut is simulated, and waiting for the disk is slow.
    let db = sqlite::open(&program.file("fetchwell.db"), Durability::Process);
    let db = db.expect("the file opens");
    let clock = sqlite::clock(&db).await.expect("the file has a clock");
    (db, clock)
}

/// A queue in that file.
pub async fn sqlite_queue(program: &Program, name: &str) -> SqliteQueue {
    let (db, clock) = sqlite_store(program).await;
    SqliteQueue::open(db, name, clock, LEASE_TTL, false).await.expect("the queue opens")
}

/// A queue in Redis, with the list of dead letters that the program uses by default.
pub async fn redis_queue(url: &str, name: &str) -> Result<RedisQueue, StoreError> {
    let dead_letters = match name {
        "crawler_queue" => "page_fetcher_dlq".to_owned(),
        other => format!("{other}_given_up"),
    };
    let names = QueueNames { input: name.to_owned(), dead_letters };
    let clock = StoreClock::Server(Clock::system());
    RedisQueue::open(url, &names, clock, LEASE_TTL, false, DEFAULT_POLL).await
}
