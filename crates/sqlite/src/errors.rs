//! What SQLite says went wrong, and what to do about it.

use std::io;
use std::path::Path;

use fetchwell_engine::ports::error::StoreError;

pub fn io_fault(error: io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

/// A fault of another file that is written in the same transaction.
fn other_file(error: &rusqlite::Error) -> Option<&io::Error> {
    match error {
        rusqlite::Error::ToSqlConversionFailure(inner) => inner.downcast_ref(),
        _ => None,
    }
}

const FREE_SPACE: &str = "; free some space on its disk";

pub fn unavailable(path: &Path, error: &rusqlite::Error) -> StoreError {
    if let Some(error) = other_file(error) {
        let is_full =
            matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let advice = if is_full { FREE_SPACE } else { "" };
        return StoreError::transient(format!("{error}{advice}"));
    }
    let advice = match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => FREE_SPACE,
        Some(rusqlite::ErrorCode::DatabaseBusy) => {
            "; another process is using it: wait for that process to finish, or stop it"
        }
        Some(rusqlite::ErrorCode::CannotOpen) => {
            "; check that its folder exists and can be written to, or name another with --store"
        }
        Some(rusqlite::ErrorCode::ReadOnly) => "; make it writable, or name another with --store",
        Some(rusqlite::ErrorCode::NotADatabase) => {
            "; it is no SQLite file: name another with --store"
        }
        _ => "",
    };
    StoreError::transient(format!("SQLite file {}: {error}{advice}", path.display()))
}
