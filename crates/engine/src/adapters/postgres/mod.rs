//! PostgreSQL: what many machines share, in tables whose names begin with `fetchwell_`.

mod connections;
mod keeper;
mod schema;

pub use keeper::PostgresKeeper;

use crate::adapters::shared::Vigilant;
use crate::ports::StoreFault;

/// Connects to the server that a `postgres://` address names, for politeness.
pub async fn open_keeper(url: &str) -> Result<Vigilant<PostgresKeeper>, StoreFault> {
    Ok(Vigilant::new(PostgresKeeper::open(url).await?))
}
