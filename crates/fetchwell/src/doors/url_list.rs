//! The list that `pages` takes URLs from.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::store_url::StoreUrl;
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_settings::Settings;
use fetchwell_sqlite::db::Durability;
use fetchwell_stores::sqlite::{self, SqliteQueue};

#[cfg(feature = "redis")]
use super::redis_queues;
use crate::console::exit::Exit;
#[cfg(feature = "redis")]
use crate::plant::bound_queue;
use crate::plant::open_queue_db;

/// Opens the list that the settings name. Whoever fetches what is on it keeps to one politeness store.
pub(crate) async fn open_list(
    settings: &Settings,
    is_bound: bool,
) -> Result<Arc<dyn UrlQueue>, Exit> {
    let values = &settings.values;
    match &values.store {
        #[cfg(feature = "redis")]
        StoreUrl::Redis(url) => {
            let queue = redis_queues::open_list(settings, url.reveal()).await?;
            Ok(Arc::new(if is_bound { bound_queue(settings, queue).await? } else { queue }))
        }
        StoreUrl::Sqlite(path) => {
            let db = match is_bound {
                true => open_queue_db(settings).await?,
                false => sqlite::open(path, Durability::Disk)?,
            };
            let clock = sqlite::clock(&db).await?;
            let name = &values.pages_input_queue;
            let queue = SqliteQueue::open(db, name, clock, values.lease_ttl, false).await?;
            Ok(Arc::new(queue.polled_every(poll(settings))))
        }
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(_) => Err(Exit::Usage(format!(
            "\"pages\" needs Redis or SQLite, but the store is {}; use --store redis://HOST or \
             --store sqlite:PATH",
            values.store
        ))),
    }
}

/// The list is looked at at least this often.
const LONGEST_POLL: Duration = Duration::from_millis(500);

/// How often the list is looked at while it is empty.
pub(crate) fn poll(settings: &Settings) -> Duration {
    settings.values.pages_poll_timeout.min(LONGEST_POLL)
}
