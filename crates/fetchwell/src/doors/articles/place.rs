//! What the door stands on: links, articles, and a queue by which links are claimed.

use std::sync::Arc;

use fetchwell_engine::ports::articles::Articles;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::Settle;
use fetchwell_engine::ports::job::NewJob;
use fetchwell_engine::ports::links::CategoryLinks;
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_engine::ports::source::Source;
use fetchwell_engine::ports::store_url::StoreUrl;
use fetchwell_settings::Settings;
use fetchwell_sqlite::db::Durability;
#[cfg(feature = "redis")]
use fetchwell_stores::redis::{RedisArticles, RedisLinks, RedisQueue};
use fetchwell_stores::sqlite::{self, SqliteArticles, SqliteLinks, SqliteQueue};

use crate::console::exit::Exit;
#[cfg(feature = "redis")]
use crate::doors::redis_queues::{open_claims, server_clock};
use crate::plant::open_queue_db;

/// The queue of links that a run has found to be new.
pub(crate) const QUEUE: &str = "rss:canonical_queue";
/// Links put into the queue in one transaction.
const CLAIMS_AT_ONCE: usize = 10_000;

/// What is read and written.
pub(super) struct Place {
    pub(super) links: Arc<dyn CategoryLinks>,
    pub(super) articles: Arc<dyn Articles>,
}

/// Links that are claimed, by where they are.
pub(super) enum Claims {
    #[cfg(feature = "redis")]
    Redis(RedisQueue),
    Sqlite(SqliteQueue),
}

impl Place {
    /// Opens what the settings name.
    pub(super) async fn open(settings: &Settings) -> Result<Place, Exit> {
        match &settings.values.store {
            #[cfg(feature = "redis")]
            StoreUrl::Redis(url) => {
                let articles = RedisArticles::open(url.reveal(), server_clock()).await?;
                let links = Arc::new(RedisLinks::open(url.reveal()).await?);
                Ok(Place { links, articles: Arc::new(articles) })
            }
            StoreUrl::Sqlite(path) => {
                let db = sqlite::open(path, Durability::Disk)?;
                let clock = sqlite::clock(&db).await?;
                let links = Arc::new(SqliteLinks::new(db.clone(), clock.clone()));
                Ok(Place { links, articles: Arc::new(SqliteArticles::new(db, clock)) })
            }
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(_) => Err(elsewhere(settings)),
        }
    }
}

impl Claims {
    /// Opens the queue. It ends when it is empty.
    pub(super) async fn open(settings: &Settings) -> Result<Claims, Exit> {
        let ttl = settings.values.lease_ttl;
        match &settings.values.store {
            #[cfg(feature = "redis")]
            StoreUrl::Redis(url) => Ok(Claims::Redis(open_claims(settings, url.reveal()).await?)),
            StoreUrl::Sqlite(_) => {
                let db = open_queue_db(settings).await?;
                let clock = sqlite::clock(&db).await?;
                Ok(Claims::Sqlite(SqliteQueue::open(db, QUEUE, clock, ttl, true).await?))
            }
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(_) => Err(elsewhere(settings)),
        }
    }

    /// Puts links in, each unless it is there.
    pub(super) async fn put(&self, mut jobs: Vec<NewJob>) -> Result<(), StoreError> {
        while !jobs.is_empty() {
            let rest = jobs.split_off(jobs.len().min(CLAIMS_AT_ONCE));
            match self {
                #[cfg(feature = "redis")]
                Claims::Redis(queue) => queue.enqueue(jobs).await?,
                Claims::Sqlite(queue) => queue.enqueue(jobs).await?,
            };
            jobs = rest;
        }
        Ok(())
    }

    /// Joins as an instance: where leases come from, and where they end.
    pub(super) fn join(&self) -> (Arc<dyn Source>, Arc<dyn Settle>) {
        match self {
            #[cfg(feature = "redis")]
            Claims::Redis(queue) => {
                let instance = Arc::new(queue.instance());
                (instance.clone(), instance)
            }
            Claims::Sqlite(queue) => {
                let instance = Arc::new(queue.instance());
                (instance.clone(), instance)
            }
        }
    }

    /// How many links stand where.
    pub(super) async fn ledger(&self) -> Result<Ledger, StoreError> {
        match self {
            #[cfg(feature = "redis")]
            Claims::Redis(queue) => queue.ledger().await,
            Claims::Sqlite(queue) => queue.ledger().await,
        }
    }
}

#[cfg(feature = "postgres")]
fn elsewhere(settings: &Settings) -> Exit {
    Exit::Usage(format!(
        "articles need Redis or SQLite, but the store is {}; use --store redis://HOST or --store \
         sqlite:PATH",
        settings.values.store
    ))
}
