//! The list that `pages` takes URLs from, for those who are not `pages`.

use std::time::Duration;

use fetchwell_engine::adapters::StoreClock;
use fetchwell_engine::adapters::redis::{DEFAULT_POLL, QueueNames, RedisQueue};
use fetchwell_engine::adapters::sqlite::{self, Db, SqliteQueue};
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::{Ledger, StoreFault};

use crate::cli::Exit;
use crate::settings::{Settings, StoreUrl};

/// The list, by where it is.
#[derive(Clone)]
pub(crate) enum UrlList {
    /// On a server that many share.
    Redis(RedisQueue),
    /// In a file.
    Sqlite(SqliteQueue),
}

impl UrlList {
    /// Opens the list that the settings name; `open_file` opens the file of an embedded one.
    pub(crate) async fn open(
        settings: &Settings,
        open_file: impl AsyncFnOnce() -> Result<Db, Exit>,
    ) -> Result<UrlList, Exit> {
        let values = &settings.values;
        match &values.store {
            StoreUrl::Redis(url) => Ok(UrlList::Redis(open_redis(settings, url.reveal()).await?)),
            StoreUrl::Sqlite(_) => {
                let db = open_file().await?;
                let clock = sqlite::clock(&db).await?;
                let (name, ttl) = (&values.pages_input_queue, values.lease_ttl);
                let queue = SqliteQueue::open(db, name, clock, ttl, false).await?;
                Ok(UrlList::Sqlite(queue.polled_every(poll(settings))))
            }
            StoreUrl::Postgres(_) => Err(Exit::Usage(format!(
                "\"pages\" keeps its URLs in Redis or SQLite, and the store is {}; \
                 name another with --store redis://HOST or --store sqlite:PATH",
                values.store
            ))),
        }
    }

    /// How many URLs stand where.
    pub(crate) async fn ledger(&self) -> Result<Ledger, StoreFault> {
        match self {
            UrlList::Redis(queue) => queue.ledger().await,
            UrlList::Sqlite(queue) => queue.ledger().await,
        }
    }

    /// Counts the URLs themselves and compares with the counters: `Err` with the difference.
    pub(crate) async fn audit(&self) -> Result<Result<Ledger, String>, StoreFault> {
        match self {
            UrlList::Redis(queue) => queue.audit().await,
            UrlList::Sqlite(queue) => queue.audit().await,
        }
    }
}

/// Opens the list on a server.
pub(crate) async fn open_redis(settings: &Settings, url: &str) -> Result<RedisQueue, Exit> {
    let values = &settings.values;
    let names = QueueNames {
        input: values.pages_input_queue.clone(),
        dead_letters: values.pages_dlq_queue.clone(),
    };
    let clock = StoreClock::Server(Clock::since_boot(Clock::booted_at()));
    Ok(RedisQueue::open(url, &names, clock, values.lease_ttl, false, poll(settings)).await?)
}

fn poll(settings: &Settings) -> Duration {
    settings.values.pages_poll_timeout.min(DEFAULT_POLL)
}
