//! Ends messages: writes result, status, cursor, delivery and ledger in one transaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settled, Settlement};
use fetchwell_engine::ports::inbox::{FetchResult, ResultNotifier};
use fetchwell_engine::ports::job::LeaseId;
use tracing::warn;

use super::ending::End;
use super::errors::is_about_the_values;
use super::instance::PostgresInstance;
use super::moves::Moves;
use super::queue::PostgresQueue;

/// What the caller is told instead of the server's message, which may quote the tables.
const NOT_STORED: &str = "its result could not be stored";

/// Ends the leases of the flow that fetches messages.
pub(super) struct MessageFinish {
    pub(super) instance: Arc<PostgresInstance>,
    pub(super) deliveries: PostgresQueue,
    pub(super) results: ResultNotifier,
}

/// How one lease ends.
struct Conclusion<'a> {
    id: LeaseId,
    settlement: Settlement,
    result: Option<&'a FetchResult>,
    /// The attempt, if it is not the last.
    attempt: Option<&'a FetchResult>,
}

#[async_trait]
impl Finish<FetchResult> for MessageFinish {
    async fn finish(&self, batch: &[Finished<FetchResult>]) -> Result<Vec<Settled>, StoreError> {
        let conclusions: Vec<Conclusion<'_>> = batch.iter().map(conclusion_of).collect();
        let settled = match self.conclude(&conclusions).await? {
            Ok(settled) => settled,
            Err(error) if is_about_the_values(&error) => self.conclude_each(&conclusions).await?,
            Err(error) => return Err(self.instance.queue.db.fault(error)),
        };
        self.instance.let_go(batch.iter().map(|finished| finished.lease.id));
        Ok(settled)
    }
}

impl MessageFinish {
    /// Handles a batch in which the server refuses the values of one message. The others must not fail with it, and it
    /// must not be retried forever: its result says that it could not be stored. If the server refuses even that, the
    /// message ends without a result.
    async fn conclude_each(
        &self,
        conclusions: &[Conclusion<'_>],
    ) -> Result<Vec<Settled>, StoreError> {
        let mut settled = Vec::new();
        for conclusion in conclusions {
            let id = conclusion.id;
            let result = substitute_for(conclusion);
            let with_result = Conclusion {
                id,
                settlement: Settlement::Done,
                result: Some(&result),
                attempt: None,
            };
            let dead = Settlement::Dead { reason: NOT_STORED.to_owned() };
            let without_result = Conclusion { id, settlement: dead, result: None, attempt: None };
            let mut alone = self.conclude(std::slice::from_ref(conclusion)).await?;
            for substitute in [with_result, without_result] {
                match &alone {
                    Err(error) if is_about_the_values(error) => {
                        warn!(id, %error, "PostgreSQL refused the result of a message");
                    }
                    _ => break,
                }
                alone = self.conclude(&[substitute]).await?;
            }
            settled.extend(alone.map_err(|error| self.instance.queue.db.fault(error))?);
        }
        Ok(settled)
    }

    /// Runs one transaction. The inner error is the server's response to a statement.
    async fn conclude(
        &self,
        conclusions: &[Conclusion<'_>],
    ) -> Result<sqlx::Result<Vec<Settled>>, StoreError> {
        let PostgresQueue { db, clock, .. } = &self.instance.queue;
        let (moves, lives) = Moves::begin_for(db, clock, self.instance.epoch()).await?;
        if !lives {
            let ended = moves.commit().await;
            return Ok(ended.map(|()| vec![Settled::Stale; conclusions.len()]));
        }
        let concluded = self.write(moves, conclusions).await.map(|(settled, callers)| {
            self.deliveries.news.notify_one();
            for caller in callers {
                self.results.notify(&caller);
            }
            settled
        });
        Ok(concluded)
    }

    async fn write(
        &self,
        mut moves: Moves,
        conclusions: &[Conclusion<'_>],
    ) -> sqlx::Result<(Vec<Settled>, BTreeSet<String>)> {
        let queue = self.instance.queue.queue;
        let ids = conclusions.iter().map(|conclusion| conclusion.id).collect();
        let mut held = moves.held(self.instance.epoch(), ids).await?;
        let mut settled = Vec::new();
        let mut ends = Vec::new();
        let mut skipped = 0;
        let mut others: Vec<(LeaseId, &Settlement)> = Vec::new();
        let mut attempts = Vec::new();
        for Conclusion { id, settlement, result, attempt } in conclusions {
            if !held.remove(id) {
                settled.push(Settled::Stale);
                continue;
            }
            settled.push(Settled::Confirmed);
            match result {
                Some(result) => {
                    skipped += i64::from(*settlement == Settlement::Skipped);
                    ends.push(End { id: *id, result });
                }
                None => {
                    others.push((*id, settlement));
                    attempts.extend(attempt.map(|attempt| (*id, attempt)));
                }
            }
        }
        moves.bury(queue, &others).await?;
        moves.put_back(queue, &others).await?;
        moves.keep_attempts(&attempts).await?;
        let buried = others.iter().filter(|(_, settlement)| is_final(settlement));
        let buried: Vec<LeaseId> = buried.map(|(id, _)| *id).collect();
        if !buried.is_empty() {
            moves.free_followers(queue, buried).await?;
        }
        let ended = moves.end_messages(queue, &ends, skipped).await?;
        let callers = moves.put_out(self.deliveries.queue, ended, &ends).await?;
        moves.commit().await?;
        Ok((settled, callers))
    }
}

/// A message that was settled as done without a result is dead instead: its caller would wait forever.
fn conclusion_of(finished: &Finished<FetchResult>) -> Conclusion<'_> {
    let id = finished.lease.id;
    let record = finished.records.first();
    let (result, attempt) = match is_final(&finished.settlement) {
        true => (record, None),
        false => (None, record),
    };
    let settlement = match (&finished.settlement, result) {
        (Settlement::Done | Settlement::Skipped, None) => {
            Settlement::Dead { reason: "it ended without a result".to_owned() }
        }
        (settlement, _) => settlement.clone(),
    };
    Conclusion { id, settlement, result, attempt }
}

/// Replaces a result that the server refuses, because the caller waits for one.
fn substitute_for(conclusion: &Conclusion<'_>) -> FetchResult {
    let result = conclusion.result.or(conclusion.attempt);
    FetchResult {
        status: FetchResult::INTERNAL_ERROR.to_owned(),
        content: None,
        content_type: None,
        http_status: None,
        error: Some(NOT_STORED.to_owned()),
        extracted: None,
        attempts: result.map_or(0, |result| result.attempts),
        attempt: None,
    }
}

fn is_final(settlement: &Settlement) -> bool {
    matches!(settlement, Settlement::Done | Settlement::Skipped | Settlement::Dead { .. })
}
