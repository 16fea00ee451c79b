//! Submissions that gathered, and what comes of them.

use fetchwell_policy::time::Time;
use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::moves::{Ending, Moves};
use super::{SqliteQueue, callers};
use crate::adapters::gathering::{self, Answer};
use crate::adapters::submit_audit;
use crate::inbox::{Bell, Idempotency, MessageId, Submission, Submitted};
use crate::ports::StoreFault;

/// What it takes to accept submissions.
pub(super) struct Desk {
    pub(super) messages: SqliteQueue,
    pub(super) deliveries: SqliteQueue,
    pub(super) results: Bell,
}

impl gathering::Desk for Desk {
    async fn accept(&self, group: Vec<Submission>) -> Vec<Answer> {
        let (many, clock) = (group.len(), self.messages.clock.clone());
        let (queue, deliveries) = (self.messages.queue, self.deliveries.queue);
        let work = move |tx: &Connection| {
            let at = Moment { queue, deliveries, now: clock.now(), wall: clock.wall() };
            accept_group(tx, &group, &at)
        };
        match self.messages.db.write(work).await {
            Ok(Accepted { answers, callers }) => {
                self.messages.news.notify_one();
                for caller in callers {
                    self.deliveries.news.notify_one();
                    self.results.ring(&caller);
                }
                answers
            }
            Err(fault) => vec![Err(fault); many],
        }
    }
}

/// Into which queues, and when.
struct Moment {
    queue: i64,
    deliveries: i64,
    now: Time,
    wall: Time,
}

struct Accepted {
    answers: Vec<Answer>,
    /// The callers that have a new result.
    callers: Vec<String>,
}

/// All of them as one; or, where one is such that SQLite refuses it, each by itself, so that the others
/// do not share its fate.
fn accept_group(tx: &Connection, group: &[Submission], at: &Moment) -> rusqlite::Result<Accepted> {
    if let [only] = group {
        return accept(tx, std::slice::from_ref(only), at);
    }
    match undoing_failures(tx, || accept(tx, group, at)) {
        Err(error) if is_refusal(&error) => {
            let mut all = Accepted { answers: Vec::new(), callers: Vec::new() };
            for one in group {
                match undoing_failures(tx, || accept(tx, std::slice::from_ref(one), at)) {
                    Ok(Accepted { answers, callers }) => {
                        all.answers.extend(answers);
                        all.callers.extend(callers);
                    }
                    Err(error) if is_refusal(&error) => {
                        all.answers.push(Err(StoreFault::Unavailable(error.to_string())));
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(all)
        }
        done => done,
    }
}

/// Whether the trouble is with what was to be written, and not with the store.
fn is_refusal(error: &rusqlite::Error) -> bool {
    use ErrorCode::{ConstraintViolation, TooBig, TypeMismatch};
    matches!(error.sqlite_error_code(), Some(ConstraintViolation | TooBig | TypeMismatch))
}

/// What fails leaves nothing behind.
fn undoing_failures<T>(
    tx: &Connection,
    work: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    tx.prepare_cached("SAVEPOINT submissions")?.execute([])?;
    let done = work();
    if done.is_err() {
        tx.prepare_cached("ROLLBACK TO submissions")?.execute([])?;
    }
    tx.prepare_cached("RELEASE submissions")?.execute([])?;
    done
}

/// Accepts all, or none. The ledger, the lanes and the rooms are entered once for all of them.
fn accept(tx: &Connection, group: &[Submission], at: &Moment) -> rusqlite::Result<Accepted> {
    let mut moves = Moves::new(tx, at.queue, at.now);
    let mut ending = Ending::new(Moves::new(tx, at.deliveries, at.now), at.wall);
    let mut answers = Vec::with_capacity(group.len());
    let (mut plain, mut fresh) = (Vec::new(), Vec::new());
    for submission in group {
        if let Some(answer) = earlier_answer(tx, submission)? {
            answers.push(Ok(answer));
            continue;
        }
        let caller = submission.caller.as_str();
        for message in &submission.messages {
            match message.max_age {
                Some(max_age) => moves.accept_sharing(message, max_age, caller, &mut ending)?,
                None => plain.push((message, caller)),
            }
        }
        let ids: Vec<MessageId> = submission.messages.iter().map(|message| message.id).collect();
        remember_answer(tx, submission, &ids, at.now)?;
        fresh.push(submission);
        answers.push(Ok(Submitted::Accepted(ids)));
    }
    moves.accept_plain(&plain, at.wall)?;
    moves.enter()?;
    ending.deliveries.enter()?;
    for entry in submit_audit::entries(&fresh, at.wall) {
        callers::audit(tx, &entry)?;
    }
    Ok(Accepted { answers, callers: ending.callers })
}

/// What was answered when this submission came the first time.
fn earlier_answer(tx: &Connection, submission: &Submission) -> rusqlite::Result<Option<Submitted>> {
    let Some(Idempotency { key, body_hash }) = &submission.idempotency else { return Ok(None) };
    let found: Option<([u8; 32], Vec<u8>)> = tx
        .prepare_cached(
            "SELECT body_hash, messages FROM idempotency WHERE caller = ?1 AND key = ?2",
        )?
        .query_row((&submission.caller, key), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.map(|(hash, messages)| {
        if hash != *body_hash {
            return Submitted::KeyUsedOtherwise;
        }
        let (ids, _) = messages.as_chunks::<16>();
        Submitted::Accepted(ids.iter().map(|id| MessageId(*id)).collect())
    }))
}

fn remember_answer(
    tx: &Connection,
    submission: &Submission,
    ids: &[MessageId],
    now: Time,
) -> rusqlite::Result<()> {
    let Some(Idempotency { key, body_hash }) = &submission.idempotency else { return Ok(()) };
    let messages: Vec<u8> = ids.iter().flat_map(|id| id.0).collect();
    tx.prepare_cached("INSERT INTO idempotency VALUES (?1, ?2, ?3, ?4, ?5)")?.execute((
        &submission.caller,
        key,
        body_hash,
        messages,
        now.as_micros(),
    ))?;
    Ok(())
}
