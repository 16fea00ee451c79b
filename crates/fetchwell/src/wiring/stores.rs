//! Opens the stores of the settings, as ports.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_doors::articles::ArticlePorts;
use fetchwell_doors::feeds::FeedPorts;
use fetchwell_doors::pages::PagePorts;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::articles::Articles;
use fetchwell_engine::ports::batches::BatchQueue;
use fetchwell_engine::ports::event_log::EventLog;
use fetchwell_engine::ports::page_cache::PageCache;
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_engine::ports::sites::Sites;
use fetchwell_engine::ports::store_url::StoreUrl;
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_engine::seed::random_seed;
use fetchwell_service::audit::AuditLog;
use fetchwell_service::sites::SiteService;
use fetchwell_settings::Settings;
use fetchwell_sqlite::db::Db;
use fetchwell_stores::open::{self, OpenError, Opened, QueueRules, Store};
use fetchwell_stores::sqlite::SqliteEvents;

use crate::console::exit::Exit;
use crate::wiring::{breaker_rule, gate_rules};

/// The queue of links that `articles` has claimed.
const CLAIMS: &str = "rss:canonical_queue";
/// The dead-letter list of that queue; it stays empty.
const CLAIMS_GIVEN_UP: &str = "rss:canonical_queue_given_up";
/// The longest interval between checks of an empty queue.
const LONGEST_POLL: Duration = Duration::from_millis(500);

/// The store of the settings, with its politeness store.
pub(crate) fn store(settings: &Settings) -> Opened<Store> {
    let values = &settings.values;
    Store::new(&values.store, values.politeness.as_ref())
}

/// Opens the politeness store of the settings, or the store itself.
pub(crate) async fn open_politeness(settings: &Settings) -> Result<Arc<dyn Sites>, Exit> {
    let store = Store::new(politeness_store(settings), None)?;
    Ok(store.politeness(breaker_rule(settings), random_seed()).await?)
}

/// The same, for commands that only read it. `None` if it does not exist yet, or if opening it would change it.
pub(crate) async fn open_politeness_to_read(
    settings: &Settings,
) -> Result<Option<Arc<dyn Sites>>, Exit> {
    let store = Store::new(politeness_store(settings), None)?;
    Ok(store.politeness_to_read(breaker_rule(settings), random_seed()).await?)
}

/// The store that keeps the pace of sites.
pub(crate) fn politeness_store(settings: &Settings) -> &StoreUrl {
    settings.values.politeness.as_ref().unwrap_or(&settings.values.store)
}

/// The clock of the flow. For a server it is a local one, to which the server's times are converted.
pub(crate) async fn store_clock(settings: &Settings) -> Result<Clock, Exit> {
    Ok(store(settings)?.clock().await?)
}

/// Opens the store's file for a queue. The file stays bound to the politeness store it was first used with.
pub(crate) async fn open_queue_db(settings: &Settings) -> Result<Db, Exit> {
    Ok(store(settings)?.queue_file().await?)
}

/// Opens the URL list of `pages`. Commands that fetch from it must bind its store to a politeness store.
pub(crate) async fn open_list(
    settings: &Settings,
    binds_politeness: bool,
) -> Result<Arc<dyn UrlQueue>, Exit> {
    Ok(store(settings)?.url_queue(&list_rules(settings, binds_politeness)).await?)
}

fn list_rules(settings: &Settings, binds_politeness: bool) -> QueueRules {
    let values = &settings.values;
    QueueRules {
        name: values.pages_input_queue.clone(),
        dead_letters: values.pages_dlq_queue.clone(),
        lease_ttl: values.lease_ttl,
        poll: values.pages_poll_timeout.min(LONGEST_POLL),
        run_once: false,
        binds_politeness,
    }
}

/// Opens the queue of links that `articles` has claimed. A run ends when it is empty. Commands that fetch them must
/// bind their store to a politeness store.
pub(crate) async fn open_claims(
    settings: &Settings,
    binds_politeness: bool,
) -> Result<Arc<dyn UrlQueue>, Exit> {
    let rules = QueueRules {
        name: CLAIMS.to_owned(),
        dead_letters: CLAIMS_GIVEN_UP.to_owned(),
        poll: LONGEST_POLL,
        run_once: true,
        ..list_rules(settings, binds_politeness)
    };
    Ok(store(settings)?.url_queue(&rules).await?)
}

