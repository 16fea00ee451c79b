//! A database as the queues use it: short transactions, none of which waits for long.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Executor, Postgres, Row, raw_sql};

use super::connections::{CONNECTIONS, PgConnections, Taken, within, within_limit};
use super::id_stock::IdStock;
use super::schema::migrate;

/// The first three keep everything from hanging: statements, waits for locks, and rows locked by a process that stopped
/// in the middle of a transaction, which is then rolled back. The last makes each statement be planned once, for any
/// data: all of them use an index.
const SETTINGS: [(&str, &str); 4] = [
    ("statement_timeout", "4500ms"),
    ("lock_timeout", "2s"),
    ("idle_in_transaction_session_timeout", "10s"),
    ("plan_cache_mode", "force_generic_plan"),
];

/// Rewriting millions of rows takes minutes.
const MIGRATED_WITHIN: Duration = Duration::from_secs(1_800);

/// Begins a transaction that sees what others commit meanwhile, whatever the server's default.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// Connections to one database. Clones share them.
#[derive(Clone)]
pub struct Database {
    /// Commits wait for the disk.
    lasting: Arc<PgConnections>,
    /// Commits do not wait for the disk: for renewals, which must not queue behind other statements either.
    brisk: Arc<PgConnections>,
    /// For reading only.
    reading: Arc<PgConnections>,
    pub(super) ids: IdStock,
}

impl Database {
    /// Connects, and creates or migrates the tables.
    pub async fn open(url: &str) -> Result<Database, StoreError> {
        let options = options_of(url)?;
        let lasting = options.clone().options([("synchronous_commit", "on")]);
        let connections =
            |options: PgConnectOptions| Arc::new(PgConnections::new(options.options(SETTINGS)));
        let database = Database {
            lasting: connections(lasting.clone()),
            brisk: connections(options.clone().options([("synchronous_commit", "off")])),
            reading: connections(options),
            ids: IdStock::default(),
        };
        // Without those settings: another process may be migrating for a while.
        let migrating = PgConnections::new(lasting);
        let mut taken = migrating.take().await?;
        let version = within_limit(MIGRATED_WITHIN, migrate(&mut taken))
            .await
            .map_err(|error| migrating.fault(error))?;
        migrating.refuse_newer(version)?;
        Ok(database)
    }

    /// Begins a transaction whose commit waits for the disk.
    pub(super) async fn begin(&self) -> Result<Tx, StoreError> {
        Tx::begin(&self.lasting).await
    }

    /// The same, and runs a query for a single value in the same message, which saves a round trip.
    pub(super) async fn begin_asking(&self, question: &str) -> Result<(Tx, i64), StoreError> {
        Tx::begin_asking(&self.lasting, question).await
    }

    /// Begins a transaction that may be lost if the server crashes.
    pub(super) async fn begin_brisk(&self) -> Result<Tx, StoreError> {
        Tx::begin(&self.brisk).await
    }

    /// Runs one statement that returns one row and may be lost if the server crashes.
    pub(super) async fn run_brisk(
        &self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<PgRow, StoreError> {
        let mut taken = self.brisk.take().await?;
        let row = within(query.fetch_one(&mut *taken)).await;
        let row = row.map_err(|error| {
            // A restart of the server has broken the other connections, too; the next attempt needs a new one.
            self.brisk.close_idle();
            self.fault(error)
        })?;
        taken.keep();
        Ok(row)
    }

    /// Runs one query.
    pub(super) async fn read(
        &self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, StoreError> {
        let mut taken = self.reading.take().await?;
        let rows = within(query.fetch_all(&mut *taken)).await;
        let rows = rows.map_err(|error| {
            // A restart of the server has broken the other connections, too.
            self.reading.close_idle();
            self.fault(error)
        })?;
        taken.keep();
        Ok(rows)
    }

    pub(super) fn fault(&self, error: sqlx::Error) -> StoreError {
        self.lasting.fault(error)
    }
}

/// Parses the URL of a server.
pub(super) fn options_of(url: &str) -> Result<PgConnectOptions, StoreError> {
    let options = PgConnectOptions::from_str(url).map_err(|error| {
        StoreError::incompatible("the address of PostgreSQL is invalid")
            .with_source(error)
            .with_advice("write postgres://user:password@host:port/db")
    })?;
    Ok(options.application_name("fetchwell"))
}

/// A transaction. If it is dropped without a commit, also because its task was cancelled, its connection is closed and
/// the server rolls it back.
pub(super) struct Tx {
    taken: Taken,
}

impl Tx {
    async fn begin(connections: &PgConnections) -> Result<Tx, StoreError> {
        // Connections that a server restart has broken are detected here, where trying the next one is safe.
        for _ in 0..CONNECTIONS {
            let mut taken = connections.take().await?;
            if within(taken.execute(BEGIN)).await.is_ok() {
                return Ok(Tx { taken });
            }
        }
        let mut taken = connections.take().await?;
        within(taken.execute(BEGIN)).await.map_err(|error| connections.fault(error))?;
        Ok(Tx { taken })
    }

    async fn begin_asking(
        connections: &PgConnections,
        question: &str,
    ) -> Result<(Tx, i64), StoreError> {
        let both = format!("{BEGIN}; {question}");
        let mut tries = 0;
        loop {
            let mut taken = connections.take().await?;
            let asked = raw_sql(AssertSqlSafe(both.as_str())).fetch_one(&mut *taken);
            match within(asked).await.and_then(|row| row.try_get(0)) {
                Ok(answer) => return Ok((Tx { taken }, answer)),
                // As in `begin`.
                Err(_) if tries < CONNECTIONS => tries += 1,
                Err(error) => return Err(connections.fault(error)),
            }
        }
    }

    /// Runs a statement and returns its rows.
    pub(super) async fn fetch(
        &mut self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> sqlx::Result<Vec<PgRow>> {
        within(query.fetch_all(&mut *self.taken)).await
    }

    /// Runs a statement that returns one row.
    pub(super) async fn fetch_one(
        &mut self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> sqlx::Result<PgRow> {
        within(query.fetch_one(&mut *self.taken)).await
    }

    /// Runs a statement and returns the number of affected rows.
    pub(super) async fn execute(
        &mut self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> sqlx::Result<u64> {
        Ok(within(query.execute(&mut *self.taken)).await?.rows_affected())
    }

    pub(super) async fn commit(mut self) -> sqlx::Result<()> {
        within(self.taken.execute("COMMIT")).await?;
        self.taken.keep();
        Ok(())
    }
}

/// Makes text storable in PostgreSQL, which cannot hold NUL: it becomes U+FFFD, like bytes that are not UTF-8.
pub(super) fn writable(text: &str) -> String {
    text.replace('\0', "\u{FFFD}")
}
