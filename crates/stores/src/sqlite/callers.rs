//! Callers, and the audit trail.

use fetchwell_engine::ports::inbox::{AuditEntry, Caller, CallerRecord, Role, TokenHash};
use fetchwell_policy::time::Time;
use rusqlite::{Connection, OptionalExtension, Row};

/// The caller that this token belongs to.
pub(super) fn caller_of(tx: &Connection, token: &TokenHash) -> rusqlite::Result<Option<Caller>> {
    tx.prepare_cached("SELECT name, role FROM caller WHERE token_hash = ?1")?
        .query_row([token], caller_in)
        .optional()
}

/// Adds a caller, or gives a revoked one another token.
pub(super) fn add(
    tx: &Connection,
    caller: &Caller,
    token: &TokenHash,
    wall: Time,
) -> rusqlite::Result<bool> {
    let added = tx.execute(
        "INSERT INTO caller (name, role, token_hash, created_at) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (name) DO UPDATE
         SET role = ?2, token_hash = ?3, created_at = ?4, revoked_at = NULL
         WHERE token_hash IS NULL",
        (&caller.name, caller.role.as_str(), token, wall.as_micros()),
    )?;
    Ok(added == 1)
}

/// The token hash of a caller that is not revoked.
pub(super) fn token_of(tx: &Connection, caller: &str) -> rusqlite::Result<Option<TokenHash>> {
    tx.prepare_cached("SELECT token_hash FROM caller WHERE name = ?1 AND token_hash IS NOT NULL")?
        .query_row([caller], |row| row.get(0))
        .optional()
}

pub(super) fn all(tx: &Connection) -> rusqlite::Result<Vec<CallerRecord>> {
    tx.prepare_cached("SELECT name, role, created_at, revoked_at FROM caller ORDER BY name")?
        .query_map([], |row| {
            Ok(CallerRecord {
                caller: caller_in(row)?,
                created_at: Time::from_micros(row.get(2)?),
                revoked_at: row.get::<_, Option<i64>>(3)?.map(Time::from_micros),
            })
        })?
        .collect()
}

/// Revokes the token of a caller.
pub(super) fn revoke(tx: &Connection, name: &str, wall: Time) -> rusqlite::Result<bool> {
    let revoked = tx.execute(
        "UPDATE caller SET token_hash = NULL, revoked_at = ?2
         WHERE name = ?1 AND token_hash IS NOT NULL",
        (name, wall.as_micros()),
    )?;
    Ok(revoked == 1)
}

/// A role that this program does not know gets the fewest rights.
fn caller_in(row: &Row<'_>) -> rusqlite::Result<Caller> {
    let role: String = row.get(1)?;
    Ok(Caller { name: row.get(0)?, role: Role::parse(&role).unwrap_or(Role::Viewer) })
}

pub(super) fn audit(tx: &Connection, entry: &AuditEntry) -> rusqlite::Result<()> {
    let AuditEntry { at, caller, action, detail, from } = entry;
    tx.prepare_cached(
        "INSERT INTO audit (at, caller, action, detail, origin) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute((at.as_micros(), caller, action, detail, from))?;
    Ok(())
}

/// The latest entries, newest first.
pub(super) fn audit_trail(tx: &Connection, most: u32) -> rusqlite::Result<Vec<AuditEntry>> {
    tx.prepare_cached(
        "SELECT at, caller, action, detail, origin FROM audit ORDER BY id DESC LIMIT ?1",
    )?
    .query_map([most], |row| {
        Ok(AuditEntry {
            at: Time::from_micros(row.get(0)?),
            caller: row.get(1)?,
            action: row.get(2)?,
            detail: row.get(3)?,
            from: row.get(4)?,
        })
    })?
    .collect()
}
