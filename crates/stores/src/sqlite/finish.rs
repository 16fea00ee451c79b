//! Ends messages.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settled, Settlement};
use fetchwell_engine::ports::inbox::FetchResult;

use super::SqliteInstance;
use super::moves::{MessageEnding, Moves};
use super::queue::is_live;
use super::retriever_queues::RetrieverQueues;
use crate::shared::conclusion::{Conclusion, is_final};

/// Ends messages: writes result, status, cursor, delivery and ledger in one transaction.
pub(super) struct MessageFinish {
    pub(super) instance: Arc<SqliteInstance>,
    pub(super) queues: RetrieverQueues,
}

#[async_trait]
impl Finish<FetchResult> for MessageFinish {
    async fn finish(&self, batch: &[Finished<FetchResult>]) -> Result<Vec<Settled>, StoreError> {
        let ends: Vec<_> = batch.iter().map(|finished| Conclusion::of(finished).cloned()).collect();
        let epoch = self.instance.epoch();
        self.queues
            .transact(move |moves, ending| {
                if !is_live(moves.tx, epoch, moves.now)? {
                    return Ok(vec![Settled::Stale; ends.len()]);
                }
                ends.iter().map(|end| settle(moves, epoch, end, ending)).collect()
            })
            .await
    }
}

fn settle(
    moves: &mut Moves<'_>,
    epoch: i64,
    end: &Conclusion<FetchResult>,
    ending: &mut MessageEnding<'_>,
) -> rusqlite::Result<Settled> {
    let Conclusion { id, settlement, result, attempt } = end;
    if let Some(result) = result {
        let skipped = *settlement == Settlement::Skipped;
        let ended = moves.end_message(epoch, *id, result, skipped, ending)?;
        return Ok(if ended { Settled::Confirmed } else { Settled::Stale });
    }
    let settled = moves.settle(epoch, *id, settlement)?;
    if settled == Settled::Confirmed {
        if is_final(settlement) {
            moves.free_followers(*id)?;
            ending.batches.count_dead(moves.tx, *id)?;
        }
        if let Some(attempt) = attempt {
            moves.keep_attempt(*id, attempt)?;
        }
    }
    Ok(settled)
}
