//! PostgreSQL: what many machines share, in tables whose names begin with `fetchwell_`.

mod connections;
mod database;
mod keeper;
mod ledger;
mod moment;
mod moves;
mod new_row;
mod presence;
mod queue;
mod schema;
mod settling;
mod share;
mod taking;

pub use database::Database;
pub use keeper::PostgresKeeper;
pub use moment::StoreClock;
pub use queue::{PostgresInstance, PostgresQueue};

use crate::adapters::shared::Vigilant;
use crate::ports::StoreFault;

/// Connects to the server that a `postgres://` address names, for politeness.
pub async fn open_keeper(url: &str) -> Result<Vigilant<PostgresKeeper>, StoreFault> {
    Ok(Vigilant::new(PostgresKeeper::open(url).await?))
}
