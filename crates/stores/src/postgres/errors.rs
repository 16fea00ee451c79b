//! Maps PostgreSQL and sqlx errors to store errors, with advice.

use std::borrow::Cow;
use std::error::Error;

use fetchwell_engine::ports::error::{StoreError, StoreErrorKind};

use StoreErrorKind::{Bug, Corrupt, Incompatible, TooLarge, Transient};

/// Classifies SQLSTATE codes: five characters are a code, two are a class. A code takes precedence over its class.
///
/// A missing table or column is incompatible: the schema is not the one that this program created. A read-only
/// transaction is transient, because it occurs during a failover. So is everything that is not listed: it comes from a
/// proxy or an extension, whose errors this program does not know.
const KINDS: &[(&str, StoreErrorKind)] = &[
    ("08", Transient),       // connection exception
    ("0A", Transient), // a cached plan that a migration outdated: the next connection makes a new one
    ("21", Bug),       // cardinality violation
    ("22", Bug),       // data exception
    ("22P05", Incompatible), // untranslatable character: the database's encoding is not UTF-8
    ("23", Bug),       // integrity constraint violation
    ("23505", Transient), // unique violation: two instances at once, and the next try sees the other's row
    ("25", Bug),          // invalid transaction state
    ("25006", Transient), // read-only transaction
    ("25P03", Transient), // idle in transaction for too long
    ("25P04", Transient), // transaction timeout
    ("26", Transient),    // invalid statement name: a pooler lost the prepared statement
    ("28", Incompatible), // invalid authorization, wrong password
    ("2F", Bug),          // SQL routine exception
    ("34", Bug),          // invalid cursor name
    ("3D", Incompatible), // no such database
    ("3F", Incompatible), // no such schema
    ("40", Transient),    // rollback: serialization failure, deadlock
    ("42", Bug),          // syntax error or access rule violation
    ("42501", Incompatible), // insufficient privilege
    ("42703", Incompatible), // undefined column
    ("42704", Incompatible), // undefined object
    ("42804", Incompatible), // a column of another type
    ("42883", Incompatible), // undefined function
    ("42P01", Incompatible), // undefined table
    ("42P05", Transient), // duplicate prepared statement: a pooler shares the connection
    ("42P10", Incompatible), // no unique index for ON CONFLICT
    ("44", Bug),          // WITH CHECK OPTION violation
    ("53", Transient),    // insufficient resources: disk full, out of memory, too many connections
    ("54", TooLarge),     // program limit exceeded
    ("54001", Bug),       // statement too complex
    ("54011", Bug),       // too many columns
    ("54023", Bug),       // too many arguments
    ("55", Transient),    // object in use, lock not available
    ("57", Transient),    // operator intervention: shutdown, statement timeout
    ("57P04", Incompatible), // database dropped
    ("58", Transient),    // system error outside PostgreSQL
    ("58P01", Corrupt),   // a file of a table is missing
    ("P0", Bug),          // PL/pgSQL error
    ("XX000", Transient), // internal error of the server
    ("XX001", Corrupt),   // data corrupted
    ("XX002", Corrupt),   // index corrupted
];

const CLASS_LENGTH: usize = 2;

/// Part of the server's message while it protects itself against transaction id wraparound.
const NOT_ACCEPTING_COMMANDS: &str = "is not accepting commands";

/// Converts an sqlx error; `server` names the server. All such errors are converted here.
pub(super) fn store_error(server: String, error: sqlx::Error) -> StoreError {
    let kind = kind_of(&error);
    let advice = match state_of(&error).as_deref() {
        Some("53100") => "free some space on the server's disk",
        Some("53300") => "raise max_connections, or run fewer instances",
        Some("42P01" | "42703" | "42704" | "42804" | "42883" | "42P10") => {
            "its tables are not the ones that Fetchwell created: restore a backup, or use another database"
        }
        Some("42501") => "grant this user privileges on the tables",
        Some("28000" | "28P01") => "check user and password",
        Some("3D000") => "create the database, or use another one",
        Some("XX001" | "XX002" | "58P01") => "restore a backup",
        _ => "",
    };
    StoreError::new(kind, server).with_source(error).with_advice(advice)
}

