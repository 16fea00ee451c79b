//! The tokens of callers, and the keys of their webhook secrets.

use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{
    Caller, FIRST_TOKEN, KeyRotated, MAX_TOKENS, NewToken, TokenAdded, TokenHash, TokenRecord,
    WebhookKey, WebhookKeys,
};
use fetchwell_policy::time::Time;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::database::Tx;
use super::inbox::caller_in;
use super::moves::{Moves, now_or};
use super::queue::PostgresQueue;

/// The caller that this token belongs to. A program of an earlier release stores a token in `fetchwell_caller` only.
pub(super) async fn caller_of(
    queue: &PostgresQueue,
    token: &TokenHash,
) -> Result<Option<Caller>, StoreError> {
    let query = sqlx::query(concat!(
        "SELECT name, role FROM fetchwell_caller WHERE token_hash = $1
         UNION ALL
         SELECT caller.name, role FROM fetchwell_token AS token
         JOIN fetchwell_caller AS caller
             ON caller.name = token.caller AND caller.created_at = token.since
         WHERE hash = $1 AND revoked_at IS NULL
             AND (expires_at IS NULL OR expires_at > ",
        now_or!("$2::BIGINT"),
        ") LIMIT 1"
    ));
    let query = query.bind(token.as_slice()).bind(queue.clock.given());
    Ok(queue.db.read(query, caller_in).await?.pop())
}

/// The tokens of this caller, or of all. The second part has those that a program of an earlier release added.
pub(super) async fn list(
    queue: &PostgresQueue,
    of: Option<&str>,
) -> Result<Vec<TokenRecord>, StoreError> {
    let query = sqlx::query(
        "SELECT token.caller, token.name, token.created_at, expires_at, last_used_at
         FROM fetchwell_token AS token
         JOIN fetchwell_caller AS caller
             ON caller.name = token.caller AND caller.created_at = token.since
         WHERE revoked_at IS NULL AND ($1::TEXT IS NULL OR caller.name = $1)
         UNION ALL
         SELECT name, $2, created_at, NULL, NULL FROM fetchwell_caller
         WHERE token_hash IS NOT NULL AND ($1::TEXT IS NULL OR name = $1)
             AND NOT EXISTS (SELECT FROM fetchwell_token WHERE hash = token_hash)
         ORDER BY 1, 2",
    );
    let record = |row: &PgRow| {
        let time = |column: usize| {
            Ok::<_, sqlx::Error>(row.try_get::<Option<i64>, _>(column)?.map(Time::from_micros))
        };
        Ok(TokenRecord {
            caller: row.try_get(0)?,
            name: row.try_get(1)?,
            created_at: Time::from_micros(row.try_get(2)?),
            expires_at: time(3)?,
            last_used_at: time(4)?,
        })
    };
    queue.db.read(query.bind(of).bind(FIRST_TOKEN), record).await
}

/// Inserts the row of a token. `since` is `created_at` of its caller.
pub(super) async fn insert(
    moves: &mut Moves<'_>,
    caller: &str,
    token: &NewToken,
    since: Time,
) -> sqlx::Result<TokenRecord> {
    let now = moves.now();
    let expires_at = token.expires_in.map(|expires_in| now + expires_in);
    let query = sqlx::query(
        "INSERT INTO fetchwell_token (caller, name, hash, since, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6)",
    );
    let query = query
        .bind(caller)
        .bind(&token.name)
        .bind(token.hash.as_slice())
        .bind(since.as_micros())
        .bind(now.as_micros())
        .bind(expires_at.map(Time::as_micros));
    moves.tx.execute(query).await?;
    Ok(TokenRecord {
        caller: caller.to_owned(),
        name: token.name.clone(),
        created_at: now,
        expires_at,
        last_used_at: None,
    })
}

/// Deletes all tokens of a caller.
pub(super) async fn delete_all(tx: &mut Tx, caller: &str) -> sqlx::Result<()> {
    delete_others(tx, caller, None).await
}

/// Deletes the tokens of a caller, except those that it has had since this time. Sorted, because their uses are
/// recorded at the same time.
async fn delete_others(tx: &mut Tx, caller: &str, since: Option<i64>) -> sqlx::Result<()> {
    let query = sqlx::query(
        "WITH void AS (
             SELECT hash FROM fetchwell_token
             WHERE caller = $1 AND since IS DISTINCT FROM $2::BIGINT ORDER BY hash FOR UPDATE)
         DELETE FROM fetchwell_token AS token USING void WHERE token.hash = void.hash",
    );
    tx.execute(query.bind(caller).bind(since)).await?;
    Ok(())
}

