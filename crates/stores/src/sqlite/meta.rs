//! Metadata of a store.

use fetchwell_engine::ports::error::StoreError;
use fetchwell_sqlite::db::Db;
use fetchwell_sqlite::statements::Statements;
use rusqlite::Connection;

/// Binds this store to a politeness store. The first one stays bound; returns that one.
///
/// Two processes on one store but on two politeness stores would each keep their own pace.
pub async fn bind_politeness(db: &Db, politeness: &str) -> Result<String, StoreError> {
    let politeness = politeness.to_owned();
    db.write(move |tx| {
        if let Some(bound) = value(tx, "politeness")? {
            return Ok(bound);
        }
        tx.execute("INSERT INTO meta VALUES ('politeness', ?1)", [&politeness])?;
        Ok(politeness)
    })
    .await
}

/// The store to which `migrate` has moved the retriever's messages of this file.
pub async fn moved_to(db: &Db) -> Result<Option<String>, StoreError> {
    db.write(|tx| value(tx, "moved_to")).await
}

pub(super) fn value(tx: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    tx.find("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))
}
