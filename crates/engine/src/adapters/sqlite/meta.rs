//! What a store remembers of itself.

use rusqlite::OptionalExtension;

use super::Db;
use crate::ports::StoreFault;

/// Which politeness store goes with this store: the first one named stays. Returns that one.
///
/// Two processes on one store but on two politeness stores would each keep a pace of their own.
pub async fn bind_politeness(db: &Db, politeness: &str) -> Result<String, StoreFault> {
    let politeness = politeness.to_owned();
    db.write(move |tx| {
        let bound: Option<String> = tx
            .query_row("SELECT value FROM meta WHERE key = 'politeness'", [], |row| row.get(0))
            .optional()?;
        if let Some(bound) = bound {
            return Ok(bound);
        }
        tx.execute("INSERT INTO meta VALUES ('politeness', ?1)", [&politeness])?;
        Ok(politeness)
    })
    .await
}