/// Brings the tokens of a caller in line with its row, which a program of an earlier release may have changed, and
/// locks that row. Returns `created_at` of the caller; `None` if there is no such caller, or if it was revoked.
async fn settle(tx: &mut Tx, caller: &str) -> sqlx::Result<Option<Time>> {
    let query = sqlx::query(
        "SELECT created_at, token_hash FROM fetchwell_caller
         WHERE name = $1 AND revoked_at IS NULL FOR UPDATE",
    );
    let row: Option<(i64, Option<Vec<u8>>)> = tx.fetch_as(query.bind(caller)).await?.pop();
    let Some((since, first)) = row else { return Ok(None) };
    delete_others(tx, caller, Some(since)).await?;
    if let Some(first) = first {
        let query = sqlx::query(
            "INSERT INTO fetchwell_token (caller, name, hash, since, created_at)
             VALUES ($1, $2, $3, $4, $4) ON CONFLICT DO NOTHING",
        );
        tx.execute(query.bind(caller).bind(FIRST_TOKEN).bind(first).bind(since)).await?;
    }
    Ok(Some(Time::from_micros(since)))
}

/// Adds a token to a caller.
pub(super) async fn add(
    moves: &mut Moves<'_>,
    caller: &str,
    token: &NewToken,
) -> sqlx::Result<TokenAdded> {
    let Some(since) = settle(&mut moves.tx, caller).await? else {
        return Ok(TokenAdded::NoCaller);
    };
    let query = sqlx::query("SELECT name FROM fetchwell_token WHERE caller = $1");
    let names: Vec<(String,)> = moves.tx.fetch_as(query.bind(caller)).await?;
    if names.iter().any(|(name,)| *name == token.name) {
        return Ok(TokenAdded::NameTaken);
    }
    if names.len() >= MAX_TOKENS {
        return Ok(TokenAdded::TooMany);
    }
    insert(moves, caller, token, since).await.map(TokenAdded::Added)
}

/// Revokes one token of a caller, and with the last of them the caller.
pub(super) async fn revoke(moves: &mut Moves<'_>, caller: &str, name: &str) -> sqlx::Result<bool> {
    if settle(&mut moves.tx, caller).await?.is_none() {
        return Ok(false);
    }
    let query =
        sqlx::query("DELETE FROM fetchwell_token WHERE caller = $1 AND name = $2 RETURNING hash");
    let deleted: Option<(Vec<u8>,)> = moves.tx.fetch_as(query.bind(caller).bind(name)).await?.pop();
    let Some((hash,)) = deleted else { return Ok(false) };
    let query = sqlx::query("SELECT name FROM fetchwell_token WHERE caller = $1 LIMIT 1");
    if moves.tx.fetch(query.bind(caller)).await?.is_empty() {
        return revoke_all(moves, caller).await;
    }
    // The webhook secret of the caller was derived from the first token, and outlives it.
    let query = sqlx::query(
        "UPDATE fetchwell_caller SET
             webhook_key = CASE WHEN webhook_since = created_at THEN webhook_key ELSE token_hash END,
             webhook_key_before = CASE WHEN webhook_since = created_at THEN webhook_key_before END,
             webhook_since = created_at, token_hash = NULL
         WHERE name = $1 AND token_hash = $2",
    );
    moves.tx.execute(query.bind(caller).bind(hash)).await?;
    Ok(true)
}

