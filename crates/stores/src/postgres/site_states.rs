//! Politeness state of sites in PostgreSQL.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::politeness::RobotsRecord;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::connections::{ANSWER_WITHIN, PgConnections};
use super::count;
use super::database::{column, options_of};
use fetchwell_engine::shared_politeness::{Change, SiteStateStore, SiteStates, Texts};

/// A copy of robots.txt replaces an unreachable one for 30 days, so it is kept a little longer.
const ROBOTS_KEPT: Duration = Duration::from_secs(31 * 86_400);

/// Reads the clock together with the rows; `now()` would be the start of the transaction.
const READ: &str = "
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT AS now,
           (SELECT lost_until FROM fetchwell_run WHERE started = pg_postmaster_start_time()::TEXT)
               AS lost_until,
           array_agg(site.rate_limit ORDER BY place) AS rate_limits,
           array_agg(site.circuit ORDER BY place) AS circuits,
           array_agg(site.notes ORDER BY place) AS notes
    FROM unnest($1::TEXT[]) WITH ORDINALITY AS wanted (site, place)
    LEFT JOIN fetchwell_site AS site USING (site)";

/// Skips rows that another transaction is changing, as if they had changed already. Nothing waits, so there is no lock
/// order to violate.
const REPLACE: &str = "
    WITH change AS (
        SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::TEXT[],
                             $7::TEXT[], $8::BIGINT[], $9::BOOLEAN[])
            AS change (site, old_rate_limit, old_circuit, old_notes, rate_limit, circuit, notes,
                       forgettable_at, notable)
    ), free AS (
        SELECT site.site FROM fetchwell_site AS site JOIN change USING (site)
        WHERE site.rate_limit = old_rate_limit AND site.circuit IS NOT DISTINCT FROM old_circuit
            AND site.notes IS NOT DISTINCT FROM old_notes
        FOR UPDATE OF site SKIP LOCKED
    ), updated AS (
        UPDATE fetchwell_site AS site
        SET rate_limit = change.rate_limit, circuit = change.circuit, notes = change.notes,
            forgettable_at = change.forgettable_at, notable = change.notable
        FROM change JOIN free USING (site)
        WHERE site.site = change.site AND site.rate_limit = old_rate_limit
            AND site.circuit IS NOT DISTINCT FROM old_circuit
            AND site.notes IS NOT DISTINCT FROM old_notes
        RETURNING site.site
    ), inserted AS (
        INSERT INTO fetchwell_site (site, rate_limit, circuit, notes, forgettable_at, notable)
        SELECT site, rate_limit, circuit, notes, forgettable_at, notable FROM change
        WHERE old_rate_limit IS NULL ORDER BY site
        ON CONFLICT DO NOTHING
        RETURNING site
    )
    SELECT site FROM updated UNION ALL SELECT site FROM inserted";

/// In byte order like the index, whatever the collation of the database.
const NAMES: &str = "
    SELECT site FROM fetchwell_site WHERE site COLLATE \"C\" > $1
    ORDER BY site COLLATE \"C\" LIMIT $2";
const NOTABLE_NAMES: &str = "
    SELECT site FROM fetchwell_site WHERE site COLLATE \"C\" > $1 AND notable
    ORDER BY site COLLATE \"C\" LIMIT $2";

const NOTE_ORDER: &str = "
    WITH forgotten AS (DELETE FROM fetchwell_site_order WHERE given_at < $3 AND site <> $1)
    INSERT INTO fetchwell_site_order (site, given_at) VALUES ($1, $2)
    ON CONFLICT (site) DO UPDATE SET given_at = excluded.given_at";
const ORDERED: &str = "
    SELECT site, given_at FROM fetchwell_site_order WHERE given_at >= $1 ORDER BY given_at LIMIT $2";

