//! Idempotency keys: a repeated submission is not accepted twice.

use std::collections::{BTreeMap, HashMap, HashSet};

use fetchwell_engine::ports::inbox::{MessageId, Submission, Submitted};

use super::moves::Moves;

/// The answers to repeated submissions; `None` for a new one, whose key is recorded.
pub(super) async fn earlier_answers(
    moves: &mut Moves<'_>,
    group: &[&Submission],
) -> sqlx::Result<Vec<Option<Submitted>>> {
    let mut named: BTreeMap<(&str, &str), &Submission> = BTreeMap::new();
    for submission in group {
        if let Some(name) = name_of(submission) {
            named.entry(name).or_insert(submission);
        }
    }
    if named.is_empty() {
        return Ok(vec![None; group.len()]);
    }
    let (callers, keys): (Vec<&str>, Vec<&str>) = named.keys().copied().unzip();
    let hash = |submission: &&Submission| {
        submission.idempotency.as_ref().map(|name| name.body_hash.to_vec()).unwrap_or_default()
    };
    let messages = |submission: &&Submission| -> Vec<u8> {
        submission.messages.iter().flat_map(|message| message.id.0).collect()
    };
    // In key order, so that transactions wait for each other without a deadlock.
    let query = sqlx::query(
        "INSERT INTO fetchwell_idempotency (caller, key, body_hash, messages, created_at)
         SELECT caller, key, body_hash, messages, $5
         FROM unnest($1::TEXT[], $2::TEXT[], $3::BYTEA[], $4::BYTEA[]) WITH ORDINALITY
             AS new (caller, key, body_hash, messages, place)
         ORDER BY place ON CONFLICT DO NOTHING RETURNING caller, key",
    );
    let query = query
        .bind(&callers)
        .bind(&keys)
        .bind(named.values().map(hash).collect::<Vec<_>>())
        .bind(named.values().map(messages).collect::<Vec<_>>())
        .bind(moves.now().as_micros());
    let new: Vec<(String, String)> = moves.tx.fetch_as(query).await?;
    let mut new: HashSet<(String, String)> = new.into_iter().collect();
    let query = sqlx::query(
        "SELECT caller, key, body_hash, messages FROM fetchwell_idempotency
         JOIN unnest($1::TEXT[], $2::TEXT[]) AS wanted (caller, key) USING (caller, key)",
    );
    let rows = moves.tx.fetch_as(query.bind(&callers).bind(&keys)).await?;
    let kept: HashMap<(String, String), (Vec<u8>, Vec<u8>)> = rows
        .into_iter()
        .map(|(caller, key, body_hash, messages)| ((caller, key), (body_hash, messages)))
        .collect();
    let answer = |submission: &&Submission| {
        let (caller, key) = name_of(submission)?;
        let name = (caller.to_owned(), key.to_owned());
        // Of several with one key in the group, only the first is new.
        if new.remove(&name) {
            return None;
        }
        let (body_hash, messages) = kept.get(&name)?;
        if hash(submission) != *body_hash {
            return Some(Submitted::KeyUsedOtherwise);
        }
        let (ids, _) = messages.as_chunks::<16>();
        let ids = ids.iter().map(|id| MessageId(*id)).collect();
        Some(Submitted::Accepted { ids, created_at: None })
    };
    Ok(group.iter().map(answer).collect())
}

fn name_of(submission: &Submission) -> Option<(&str, &str)> {
    let name = submission.idempotency.as_ref()?;
    Some((&submission.caller, &name.key))
}
