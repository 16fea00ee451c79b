//! Opens the store that a URL names. Only this module knows which adapter belongs to which URL, what each supports, and
//! which of them this build includes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::articles::Articles;
use fetchwell_engine::ports::batches::BatchQueue;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::event_log::EventLog;
use fetchwell_engine::ports::feeds::Feeds;
use fetchwell_engine::ports::links::CategoryLinks;
use fetchwell_engine::ports::page_cache::PageCache;
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_engine::ports::sites::{Sites, Waiting};
use fetchwell_engine::ports::store_url::{SecretUrl, StoreUrl};
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_policy::breaker::BreakerRule;
use fetchwell_policy::time::Time;
use fetchwell_sqlite::db::{Db, Durability};

#[cfg(any(feature = "postgres", feature = "redis"))]
use crate::StoreClock;
use crate::finding::{Finding, StoreUse};
#[cfg(feature = "kafka")]
use crate::kafka::KafkaLog;
#[cfg(feature = "postgres")]
use crate::migrate::{Moved, move_retriever};
#[cfg(feature = "postgres")]
use crate::postgres::{self, Database, PostgresSiteStates};
#[cfg(feature = "rabbitmq")]
use crate::rabbitmq::RabbitQueue;
#[cfg(feature = "redis")]
use crate::redis::{
    self, QueueNames, RedisArticles, RedisFeeds, RedisLinks, RedisPages, RedisQueue,
    RedisSiteStates,
};
use crate::sqlite::{
    self, SqliteArticles, SqliteEvents, SqliteFeeds, SqliteLinks, SqlitePages, SqlitePoliteness,
    SqliteQueue, SqliteWaiting,
};
#[cfg(any(feature = "postgres", feature = "redis"))]
use fetchwell_engine::shared_politeness::SharedPoliteness;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store does not support URL queues.
    #[error(
        "\"pages\" needs Redis or SQLite, but the store is {0}; use --store redis://HOST or \
         --store sqlite:PATH"
    )]
    NoUrlQueue(StoreUrl),
    /// The store does not support articles.
    #[error(
        "articles need Redis or SQLite, but the store is {0}; use --store redis://HOST or --store \
         sqlite:PATH"
    )]
    NoArticles(StoreUrl),
    /// The store does not support feeds.
    #[error(
        "\"feeds\" needs Redis or SQLite, but the store is {0}; use --store redis://HOST or \
         --store sqlite:PATH"
    )]
    NoFeeds(StoreUrl),
    /// The store does not support messages.
    #[error("the store {0} cannot hold messages; use sqlite:PATH or postgres://…")]
    NoInbox(StoreUrl),
    /// The store does not support batches.
    #[error(
        "batches need RabbitMQ or SQLite, but the store is {0}; set a broker with \
         commoncrawl.rabbitmq_url or RABBITMQ_CONNECTION_STRING, or use --store sqlite:PATH"
    )]
    NoBatches(StoreUrl),
    /// The store does not support a page cache.
    #[error("cannot cache pages in {0}; set pages.cache to a Redis server: redis://…")]
    NoPageCache(StoreUrl),
    /// The store is not a file.
    #[error("the store {0} is not supported by this command; use sqlite:PATH")]
    NoFile(StoreUrl),
    /// The store is bound to another politeness store.
    #[error(
        "{store} keeps the pace of sites in {bound}, not in {named}; use that one with \
         --politeness, or another --store"
    )]
    OtherPoliteness {
        /// The store.
        store: StoreUrl,
        /// The politeness store that it was first used with.
        bound: String,
        /// The politeness store that was given this time.
        named: String,
    },
    /// The data of `serve` was moved to another store.
    #[error("the data of \"serve\" in {0} was moved to {1}; use --store with that address")]
    Moved(StoreUrl, String),
    /// This build lacks the Cargo feature for the server.
    #[error(
        "this fetchwell was built without {0}; build it with --features {1}, or use the package, \
         which has every feature"
    )]
    NotBuilt(&'static str, &'static str),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The path of a file could not be made absolute.
    #[error(transparent)]
    Path(#[from] io::Error),
}