/// Also records a restart of the server: from then on its state is complete.
const BEGIN_RUN: &str = "
    INSERT INTO fetchwell_run (started, lost_until)
    VALUES (pg_postmaster_start_time()::TEXT,
            (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT)
    ON CONFLICT (the_one) DO UPDATE
    SET started = excluded.started, lost_until = excluded.lost_until
    WHERE $1 OR fetchwell_run.started <> excluded.started";

/// The store of site states on a PostgreSQL server.
pub struct PostgresSiteStates {
    connections: PgConnections,
    /// For changes that must survive a crash of the server: commits wait for the disk.
    lasting: PgConnections,
}

impl PostgresSiteStates {
    /// Connects, and creates or migrates the tables.
    pub async fn open(url: &str) -> Result<PostgresSiteStates, StoreError> {
        let options = options_of(url)?;
        let lasting = PgConnections::new(options.clone().options([("synchronous_commit", "on")]));
        // A crash of the server may lose the last slots, which is provided for (see the schema), so not every request
        // has to wait for the disk.
        let connections = PgConnections::new(options.options([("synchronous_commit", "off")]));
        lasting.migrate(ANSWER_WITHIN).await?;
        Ok(PostgresSiteStates { connections, lasting })
    }

    async fn begin_run(&self, anyway: bool) -> Result<(), StoreError> {
        self.connections.execute(sqlx::query(BEGIN_RUN).bind(anyway)).await.map(|_| ())
    }

    fn sense<T>(&self, read: sqlx::Result<T>) -> Result<T, StoreError> {
        read.map_err(|error| self.connections.fault(error))
    }
}

#[async_trait]
impl SiteStateStore for PostgresSiteStates {
    async fn read(&self, sites: &[Site]) -> Result<SiteStates, StoreError> {
        let names: Vec<&str> = sites.iter().map(Site::as_str).collect();
        loop {
            let rows = self.connections.fetch(sqlx::query(READ).bind(&names)).await?;
            let Some(row) = rows.first() else { continue };
            if let Some(states) = self.sense(states_of(row))? {
                return Ok(states);
            }
            self.begin_run(false).await?;
        }
    }

    async fn replace(&self, changes: &[Change]) -> Result<Vec<bool>, StoreError> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let query = sqlx::query(REPLACE)
            .bind(column(changes, |change| change.site.as_str()))
            .bind(column(changes, |change| change.before.rate_limit.as_deref()))
            .bind(column(changes, |change| change.before.circuit.as_deref()))
            .bind(column(changes, |change| change.before.notes.as_deref()))
            .bind(column(changes, |change| change.after.rate_limit.as_deref()))
            .bind(column(changes, |change| change.after.circuit.as_deref()))
            .bind(column(changes, |change| change.after.notes.as_deref()))
            .bind(column(changes, |change| change.forgettable_at.map(Time::as_micros)))
            .bind(column(changes, |change| change.is_notable));
        let must_last = changes.iter().any(|change| change.must_last);
        let connections = if must_last { &self.lasting } else { &self.connections };
        let rows = connections.fetch(query).await?;
        let made: sqlx::Result<HashSet<&str>> = rows.iter().map(|row| row.try_get(0)).collect();
        let made = self.sense(made)?;
        Ok(changes.iter().map(|change| made.contains(change.site.as_str())).collect())
    }

    async fn distrust_the_past(&self) -> Result<(), StoreError> {
        self.begin_run(true).await
    }

    async fn names(
        &self,
        after: &str,
        notable: bool,
        most: usize,
    ) -> Result<Vec<String>, StoreError> {
        let query = if notable { NOTABLE_NAMES } else { NAMES };
        let query = sqlx::query(query).bind(after).bind(count(most));
        let rows = self.connections.fetch(query).await?;
        self.sense(rows.iter().map(|row| row.try_get(0)).collect())
    }

    async fn note_order(
        &self,
        site: &Site,
        at: Time,
        forget_before: Time,
    ) -> Result<(), StoreError> {
        let query = sqlx::query(NOTE_ORDER).bind(site.as_str());
        self.connections
            .execute(query.bind(at.as_micros()).bind(forget_before.as_micros()))
            .await
            .map(|_| ())
    }

    async fn ordered(&self, since: Time, most: usize) -> Result<Vec<(String, Time)>, StoreError> {
        let query = sqlx::query(ORDERED).bind(since.as_micros()).bind(count(most));
        let rows = self.connections.fetch(query).await?;
        let row = |row: &PgRow| Ok((row.try_get(0)?, Time::from_micros(row.try_get(1)?)));
        self.sense(rows.iter().map(row).collect())
    }

    async fn robots(&self, origins: &[Origin]) -> Result<Vec<Option<RobotsRecord>>, StoreError> {
        let query = sqlx::query(
            "SELECT kept.record FROM unnest($1::TEXT[]) WITH ORDINALITY AS wanted (origin, place)
             LEFT JOIN fetchwell_robots AS kept USING (origin) ORDER BY place",
        );
        let names: Vec<String> = origins.iter().map(Origin::to_string).collect();
        let rows = self.connections.fetch(query.bind(names)).await?;
        let texts: sqlx::Result<Vec<Option<&str>>> =
            rows.iter().map(|row| row.try_get(0)).collect();
        // An invalid record counts as missing: robots.txt is fetched again.
        let record = |text: Option<&str>| serde_json::from_str(text?).ok();
        Ok(self.sense(texts)?.into_iter().map(record).collect())
    }

    async fn forget_robots(&self, origins: &[Origin]) -> Result<(), StoreError> {
        let names: Vec<String> = origins.iter().map(Origin::to_string).collect();
        let query = sqlx::query("DELETE FROM fetchwell_robots WHERE origin = ANY ($1)");
        self.connections.execute(query.bind(names)).await.map(|_| ())
    }

    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreError> {
        let text = serde_json::to_string(record).map_err(|error| {
            StoreError::bug("cannot encode a robots.txt record").with_source(error)
        })?;
        let query = sqlx::query(
            "INSERT INTO fetchwell_robots (origin, record, kept_at)
             VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT)
             ON CONFLICT (origin) DO UPDATE SET record = excluded.record, kept_at = excluded.kept_at",
        );
        self.connections.execute(query.bind(origin.to_string()).bind(text)).await.map(|_| ())
    }

    async fn sweep(&self, now: Time) -> Result<u64, StoreError> {
        let robots = sqlx::query("DELETE FROM fetchwell_robots WHERE kept_at <= $1");
        self.connections.execute(robots.bind((now - ROBOTS_KEPT).as_micros())).await?;
        let sites = sqlx::query("DELETE FROM fetchwell_site WHERE forgettable_at <= $1");
        self.connections.execute(sites.bind(now.as_micros())).await
    }
}

/// `None` if the server has restarted since its last run was recorded.
fn states_of(row: &PgRow) -> sqlx::Result<Option<SiteStates>> {
    let Some(lost_until) = row.try_get("lost_until")? else { return Ok(None) };
    let texts = |column| -> sqlx::Result<Vec<Option<String>>> {
        Ok(row.try_get::<Option<_>, _>(column)?.unwrap_or_default())
    };
    let kept = texts("rate_limits")?.into_iter().zip(texts("circuits")?).zip(texts("notes")?);
    let texts = |((rate_limit, circuit), notes)| Texts { rate_limit, circuit, notes };
    Ok(Some(SiteStates {
        now: Time::from_micros(row.try_get("now")?),
        lost_until: Time::from_micros(lost_until),
        sites: kept.map(texts).collect(),
    }))
}
