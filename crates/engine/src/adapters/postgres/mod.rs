//! PostgreSQL: what many machines share, in tables whose names begin with `fetchwell_`.

mod connections;
mod schema;
mod shelf;

pub use shelf::PostgresShelf;

use crate::adapters::shared::Vigilant;
use crate::ports::StoreFault;

/// Connects to the server that a `postgres://` address names, for politeness.
pub async fn open_shelf(url: &str) -> Result<Vigilant<PostgresShelf>, StoreFault> {
    Ok(Vigilant::new(PostgresShelf::open(url).await?))
}
