//! The PostgreSQL adapter, which many machines can share. The names of its tables begin with `fetchwell_`.

mod batches;
mod bodies;
mod claiming;
mod connections;
mod database;
mod deliveries;
mod ending;
mod errors;
mod examination;
mod finish;
mod following;
mod id_stock;
pub(super) mod import;
mod inbox;
mod instance;
mod lanes;
mod ledger;
mod message_batches;
pub(super) mod message_row;
mod meta;
mod moves;
mod names;
mod new_row;
mod oversight;
mod presence;
mod queue;
mod reading;
mod retention;
mod rooms;
mod schema;
mod sent;
mod settling;
mod share;
mod sharing;
mod site_states;
mod submission;
mod submitting;
mod taking;
mod tokens;
mod waiting;

pub use claiming::CLAIM;
pub use database::Database;
pub use examination::{PostgresFacts, examine};
pub use inbox::open_retriever;
pub use instance::PostgresInstance;
pub use meta::bind_politeness;
pub use queue::PostgresQueue;
pub use site_states::PostgresSiteStates;
pub use taking::DUE;

/// Converts a number of rows to the server's type.
fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
