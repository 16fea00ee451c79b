//! The finish of blocks: puts them in order, publishes their batches, and records confirmed ones in the checkpoint.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::memory::MemoryInstance;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settle, Settled};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::ahead::Ahead;
use super::block::BlockEnd;
use super::checkpoint::{Checkpoint, CheckpointFile};
use super::outgoing::Outgoing;
use super::progress::BatchProgress;
use super::window::Windows;
use crate::bounded_queue::BoundedQueue;

pub struct BatchTarget {
    /// The queue that workers consume.
    pub outlet: BoundedQueue,
    /// Records what was published.
    pub checkpoint: CheckpointFile,
}

pub(super) struct Publisher {
    /// `None` for a dry run, which only counts.
    pub(super) target: Option<BatchTarget>,
    pub(super) instance: Arc<MemoryInstance>,
    pub(super) ahead: Arc<Ahead>,
    pub(super) progress: Arc<BatchProgress>,
    /// Cancelled when the limit is reached.
    pub(super) stop: CancellationToken,
    pub(super) state: Mutex<State>,
}

pub(super) struct State {
    pub(super) windows: Windows,
    pub(super) outgoing: Outgoing,
    pub(super) checkpoint: Checkpoint,
}

impl Publisher {
    /// Publishes what is left after the last block, and records whether the run is finished.
    pub(super) async fn close(&self, is_end: bool) -> Result<Checkpoint, StoreError> {
        let mut state = self.state.lock().await;
        if is_end {
            let last = state.windows.close_last();
            last.into_iter().for_each(|window| state.outgoing.add(window));
            self.publish(&mut state).await?;
            // A limit may have cut the last window, or a full queue may have held it back.
            state.checkpoint.is_finished = !state.outgoing.is_full && state.outgoing.is_empty();
        }
        self.keep(&state.checkpoint)?;
        Ok(state.checkpoint.clone())
    }

    /// Publishes everything that is ready. Batches confirmed before a failure are not published again.
    async fn publish(&self, state: &mut State) -> Result<(), StoreError> {
        while !state.outgoing.is_empty() {
            let most = match &self.target {
                Some(target) if state.outgoing.has_batches() => {
                    target.outlet.room(&self.stop).await?
                }
                _ => usize::MAX,
            };
            if most == 0 {
                return Ok(());
            }
            let batches = state.outgoing.next(most);
            if let (Some(target), false) = (&self.target, batches.is_empty()) {
                target.outlet.queue.publish(&batches).await?;
            }
            state.outgoing.confirm(most, &mut state.checkpoint);
            self.keep(&state.checkpoint)?;
            self.progress.advance(&state.checkpoint);
        }
        if state.outgoing.is_full {
            self.stop.cancel();
        }
        Ok(())
    }

    fn keep(&self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let Some(target) = &self.target else { return Ok(()) };
        target.checkpoint.write(checkpoint).map_err(|error| {
            StoreError::transient("cannot write the checkpoint").with_source(error)
        })
    }
}

#[async_trait]
impl Finish<BlockEnd> for Publisher {
    /// Idempotent: a block that comes again is ignored, so the whole batch can be retried.
    async fn finish(&self, batch: &[Finished<BlockEnd>]) -> Result<Vec<Settled>, StoreError> {
        let mut state = self.state.lock().await;
        for end in batch.iter().flat_map(|finished| &finished.records) {
            for window in state.windows.take(end.clone()) {
                state.outgoing.add(window);
            }
        }
        self.ahead.advance(state.windows.next, state.outgoing.bytes());
        self.publish(&mut state).await?;
        self.ahead.advance(state.windows.next, state.outgoing.bytes());
        let leases: Vec<_> = batch.iter().map(|end| (&end.lease, &end.settlement)).collect();
        let settled = self.instance.settle(&leases).await?;
        self.ahead.news.notify_one();
        Ok(settled)
    }
}
