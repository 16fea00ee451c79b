//! Submissions that are accepted by one transaction.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use fetchwell_policy::time::Time;
use sqlx::Row;

use super::callers;
use super::ending::{COMPLETED, Ended};
use super::moves::{DELAYED, LaneId, Moves, QUEUED, QueueId};
use super::new_row::{MessagePart, NewRow};
use crate::inbox::{AuditEntry, MessageId, NewMessage, Submission, Submitted};
use crate::ports::{Lane, LeaseId};

/// The queues that submissions go to.
#[derive(Clone, Copy)]
pub(super) struct Queues {
    pub(super) messages: QueueId,
    pub(super) deliveries: QueueId,
}

/// What messages of a kind may share.
#[derive(Default)]
struct Shared {
    /// The newest page, and when it was stored.
    page: Option<(LeaseId, Time)>,
    /// One that has not ended, and follows no other.
    leader: Option<LeaseId>,
}

type Kind = [u8; 16];

/// Accepts all of them, and commits. Returns what became of each, and whose results there are new ones of.
pub(super) async fn accept_all(
    mut moves: Moves,
    queues: Queues,
    group: &[&Submission],
) -> sqlx::Result<(Vec<Submitted>, BTreeSet<String>)> {
    let answers = earlier_answers(&mut moves, group).await?;
    let fresh: Vec<&Submission> = group
        .iter()
        .zip(&answers)
        .filter(|(_, answer)| answer.is_none())
        .map(|(submission, _)| *submission)
        .collect();
    let shared_out = put_in(&mut moves, queues, &fresh).await?;
    let callers = moves.put_out(queues.deliveries, shared_out, &[]).await?;
    let entries: Vec<AuditEntry> =
        fresh.iter().map(|submission| audit_entry(submission, moves.now())).collect();
    callers::put_audit(&mut moves.tx, &entries).await?;
    moves.commit().await?;
    let submitted = group.iter().zip(answers).map(|(submission, answer)| {
        answer.unwrap_or_else(|| Submitted::Accepted(ids_of(submission)))
    });
    Ok((submitted.collect(), callers))
}

/// What was answered to those that came before; `None`: it is new, and from now on it has come before.
async fn earlier_answers(
    moves: &mut Moves,
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
    // In order: whoever claims a name first is waited for.
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
    let rows = moves.tx.fetch(query).await?;
    let mut new: HashSet<(String, String)> = rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect::<sqlx::Result<_>>()?;
    let query = sqlx::query(
        "SELECT caller, key, body_hash, messages FROM fetchwell_idempotency
         JOIN unnest($1::TEXT[], $2::TEXT[]) AS wanted (caller, key) USING (caller, key)",
    );
    let mut kept: HashMap<(String, String), (Vec<u8>, Vec<u8>)> = HashMap::new();
    for row in moves.tx.fetch(query.bind(&callers).bind(&keys)).await? {
        let name = (row.try_get(0)?, row.try_get(1)?);
        kept.insert(name, (row.try_get(2)?, row.try_get(3)?));
    }
    let answer = |submission: &&Submission| {
        let (caller, key) = name_of(submission)?;
        let name = (caller.to_owned(), key.to_owned());
        // The first of its name in the group is the one that is new.
        if new.remove(&name) {
            return None;
        }
        let (body_hash, messages) = kept.get(&name)?;
        if hash(submission) != *body_hash {
            return Some(Submitted::KeyUsedOtherwise);
        }
        let (ids, _) = messages.as_chunks::<16>();
        Some(Submitted::Accepted(ids.iter().map(|id| MessageId(*id)).collect()))
    };
    Ok(group.iter().map(answer).collect())
}

/// Puts the messages in. Returns those that have the result of an earlier one at once.
async fn put_in(
    moves: &mut Moves,
    queues: Queues,
    group: &[&Submission],
) -> sqlx::Result<Vec<Ended>> {
    let messages: Vec<(&NewMessage, &str)> = group
        .iter()
        .flat_map(|one| one.messages.iter().map(|message| (message, one.caller.as_str())))
        .collect();
    if messages.is_empty() {
        return Ok(Vec::new());
    }
    let lanes = messages.iter().map(|(message, caller)| lane_of(message, caller)).collect();
    let lanes = moves.lane_ids(queues.messages, lanes).await?;
    let mut shared = what_is_shared(moves, &messages).await?;
    let ids = moves.new_ids(messages.len()).await?;
    let (mut rows, mut ended) = (Vec::new(), Vec::new());
    for ((message, caller), id) in messages.into_iter().zip(ids) {
        let now = moves.now();
        let (mut copies, mut follows) = (None, None);
        if let Some(max_age) = message.max_age {
            let of_kind = shared.entry(message.kind).or_default();
            copies = of_kind.page.filter(|(_, at)| *at >= now - max_age).map(|(job, _)| job);
            if copies.is_none() {
                follows = of_kind.leader;
                of_kind.leader = follows.or(Some(id));
            }
        }
        let lane = lanes.get(&lane_of(message, caller)).copied().unwrap_or_default();
        let standing = Standing { id, lane, copies, follows };
        ended.extend(ended_at_once(message, caller, &standing));
        rows.push(row_of(message, caller, queues.messages, now, &standing));
    }
    moves.put_in(rows).await?;
    Ok(ended)
}