/// Revokes all tokens of a caller.
pub(super) async fn revoke_all(moves: &mut Moves<'_>, caller: &str) -> sqlx::Result<bool> {
    let query = sqlx::query(
        "UPDATE fetchwell_caller SET token_hash = NULL, revoked_at = $2, webhook_since = NULL,
             webhook_key = NULL, webhook_key_before = NULL
         WHERE name = $1 AND revoked_at IS NULL",
    );
    let query = query.bind(caller).bind(moves.now().as_micros());
    let revoked = moves.tx.execute(query).await?;
    delete_all(&mut moves.tx, caller).await?;
    Ok(revoked == 1)
}

/// Records that tokens were used. Sorted, so that two instances do not deadlock.
pub(super) async fn used(moves: &mut Moves<'_>, tokens: &[TokenHash]) -> sqlx::Result<()> {
    let mut hashes: Vec<Vec<u8>> = tokens.iter().map(|token| token.to_vec()).collect();
    hashes.sort_unstable();
    let query = sqlx::query(
        "UPDATE fetchwell_token AS token SET last_used_at = $2
         FROM (SELECT hash FROM fetchwell_token WHERE hash = ANY($1) ORDER BY hash FOR UPDATE) AS used
         WHERE token.hash = used.hash",
    );
    moves.tx.execute(query.bind(hashes).bind(moves.now().as_micros())).await?;
    Ok(())
}

/// The keys with which webhooks of a caller are signed.
pub(super) async fn webhook_keys(
    queue: &PostgresQueue,
    caller: &str,
) -> Result<Option<WebhookKeys>, StoreError> {
    let query = sqlx::query(concat!(
        "SELECT
             CASE WHEN webhook_since = created_at THEN webhook_key ELSE token_hash END,
             CASE WHEN webhook_since = created_at AND webhook_before_until > ",
        now_or!("$2::BIGINT"),
        " THEN webhook_key_before END
         FROM fetchwell_caller WHERE name = $1 AND revoked_at IS NULL"
    ));
    let query = query.bind(caller).bind(queue.clock.given());
    let keys = |row: &PgRow| {
        let current: Option<WebhookKey> = row.try_get(0)?;
        let previous: Option<WebhookKey> = row.try_get(1)?;
        Ok(current.map(|current| WebhookKeys { current, previous }))
    };
    Ok(queue.db.read(query, keys).await?.pop().flatten())
}

/// A row of a caller: the current key of its webhook secret, the one before it, and until when that one is in use.
type KeyRow = (Option<Vec<u8>>, Option<Vec<u8>>, Option<i64>);

/// Replaces the key with which webhooks of a caller are signed.
pub(super) async fn rotate(
    moves: &mut Moves<'_>,
    caller: &str,
    key: &WebhookKey,
    overlap: Duration,
) -> sqlx::Result<KeyRotated> {
    let now = moves.now();
    let query = sqlx::query(
        "SELECT
             CASE WHEN webhook_since = created_at THEN webhook_key ELSE token_hash END,
             CASE WHEN webhook_since = created_at AND webhook_before_until > $2
                 THEN webhook_key_before END,
             webhook_before_until
         FROM fetchwell_caller WHERE name = $1 AND revoked_at IS NULL FOR UPDATE",
    );
    let row: Option<KeyRow> =
        moves.tx.fetch_as(query.bind(caller).bind(now.as_micros())).await?.pop();
    let Some((current, previous, until)) = row else { return Ok(KeyRotated::NoCaller) };
    if let (Some(_), Some(until), false) = (previous, until, overlap.is_zero()) {
        return Ok(KeyRotated::UnderWay(Time::from_micros(until)));
    }
    let previous_until = (!overlap.is_zero()).then(|| now + overlap);
    let query = sqlx::query(
        "UPDATE fetchwell_caller SET webhook_since = created_at, webhook_key = $2,
             webhook_key_before = $3, webhook_before_until = $4
         WHERE name = $1",
    );
    let query = query
        .bind(caller)
        .bind(key.as_slice())
        .bind(current.filter(|_| previous_until.is_some()))
        .bind(previous_until.map(Time::as_micros));
    moves.tx.execute(query).await?;
    Ok(KeyRotated::Rotated { previous_until })
}
