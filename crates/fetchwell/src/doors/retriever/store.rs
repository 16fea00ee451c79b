//! The store that the settings name, as a retriever uses it.

use fetchwell_engine::adapters::sqlite;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::inbox::RetrieverStore;

use crate::cli::Exit;
use crate::plant::{open_queue_db, sqlite_path};
use crate::settings::Settings;

/// Opens it.
pub(super) async fn open_store(settings: &Settings) -> Result<(RetrieverStore, Clock), Exit> {
    // A store keeps to the politeness store it was first used with, whoever uses it.
    let clock = sqlite::clock(&open_queue_db(settings).await?).await?;
    let values = &settings.values;
    let path = sqlite_path(&values.store)?;
    let poll = values.retriever_inbox_poll_interval;
    let store = sqlite::open_retriever(path, clock.clone(), values.lease_ttl, poll).await?;
    Ok((store, clock))
}
