//! Callers, and the audit trail.

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{AuditEntry, Caller, CallerRecord, Role, TokenHash};
use fetchwell_policy::time::Time;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::database::{Database, Tx, writable};

/// The caller that this token belongs to.
pub(super) async fn caller_of(
    db: &Database,
    token: &TokenHash,
) -> Result<Option<Caller>, StoreError> {
    let query = sqlx::query("SELECT name, role FROM fetchwell_caller WHERE token_hash = $1");
    let rows = db.read(query.bind(token.as_slice())).await?;
    rows.first().map(caller_in).transpose().map_err(|error| db.fault(error))
}

/// The token of a caller that is not revoked.
pub(super) async fn token_of(db: &Database, caller: &str) -> Result<Option<TokenHash>, StoreError> {
    let query = sqlx::query(
        "SELECT token_hash FROM fetchwell_caller WHERE name = $1 AND token_hash IS NOT NULL",
    );
    let rows = db.read(query.bind(caller)).await?;
    let hash = |row: &PgRow| row.try_get::<TokenHash, _>(0);
    rows.first().map(hash).transpose().map_err(|error| db.fault(error))
}

/// Adds a caller, or gives a revoked one another token.
pub(super) async fn add(
    tx: &mut Tx,
    caller: &Caller,
    token: &TokenHash,
    now: Time,
) -> sqlx::Result<bool> {
    let query = sqlx::query(
        "INSERT INTO fetchwell_caller AS caller (name, role, token_hash, created_at)
         VALUES ($1, $2, $3, $4)
         ON CONFLICT (name) DO UPDATE
         SET role = excluded.role, token_hash = excluded.token_hash,
             created_at = excluded.created_at, revoked_at = NULL
         WHERE caller.token_hash IS NULL",
    );
    let query = query
        .bind(&caller.name)
        .bind(caller.role.as_str())
        .bind(token.as_slice())
        .bind(now.as_micros());
    Ok(tx.execute(query).await? == 1)
}

pub(super) async fn all(db: &Database) -> Result<Vec<CallerRecord>, StoreError> {
    let rows = db
        .read(sqlx::query(
            "SELECT name, role, created_at, revoked_at FROM fetchwell_caller ORDER BY name",
        ))
        .await?;
    let record = |row: &PgRow| {
        Ok(CallerRecord {
            caller: caller_in(row)?,
            created_at: Time::from_micros(row.try_get(2)?),
            revoked_at: row.try_get::<Option<i64>, _>(3)?.map(Time::from_micros),
        })
    };
    rows.iter().map(record).collect::<sqlx::Result<_>>().map_err(|error| db.fault(error))
}

/// Revokes the token of a caller.
pub(super) async fn revoke(tx: &mut Tx, name: &str, now: Time) -> sqlx::Result<bool> {
    let query = sqlx::query(
        "UPDATE fetchwell_caller SET token_hash = NULL, revoked_at = $2
         WHERE name = $1 AND token_hash IS NOT NULL",
    );
    Ok(tx.execute(query.bind(name).bind(now.as_micros())).await? == 1)
}

/// A role that this program does not know gets the fewest rights.
fn caller_in(row: &PgRow) -> sqlx::Result<Caller> {
    let role = Role::parse(row.try_get(1)?).unwrap_or(Role::Viewer);
    Ok(Caller { name: row.try_get(0)?, role })
}

/// Stores audit entries. They contain text from unauthenticated clients, so NUL characters are possible.
pub(super) async fn put_audit(tx: &mut Tx, entries: &[AuditEntry]) -> sqlx::Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let text = |read: fn(&AuditEntry) -> &str| -> Vec<String> {
        entries.iter().map(|entry| writable(read(entry))).collect()
    };
    let query = sqlx::query(
        "INSERT INTO fetchwell_audit (at, caller, action, detail, origin)
         SELECT at, caller, action, detail, origin
         FROM unnest($1::BIGINT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[]) WITH ORDINALITY
             AS new (at, caller, action, detail, origin, place)
         ORDER BY place",
    );
    let caller = |entry: &AuditEntry| entry.caller.as_deref().map(writable);
    let query = query
        .bind(entries.iter().map(|entry| entry.at.as_micros()).collect::<Vec<_>>())
        .bind(entries.iter().map(caller).collect::<Vec<_>>())
        .bind(text(|entry| &entry.action))
        .bind(text(|entry| &entry.detail))
        .bind(text(|entry| &entry.from));
    tx.execute(query).await?;
    Ok(())
}

/// The latest entries, newest first.
pub(super) async fn audit_trail(db: &Database, most: u32) -> Result<Vec<AuditEntry>, StoreError> {
    let query = sqlx::query(
        "SELECT at, caller, action, detail, origin FROM fetchwell_audit ORDER BY id DESC LIMIT $1",
    );
    let rows = db.read(query.bind(i64::from(most))).await?;
    let entry = |row: &PgRow| {
        Ok(AuditEntry {
            at: Time::from_micros(row.try_get(0)?),
            caller: row.try_get(1)?,
            action: row.try_get(2)?,
            detail: row.try_get(3)?,
            from: row.try_get(4)?,
        })
    };
    rows.iter().map(entry).collect::<sqlx::Result<_>>().map_err(|error| db.fault(error))
}
