//! The tables, and how an older database becomes a newer one.

use sqlx::{Connection, Executor, PgConnection};

/// Each step brings a database from one version to the next; a step is never changed once it has
/// shipped.
const STEPS: &[&str] = &["
    CREATE TABLE fetchwell_site (
        site TEXT PRIMARY KEY,
        rate_limit TEXT NOT NULL,
        circuit TEXT,
        -- Microseconds since the Unix epoch; NULL: never.
        forgettable_at BIGINT
    );
    CREATE INDEX fetchwell_site_forgettable ON fetchwell_site (forgettable_at);

    CREATE TABLE fetchwell_robots (
        origin TEXT PRIMARY KEY,
        record TEXT NOT NULL,
        kept_at BIGINT NOT NULL
    );

    -- Unlogged, so that it is empty after a crash of the server: site states are committed without
    -- waiting for the disk, and what was committed last may be lost with it.
    CREATE UNLOGGED TABLE fetchwell_run (
        the_one BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (the_one),
        started TEXT NOT NULL,
        lost_until BIGINT NOT NULL
    );
"];

/// Any number will do that nobody else uses.
const LOCK: i64 = 0x6665_7463_6877_656c;

/// Brings the database to the newest version. Of several processes that try, one does it. Give it a
/// connection whose commits wait for the disk: nobody looks again whether the tables are there.
pub(super) async fn migrate(connection: &mut PgConnection) -> sqlx::Result<()> {
    let mut tx = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK).execute(&mut *tx).await?;
    tx.execute("CREATE TABLE IF NOT EXISTS fetchwell_schema (version INTEGER NOT NULL)").await?;
    let version: Option<i32> =
        sqlx::query_scalar("SELECT max(version) FROM fetchwell_schema").fetch_one(&mut *tx).await?;
    let from = usize::try_from(version.unwrap_or(0)).unwrap_or(0);
    for (done, step) in STEPS.iter().enumerate().skip(from) {
        tx.execute(*step).await?;
        let version = i32::try_from(done + 1).unwrap_or(i32::MAX);
        sqlx::query("INSERT INTO fetchwell_schema VALUES ($1)")
            .bind(version)
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await
}
