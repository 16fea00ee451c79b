//! Accepts batches of submissions.

use std::error::Error;
use std::ops::Range;
use std::sync::Arc;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{BatchId, Idempotency, MessageId, Submission, Submitted};
use fetchwell_policy::time::Time;
use fetchwell_sqlite::statements::Statements;
use rusqlite::{Connection, ErrorCode};

use super::callers;
use super::moves::{MessageEnding, Moves, NewRow};
use super::retriever_queues::RetrieverQueues;
use crate::shared::submit_audit;
use fetchwell_engine::coalescer::RunBatch;

type Answer = Result<Submitted, StoreError>;

impl RunBatch<Submission, Submitted> for RetrieverQueues {
    async fn run(&self, group: Vec<Submission>) -> Vec<Answer> {
        let group = Arc::new(group);
        match self.try_to_accept(group.clone(), 0..group.len()).await {
            // SQLite refuses the values of one submission: the others must not fail with it.
            Err(fault) if is_refusal(&fault) && group.len() > 1 => {
                let mut answers = Vec::new();
                for place in 0..group.len() {
                    let alone = self.try_to_accept(group.clone(), place..place + 1).await;
                    answers.extend(alone.unwrap_or_else(|fault| vec![Err(fault)]));
                }
                answers
            }
            Err(fault) => vec![Err(fault); group.len()],
            Ok(answers) => answers,
        }
    }
}

impl RetrieverQueues {
    /// Accepts these submissions of a group in one transaction.
    async fn try_to_accept(
        &self,
        group: Arc<Vec<Submission>>,
        these: Range<usize>,
    ) -> Result<Vec<Answer>, StoreError> {
        let answers = self
            .transact(move |moves, ending| {
                accept(moves, ending, group.get(these).unwrap_or_default())
            })
            .await?;
        self.messages.news.notify_one();
        Ok(answers)
    }
}

/// Whether the values are the problem, and not the store.
fn is_refusal(fault: &StoreError) -> bool {
    use ErrorCode::{ConstraintViolation, TooBig, TypeMismatch};
    let error = fault.source().and_then(|error| error.downcast_ref::<rusqlite::Error>());
    let code = error.and_then(rusqlite::Error::sqlite_error_code);
    matches!(code, Some(ConstraintViolation | TooBig | TypeMismatch))
}

/// Accepts all submissions or none. Writes the ledger, lanes and rooms once for all of them.
fn accept(
    moves: &mut Moves<'_>,
    ending: &mut MessageEnding<'_>,
    group: &[Submission],
) -> rusqlite::Result<Vec<Answer>> {
    let tx = moves.tx;
    let mut answers = Vec::with_capacity(group.len());
    let mut plain = Vec::new();
    let mut fresh = Vec::new();
    let first_job = moves.next_job()?;
    for submission in group {
        if let Some(answer) = earlier_answer(tx, submission)? {
            answers.push(Ok(answer));
            continue;
        }
        let caller = submission.caller.as_str();
        let ids: Vec<MessageId> = submission.messages.iter().map(|message| message.id).collect();
        let batch = submission.batch.as_ref().and_then(|_| BatchId::of(ids.iter().copied()));
        for new in &submission.messages {
            let row = NewRow { new, caller, batch: batch.map(|batch| batch.0) };
            match new.max_age {
                Some(max_age) => moves.accept_sharing(row, max_age, ending)?,
                None => plain.push(row),
            }
        }
        remember_answer(tx, submission, &ids, moves.now)?;
        fresh.push(submission);
        let created_at = Some(ending.wall);
        answers.push(Ok(Submitted::Accepted { ids, created_at }));
    }
    // Sorted so that the index of ids grows at its end: the id of a batch is that of its first message. The messages of one
    // submission keep their order.
    plain.sort_by_key(|row| (row.batch, row.new.id));
    moves.accept_plain(&plain, ending.wall)?;
    for submission in &fresh {
        moves.accept_batch(submission, first_job, ending.wall)?;
    }
    for entry in submit_audit::entries(&fresh, ending.wall) {
        callers::audit(tx, &entry)?;
    }
    Ok(answers)
}

/// The answer that this submission got the first time.
fn earlier_answer(tx: &Connection, submission: &Submission) -> rusqlite::Result<Option<Submitted>> {
    let Some(Idempotency { key, body_hash }) = &submission.idempotency else { return Ok(None) };
    let select = "SELECT body_hash, messages FROM idempotency WHERE caller = ?1 AND key = ?2";
    let found: Option<([u8; 32], Vec<u8>)> =
        tx.find(select, (&submission.caller, key), |row| row.try_into())?;
    Ok(found.map(|(hash, messages)| {
        if hash != *body_hash {
            return Submitted::KeyUsedOtherwise;
        }
        let (ids, _) = messages.as_chunks::<16>();
        let ids = ids.iter().map(|id| MessageId(*id)).collect();
        Submitted::Accepted { ids, created_at: None }
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
    tx.run(
        "INSERT INTO idempotency VALUES (?1, ?2, ?3, ?4, ?5)",
        (&submission.caller, key, body_hash, messages, now.as_micros()),
    )?;
    Ok(())
}
