//! The tokens of callers, and the keys of their webhook secrets.

use std::time::Duration;

use fetchwell_engine::ports::inbox::{
    FIRST_TOKEN, KeyRotated, MAX_TOKENS, NewToken, TokenAdded, TokenHash, TokenRecord, WebhookKey,
    WebhookKeys,
};
use fetchwell_policy::time::Time;
use fetchwell_sqlite::statements::Statements;
use rusqlite::{Connection, Row};

use super::callers;

/// The tokens of this caller, or of all. The second part has those that a program of an earlier release added.
pub(super) fn list(tx: &Connection, of: Option<&str>) -> rusqlite::Result<Vec<TokenRecord>> {
    let select = "SELECT token.caller, token.name, token.created_at, expires_at, last_used_at
         FROM token JOIN caller ON caller.name = token.caller AND caller.created_at = token.since
         WHERE revoked_at IS NULL AND (?1 IS NULL OR caller.name = ?1)
         UNION ALL
         SELECT name, ?2, created_at, NULL, NULL FROM caller
         WHERE token_hash IS NOT NULL AND (?1 IS NULL OR name = ?1)
             AND NOT EXISTS (SELECT 1 FROM token WHERE hash = token_hash)
         ORDER BY 1, 2";
    tx.list(select, (of, FIRST_TOKEN), |row| {
        Ok(TokenRecord {
            caller: row.get(0)?,
            name: row.get(1)?,
            created_at: Time::from_micros(row.get(2)?),
            expires_at: time_in(row, 3)?,
            last_used_at: time_in(row, 4)?,
        })
    })
}

fn time_in(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Time>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Time::from_micros))
}

/// Inserts the row of a token. `since` is `created_at` of its caller.
pub(super) fn insert(
    tx: &Connection,
    caller: &str,
    token: &NewToken,
    since: Time,
    wall: Time,
) -> rusqlite::Result<TokenRecord> {
    let expires_at = token.expires_in.map(|expires_in| wall + expires_in);
    tx.run(
        "INSERT INTO token (caller, name, hash, since, created_at, expires_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        (
            caller,
            &token.name,
            token.hash,
            since.as_micros(),
            wall.as_micros(),
            expires_at.map(Time::as_micros),
        ),
    )?;
    Ok(TokenRecord {
        caller: caller.to_owned(),
        name: token.name.clone(),
        created_at: wall,
        expires_at,
        last_used_at: None,
    })
}

/// Brings the tokens of a caller in line with its row, which a program of an earlier release may have changed. Returns
/// `created_at` of the caller; `None` if there is no such caller, or if it was revoked.
fn settle(tx: &Connection, caller: &str) -> rusqlite::Result<Option<Time>> {
    let select = "SELECT created_at, token_hash FROM caller WHERE name = ?1 AND revoked_at IS NULL";
    let row: Option<(i64, Option<TokenHash>)> = tx.find(select, [caller], |row| row.try_into())?;
    let Some((since, first)) = row else { return Ok(None) };
    tx.run("DELETE FROM token WHERE caller = ?1 AND since <> ?2", (caller, since))?;
    if let Some(first) = first {
        tx.run(
            "INSERT INTO token (caller, name, hash, since, created_at) VALUES (?1, ?2, ?3, ?4, ?4)
             ON CONFLICT DO NOTHING",
            (caller, FIRST_TOKEN, first, since),
        )?;
    }
    Ok(Some(Time::from_micros(since)))
}

/// Adds a token to a caller.
pub(super) fn add(
    tx: &Connection,
    caller: &str,
    token: &NewToken,
    wall: Time,
) -> rusqlite::Result<TokenAdded> {
    let Some(since) = settle(tx, caller)? else { return Ok(TokenAdded::NoCaller) };
    if tx.has("SELECT 1 FROM token WHERE caller = ?1 AND name = ?2", (caller, &token.name))? {
        return Ok(TokenAdded::NameTaken);
    }
    let count = "SELECT count(*) FROM token WHERE caller = ?1";
    let count: usize = tx.one(count, [caller], |row| row.get(0))?;
    if count >= MAX_TOKENS {
        return Ok(TokenAdded::TooMany);
    }
    insert(tx, caller, token, since, wall).map(TokenAdded::Added)
}

