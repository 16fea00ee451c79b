//! The list that `pages` takes URLs from, for those who are not `pages`.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::dead_letters::DeadLetters;
use fetchwell_engine::ports::rounds::Rounds;
use fetchwell_engine::ports::store_url::StoreUrl;
use fetchwell_settings::Settings;
use fetchwell_sqlite::db::Db;
#[cfg(feature = "redis")]
use fetchwell_stores::redis::RedisQueue;
use fetchwell_stores::sqlite::{self, SqliteQueue};

#[cfg(feature = "redis")]
use super::redis_queues;
use crate::console::exit::Exit;

/// The list, by where it is.
#[derive(Clone)]
pub(crate) enum UrlList {
    /// On a server that many share.
    #[cfg(feature = "redis")]
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
            #[cfg(feature = "redis")]
            StoreUrl::Redis(url) => {
                let queue = redis_queues::open_list(settings, url.reveal()).await?;
                Ok(UrlList::Redis(queue))
            }
            StoreUrl::Sqlite(_) => {
                let db = open_file().await?;
                let clock = sqlite::clock(&db).await?;
                let (name, ttl) = (&values.pages_input_queue, values.lease_ttl);
                let queue = SqliteQueue::open(db, name, clock, ttl, false).await?;
                Ok(UrlList::Sqlite(queue.polled_every(poll(settings))))
            }
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(_) => Err(Exit::Usage(format!(
                "\"pages\" needs Redis or SQLite, but the store is {}; use --store redis://HOST or \
                 --store sqlite:PATH",
                values.store
            ))),
        }
    }

    /// Those who were given up, for those who look after them.
    pub(crate) fn dead_letters(&self) -> Arc<dyn DeadLetters> {
        match self {
            #[cfg(feature = "redis")]
            UrlList::Redis(queue) => Arc::new(queue.clone()),
            UrlList::Sqlite(queue) => Arc::new(queue.clone()),
        }
    }

    /// The list as a schedule uses it.
    pub(crate) fn rounds(&self) -> Arc<dyn Rounds> {
        match self {
            #[cfg(feature = "redis")]
            UrlList::Redis(queue) => Arc::new(queue.clone()),
            UrlList::Sqlite(queue) => Arc::new(queue.clone()),
        }
    }
}

/// The list is looked at at least this often.
const LONGEST_POLL: Duration = Duration::from_millis(500);

/// How often the list is looked at while it is empty.
pub(crate) fn poll(settings: &Settings) -> Duration {
    settings.values.pages_poll_timeout.min(LONGEST_POLL)
}
