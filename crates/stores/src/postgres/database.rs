//! A database as the queues use it: short transactions, none of which waits for long.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use sqlx::postgres::{PgConnectOptions, PgRow};
use sqlx::{AssertSqlSafe, Executor, FromRow, Row, SqlSafeStr, raw_sql};

use super::connections::{CONNECTIONS, PgConnections, PgQuery, Taken, within};
use super::id_stock::IdStock;

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
        PgConnections::new(lasting).migrate(MIGRATED_WITHIN).await?;
        Ok(database)
    }

    /// Begins a transaction whose commit waits for the disk.
    pub(super) async fn begin(&self) -> Result<Tx, StoreError> {
        Ok(Tx::begin(&self.lasting, BEGIN).await?.0)
    }

    /// The same, and runs a query for a single value in the same message, which saves a round trip.
    pub(super) async fn begin_asking(&self, question: &str) -> Result<(Tx, i64), StoreError> {
        let both = AssertSqlSafe(format!("{BEGIN}; {question}"));
        let (tx, row) = Tx::begin(&self.lasting, both).await?;
        let answer = row.ok_or(sqlx::Error::RowNotFound).and_then(|row| row.try_get(0));
        Ok((tx, self.sense(answer)?))
    }

    /// Begins a transaction that may be lost if the server crashes.
    pub(super) async fn begin_brisk(&self) -> Result<Tx, StoreError> {
        Ok(Tx::begin(&self.brisk, BEGIN).await?.0)
    }

    /// Runs one statement that may be lost if the server crashes.
    pub(super) async fn run_brisk(&self, query: PgQuery<'_>) -> Result<Vec<PgRow>, StoreError> {
        // A restart of the server has broken the other connections, too; the next attempt needs a new one.
        self.brisk.fetch(query).await.inspect_err(|_| self.brisk.close_idle())
    }

    /// Runs one query and decodes its rows.
    pub(super) async fn read<T>(
        &self,
        query: PgQuery<'_>,
        of: impl Fn(&PgRow) -> sqlx::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.read_rows(query).await?;
        self.sense(rows.iter().map(of).collect())
    }

    /// Runs one query and converts its rows, for example to tuples.
    pub(super) async fn read_as<T>(&self, query: PgQuery<'_>) -> Result<Vec<T>, StoreError>
    where
        T: for<'r> FromRow<'r, PgRow>,
    {
        let rows = self.read_rows(query).await?;
        self.sense(rows.iter().map(T::from_row).collect())
    }

    async fn read_rows(&self, query: PgQuery<'_>) -> Result<Vec<PgRow>, StoreError> {
        // A restart of the server has broken the other connections, too.
        self.reading.fetch(query).await.inspect_err(|_| self.reading.close_idle())
    }

    /// Adds the address of the server to an error.
    pub(super) fn sense<T>(&self, answer: sqlx::Result<T>) -> Result<T, StoreError> {
        answer.map_err(|error| self.lasting.fault(error))
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

/// A transaction. If it is dropped before its end, also because its task was cancelled, its connection is closed and
/// the server rolls it back.
pub(super) struct Tx {
    taken: Taken,
    connections: Arc<PgConnections>,
}

impl Tx {
    /// Runs a statement that begins a transaction. Returns its row, if it has one.
    async fn begin(
        connections: &Arc<PgConnections>,
        statement: impl SqlSafeStr,
    ) -> Result<(Tx, Option<PgRow>), StoreError> {
        let statement = statement.into_sql_str();
        let mut tries = 0;
        loop {
            let mut taken = connections.take().await?;
            match within(taken.fetch_optional(raw_sql(statement.clone()))).await {
                Ok(row) => return Ok((Tx { taken, connections: connections.clone() }, row)),
                // Connections that a server restart has broken are detected here, where trying the next one is safe.
                Err(_) if tries < CONNECTIONS => tries += 1,
                Err(error) => return Err(connections.fault(error)),
            }
        }
    }

    /// Runs a statement and returns its rows.
    pub(super) async fn fetch(&mut self, query: PgQuery<'_>) -> sqlx::Result<Vec<PgRow>> {
        within(query.fetch_all(&mut *self.taken)).await
    }

    /// Runs a statement and converts its rows, for example to tuples.
    pub(super) async fn fetch_as<T>(&mut self, query: PgQuery<'_>) -> sqlx::Result<Vec<T>>
    where
        T: for<'r> FromRow<'r, PgRow>,
    {
        self.fetch(query).await?.iter().map(T::from_row).collect()
    }

    /// Runs a statement that returns one row.
    pub(super) async fn fetch_one(&mut self, query: PgQuery<'_>) -> sqlx::Result<PgRow> {
        within(query.fetch_one(&mut *self.taken)).await
    }

    /// Runs a statement and returns the number of affected rows.
    pub(super) async fn execute(&mut self, query: PgQuery<'_>) -> sqlx::Result<u64> {
        Ok(within(query.execute(&mut *self.taken)).await?.rows_affected())
    }

    /// Commits what was done, unless it failed.
    pub(super) async fn end<T>(mut self, done: sqlx::Result<T>) -> Result<T, StoreError> {
        let done = done.map_err(|error| self.connections.fault(error))?;
        let committed = within(self.taken.execute("COMMIT")).await;
        committed.map_err(|error| self.connections.fault(error))?;
        self.taken.keep();
        Ok(done)
    }
}

/// Makes text storable in PostgreSQL, which cannot hold NUL: it becomes U+FFFD, like bytes that are not UTF-8.
pub(super) fn writable(text: &str) -> String {
    text.replace('\0', "\u{FFFD}")
}

/// The values of one column, for a statement that takes its rows as arrays.
pub(super) fn column<'a, R, T>(rows: &'a [R], value: impl Fn(&'a R) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}
