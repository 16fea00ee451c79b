//! A `fetchwell articles` on a simulated web, and what it leaves.

use std::collections::BTreeMap;
use std::sync::Arc;

use fetchwell_doors::articles::uid;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::articles::{Articles, Counts, Fields};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_simweb::{HitKind, SiteScript};
use fetchwell_stores::StoreClock;
use fetchwell_stores::redis::RedisArticles;
use fetchwell_stores::sqlite::SqliteArticles;
use fetchwell_testkit::conformance::queue::audited;
use fetchwell_testkit::crash::{Process, ProcessEnd, Program};
use fetchwell_testkit::scene::{Scene, StoreKind, sqlite_store};
use redis::AsyncCommands;

/// The door's program on a store, and the web that it is let loose on.
pub(crate) struct Door {
    pub(crate) scene: Scene,
}

impl Door {
    /// One without any server, and one on a database of its own where a server is named.
    pub(crate) async fn on_each_store(sites: &[SiteScript]) -> Vec<Door> {
        let embedded = Door { scene: Scene::embedded(program(), sites.iter().cloned()) };
        [embedded].into_iter().chain(Door::on_redis(sites).await).collect()
    }

    /// On a database of its own; `None`, said aloud, where no server is named.
    pub(crate) async fn on_redis(sites: &[SiteScript]) -> Option<Door> {
        let scene = Scene::on(StoreKind::Redis, program(), sites.iter().cloned()).await?;
        Some(Door { scene })
    }

    /// On this Redis.
    pub(crate) fn on_server(sites: &[SiteScript], url: String) -> Door {
        Door { scene: Scene::on_redis_at(url, program(), sites.iter().cloned()) }
    }

    pub(crate) fn variable(self, name: &str, value: &str) -> Door {
        Door { scene: self.scene.variable(name, value) }
    }

    /// Puts links into a category, as feeds do.
    pub(crate) async fn add(&self, category: &str, urls: &[&str]) {
        let urls: Vec<String> = urls.iter().map(|url| (*url).to_owned()).collect();
        self.scene.links().await.add(category, &urls).await.unwrap();
    }

    /// A run that ends well.
    pub(crate) async fn run(&self) -> ProcessEnd {
        self.scene.program.run(&["articles", "run"]).await.expect_code(0)
    }

    pub(crate) fn start(&self) -> Process {
        self.scene.program.start(&["articles", "run"])
    }

    /// What another command says.
    pub(crate) async fn say(&self, arguments: &[&str]) -> String {
        self.scene.program.run(&[&["articles"], arguments].concat()).await.expect_code(0).stdout
    }

    /// What is kept of a link.
    pub(crate) async fn find(&self, url: &str) -> Option<Fields> {
        self.articles().await.find(&uid(url)).await.unwrap()
    }

    pub(crate) async fn counts(&self) -> Counts {
        self.articles().await.count().await.unwrap()
    }

    /// All notes of attempts go, as when somebody deletes the set.
    pub(crate) async fn forget_attempts(&self) {
        match self.scene.redis_url() {
            None => {
                let (db, _) = sqlite_store(&self.scene.program).await;
                db.write(|tx| tx.execute("DELETE FROM attempted", [])).await.unwrap();
            }
            Some(_) => {
                let _: usize =
                    self.scene.redis().await.del("rss:canonical_attempted").await.unwrap();
            }
        }
    }

    /// How many links stand where in the queue, counted and compared.
    pub(crate) async fn ledger(&self) -> Ledger {
        audited(&*self.scene.queue("rss:canonical_queue").await).await
    }

    /// How often each page was asked for, by its path.
    pub(crate) fn asked(&self) -> BTreeMap<String, usize> {
        let mut asked = BTreeMap::new();
        for hit in self.scene.origin.hits().iter().filter(|hit| hit.kind == HitKind::Page) {
            *asked.entry(format!("http://{}{}", hit.site, hit.path)).or_default() += 1;
        }
        asked
    }

    pub(crate) async fn articles(&self) -> Arc<dyn Articles> {
        match self.scene.redis_url() {
            None => {
                let (db, clock) = sqlite_store(&self.scene.program).await;
                Arc::new(SqliteArticles::new(db, clock))
            }
            Some(url) => {
                let clock = StoreClock::Server(Clock::system());
                Arc::new(RedisArticles::open(url, clock).await.unwrap())
            }
        }
    }
}

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
        .flags(["--rate", "50", "--no-color"])
        .variable("FETCHWELL_BREAKER__JITTER", "0")
        .variable("FETCHWELL_LEASE__HEARTBEAT", "300ms")
        .variable("FETCHWELL_LEASE__TTL", "2s")
}
