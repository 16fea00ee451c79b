//! Runs SQL with statements from the connection's cache.

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};

/// Runs SQL. A statement is prepared at its first use and then cached. To run one many times in a row, prepare it once.
pub trait Statements {
    /// Prepares a statement, or gets it from the cache.
    fn prepared(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>>;

    /// Runs a statement that returns no rows. Returns the number of rows that it changed.
    fn run(&self, sql: &str, values: impl Params) -> rusqlite::Result<usize> {
        self.prepared(sql)?.execute(values)
    }

    /// Reads the first row. It is an error if there is none.
    fn one<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.prepared(sql)?.query_row(values, read)
    }

    /// Reads the first row, if there is one.
    fn find<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        self.one(sql, values, read).optional()
    }

    /// Reads all rows.
    fn list<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.prepared(sql)?.query_map(values, read)?.collect()
    }

    /// Whether there is a row.
    fn has(&self, sql: &str, values: impl Params) -> rusqlite::Result<bool> {
        self.prepared(sql)?.exists(values)
    }
}

impl Statements for Connection {
    fn prepared(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        self.prepare_cached(sql)
    }
}
