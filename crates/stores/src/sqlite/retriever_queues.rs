//! The two queues of a retriever, which change in one transaction.

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::ResultNotifier;

use super::SqliteQueue;
use super::moves::{BatchChanges, MessageEnding, Moves};

/// The queues of a retriever, and the callers that wait for results.
#[derive(Clone)]
pub(super) struct RetrieverQueues {
    pub(super) messages: SqliteQueue,
    pub(super) deliveries: SqliteQueue,
    pub(super) results: ResultNotifier,
}

impl RetrieverQueues {
    /// Runs `work` in one transaction, and then notifies the callers whose messages it ended.
    pub(super) async fn transact<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Moves<'_>, &mut MessageEnding<'_>) -> rusqlite::Result<T>
        + Send
        + 'static,
    ) -> Result<T, StoreError> {
        let deliveries = self.deliveries.queue;
        let clock = self.messages.clock.clone();
        let (done, callers) = self
            .messages
            .transact(move |moves| {
                let deliveries = Moves::new(moves.tx, deliveries, moves.now);
                let mut ending = MessageEnding {
                    wall: clock.wall(),
                    deliveries,
                    callers: Vec::new(),
                    batches: BatchChanges::default(),
                };
                let done = work(moves, &mut ending)?;
                ending.enter_batches()?;
                ending.deliveries.enter()?;
                Ok((done, ending.callers))
            })
            .await?;
        if !callers.is_empty() {
            self.deliveries.news.notify_one();
        }
        for caller in callers {
            self.results.notify(&caller);
        }
        Ok(done)
    }
}
