//! Ends messages: writes result, status, cursor, delivery and ledger in one transaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settled, Settlement};
use fetchwell_engine::ports::inbox::FetchResult;
use fetchwell_engine::ports::job::LeaseId;
use tracing::warn;

use super::errors::refused_values;
use super::inbox::PostgresRetriever;
use super::instance::PostgresInstance;
use super::moves::Moves;
use crate::shared::conclusion::{Conclusion, is_final};

/// What the caller is told instead of the server's message, which may quote the tables.
const NOT_STORED: &str = "its result could not be stored";

/// Ends the leases of the flow that fetches messages.
pub(super) struct MessageFinish {
    pub(super) instance: Arc<PostgresInstance>,
    pub(super) retriever: Arc<PostgresRetriever>,
}

#[async_trait]
impl Finish<FetchResult> for MessageFinish {
    async fn finish(&self, batch: &[Finished<FetchResult>]) -> Result<Vec<Settled>, StoreError> {
        let conclusions: Vec<_> = batch.iter().map(Conclusion::of).collect();
        let settled = match self.conclude(&conclusions).await {
            Err(error) if refused_values(&error).is_some() => {
                self.conclude_each(&conclusions).await?
            }
            concluded => concluded?,
        };
        self.instance.held.let_go(batch.iter().map(|finished| finished.lease.id));
        Ok(settled)
    }
}

impl MessageFinish {
    /// Handles a batch in which the server refuses the values of one message. The others must not fail with it, and it
    /// must not be retried forever: its result says that it could not be stored. If the server refuses even that, the
    /// message ends without a result.
    async fn conclude_each(
        &self,
        conclusions: &[Conclusion<&FetchResult>],
    ) -> Result<Vec<Settled>, StoreError> {
        let mut settled = Vec::new();
        for conclusion in conclusions {
            let id = conclusion.id;
            let result = substitute_for(conclusion);
            let dead = Settlement::Dead { reason: NOT_STORED.to_owned() };
            let mut alone = self.conclude(std::slice::from_ref(conclusion)).await;
            for substitute in [
                Conclusion {
                    id,
                    settlement: Settlement::Done,
                    result: Some(&result),
                    attempt: None,
                },
                Conclusion { id, settlement: dead, result: None, attempt: None },
            ] {
                let Some(error) = alone.as_ref().err().and_then(refused_values) else { break };
                warn!(id, %error, "PostgreSQL refused the result of a message");
                alone = self.conclude(&[substitute]).await;
            }
            settled.extend(alone?);
        }
        Ok(settled)
    }

    /// Runs one transaction.
    async fn conclude(
        &self,
        conclusions: &[Conclusion<&FetchResult>],
    ) -> Result<Vec<Settled>, StoreError> {
        let queue = &self.instance.queue;
        let (mut moves, lives) = Moves::begin_for(queue, self.instance.epoch()).await?;
        let written = match lives {
            true => self.write(&mut moves, conclusions).await,
            false => Ok((vec![Settled::Stale; conclusions.len()], BTreeSet::new())),
        };
        let (settled, callers) = moves.end(written).await?;
        self.retriever.notify(&callers);
        Ok(settled)
    }

    async fn write(
        &self,
        moves: &mut Moves<'_>,
        conclusions: &[Conclusion<&FetchResult>],
    ) -> sqlx::Result<(Vec<Settled>, BTreeSet<String>)> {
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
                    ends.push((*id, *result));
                }
                None => {
                    others.push((*id, settlement));
                    attempts.extend(attempt.map(|attempt| (*id, attempt)));
                }
            }
        }
        moves.bury(&others).await?;
        moves.put_back(&others).await?;
        moves.keep_attempts(&attempts).await?;
        let buried = others.iter().filter(|(_, settlement)| is_final(settlement));
        let buried: Vec<LeaseId> = buried.map(|(id, _)| *id).collect();
        if !buried.is_empty() {
            moves.note_batches_of(&buried).await?;
            moves.free_followers(buried).await?;
        }
        let ended = moves.end_messages(&ends, skipped).await?;
        let callers = moves.put_out(self.retriever.deliveries.id, ended, &ends).await?;
        Ok((settled, callers))
    }
}

/// Replaces a result that the server refuses, because the caller waits for one.
fn substitute_for(conclusion: &Conclusion<&FetchResult>) -> FetchResult {
    let record = conclusion.result.or(conclusion.attempt);
    FetchResult {
        status: FetchResult::INTERNAL_ERROR.to_owned(),
        error: Some(NOT_STORED.to_owned()),
        attempts: record.map_or(0, |record| record.attempts),
        ..FetchResult::default()
    }
}
