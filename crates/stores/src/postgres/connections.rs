//! A few connections to PostgreSQL, each used by one statement at a time.
//!
//! A pool that checks each connection when it is taken and returned would double the number of statements. Here, a
//! connection whose statement failed is dropped and the error is returned: the caller retries anyway.

use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::version::refuse_newer_store;
use parking_lot::Mutex;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgRow};
use sqlx::query::Query;
use sqlx::{ConnectOptions, PgConnection, Postgres};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::errors::store_error;
use super::schema::{NEWEST, migrate};

/// A server that does not answer within this time counts as unreachable.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The number of concurrent statements. Each is short, and more would only wait for each other.
pub(super) const CONNECTIONS: usize = 4;

/// A statement with its values.
pub(super) type PgQuery<'q> = Query<'q, Postgres, PgArguments>;

/// Connects on demand, and again after an error.
pub(super) struct PgConnections {
    options: PgConnectOptions,
    idle: Arc<Mutex<Vec<PgConnection>>>,
    room: Arc<Semaphore>,
}

/// A connection for one use. It is closed unless `keep` is called.
pub(super) struct Taken {
    connection: PgConnection,
    idle: Arc<Mutex<Vec<PgConnection>>>,
    _room: OwnedSemaphorePermit,
}

impl PgConnections {
    pub(super) fn new(options: PgConnectOptions) -> PgConnections {
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        PgConnections { options, idle: Arc::default(), room }
    }

    /// An idle connection, or a new one.
    pub(super) async fn take(&self) -> Result<Taken, StoreError> {
        let room = self.room.clone().acquire_owned().await;
        let room = room.map_err(|error| StoreError::bug(self.address()).with_source(error))?;
        let idle = self.idle.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => within(self.options.connect()).await.map_err(|error| self.fault(error))?,
        };
        Ok(Taken { connection, idle: self.idle.clone(), _room: room })
    }

    /// Runs one statement and returns its rows.
    pub(super) async fn fetch(&self, query: PgQuery<'_>) -> Result<Vec<PgRow>, StoreError> {
        let mut taken = self.take().await?;
        let rows = within(query.fetch_all(&mut *taken)).await;
        let rows = rows.map_err(|error| self.fault(error))?;
        taken.keep();
        Ok(rows)
    }

    /// Runs one statement and returns the number of affected rows.
    pub(super) async fn execute(&self, query: PgQuery<'_>) -> Result<u64, StoreError> {
        let mut taken = self.take().await?;
        let done = within(query.execute(&mut *taken)).await;
        let done = done.map_err(|error| self.fault(error))?;
        taken.keep();
        Ok(done.rows_affected())
    }

    /// Closes the idle connections.
    pub(super) fn close_idle(&self) {
        self.idle.lock().clear();
    }

    /// Adds the address of the server to an error.
    pub(super) fn fault(&self, error: sqlx::Error) -> StoreError {
        store_error(self.address(), error)
    }

    /// Creates or migrates the tables, and refuses a database that a newer program has changed.
    pub(super) async fn migrate(&self, limit: Duration) -> Result<(), StoreError> {
        let mut taken = self.take().await?;
        let version = within_limit(limit, migrate(&mut taken)).await;
        self.refuse_newer(version.map_err(|error| self.fault(error))?)?;
        taken.keep();
        Ok(())
    }

    /// Refuses a database that a newer program has changed.
    pub(super) fn refuse_newer(&self, version: i64) -> Result<(), StoreError> {
        refuse_newer_store(&format!("the database of {}", self.address()), version, NEWEST)
    }

    fn address(&self) -> String {
        format!("PostgreSQL at {}:{}", self.options.get_host(), self.options.get_port())
    }
}

impl Taken {
    /// Returns the connection to the pool, after its statement succeeded.
    pub(super) fn keep(self) {
        self.idle.lock().push(self.connection);
    }
}

impl Deref for Taken {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Taken {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

/// Fails if the server does not answer in time.
pub(super) async fn within<T>(
    answer: impl Future<Output = sqlx::Result<T>> + Send,
) -> sqlx::Result<T> {
    within_limit(ANSWER_WITHIN, answer).await
}

async fn within_limit<T>(
    limit: Duration,
    answer: impl Future<Output = sqlx::Result<T>> + Send,
) -> sqlx::Result<T> {
    tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| {
        let silence = format!("no answer within {} s", limit.as_secs());
        Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, silence)))
    })
}
