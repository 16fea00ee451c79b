//! What the door stands on: a queue, a page cache and a log of events, each on a server or embedded.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::event_log::EventLog;
use fetchwell_engine::ports::finish::Finish;
use fetchwell_engine::ports::job::{Job, Lane, NewJob};
use fetchwell_engine::ports::page_cache::PageCache;
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_engine::ports::rounds::Rounds;
use fetchwell_engine::ports::source::Source;
use fetchwell_engine::ports::store_url::StoreUrl;
use fetchwell_policy::url::WebUrl;
use fetchwell_settings::Settings;
use fetchwell_sqlite::db::Durability;
#[cfg(feature = "kafka")]
use fetchwell_stores::kafka::KafkaLog;
#[cfg(feature = "redis")]
use fetchwell_stores::redis::{Backlog, RedisFinish, RedisPages};
use fetchwell_stores::sqlite::{self, SqliteEvents, SqliteFinish, SqlitePages};
use tracing::warn;

use super::finish::Written;
use super::metrics::Sizes;
#[cfg(feature = "redis")]
use super::put_back::put_back;
use super::record::PageRecord;
use crate::console::exit::Exit;
use crate::doors::url_list::UrlList;
#[cfg(feature = "redis")]
use crate::plant::bound_queue;
use crate::plant::open_queue_db;

/// URLs put into an embedded queue in one transaction.
const ADD_AT_ONCE: usize = 10_000;

/// All of it.
pub(super) struct Place {
    pub(super) queue: UrlList,
    pub(super) cache: Arc<dyn PageCache>,
    pub(super) log: Log,
}

impl Place {
    /// Opens what the settings name.
    pub(super) async fn open(settings: &Settings) -> Result<Place, Exit> {
        let place = Place {
            queue: open_list(settings).await?,
            cache: open_cache(settings).await?,
            log: Log::open(settings).await?,
        };
        warn_of_half_a_place(settings);
        Ok(place)
    }
}

/// Opens the list to work on it.
pub(super) async fn open_list(settings: &Settings) -> Result<UrlList, Exit> {
    let list = UrlList::open(settings, async || open_queue_db(settings).await).await?;
    #[cfg(feature = "redis")]
    if let UrlList::Redis(queue) = list {
        return Ok(UrlList::Redis(bound_queue(settings, queue).await?));
    }
    Ok(list)
}

/// Where events go.
pub(super) enum Log {
    /// To a topic.
    #[cfg(feature = "kafka")]
    Kafka(Arc<KafkaLog>),
    /// To a table.
    Embedded(Arc<SqliteEvents>),
}

impl UrlList {
    /// Joins it as an instance: where leases come from, and where they end.
    pub(super) fn join(&self) -> (Arc<dyn Source>, Arc<dyn Finish<PageRecord>>) {
        match self {
            UrlList::Sqlite(queue) => {
                let instance = Arc::new(queue.instance());
                let details = PageRecord::dead_letter_json;
                (instance.clone(), Arc::new(SqliteFinish { sink: Written, instance, details }))
            }
            #[cfg(feature = "redis")]
            UrlList::Redis(queue) => {
                let instance = Arc::new(queue.instance());
                let details = PageRecord::dead_letter_json;
                (instance.clone(), Arc::new(RedisFinish { sink: Written, instance, details }))
            }
        }
    }

    /// Puts URLs in, also those that make no sense: they become dead letters.
    pub(super) async fn add(&self, urls: &[String]) -> Result<(), StoreError> {
        match self {
            #[cfg(feature = "redis")]
            UrlList::Redis(queue) => queue.push(urls).await,
            UrlList::Sqlite(queue) => {
                for urls in urls.chunks(ADD_AT_ONCE) {
                    queue.enqueue(urls.iter().map(|url| job(url)).collect()).await?;
                }
                Ok(())
            }
        }
    }

    /// Whoever leaves last puts back on the list what waits outside of it, and what dead instances held. Waits until
    /// it is known who is the last.
    pub(super) async fn put_back_when_alone(&self) -> Result<(), StoreError> {
        match self {
            #[cfg(feature = "redis")]
            UrlList::Redis(queue) => put_back(queue.unparking_when_alone()).await.map(|_| ()),
            UrlList::Sqlite(_) => Ok(()),
        }
    }

    /// How many URLs stand where, at one moment.
    pub(super) async fn standing(&self) -> Result<UrlsStanding, StoreError> {
        Ok(match self {
            UrlList::Sqlite(queue) => {
                let ledger = queue.ledger().await?;
                let waiting = Rounds::waiting(queue).await?;
                let dead = u64::try_from(ledger.dead).unwrap_or(0);
                UrlsStanding { sizes: Sizes { waiting, dead }, ledger, on_list: None }
            }
            #[cfg(feature = "redis")]
            UrlList::Redis(queue) => {
                let Backlog { ledger, on_list, waiting, dead_list } = queue.backlog().await?;
                let sizes = Sizes { waiting, dead: dead_list };
                UrlsStanding { sizes, ledger, on_list: Some(on_list) }
            }
        })
    }

    /// How long ago the oldest URL was accepted that has not ended.
    pub(super) async fn waited_longest(&self) -> Result<Option<Duration>, StoreError> {
        match self {
            UrlList::Sqlite(queue) => queue.waited_longest().await,
            #[cfg(feature = "redis")]
            UrlList::Redis(queue) => queue.waited_longest().await,
        }
    }
}

/// How many URLs stand where.
#[derive(Clone, Copy, Debug)]
pub(super) struct UrlsStanding {
    pub(super) sizes: Sizes,
    /// Of those that were taken in.
    pub(super) ledger: Ledger,
    /// On a list that others see, before they are taken in.
    pub(super) on_list: Option<u64>,
}

impl Log {
    /// Opens the log that the settings name.
    async fn open(settings: &Settings) -> Result<Log, Exit> {
        let values = &settings.values;
        match &values.pages_kafka_bootstrap_servers {
            #[cfg(feature = "kafka")]
            Some(servers) => {
                let log = KafkaLog::open(servers, &values.pages_webpage_log_topic).await?;
                Ok(Log::Kafka(Arc::new(log)))
            }
            _ => Ok(Log::Embedded(Arc::new(open_embedded_log(settings).await?))),
        }
    }

    /// Takes out events that are older than that. Kafka does it by itself.
    pub(super) async fn sweep(&self, keep: Duration) -> Result<(), StoreError> {
        match self {
            #[cfg(feature = "kafka")]
            Log::Kafka(_) => Ok(()),
            Log::Embedded(log) => log.sweep(keep).await.map(|_| ()),
        }
    }

    /// Whether events could be published: asks Kafka for the topic.
    pub(super) async fn check(&self) -> Result<(), StoreError> {
        match self {
            #[cfg(feature = "kafka")]
            Log::Kafka(log) => log.check().await,
            Log::Embedded(_) => Ok(()),
        }
    }

    /// The log as the flow uses it.
    pub(super) fn as_port(&self) -> Arc<dyn EventLog> {
        match self {
            #[cfg(feature = "kafka")]
            Log::Kafka(log) => log.clone(),
            Log::Embedded(log) => log.clone(),
        }
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

fn job(url: &str) -> NewJob {
    let site = WebUrl::parse(url).ok().map(|parsed| parsed.site());
    let (lane, payload, deadline) = (Lane::default(), Vec::new(), None);
    NewJob::now(Job { url: url.to_owned(), site, lane, payload, deadline })
}
