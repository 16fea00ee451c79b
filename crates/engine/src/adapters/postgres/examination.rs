//! What a PostgreSQL server says of itself, for those who look after it. Nothing is changed.

use fetchwell_policy::time::Time;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::connections::{Connections, within};
use super::database::options_of;
use crate::ports::StoreFault;

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresFacts {
    /// Its version.
    pub version: String,
    /// Whether it only repeats what another one writes.
    pub is_replica: bool,
    /// Whether what it confirms survives a power cut.
    pub is_durable: bool,
    /// How many connections it takes.
    pub max_connections: i64,
    /// What its clock shows.
    pub now: Time,
}

const QUESTION: &str = "SELECT current_setting('server_version'), pg_is_in_recovery(),
    current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on',
    current_setting('max_connections')::BIGINT,
    (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT";

/// Connects and asks.
pub async fn examine(url: &str) -> Result<PostgresFacts, StoreFault> {
    let connections = Connections::new(options_of(url)?);
    let mut taken = connections.take().await?;
    let row = within(sqlx::query(QUESTION).fetch_one(&mut *taken)).await;
    row.and_then(|row| facts(&row)).map_err(|error| connections.fault(&error))
}

fn facts(row: &PgRow) -> sqlx::Result<PostgresFacts> {
    Ok(PostgresFacts {
        version: row.try_get(0)?,
        is_replica: row.try_get(1)?,
        is_durable: row.try_get(2)?,
        max_connections: row.try_get(3)?,
        now: Time::from_micros(row.try_get(4)?),
    })
}