/// Revokes one token of a caller, and with the last of them the caller.
pub(super) fn revoke(
    tx: &Connection,
    caller: &str,
    name: &str,
    wall: Time,
) -> rusqlite::Result<bool> {
    if settle(tx, caller)?.is_none() {
        return Ok(false);
    }
    let delete = "DELETE FROM token WHERE caller = ?1 AND name = ?2 RETURNING hash";
    let hash: Option<TokenHash> = tx.find(delete, (caller, name), |row| row.get(0))?;
    let Some(hash) = hash else { return Ok(false) };
    if !tx.has("SELECT 1 FROM token WHERE caller = ?1", [caller])? {
        return callers::revoke(tx, caller, wall);
    }
    // The webhook secret of the caller was derived from the first token, and outlives it.
    tx.run(
        "UPDATE caller SET
             webhook_key = CASE WHEN webhook_since = created_at THEN webhook_key ELSE token_hash END,
             webhook_key_before = CASE WHEN webhook_since = created_at THEN webhook_key_before END,
             webhook_since = created_at, token_hash = NULL
         WHERE name = ?1 AND token_hash = ?2",
        (caller, hash),
    )?;
    Ok(true)
}

/// Records that tokens were used.
pub(super) fn used(tx: &Connection, tokens: &[TokenHash], wall: Time) -> rusqlite::Result<()> {
    for token in tokens {
        tx.run("UPDATE token SET last_used_at = ?2 WHERE hash = ?1", (token, wall.as_micros()))?;
    }
    Ok(())
}

/// A row of `caller`: the current key of its webhook secret, the one before it, and until when that one is in use.
type KeyRow = (Option<WebhookKey>, Option<WebhookKey>, Option<i64>);

fn key_row(tx: &Connection, caller: &str, wall: Time) -> rusqlite::Result<Option<KeyRow>> {
    let select = "SELECT
             CASE WHEN webhook_since = created_at THEN webhook_key ELSE token_hash END,
             CASE WHEN webhook_since = created_at AND webhook_before_until > ?2
                 THEN webhook_key_before END,
             webhook_before_until
         FROM caller WHERE name = ?1 AND revoked_at IS NULL";
    tx.find(select, (caller, wall.as_micros()), |row| row.try_into())
}

/// The keys with which webhooks of a caller are signed.
pub(super) fn webhook_keys(
    tx: &Connection,
    caller: &str,
    wall: Time,
) -> rusqlite::Result<Option<WebhookKeys>> {
    let row = key_row(tx, caller, wall)?;
    Ok(row.and_then(|(current, previous, _)| Some(WebhookKeys { current: current?, previous })))
}

