//! The store that the settings name, as a retriever uses it.

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_engine::ports::store_url::StoreUrl;
use fetchwell_settings::Settings;
#[cfg(feature = "postgres")]
use fetchwell_stores::postgres;
use fetchwell_stores::sqlite;

use crate::console::exit::Exit;
#[cfg(feature = "postgres")]
use crate::plant::open_queue_database;
use crate::plant::open_queue_db;

/// Opens it.
pub(crate) async fn open_store(settings: &Settings) -> Result<(RetrieverStore, Clock), Exit> {
    let values = &settings.values;
    let (lease_ttl, poll) = (values.lease_ttl, values.retriever_inbox_poll_interval);
    match &values.store {
        StoreUrl::Sqlite(path) => {
            // A store keeps to the politeness store it was first used with, whoever uses it.
            let db = open_queue_db(settings).await?;
            if let Some(to) = sqlite::moved_to(&db).await? {
                return Err(Exit::Usage(format!(
                    "the data of \"serve\" in {} was moved to {to}; use --store with that address",
                    values.store
                )));
            }
            let clock = sqlite::clock(&db).await?;
            let store = sqlite::open_retriever(path, clock.clone(), lease_ttl, poll).await?;
            Ok((store, clock))
        }
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(url) => {
            let db = open_queue_database(settings, url.reveal()).await?;
            let clock = Clock::since_boot(Clock::booted_at());
            let by = postgres::StoreClock::Server(clock.clone());
            let store = postgres::open_retriever(db, by, lease_ttl, poll).await?;
            Ok((store, clock))
        }
        #[cfg(feature = "redis")]
        StoreUrl::Redis(_) => Err(Exit::Usage(format!(
            "the store {} cannot hold messages; use sqlite:PATH or postgres://…",
            values.store
        ))),
    }
}
