//! Diagnostic facts about a PostgreSQL server. Read-only.

use fetchwell_engine::ports::error::StoreError;
use fetchwell_policy::time::Time;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::connections::{PgConnections, within};
use super::database::options_of;
use crate::finding::Finding;

/// Facts about a server.
#[derive(Clone, Debug)]
pub struct PostgresFacts {
    /// The version of the server.
    pub version: String,
    /// Whether it is a replica.
    pub is_replica: bool,
    /// Whether committed transactions survive a power failure.
    pub is_durable: bool,
    /// Its connection limit.
    pub max_connections: i64,
    /// The time on its clock.
    pub now: Time,
    /// Set if a newer program has changed the database, so that this one cannot use it.
    pub newer: Option<StoreError>,
}

impl PostgresFacts {
    /// Judges the server.
    pub(crate) fn judge(&self, check: &str) -> Vec<Finding> {
        if self.is_replica {
            return vec![Finding::fail(
                check,
                format!("PostgreSQL {} answers, but is a replica", self.version),
                "replicas are read-only",
                "use the address of the primary server",
            )];
        }
        if let Some(newer) = &self.newer {
            return vec![Finding::fail(
                check,
                format!("PostgreSQL {} answers; {newer}", self.version),
                "every command that uses it exits with code 2",
                "use the newer fetchwell, or restore a backup from before the upgrade",
            )];
        }
        let mut findings = vec![Finding::ok(check, format!("PostgreSQL {} answers", self.version))];
        if !self.is_durable {
            findings.push(Finding::warn(
                format!("{check}: durability"),
                "fsync or full_page_writes is off",
                "a power failure may corrupt the database, not only lose recent data",
                "set fsync = on and full_page_writes = on in postgresql.conf",
            ));
        }
        findings
    }
}

const QUESTION: &str = "SELECT current_setting('server_version'), pg_is_in_recovery(),
    current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on',
    current_setting('max_connections')::BIGINT,
    (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT";

/// NULL if no program has used the database yet.
const VERSION: &str = "SELECT max(version)::BIGINT FROM fetchwell_schema";
const HAS_VERSION: &str = "SELECT to_regclass('fetchwell_schema') IS NOT NULL";

/// Connects and collects the facts.
pub async fn examine(url: &str) -> Result<PostgresFacts, StoreError> {
    let connections = PgConnections::new(options_of(url)?);
    let mut taken = connections.take().await?;
    let row = within(sqlx::query(QUESTION).fetch_one(&mut *taken)).await;
    let mut facts = row.and_then(|row| facts(&row)).map_err(|error| connections.fault(error))?;
    let version = within(version(&mut taken)).await.map_err(|error| connections.fault(error))?;
    facts.newer = connections.refuse_newer(version).err();
    Ok(facts)
}

async fn version(connection: &mut PgConnection) -> sqlx::Result<i64> {
    let is_there: bool = sqlx::query_scalar(HAS_VERSION).fetch_one(&mut *connection).await?;
    if !is_there {
        return Ok(0);
    }
    let version: Option<i64> = sqlx::query_scalar(VERSION).fetch_one(connection).await?;
    Ok(version.unwrap_or(0))
}

fn facts(row: &PgRow) -> sqlx::Result<PostgresFacts> {
    Ok(PostgresFacts {
        version: row.try_get(0)?,
        is_replica: row.try_get(1)?,
        is_durable: row.try_get(2)?,
        max_connections: row.try_get(3)?,
        now: Time::from_micros(row.try_get(4)?),
        newer: None,
    })
}
