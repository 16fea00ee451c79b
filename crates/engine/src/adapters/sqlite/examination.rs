//! How the file of a store is, for those who look after it. Nothing is changed, and nothing is made.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::db::unavailable;
use crate::ports::StoreFault;

/// How a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteFacts {
    /// SQLite's own version.
    pub version: String,
    /// How it keeps transactions whole; `wal` once this program has opened it.
    pub journal_mode: String,
    /// What is wrong with its pages; empty: nothing.
    pub damage: Vec<String>,
}

/// Looks at a file that is there.
pub fn examine(path: &Path) -> Result<SqliteFacts, StoreFault> {
    let fault = |error: rusqlite::Error| unavailable(path, &error);
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
        Ok(SqliteFacts { version: rusqlite::version().to_owned(), journal_mode, damage })
    };
    look().map_err(fault)
}
