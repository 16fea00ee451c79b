//! Maps SQLite errors to store errors, with advice.

use std::io;
use std::path::Path;

use fetchwell_engine::ports::error::{StoreError, StoreErrorKind};
use rusqlite::ffi;

use StoreErrorKind::{Bug, Corrupt, Incompatible, TooLarge, Transient};

/// Classifies SQLite's result codes. An extended code takes precedence over its primary code; a code that is not here
/// means a bug.
///
/// `CANTOPEN` is transient, because SQLite also returns it if no file descriptor is left. `READONLY` and `PERM` are
/// not, because a retry does not change the permissions of a file. `ERROR` is not here: its message decides, see
/// [`kind_of_sql`].
const KINDS: [(i32, StoreErrorKind); 22] = [
    (ffi::SQLITE_IOERR_CORRUPTFS, Corrupt),
    (ffi::SQLITE_IOERR_DATA, Corrupt),
    (ffi::SQLITE_CANTOPEN_ISDIR, Incompatible),
    (ffi::SQLITE_CANTOPEN_SYMLINK, Incompatible),
    (ffi::SQLITE_PERM, Incompatible),
    (ffi::SQLITE_ABORT, Transient),
    (ffi::SQLITE_BUSY, Transient),
    (ffi::SQLITE_LOCKED, Transient),
    (ffi::SQLITE_NOMEM, Transient),
    (ffi::SQLITE_READONLY, Incompatible),
    (ffi::SQLITE_INTERRUPT, Transient),
    (ffi::SQLITE_IOERR, Transient),
    (ffi::SQLITE_CORRUPT, Corrupt),
    (ffi::SQLITE_FULL, Transient),
    (ffi::SQLITE_CANTOPEN, Transient),
    (ffi::SQLITE_PROTOCOL, Transient),
    (ffi::SQLITE_SCHEMA, Transient),
    (ffi::SQLITE_TOOBIG, TooLarge),
    (ffi::SQLITE_NOLFS, Incompatible),
    (ffi::SQLITE_AUTH, Incompatible),
    (ffi::SQLITE_FORMAT, Incompatible),
    (ffi::SQLITE_NOTADB, Incompatible),
];

/// The primary code is the lowest byte.
const PRIMARY: i32 = 0xff;

const FREE_SPACE: &str = "free some space on its disk";

/// An error of another file that is read or written in the same transaction. It rolls back the transaction.
pub fn io_fault(path: &Path, error: io::Error) -> rusqlite::Error {
    let (kind, advice) = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (Transient, FREE_SPACE),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            (Incompatible, "make it writable")
        }
        io::ErrorKind::InvalidData => (Corrupt, ""),
        _ => (Transient, ""),
    };
    let context = format!("file {}", path.display());
    own_error(StoreError::new(kind, context).with_source(error).with_advice(advice))
}

/// Wraps a store error so that it rolls back the transaction; [`store_error`] returns it unchanged.
pub fn own_error(error: StoreError) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

/// Converts an SQLite error on the file at `path`. All such errors are converted here.
pub fn store_error(path: &Path, error: rusqlite::Error) -> StoreError {
    let error = match error {
        rusqlite::Error::ToSqlConversionFailure(inner) => match inner.downcast::<StoreError>() {
            Ok(own) => return *own,
            Err(inner) => rusqlite::Error::ToSqlConversionFailure(inner),
        },
        error => error,
    };
    let kind = kind_of(&error);
    let advice = advice_for(&error, kind);
    StoreError::new(kind, format!("SQLite file {}", path.display()))
        .with_source(error)
        .with_advice(advice)
}

