//! The store that the settings name, as a retriever uses it.

use fetchwell_engine::adapters::{postgres, sqlite};
use fetchwell_engine::clock::Clock;
use fetchwell_engine::inbox::RetrieverStore;

use crate::cli::Exit;
use crate::plant::{open_queue_database, open_queue_db};
use crate::settings::{Settings, StoreUrl};

/// Opens it.
pub(crate) async fn open_store(settings: &Settings) -> Result<(RetrieverStore, Clock), Exit> {
    let values = &settings.values;
    let (lease_ttl, poll) = (values.lease_ttl, values.retriever_inbox_poll_interval);
    match &values.store {
        StoreUrl::Sqlite(path) => {
            // A store keeps to the politeness store it was first used with, whoever uses it.
            let clock = sqlite::clock(&open_queue_db(settings).await?).await?;
            let store = sqlite::open_retriever(path, clock.clone(), lease_ttl, poll).await?;
            Ok((store, clock))
        }
        StoreUrl::Postgres(url) => {
            let db = open_queue_database(settings, url.reveal()).await?;
            let clock = Clock::since_boot(Clock::booted_at());
            let by = postgres::StoreClock::Server(clock.clone());
            let store = postgres::open_retriever(db, by, lease_ttl, poll).await?;
            Ok((store, clock))
        }
        StoreUrl::Redis(_) => Err(Exit::Usage(format!(
            "the store {} is no inbox; use sqlite:PATH or postgres://…",
            values.store
        ))),
    }
}
