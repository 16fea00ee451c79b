//! Where sites are looked after, by the settings.

use std::sync::Arc;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::inbox::Inbox;
use fetchwell_engine::ports::sites::{Sites, Waiting};
use fetchwell_engine::ports::store_url::StoreUrl;
use fetchwell_service::sites::SiteDesk;
use fetchwell_settings::Settings;
use fetchwell_sqlite::db::Durability;
use fetchwell_stores::sqlite;

use crate::console::exit::Exit;
use crate::plant::gate_rules;

/// On a politeness store, and on the queues that the settings name.
pub(crate) async fn open_sites(
    settings: &Settings,
    sites: Arc<dyn Sites>,
    audit: Option<Arc<dyn Inbox>>,
    clock: Clock,
) -> Result<SiteDesk, Exit> {
    let waiting = open_waiting(settings).await?;
    let rules = gate_rules(settings, None);
    let may_unpace = settings.values.i_own_these_sites;
    Ok(SiteDesk::new(sites, waiting, audit, rules, clock, may_unpace))
}

async fn open_waiting(settings: &Settings) -> Result<Arc<dyn Waiting>, Exit> {
    Ok(match &settings.values.store {
        StoreUrl::Sqlite(path) => {
            let db = sqlite::open(path, Durability::Process)?;
            Arc::new(sqlite::SqliteWaiting::new(db))
        }
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(url) => {
            Arc::new(fetchwell_stores::postgres::Database::open(url.reveal()).await?)
        }
        #[cfg(feature = "redis")]
        StoreUrl::Redis(url) => {
            Arc::new(crate::doors::redis_queues::open_list(settings, url.reveal()).await?)
        }
    })
}