/// The result of opening a store.
pub type Opened<T> = Result<T, OpenError>;

/// A queue, and how to work on it.
#[derive(Clone, Debug)]
pub struct QueueRules {
    /// The name of the queue.
    pub name: String,
    /// The name of its dead-letter list, for stores that share it with other programs.
    pub dead_letters: String,
    /// An instance that does not renew its lease for this long is considered dead.
    pub lease_ttl: Duration,
    /// How often to check an empty queue for jobs from other processes.
    pub poll: Duration,
    /// Whether a run ends when the queue is empty.
    pub run_once: bool,
    /// Whether opening the queue binds its store to the given politeness store. Required for fetching.
    pub binds_politeness: bool,
}

/// A store, and the politeness store used with it. Each method opens one port, or fails if the store does not support
/// it.
pub struct Store {
    url: StoreUrl,
    /// `None` if the store itself keeps it.
    politeness: Option<StoreUrl>,
    kind: Kind,
}

enum Kind {
    Sqlite(PathBuf),
    #[cfg(feature = "postgres")]
    Postgres(SecretUrl),
    #[cfg(feature = "redis")]
    Redis(SecretUrl),
}

impl Store {
    /// Does not open the store yet.
    pub fn new(url: &StoreUrl, politeness: Option<&StoreUrl>) -> Opened<Store> {
        let kind = match url.clone() {
            StoreUrl::Sqlite(path) => Kind::Sqlite(path),
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(url) => Kind::Postgres(url),
            #[cfg(not(feature = "postgres"))]
            StoreUrl::Postgres(_) => return Err(OpenError::NotBuilt("PostgreSQL", "postgres")),
            #[cfg(feature = "redis")]
            StoreUrl::Redis(url) => Kind::Redis(url),
            #[cfg(not(feature = "redis"))]
            StoreUrl::Redis(_) => return Err(OpenError::NotBuilt("Redis", "redis")),
        };
        Ok(Store { url: url.clone(), politeness: politeness.cloned(), kind })
    }

    /// The clock of the engine. A server has its own clock; its times are converted to this one.
    pub async fn clock(&self) -> Opened<Clock> {
        match &self.kind {
            Kind::Sqlite(path) => Ok(open_file(path, Durability::Process).await?.1),
            #[cfg(any(feature = "postgres", feature = "redis"))]
            _ => Ok(local_clock()),
        }
    }

    /// The politeness state of sites.
    pub async fn politeness(&self, rule: BreakerRule, seed: u64) -> Opened<Arc<dyn Sites>> {
        Ok(match &self.kind {
            Kind::Sqlite(path) => {
                let (db, clock) = open_file(path, Durability::Process).await?;
                Arc::new(SqlitePoliteness::new(db, clock, rule, seed))
            }
            #[cfg(feature = "postgres")]
            Kind::Postgres(url) => {
                let site_states = PostgresSiteStates::open(url.reveal()).await?;
                Arc::new(SharedPoliteness::new(site_states, local_clock(), rule, seed))
            }
            #[cfg(feature = "redis")]
            Kind::Redis(url) => {
                let site_states = RedisSiteStates::open(url.reveal()).await?;
                Arc::new(SharedPoliteness::new(site_states, local_clock(), rule, seed))
            }
        })
    }

    /// Like `politeness`, but read-only. `None` if the store does not exist yet or if opening it would change it.
    pub async fn politeness_to_read(
        &self,
        rule: BreakerRule,
        seed: u64,
    ) -> Opened<Option<Arc<dyn Sites>>> {
        Ok(match &self.kind {
            Kind::Sqlite(path) if !path.exists() => None,
            Kind::Sqlite(path) => {
                let db = Db::open_for_reading(path)?;
                let clock = sqlite::clock(&db).await?;
                Some(Arc::new(SqlitePoliteness::new(db, clock, rule, seed)))
            }
            // Opening it would migrate its tables.
            #[cfg(feature = "postgres")]
            Kind::Postgres(_) => None,
            #[cfg(feature = "redis")]
            Kind::Redis(_) => Some(self.politeness(rule, seed).await?),
        })
    }