/// Opens the queues of a store that does not know them all, each with its name, for commands that fetch nothing. The
/// list of `pages` comes first.
pub(crate) async fn open_queues(
    settings: &Settings,
) -> Result<Vec<(String, Arc<dyn UrlQueue>)>, Exit> {
    let list = open_list(settings, false).await?;
    let claims = open_claims(settings, false).await?;
    Ok(vec![(settings.values.pages_input_queue.clone(), list), (CLAIMS.to_owned(), claims)])
}

/// Opens the queue, the page cache and the event log of `pages`, each on a server or embedded.
pub(crate) async fn open_pages(settings: &Settings) -> Result<PagePorts, Exit> {
    Ok(PagePorts {
        queue: open_list(settings, true).await?,
        cache: open_page_cache(settings).await?,
        log: open_events(settings).await?,
    })
}

/// Opens the page cache of the settings, or the one in the store.
pub(crate) async fn open_page_cache(settings: &Settings) -> Result<Arc<dyn PageCache>, Exit> {
    let values = &settings.values;
    let store = match &values.pages_cache {
        // A file can only hold a cache together with its queue.
        Some(named) if named.file().is_some() => {
            return Err(OpenError::NoPageCache(named.clone()).into());
        }
        Some(named) => named,
        None => &values.store,
    };
    Ok(Store::new(store, None)?.page_cache().await?)
}

async fn open_events(settings: &Settings) -> Result<Arc<dyn EventLog>, Exit> {
    let values = &settings.values;
    match &values.pages_kafka_bootstrap_servers {
        Some(servers) => Ok(open::kafka_events(servers, &values.pages_webpage_log_topic).await?),
        None => Ok(Arc::new(open_embedded_events(settings).await?)),
    }
}

/// Opens the event log that is used without Kafka.
pub(crate) async fn open_embedded_events(settings: &Settings) -> Result<SqliteEvents, Exit> {
    let values = &settings.values;
    Ok(open::embedded_events(&values.store, &values.pages_embedded).await?)
}

/// Opens the queue of batches, on the broker if one is set.
pub(crate) async fn open_batches(
    settings: &Settings,
    clock: &Clock,
) -> Result<Arc<dyn BatchQueue>, Exit> {
    let values = &settings.values;
    let name = &values.commoncrawl_queue;
    let Some(url) = &values.commoncrawl_rabbitmq_url else {
        return Ok(store(settings)?.batches(name, values.lease_ttl).await?);
    };
    let transient = values.commoncrawl_queue_transient;
    Ok(open::broker_batches(url, name, transient, clock).await?)
}

pub(crate) async fn open_feeds(settings: &Settings) -> Result<FeedPorts, Exit> {
    let (feeds, links) = store(settings)?.feeds().await?;
    Ok(FeedPorts { feeds, links })
}

pub(crate) async fn open_articles(settings: &Settings) -> Result<ArticlePorts, Exit> {
    let (links, articles) = store(settings)?.articles().await?;
    Ok(ArticlePorts { links, articles })
}

/// Opens the articles; `None` if this kind of store has none.
pub(crate) async fn open_articles_if_any(
    settings: &Settings,
) -> Result<Option<Arc<dyn Articles>>, Exit> {
    match store(settings)?.articles().await {
        Err(OpenError::NoArticles(_)) => Ok(None),
        opened => Ok(Some(opened?.1)),
    }
}

/// Opens the service that manages sites, on a politeness store and the queues of the settings.
pub(crate) async fn open_sites(
    settings: &Settings,
    sites: Arc<dyn Sites>,
    audit: Option<AuditLog>,
    clock: Clock,
) -> Result<SiteService, Exit> {
    let waiting = store(settings)?.waiting(&list_rules(settings, false)).await?;
    let rules = gate_rules(settings, None);
    let may_unpace = settings.values.i_own_these_sites;
    Ok(SiteService::new(sites, waiting, audit, rules, clock, may_unpace))
}

/// Opens the store as a retriever, with its clock.
pub(crate) async fn open_retriever(settings: &Settings) -> Opened<(RetrieverStore, Clock)> {
    let values = &settings.values;
    store(settings)?.retriever(values.lease_ttl, values.retriever_inbox_poll_interval).await
}

/// The same; `None` if this kind of store has no inbox.
pub(crate) async fn open_retriever_if_any(
    settings: &Settings,
) -> Opened<Option<(RetrieverStore, Clock)>> {
    match open_retriever(settings).await {
        Err(OpenError::NoInbox(_)) => Ok(None),
        opened => opened.map(Some),
    }
}
