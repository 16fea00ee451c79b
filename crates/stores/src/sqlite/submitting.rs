//! Accepts batches of submissions.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{
    Idempotency, MessageId, ResultNotifier, Submission, Submitted,
};
use fetchwell_policy::time::Time;
use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::moves::{MessageEnding, Moves};
use super::{SqliteQueue, callers};
use crate::shared::coalescer::RunBatch;
use crate::shared::submit_audit;

type Answer = Result<Submitted, StoreError>;

pub(super) struct Desk {
    pub(super) messages: SqliteQueue,
    pub(super) deliveries: SqliteQueue,
    pub(super) results: ResultNotifier,
}

impl RunBatch<Submission, Submitted> for Desk {
    async fn run(&self, group: Vec<Submission>) -> Vec<Answer> {
        let group = Arc::new(group);
        match self.try_to_accept(group.clone(), 0..group.len()).await {
            // SQLite refuses the values of one submission: the others must not fail with it.
            Err(Trouble { is_refusal: true, .. }) if group.len() > 1 => {
                let mut answers = Vec::new();
                for place in 0..group.len() {
                    let alone = self.try_to_accept(group.clone(), place..place + 1).await;
                    answers.extend(alone.unwrap_or_else(|trouble| vec![Err(trouble.fault)]));
                }
                answers
            }
            Err(trouble) => vec![Err(trouble.fault); group.len()],
            Ok(answers) => answers,
        }
    }
}

/// Why nothing was accepted.
struct Trouble {
    /// Whether the values are the problem, and not the store.
    is_refusal: bool,
    fault: StoreError,
}

impl Desk {
    /// Accepts these submissions of a group in one transaction.
    async fn try_to_accept(
        &self,
        group: Arc<Vec<Submission>>,
        these: Range<usize>,
    ) -> Result<Vec<Answer>, Trouble> {
        let clock = self.messages.clock.clone();
        let queue = self.messages.queue;
        let deliveries = self.deliveries.queue;
        let refused = Arc::new(AtomicBool::new(false));
        let noted = refused.clone();
        let work = move |tx: &Connection| {
            let at = Moment { queue, deliveries, now: clock.now(), wall: clock.wall() };
            let accepted = accept(tx, group.get(these).unwrap_or_default(), &at);
            noted.store(accepted.as_ref().is_err_and(is_refusal), Ordering::Relaxed);
            accepted
        };
        let accepted = self.messages.db.write(work).await.map_err(|fault| {
            let is_refusal = refused.load(Ordering::Relaxed);
            Trouble { is_refusal, fault }
        })?;
        self.messages.news.notify_one();
        for caller in accepted.callers {
            self.deliveries.news.notify_one();
            self.results.notify(&caller);
        }
        Ok(accepted.answers)
    }
}

/// The queues, and the time.
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

/// Whether the values are the problem, and not the store.
fn is_refusal(error: &rusqlite::Error) -> bool {
    use ErrorCode::{ConstraintViolation, TooBig, TypeMismatch};
    matches!(error.sqlite_error_code(), Some(ConstraintViolation | TooBig | TypeMismatch))
}

/// Accepts all submissions or none. Writes the ledger, lanes and rooms once for all of them.
fn accept(tx: &Connection, group: &[Submission], at: &Moment) -> rusqlite::Result<Accepted> {
    let mut moves = Moves::new(tx, at.queue, at.now);
    let mut ending = MessageEnding::new(Moves::new(tx, at.deliveries, at.now), at.wall);
    let mut answers = Vec::with_capacity(group.len());
    let mut plain = Vec::new();
    let mut fresh = Vec::new();
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
    // Sorted so that the index of ids grows at its end. The messages of one submission keep their order.
    plain.sort_by_key(|(message, _)| message.id);
    moves.accept_plain(&plain, at.wall)?;
    moves.enter()?;
    ending.deliveries.enter()?;
    for entry in submit_audit::entries(&fresh, at.wall) {
        callers::audit(tx, &entry)?;
    }
    Ok(Accepted { answers, callers: ending.callers })
}

/// The answer that this submission got the first time.
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