/// Replaces the key with which webhooks of a caller are signed.
pub(super) fn rotate(
    tx: &Connection,
    caller: &str,
    key: &WebhookKey,
    overlap: Duration,
    wall: Time,
) -> rusqlite::Result<KeyRotated> {
    let Some((current, previous, until)) = key_row(tx, caller, wall)? else {
        return Ok(KeyRotated::NoCaller);
    };
    if let (Some(_), Some(until), false) = (previous, until, overlap.is_zero()) {
        return Ok(KeyRotated::UnderWay(Time::from_micros(until)));
    }
    let previous_until = (!overlap.is_zero()).then(|| wall + overlap);
    tx.run(
        "UPDATE caller SET webhook_since = created_at, webhook_key = ?2, webhook_key_before = ?3,
             webhook_before_until = ?4
         WHERE name = ?1",
        (
            caller,
            key,
            current.filter(|_| previous_until.is_some()),
            previous_until.map(Time::as_micros),
        ),
    )?;
    Ok(KeyRotated::Rotated { previous_until })
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::ports::inbox::Caller;

    use super::super::schema;
    use super::*;

    const NOW: Time = Time::from_secs(1_700_000_000);

    fn token(name: &str, byte: u8) -> NewToken {
        NewToken { name: name.to_owned(), hash: [byte; 32], expires_in: None }
    }

    fn caller_of(tx: &Connection, byte: u8) -> Option<Caller> {
        callers::caller_of(tx, &[byte; 32], NOW).unwrap()
    }

    #[test]
    fn the_token_of_an_older_file_is_the_first_one_and_its_secret_stays() {
        let mut connection = schema::before("CREATE TABLE token");
        connection
            .execute_batch(
                "INSERT INTO caller (name, role, token_hash, created_at, revoked_at)
                 VALUES ('anna', 'caller', x'0101010101010101010101010101010101010101010101010101010101010101', 5, NULL),
                     ('gone', 'caller', NULL, 6, 7);",
            )
            .unwrap();
        schema::migrate(&mut connection).unwrap();
        let tokens = list(&connection, None).unwrap();
        let names: Vec<_> = tokens.iter().map(|one| (one.caller.as_str(), &*one.name)).collect();
        assert_eq!(names, [("anna", FIRST_TOKEN)]);
        assert_eq!(tokens[0].created_at, Time::from_micros(5));
        assert!(caller_of(&connection, 1).is_some());
        let keys = webhook_keys(&connection, "anna", NOW).unwrap();
        assert_eq!(keys, Some(WebhookKeys { current: [1; 32], previous: None }));
        assert!(matches!(add(&connection, "anna", &token("ci", 2), NOW), Ok(TokenAdded::Added(_))));
        assert!(matches!(add(&connection, "gone", &token("ci", 3), NOW), Ok(TokenAdded::NoCaller)));
    }

    /// The statements are those of the release before, which may share the file.
    #[test]
    fn what_an_earlier_release_revokes_or_adds_counts_here_too() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        let revoke = "UPDATE caller SET token_hash = NULL, revoked_at = 9 WHERE name = 'anna'";
        let add_again = "INSERT INTO caller (name, role, token_hash, created_at)
             VALUES ('anna', 'caller', x'0303030303030303030303030303030303030303030303030303030303030303', 10)
             ON CONFLICT (name) DO UPDATE
             SET role = excluded.role, token_hash = excluded.token_hash,
                 created_at = excluded.created_at, revoked_at = NULL
             WHERE token_hash IS NULL";
        let anna =
            Caller { name: "anna".to_owned(), role: fetchwell_engine::ports::inbox::Role::Caller };
        assert!(callers::add(&connection, &anna, &[1; 32], NOW).unwrap());
        add(&connection, "anna", &token("ci", 2), NOW).unwrap();
        rotate(&connection, "anna", &[9; 32], Duration::from_secs(60), NOW).unwrap();
        connection.execute(revoke, []).unwrap();
        assert_eq!((caller_of(&connection, 1), caller_of(&connection, 2)), (None, None));
        assert_eq!(webhook_keys(&connection, "anna", NOW).unwrap(), None);

        connection.execute(add_again, []).unwrap();
        assert_eq!((caller_of(&connection, 1), caller_of(&connection, 2)), (None, None));
        assert!(caller_of(&connection, 3).is_some());
        let keys = webhook_keys(&connection, "anna", NOW).unwrap();
        assert_eq!(keys, Some(WebhookKeys { current: [3; 32], previous: None }));
        let names = |of: &Connection| {
            let tokens = list(of, None).unwrap();
            tokens.into_iter().map(|token| token.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&connection), [FIRST_TOKEN]);
        add(&connection, "anna", &token("ci", 4), NOW).unwrap();
        assert_eq!(names(&connection), ["ci", FIRST_TOKEN]);
        assert!(revoke_first(&connection) && caller_of(&connection, 3).is_none());
        assert!(caller_of(&connection, 4).is_some());
    }

    fn revoke_first(tx: &Connection) -> bool {
        super::revoke(tx, "anna", FIRST_TOKEN, NOW).unwrap()
    }
}