fn kind_of(error: &rusqlite::Error) -> StoreErrorKind {
    use rusqlite::Error;
    match error {
        Error::SqliteFailure(code, message) => {
            kind_of_code(code.extended_code, message.as_deref().unwrap_or_default())
        }
        Error::SqlInputError { error, msg, .. } => kind_of_code(error.extended_code, msg),
        // The file contains something that this program does not write.
        Error::FromSqlConversionFailure(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::Utf8Error(..)
        | Error::InvalidColumnType(..)
        | Error::QueryReturnedNoRows => Corrupt,
        _ => Bug,
    }
}

fn kind_of_code(extended: i32, message: &str) -> StoreErrorKind {
    if extended & PRIMARY == ffi::SQLITE_ERROR {
        return kind_of_sql(message);
    }
    let known = |code: i32| KINDS.iter().find(|(known, _)| *known == code).map(|(_, kind)| *kind);
    known(extended).or_else(|| known(extended & PRIMARY)).unwrap_or(Bug)
}

/// A missing table or column is not a bug in the statement, because tests run it on this program's schema: someone has
/// changed the schema.
fn kind_of_sql(message: &str) -> StoreErrorKind {
    let says = |words: &[&str]| words.iter().any(|words| message.contains(*words));
    // SQLite rolled back the transaction, after an error that another caller received.
    if says(&["no such savepoint", "no transaction is active"]) {
        return Transient;
    }
    let other_schema =
        says(&["no such table", "no such column", "has no column named", "columns but"]);
    if other_schema { Incompatible } else { Bug }
}

fn advice_for(error: &rusqlite::Error, kind: StoreErrorKind) -> &'static str {
    use rusqlite::ErrorCode;
    match (error.sqlite_error_code(), error.sqlite_extended_error_code()) {
        (_, Some(ffi::SQLITE_READONLY_DBMOVED)) => {
            "it was moved or deleted while it was in use: put it back, then start Fetchwell again"
        }
        (Some(ErrorCode::DiskFull), _) => FREE_SPACE,
        (Some(ErrorCode::DatabaseBusy), _) => {
            "another process is using it: wait for that process to finish, or stop it"
        }
        (Some(ErrorCode::CannotOpen), _) => {
            "check that its folder exists and is writable, or use another file with --store"
        }
        (Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied), _) => {
            "make it writable, or use another file with --store"
        }
        (Some(ErrorCode::NotADatabase), _) => {
            "it is not an SQLite file: use another file with --store"
        }
        (Some(ErrorCode::DatabaseCorrupt), _) => {
            "restore a backup, or use another file with --store; `fetchwell doctor` shows what is damaged"
        }
        (Some(ErrorCode::Unknown) | None, _) if kind == Incompatible => {
            "its tables are not the ones that Fetchwell created: restore a backup, or use another file with --store"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: i32, message: Option<&str>) -> StoreError {
        let error =
            rusqlite::Error::SqliteFailure(ffi::Error::new(code), message.map(ToOwned::to_owned));
        store_error(Path::new("x.db"), error)
    }

    #[test]
    fn each_code_has_its_kind() {
        for (code, kind) in [
            (ffi::SQLITE_BUSY, Transient),
            (ffi::SQLITE_BUSY_SNAPSHOT, Transient),
            (ffi::SQLITE_LOCKED_SHAREDCACHE, Transient),
            (ffi::SQLITE_NOMEM, Transient),
            (ffi::SQLITE_IOERR_NOMEM, Transient),
            (ffi::SQLITE_IOERR_WRITE, Transient),
            (ffi::SQLITE_IOERR_FSYNC, Transient),
            (ffi::SQLITE_FULL, Transient),
            (ffi::SQLITE_CANTOPEN, Transient),
            (ffi::SQLITE_PROTOCOL, Transient),
            (ffi::SQLITE_INTERRUPT, Transient),
            (ffi::SQLITE_CORRUPT, Corrupt),
            (ffi::SQLITE_CORRUPT_INDEX, Corrupt),
            (ffi::SQLITE_IOERR_CORRUPTFS, Corrupt),
            (ffi::SQLITE_IOERR_DATA, Corrupt),
            (ffi::SQLITE_NOTADB, Incompatible),
            (ffi::SQLITE_READONLY, Incompatible),
            (ffi::SQLITE_READONLY_DBMOVED, Incompatible),
            (ffi::SQLITE_READONLY_DIRECTORY, Incompatible),
            (ffi::SQLITE_PERM, Incompatible),
            (ffi::SQLITE_AUTH, Incompatible),
            (ffi::SQLITE_CANTOPEN_ISDIR, Incompatible),
            (ffi::SQLITE_TOOBIG, TooLarge),
            (ffi::SQLITE_CONSTRAINT_UNIQUE, Bug),
            (ffi::SQLITE_MISMATCH, Bug),
            (ffi::SQLITE_MISUSE, Bug),
            (ffi::SQLITE_RANGE, Bug),
            (ffi::SQLITE_ERROR, Bug),
        ] {
            assert_eq!(failure(code, None).kind(), kind, "{code}");
        }
    }

    #[test]
    fn a_schema_that_is_not_ours_is_told_from_a_statement_that_makes_no_sense() {
        for (message, kind) in [
            ("no such table: job", Incompatible),
            ("no such column: lane", Incompatible),
            ("table job has no column named lane", Incompatible),
            ("table job has 3 columns but 4 values were supplied", Incompatible),
            ("near \"SELEKT\": syntax error", Bug),
            ("no such function: f", Bug),
            ("no such savepoint: _rusqlite_sp_1", Transient),
            ("cannot commit - no transaction is active", Transient),
        ] {
            let error = failure(ffi::SQLITE_ERROR, Some(message));
            assert_eq!(error.kind(), kind, "{message}");
            let text = error.to_string();
            assert!(text.contains("SQLite file x.db") && text.contains(message), "{text}");
            assert_eq!(text.contains("not the ones that Fetchwell created"), kind == Incompatible);
        }
    }

    #[test]
    fn what_rusqlite_itself_refuses_has_its_kind() {
        use rusqlite::types::Type;
        let at = Path::new("x.db");
        let other = Path::new("out.jsonl");
        for (error, kind) in [
            (rusqlite::Error::QueryReturnedNoRows, Corrupt),
            (rusqlite::Error::IntegralValueOutOfRange(0, -1), Corrupt),
            (rusqlite::Error::InvalidColumnType(0, "n".to_owned(), Type::Text), Corrupt),
            (rusqlite::Error::InvalidColumnIndex(7), Bug),
            (rusqlite::Error::InvalidParameterCount(1, 2), Bug),
            (io_fault(other, io::ErrorKind::StorageFull.into()), Transient),
            (io_fault(other, io::Error::other("gone")), Transient),
            (io_fault(other, io::ErrorKind::PermissionDenied.into()), Incompatible),
            (own_error(StoreError::too_large("x")), TooLarge),
        ] {
            let text = error.to_string();
            assert_eq!(store_error(at, error).kind(), kind, "{text}");
        }
        let full = store_error(at, io_fault(other, io::ErrorKind::StorageFull.into())).to_string();
        assert!(full.contains("file out.jsonl: ") && !full.contains("x.db"), "{full}");
        assert!(full.ends_with("; free some space on its disk"), "{full}");
    }
}
