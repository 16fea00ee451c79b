//! Which version of a store this program can use.

use crate::ports::error::StoreError;

/// Refuses a store that a newer program has changed: this one might misread or damage what it does not know.
pub fn refuse_newer_store(store: &str, version: i64, newest_known: i64) -> Result<(), StoreError> {
    if version <= newest_known {
        return Ok(());
    }
    Err(StoreError::incompatible(format!(
        "{store} has version {version}, and fetchwell {} knows versions up to {newest_known}; a newer fetchwell has \
         changed it. Use that one, or name another store",
        env!("CARGO_PKG_VERSION")
    )))
}
