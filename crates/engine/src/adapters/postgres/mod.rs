//! PostgreSQL: what many machines share, in tables whose names begin with `fetchwell_`.

mod callers;
mod connections;
mod database;
mod ending;
mod finish;
mod inbox;
mod keeper;
mod ledger;
mod meta;
mod moment;
mod moves;
mod new_row;
mod presence;
mod queue;
mod reading;
mod retention;
mod schema;
mod settling;
mod share;
mod submission;
mod submitting;
mod taking;

pub use database::Database;
pub use inbox::open_retriever;
pub use keeper::PostgresKeeper;
pub use meta::bind_politeness;
pub use moment::StoreClock;
pub use queue::{PostgresInstance, PostgresQueue};
pub use taking::{CLAIM, DUE};

use crate::adapters::shared::Vigilant;
use crate::ports::StoreFault;

/// Connects to the server that a `postgres://` address names, for politeness.
pub async fn open_keeper(url: &str) -> Result<Vigilant<PostgresKeeper>, StoreFault> {
    Ok(Vigilant::new(PostgresKeeper::open(url).await?))
}