/// What becomes of a new message.
struct Standing {
    id: LeaseId,
    lane: LaneId,
    /// The job whose result it has at once.
    copies: Option<LeaseId>,
    /// The job whose result it waits for.
    follows: Option<LeaseId>,
}

/// What there is of the kinds that may be shared. Leaders do not end before our commit, so that they see
/// who follows them; and pages are not taken out. Leaders first: one that ends meanwhile has a page.
async fn what_is_shared(
    moves: &mut Moves,
    messages: &[(&NewMessage, &str)],
) -> sqlx::Result<HashMap<Kind, Shared>> {
    let kinds: BTreeSet<Kind> = messages
        .iter()
        .filter(|(message, _)| message.max_age.is_some())
        .map(|(message, _)| message.kind)
        .collect();
    let mut shared: HashMap<Kind, Shared> = HashMap::new();
    if kinds.is_empty() {
        return Ok(shared);
    }
    let kinds: Vec<Vec<u8>> = kinds.iter().map(|kind| kind.to_vec()).collect();
    let query = sqlx::query(
        "SELECT kind, id FROM fetchwell_job
         WHERE kind = ANY($1) AND shares AND state < 3 AND follows IS NULL
         ORDER BY id FOR SHARE",
    );
    for row in moves.tx.fetch(query.bind(&kinds)).await? {
        let of_kind = shared.entry(row.try_get(0)?).or_default();
        of_kind.leader = of_kind.leader.or(Some(row.try_get(1)?));
    }
    let query = sqlx::query(
        "SELECT page.kind, page.job, page.stored_at
         FROM unnest($1::BYTEA[]) AS wanted (kind)
         CROSS JOIN LATERAL (
             SELECT kind, job, stored_at FROM fetchwell_outbox AS outbox
             WHERE outbox.kind = wanted.kind AND outbox.status = 'success'
             ORDER BY outbox.stored_at DESC LIMIT 1 FOR KEY SHARE) AS page",
    );
    for row in moves.tx.fetch(query.bind(&kinds)).await? {
        let stored_at = Time::from_micros(row.try_get(2)?);
        shared.entry(row.try_get(0)?).or_default().page = Some((row.try_get(1)?, stored_at));
    }
    Ok(shared)
}

fn row_of(
    message: &NewMessage,
    caller: &str,
    queue: QueueId,
    now: Time,
    standing: &Standing,
) -> NewRow {
    let deadline = now + message.deadline_in;
    // A follower is not handed out before its deadline: until then its leader may bring the result.
    let (state, due) = match (standing.copies, standing.follows) {
        (Some(_), _) => (COMPLETED, now),
        (None, Some(_)) => (DELAYED, deadline),
        (None, None) => (QUEUED, now),
    };
    NewRow {
        id: standing.id,
        queue,
        lane: standing.lane,
        key: Some(message.id.0),
        site: message.site.as_str().to_owned(),
        url: message.url.clone(),
        payload: message.options.clone(),
        deadline: Some(deadline),
        due,
        state,
        message: Some(MessagePart {
            caller: caller.to_owned(),
            retailer: message.retailer.clone(),
            correlation_id: message.correlation_id.clone(),
            callback_url: message.callback_url.clone(),
            kind: message.kind,
            shares: message.max_age.is_some(),
            follows: standing.follows,
        }),
    }
}

fn ended_at_once(message: &NewMessage, caller: &str, standing: &Standing) -> Option<Ended> {
    Some(Ended {
        job: standing.id,
        key: message.id.0,
        caller: caller.to_owned(),
        callback_url: message.callback_url.clone(),
        kind: message.kind,
        copies: Some(standing.copies?),
    })
}

fn audit_entry(submission: &Submission, now: Time) -> AuditEntry {
    let count = submission.messages.len();
    let first = submission.messages.first().map(|message| message.id.to_string());
    AuditEntry {
        at: now,
        caller: Some(submission.caller.clone()),
        action: "submit".to_owned(),
        detail: format!("{count} messages, first {}", first.unwrap_or_default()),
        from: submission.from.clone(),
    }
}

fn lane_of(message: &NewMessage, caller: &str) -> Lane {
    Lane { group: Some(message.retailer.clone()), party: Some(caller.to_owned()) }
}

fn name_of(submission: &Submission) -> Option<(&str, &str)> {
    let name = submission.idempotency.as_ref()?;
    Some((&submission.caller, &name.key))
}

fn ids_of(submission: &Submission) -> Vec<MessageId> {
    submission.messages.iter().map(|message| message.id).collect()
}
