//! Diagnostic facts about the file of a store. Read-only: creates nothing.

use std::path::Path;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::version::refuse_newer_store;
use fetchwell_sqlite::db::user_version;
use fetchwell_sqlite::errors::store_error;
use rusqlite::{Connection, OpenFlags};

use super::schema::NEWEST;
use crate::finding::Finding;

/// Facts about a file.
#[derive(Clone, Debug)]
pub struct SqliteFacts {
    /// The version of SQLite.
    pub version: String,
    /// The journal mode; `wal` once this program has opened the file.
    pub journal_mode: String,
    /// Damage that SQLite found; empty if there is none.
    pub damage: Vec<String>,
    /// Set if a newer program has changed the file, so that this one cannot use it.
    pub newer: Option<StoreError>,
}

impl SqliteFacts {
    /// Judges the file at this path.
    pub(crate) fn judge(&self, check: &str, path: &Path) -> Finding {
        let path = path.display();
        if let Some(first) = self.damage.first() {
            return Finding::fail(
                check,
                format!("{path} is damaged: {first}"),
                "data on the damaged pages cannot be read",
                format!(
                    "stop all processes that use it, then run: sqlite3 {path} .recover | sqlite3 \
                     recovered.db"
                ),
            );
        }
        if let Some(newer) = &self.newer {
            return Finding::fail(
                check,
                format!("{path}: {newer}"),
                "every command that uses it exits with code 2",
                "use the newer fetchwell, or restore a backup from before the upgrade",
            );
        }
        if !self.journal_mode.eq_ignore_ascii_case("wal") {
            return Finding::warn(
                check,
                format!("{path} is intact, but its journal mode is {}", self.journal_mode),
                "readers and writers block each other",
                "open it once with fetchwell, which sets the mode to wal; network file systems do \
                 not support that",
            );
        }
        Finding::ok(check, format!("{path} is intact (SQLite {}, wal)", self.version))
    }
}

/// Examines an existing file.
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
