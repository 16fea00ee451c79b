//! What the door stands on: a queue, a page cache and a log of events, each on a server or embedded.

use std::path::Path;
use std::sync::Arc;

use fetchwell_engine::ports::event_log::EventLog;
use fetchwell_engine::ports::page_cache::PageCache;
use fetchwell_engine::ports::store_url::StoreUrl;
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_settings::Settings;
use fetchwell_sqlite::db::Durability;
#[cfg(feature = "kafka")]
use fetchwell_stores::kafka::KafkaLog;
#[cfg(feature = "redis")]
use fetchwell_stores::redis::RedisPages;
use fetchwell_stores::sqlite::{self, SqliteEvents, SqlitePages};
use tracing::warn;

use crate::console::exit::Exit;
use crate::wiring::open_list;

/// All of it.
pub(super) struct Place {
    pub(super) queue: Arc<dyn UrlQueue>,
    pub(super) cache: Arc<dyn PageCache>,
    pub(super) log: Arc<dyn EventLog>,
}

impl Place {
    /// Opens what the settings name.
    pub(super) async fn open(settings: &Settings) -> Result<Place, Exit> {
        let place = Place {
            queue: open_list(settings, true).await?,
            cache: open_cache(settings).await?,
            log: open_log(settings).await?,
        };
        warn_of_half_a_place(settings);
        Ok(place)
    }
}

/// Opens the log that the settings name.
async fn open_log(settings: &Settings) -> Result<Arc<dyn EventLog>, Exit> {
    let values = &settings.values;
    match &values.pages_kafka_bootstrap_servers {
        #[cfg(feature = "kafka")]
        Some(servers) => {
            Ok(Arc::new(KafkaLog::open(servers, &values.pages_webpage_log_topic).await?))
        }
        _ => Ok(Arc::new(open_embedded_log(settings).await?)),
    }
}

/// Opens the cache that the settings name.
pub(super) async fn open_cache(settings: &Settings) -> Result<Arc<dyn PageCache>, Exit> {
    let values = &settings.values;
    match (&values.pages_cache, &values.store) {
        #[cfg(feature = "redis")]
        (Some(StoreUrl::Redis(url)), _) | (None, StoreUrl::Redis(url)) => {
            Ok(Arc::new(RedisPages::open(url.reveal()).await?))
        }
        (None, StoreUrl::Sqlite(path)) => {
            // In the queue's file, where the commit that settles waits for the disk for this one, too.
            let db = sqlite::open(path, Durability::Process)?;
            let clock = sqlite::clock(&db).await?;
            Ok(Arc::new(SqlitePages::new(db, clock)))
        }
        (named, store) => Err(Exit::Usage(format!(
            "cannot cache pages in {}; set pages.cache to a Redis server: redis://…",
            named.as_ref().unwrap_or(store)
        ))),
    }
}

/// Opens the log that is used without Kafka.
pub(super) async fn open_embedded_log(settings: &Settings) -> Result<SqliteEvents, Exit> {
    let durability = match settings.values.store.file() {
        // The commit that settles comes after it in the same file, and waits for the disk.
        Some(_) => Durability::Process,
        None => Durability::Disk,
    };
    let db = sqlite::open(embedded_path(settings), durability)?;
    let clock = sqlite::clock(&db).await?;
    Ok(SqliteEvents::new(db, clock))
}

/// The file for what has no server.
fn embedded_path(settings: &Settings) -> &Path {
    settings.values.store.file().unwrap_or(&settings.values.pages_embedded)
}

/// Half of the design's servers is seldom meant.
fn warn_of_half_a_place(settings: &Settings) {
    let values = &settings.values;
    let (path, kafka) = (embedded_path(settings).display(), &values.pages_kafka_bootstrap_servers);
    match (&values.store, kafka) {
        #[cfg(feature = "redis")]
        (StoreUrl::Redis(_), None) => warn!(
            "no Kafka server is set, so events are stored in {path} on this machine; read them \
             with `fetchwell pages events`, or set pages.kafka_bootstrap_servers"
        ),
        (StoreUrl::Sqlite(_), Some(_)) => warn!(
            "no Redis server is set, so URLs and pages are stored in {path} on this machine; add \
             URLs with `fetchwell pages add`, or use --store redis://…"
        ),
        _ => {}
    }
}