/// The driver's error, if it is about the values, not about the statement.
pub(super) fn refused_values(error: &StoreError) -> Option<&sqlx::Error> {
    let is_of_values =
        |state: String| ["22", "23", "54"].iter().any(|class| state.starts_with(class));
    let error: &sqlx::Error = error.source()?.downcast_ref()?;
    let is_refused = match error {
        sqlx::Error::Encode(_) => true,
        error => kind_of(error) != Transient && state_of(error).is_some_and(is_of_values),
    };
    is_refused.then_some(error)
}

fn state_of(error: &sqlx::Error) -> Option<String> {
    match error {
        sqlx::Error::Database(refusal) => refusal.code().map(Cow::into_owned),
        _ => None,
    }
}

fn kind_of(error: &sqlx::Error) -> StoreErrorKind {
    match error {
        // This has the code of a program limit, but goes away with the next VACUUM.
        sqlx::Error::Database(refusal) if refusal.message().contains(NOT_ACCEPTING_COMMANDS) => {
            Transient
        }
        sqlx::Error::Database(_) => {
            state_of(error).map_or(Transient, |state| kind_of_state(&state))
        }
        sqlx::Error::Configuration(_) | sqlx::Error::TypeNotFound { .. } => Incompatible,
        // The tables contain something that this program does not write.
        sqlx::Error::RowNotFound | sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
            Corrupt
        }
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => Transient,
        _ => Bug,
    }
}

fn kind_of_state(state: &str) -> StoreErrorKind {
    let known = |code: &str| KINDS.iter().find(|(known, _)| *known == code).map(|(_, kind)| *kind);
    let class = || known(state.get(..CLASS_LENGTH)?);
    known(state).or_else(class).unwrap_or(Transient)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn each_code_has_its_kind() {
        for (state, kind) in [
            ("08006", Transient),
            ("0A000", Transient),
            ("23505", Transient),
            ("42P05", Transient),
            ("25006", Transient),
            ("26000", Transient),
            ("40001", Transient),
            ("40P01", Transient),
            ("53100", Transient),
            ("53200", Transient),
            ("53300", Transient),
            ("55P03", Transient),
            ("57014", Transient),
            ("57P01", Transient),
            ("57P03", Transient),
            ("58030", Transient),
            ("XX000", Transient),
            ("ZZ999", Transient),
            ("", Transient),
            ("XX001", Corrupt),
            ("XX002", Corrupt),
            ("58P01", Corrupt),
            ("28P01", Incompatible),
            ("3D000", Incompatible),
            ("3F000", Incompatible),
            ("42501", Incompatible),
            ("42703", Incompatible),
            ("42804", Incompatible),
            ("42P01", Incompatible),
            ("57P04", Incompatible),
            ("54000", TooLarge),
            ("22001", Bug),
            ("23502", Bug),
            ("25P02", Bug),
            ("42601", Bug),
            ("54001", Bug),
        ] {
            assert_eq!(kind_of_state(state), kind, "{state}");
        }
    }

    #[test]
    fn what_the_driver_says_has_its_kind() {
        for (error, kind) in [
            (sqlx::Error::Io(io::Error::from(io::ErrorKind::TimedOut)), Transient),
            (sqlx::Error::Protocol("half a message".to_owned()), Transient),
            (sqlx::Error::PoolTimedOut, Transient),
            (sqlx::Error::RowNotFound, Corrupt),
            (sqlx::Error::Decode("no text".into()), Corrupt),
            (sqlx::Error::Configuration("no host".into()), Incompatible),
            (sqlx::Error::ColumnNotFound("x".to_owned()), Bug),
            (sqlx::Error::Encode("too long".into()), Bug),
        ] {
            let text = error.to_string();
            let error = store_error("PostgreSQL at db:5432".to_owned(), error);
            assert_eq!(error.kind(), kind, "{text}");
            assert!(error.detail().starts_with("PostgreSQL at db:5432: "), "{error}");
        }
    }

    #[test]
    fn a_refused_value_is_told_from_a_refused_statement() {
        let is_refused = |error| refused_values(&store_error(String::new(), error)).is_some();
        assert!(is_refused(sqlx::Error::Encode("too long".into())));
        assert!(!is_refused(sqlx::Error::RowNotFound));
    }
}