    /// Counts the jobs that wait for sites: in all queues, or only in this one if the store does not know its queues.
    #[cfg_attr(
        not(feature = "redis"),
        expect(unused_variables, reason = "databases know their queues")
    )]
    pub async fn waiting(&self, list: &QueueRules) -> Opened<Arc<dyn Waiting>> {
        Ok(match &self.kind {
            Kind::Sqlite(path) => {
                Arc::new(SqliteWaiting::new(sqlite::open(path, Durability::Process)?))
            }
            #[cfg(feature = "postgres")]
            Kind::Postgres(url) => Arc::new(Database::open(url.reveal()).await?),
            #[cfg(feature = "redis")]
            Kind::Redis(url) => Arc::new(open_redis_queue(url, list).await?),
        })
    }

    /// A queue of URLs.
    pub async fn url_queue(&self, rules: &QueueRules) -> Opened<Arc<dyn UrlQueue>> {
        match &self.kind {
            Kind::Sqlite(path) => {
                let (db, clock) = match rules.binds_politeness {
                    true => self.open_bound(path).await?,
                    false => open_file(path, Durability::Disk).await?,
                };
                let QueueRules { name, lease_ttl, run_once, poll, .. } = rules;
                let queue = SqliteQueue::open(db, name, clock, *lease_ttl, *run_once).await?;
                Ok(Arc::new(queue.polled_every(*poll)))
            }
            #[cfg(feature = "postgres")]
            Kind::Postgres(_) => Err(OpenError::NoUrlQueue(self.url.clone())),
            #[cfg(feature = "redis")]
            Kind::Redis(url) => {
                let queue = open_redis_queue(url, rules).await?;
                if rules.binds_politeness {
                    let named = self.politeness_name()?;
                    self.compare(queue.bind_politeness(&named).await?, named)?;
                }
                Ok(Arc::new(queue))
            }
        }
    }

    /// Opens links by category, and articles.
    pub async fn articles(&self) -> Opened<(Arc<dyn CategoryLinks>, Arc<dyn Articles>)> {
        Ok(match &self.kind {
            Kind::Sqlite(path) => {
                let (db, clock) = open_file(path, Durability::Disk).await?;
                let links = SqliteLinks::new(db.clone(), clock.clone());
                (Arc::new(links), Arc::new(SqliteArticles::new(db, clock)))
            }
            #[cfg(feature = "postgres")]
            Kind::Postgres(_) => return Err(OpenError::NoArticles(self.url.clone())),
            #[cfg(feature = "redis")]
            Kind::Redis(url) => {
                let clock = StoreClock::Server(local_clock());
                let articles = RedisArticles::open(url.reveal(), clock).await?;
                (Arc::new(RedisLinks::open(url.reveal()).await?), Arc::new(articles))
            }
        })
    }

    /// Opens feeds, and links by category.
    pub async fn feeds(&self) -> Opened<(Arc<dyn Feeds>, Arc<dyn CategoryLinks>)> {
        Ok(match &self.kind {
            Kind::Sqlite(path) => {
                let (db, clock) = self.open_bound(path).await?;
                let feeds = SqliteFeeds::new(db.clone());
                (Arc::new(feeds), Arc::new(SqliteLinks::new(db, clock)))
            }
            #[cfg(feature = "postgres")]
            Kind::Postgres(_) => return Err(OpenError::NoFeeds(self.url.clone())),
            #[cfg(feature = "redis")]
            Kind::Redis(url) => {
                let feeds = RedisFeeds::open(url.reveal()).await?;
                (Arc::new(feeds), Arc::new(RedisLinks::open(url.reveal()).await?))
            }
        })
    }

    /// Opens everything that a retriever needs, and the clock of its engine.
    pub async fn retriever(
        &self,
        lease_ttl: Duration,
        poll: Duration,
    ) -> Opened<(RetrieverStore, Clock)> {
        match &self.kind {
            Kind::Sqlite(path) => {
                let (db, clock) = self.open_bound(path).await?;
                if let Some(to) = sqlite::moved_to(&db).await? {
                    return Err(OpenError::Moved(self.url.clone(), to));
                }
                let store = sqlite::open_retriever(path, clock.clone(), lease_ttl, poll).await?;
                Ok((store, clock))
            }
            #[cfg(feature = "postgres")]
            Kind::Postgres(url) => {
                let db = self.open_bound_database(url).await?;
                let clock = local_clock();
                let by = StoreClock::Server(clock.clone());
                let store = postgres::open_retriever(db, by, lease_ttl, poll).await?;
                Ok((store, clock))
            }
            #[cfg(feature = "redis")]
            Kind::Redis(_) => Err(OpenError::NoInbox(self.url.clone())),
        }
    }

    /// A page cache.
    pub async fn page_cache(&self) -> Opened<Arc<dyn PageCache>> {
        match &self.kind {
            Kind::Sqlite(path) => {
                // It shares a file with the queue, whose settling commit waits for the disk and thereby covers this
                // one, too.
                let (db, clock) = open_file(path, Durability::Process).await?;
                Ok(Arc::new(SqlitePages::new(db, clock)))
            }
            #[cfg(feature = "postgres")]
            Kind::Postgres(_) => Err(OpenError::NoPageCache(self.url.clone())),
            #[cfg(feature = "redis")]
            Kind::Redis(url) => Ok(Arc::new(RedisPages::open(url.reveal()).await?)),
        }
    }

    /// A queue of batches.
    pub async fn batches(&self, name: &str, lease_ttl: Duration) -> Opened<Arc<dyn BatchQueue>> {
        match &self.kind {
            Kind::Sqlite(path) => {
                let (db, clock) = self.open_bound(path).await?;
                Ok(Arc::new(SqliteQueue::open(db, name, clock, lease_ttl, false).await?))
            }
            #[cfg(any(feature = "postgres", feature = "redis"))]
            _ => Err(OpenError::NoBatches(self.url.clone())),
        }
    }

    /// Opens the file, for queues that only SQLite supports.
    pub async fn queue_file(&self) -> Opened<Db> {
        match &self.kind {
            Kind::Sqlite(path) => Ok(self.open_bound(path).await?.0),
            #[cfg(any(feature = "postgres", feature = "redis"))]
            _ => Err(OpenError::NoFile(self.url.clone())),
        }
    }

    /// Moves all data of a retriever from a file to a database.
    #[cfg(feature = "postgres")]
    pub async fn migrate_to(&self, other: &Store) -> Opened<Moved> {
        let (Kind::Sqlite(path), Kind::Postgres(url)) = (&self.kind, &other.kind) else {
            return Ok(Moved::Impossible);
        };
        if !path.exists() {
            return Ok(Moved::NoFile(path.clone()));
        }
        let (file, clock) = self.open_bound(path).await?;
        let database = other.open_bound_database(url).await?;
        Ok(move_retriever(&file, &clock, &database, &other.url.to_string()).await?)
    }

    /// Checks the store for `doctor`: the findings, and the time on the clock of a server. Changes nothing, and
    /// creates nothing.
    #[cfg_attr(
        not(feature = "redis"),
        expect(unused_variables, reason = "only Redis is judged differently as a cache")
    )]
    pub async fn examine(
        &self,
        check: &str,
        used_as: StoreUse,
    ) -> Opened<(Vec<Finding>, Option<Time>)> {
        Ok(match &self.kind {
            Kind::Sqlite(path) => (vec![sqlite::examine(path)?.judge(check, path)], None),
            #[cfg(feature = "postgres")]
            Kind::Postgres(url) => {
                let facts = postgres::examine(url.reveal()).await?;
                (facts.judge(check), Some(facts.now))
            }
            #[cfg(feature = "redis")]
            Kind::Redis(url) => {
                let facts = redis::examine(url.reveal()).await?;
                (facts.judge(check, used_as), Some(facts.now))
            }
        })
    }

    /// Opens a file and binds it to one politeness store: the first one that it was used with.
    async fn open_bound(&self, path: &Path) -> Opened<(Db, Clock)> {
        let (db, clock) = open_file(path, Durability::Disk).await?;
        let named = self.politeness_name()?;
        self.compare(sqlite::bind_politeness(&db, &named).await?, named)?;
        Ok((db, clock))
    }

    /// Opens a database and binds it in the same way.
    #[cfg(feature = "postgres")]
    async fn open_bound_database(&self, url: &SecretUrl) -> Opened<Database> {
        let db = Database::open(url.reveal()).await?;
        let named = self.politeness_name()?;
        self.compare(postgres::bind_politeness(&db, &named).await?, named)?;
        Ok(db)
    }

    /// The name of the politeness store, as the store records it.
    fn politeness_name(&self) -> io::Result<String> {
        let another = self.politeness.as_ref().filter(|politeness| **politeness != self.url);
        Ok(match another {
            None => "the store itself".to_owned(),
            Some(politeness) => match politeness.file() {
                Some(path) => format!("sqlite:{}", std::path::absolute(path)?.display()),
                None => politeness.to_string(),
            },
        })
    }

    fn compare(&self, bound: String, named: String) -> Opened<()> {
        if bound == named {
            return Ok(());
        }
        Err(OpenError::OtherPoliteness { store: self.url.clone(), bound, named })
    }
}

