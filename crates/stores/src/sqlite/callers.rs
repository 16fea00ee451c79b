//! Callers, and the audit trail.

use fetchwell_engine::ports::inbox::{
    AuditEntry, Caller, CallerRecord, FIRST_TOKEN, NewToken, Role, TokenHash,
};
use fetchwell_policy::time::Time;
use fetchwell_sqlite::statements::Statements;
use rusqlite::{Connection, Row};

use super::tokens;

/// The caller that this token belongs to. A program of an earlier release stores a token in `caller` only.
pub(super) fn caller_of(
    tx: &Connection,
    token: &TokenHash,
    wall: Time,
) -> rusqlite::Result<Option<Caller>> {
    let select = "SELECT name, role FROM caller WHERE token_hash = ?1
         UNION ALL
         SELECT caller.name, role FROM token
         JOIN caller ON caller.name = token.caller AND caller.created_at = token.since
         WHERE hash = ?1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?2)
         LIMIT 1";
    tx.find(select, (token, wall.as_micros()), caller_in)
}

/// Adds a caller with its first token, or gives a revoked one another.
pub(super) fn add(
    tx: &Connection,
    caller: &Caller,
    token: &TokenHash,
    wall: Time,
) -> rusqlite::Result<bool> {
    let added = tx.execute(
        "INSERT INTO caller (name, role, token_hash, created_at) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (name) DO UPDATE
         SET role = ?2, token_hash = ?3, created_at = ?4, revoked_at = NULL, webhook_since = NULL
         WHERE revoked_at IS NOT NULL",
        (&caller.name, caller.role.as_str(), token, wall.as_micros()),
    )?;
    if added == 1 {
        tx.run("DELETE FROM token WHERE caller = ?1", [&caller.name])?;
        let first = NewToken { name: FIRST_TOKEN.to_owned(), hash: *token, expires_in: None };
        tokens::insert(tx, &caller.name, &first, wall, wall)?;
    }
    Ok(added == 1)
}

pub(super) fn all(tx: &Connection) -> rusqlite::Result<Vec<CallerRecord>> {
    tx.list("SELECT name, role, created_at, revoked_at FROM caller ORDER BY name", [], |row| {
        Ok(CallerRecord {
            caller: caller_in(row)?,
            created_at: Time::from_micros(row.get(2)?),
            revoked_at: row.get::<_, Option<i64>>(3)?.map(Time::from_micros),
        })
    })
}

/// Revokes all tokens of a caller.
pub(super) fn revoke(tx: &Connection, name: &str, wall: Time) -> rusqlite::Result<bool> {
    let revoked = tx.execute(
        "UPDATE caller SET token_hash = NULL, revoked_at = ?2, webhook_since = NULL,
             webhook_key = NULL, webhook_key_before = NULL
         WHERE name = ?1 AND revoked_at IS NULL",
        (name, wall.as_micros()),
    )?;
    tx.run("DELETE FROM token WHERE caller = ?1", [name])?;
    Ok(revoked == 1)
}

/// A role that this program does not know gets the fewest rights.
fn caller_in(row: &Row<'_>) -> rusqlite::Result<Caller> {
    let role: String = row.get(1)?;
    Ok(Caller { name: row.get(0)?, role: Role::parse(&role).unwrap_or(Role::Viewer) })
}

pub(super) fn audit(tx: &Connection, entry: &AuditEntry) -> rusqlite::Result<()> {
    let AuditEntry { at, caller, action, detail, from } = entry;
    tx.run(
        "INSERT INTO audit (at, caller, action, detail, origin) VALUES (?1, ?2, ?3, ?4, ?5)",
        (at.as_micros(), caller, action, detail, from),
    )?;
    Ok(())
}

/// The latest entries, newest first.
pub(super) fn audit_trail(tx: &Connection, most: u32) -> rusqlite::Result<Vec<AuditEntry>> {
    let select = "SELECT at, caller, action, detail, origin FROM audit ORDER BY id DESC LIMIT ?1";
    tx.list(select, [most], |row| {
        let (at, caller, action, detail, from) = <(_, _, _, _, _)>::try_from(row)?;
        Ok(AuditEntry { at: Time::from_micros(at), caller, action, detail, from })
    })
}
