//! How the file of a store is, for those who look after it. Nothing is changed, and nothing is made.

use std::path::Path;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::version::refuse_newer_store;
use fetchwell_sqlite::db::user_version;
use fetchwell_sqlite::errors::store_error;
use rusqlite::{Connection, OpenFlags};

use super::schema::NEWEST;

/// How a file is.
#[derive(Clone, Debug)]
pub struct SqliteFacts {
    /// SQLite's own version.
    pub version: String,
    /// How it keeps transactions whole; `wal` once this program has opened it.
    pub journal_mode: String,
    /// What is wrong with its pages; empty: nothing.
    pub damage: Vec<String>,
    /// Why this program cannot use it: a newer one has changed it.
    pub newer: Option<StoreError>,
}

/// Looks at a file that is there.
pub fn examine(path: &Path) -> Result<SqliteFacts, StoreError> {
    let fault = |error: rusqlite::Error| store_error(path, error);
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fault)?;
    let look = || {
        let journal_mode = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        let mut damage: Vec<String> = Vec::new();
        connection.pragma_query(None, "quick_check", |row| {
            damage.push(row.get(0)?);
            Ok(())
        })?;
        damage.retain(|line| line != "ok");
        let newer = refuse_newer_store("it", user_version(&connection)?, NEWEST).err();
        Ok(SqliteFacts { version: rusqlite::version().to_owned(), journal_mode, damage, newer })
    };
    look().map_err(fault)
}