async fn open_file(path: &Path, durability: Durability) -> Opened<(Db, Clock)> {
    let db = sqlite::open(path, durability)?;
    let clock = sqlite::clock(&db).await?;
    Ok((db, clock))
}

#[cfg(feature = "redis")]
async fn open_redis_queue(url: &SecretUrl, rules: &QueueRules) -> Opened<RedisQueue> {
    let QueueRules { name, dead_letters, lease_ttl, run_once, poll, .. } = rules;
    let names = QueueNames { input: name.clone(), dead_letters: dead_letters.clone() };
    let clock = StoreClock::Server(local_clock());
    Ok(RedisQueue::open(url.reveal(), &names, clock, *lease_ttl, *run_once, *poll).await?)
}

/// The clock of the engine if the store is a server.
#[cfg(any(feature = "postgres", feature = "redis"))]
fn local_clock() -> Clock {
    Clock::since_boot(Clock::booted_at())
}

/// The event log in the store's file, or in the file `beside` if the store is a server.
pub async fn embedded_events(store: &StoreUrl, beside: &Path) -> Opened<SqliteEvents> {
    let (db, clock) = match store.file() {
        // The settling commit follows in the same file and waits for the disk.
        Some(path) => open_file(path, Durability::Process).await?,
        None => open_file(beside, Durability::Disk).await?,
    };
    Ok(SqliteEvents::new(db, clock))
}

/// The event log in a Kafka topic.
#[cfg_attr(not(feature = "kafka"), expect(unused_variables, reason = "there is no Kafka"))]
pub async fn kafka_events(servers: &str, topic: &str) -> Opened<Arc<dyn EventLog>> {
    cfg_select! {
        feature = "kafka" => Ok(Arc::new(KafkaLog::open(servers, topic).await?)),
        _ => Err(OpenError::NotBuilt("Kafka", "kafka")),
    }
}

/// A queue of batches at RabbitMQ. If `transient`, a queue that has to be created does not survive a broker restart.
#[cfg_attr(not(feature = "rabbitmq"), expect(unused_variables, reason = "there is no RabbitMQ"))]
pub async fn broker_batches(
    url: &SecretUrl,
    name: &str,
    transient: bool,
    clock: &Clock,
) -> Opened<Arc<dyn BatchQueue>> {
    cfg_select! {
        feature = "rabbitmq" => {
            Ok(Arc::new(RabbitQueue::open(url.reveal(), name, transient, clock.clone()).await?))
        }
        _ => Err(OpenError::NotBuilt("RabbitMQ", "rabbitmq")),
    }
}
