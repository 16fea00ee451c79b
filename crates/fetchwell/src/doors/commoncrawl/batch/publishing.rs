//! Where blocks end: in order, onto the queue, and once that has confirmed it, into the checkpoint.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::adapters::memory::MemoryInstance;
use fetchwell_engine::batches::BatchQueue;
use fetchwell_engine::ports::{Finish, Finished, Settle, Settled, StoreFault};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::ahead::Ahead;
use super::block::BlockEnd;
use super::checkpoint::{Checkpoint, CheckpointFile};
use super::outgoing::Outgoing;
use super::progress::Progress;
use super::window::Windows;

/// How often a full queue is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Where batches go.
pub(super) struct Target {
    pub(super) queue: Arc<dyn BatchQueue>,
    /// What was published is noted here.
    pub(super) checkpoint: CheckpointFile,
    /// Batches that may be unconfirmed at once.
    pub(super) max_unconfirmed: usize,
    /// While so many wait on the queue, no more are published.
    pub(super) max_waiting: u64,
}

/// Ends blocks.
pub(super) struct Publisher {
    /// None: a dry run, which only counts.
    pub(super) target: Option<Target>,
    pub(super) instance: Arc<MemoryInstance>,
    pub(super) ahead: Arc<Ahead>,
    pub(super) progress: Arc<Progress>,
    /// Ends the run when the limit is reached.
    pub(super) stop: CancellationToken,
    pub(super) state: Mutex<State>,
}

/// What is under way.
pub(super) struct State {
    pub(super) windows: Windows,
    pub(super) outgoing: Outgoing,
    pub(super) checkpoint: Checkpoint,
}

impl Publisher {
    /// No more blocks come: publishes what is left, and notes that this was all.
    pub(super) async fn close(&self, is_end: bool) -> Result<Checkpoint, StoreFault> {
        let mut state = self.state.lock().await;
        if is_end {
            let last = state.windows.close_last();
            last.into_iter().for_each(|window| state.outgoing.add(window));
            self.publish(&mut state).await?;
            // A limit may have cut the last window short, and a full queue kept it back.
            state.checkpoint.is_finished = !state.outgoing.is_full() && state.outgoing.is_empty();
        }
        self.keep(&state.checkpoint)?;
        Ok(state.checkpoint.clone())
    }

    /// Publishes all that is ready. What was confirmed before a failure is not published again.
    async fn publish(&self, state: &mut State) -> Result<(), StoreFault> {
        while !state.outgoing.is_empty() {
            let most = match &self.target {
                Some(target) if state.outgoing.has_batches() => self.room(target).await?,
                _ => usize::MAX,
            };
            if most == 0 {
                return Ok(());
            }
            let batches = state.outgoing.next(most);
            if let (Some(target), false) = (&self.target, batches.is_empty()) {
                target.queue.publish(&batches).await?;
            }
            state.outgoing.confirm(most, &mut state.checkpoint);
            self.keep(&state.checkpoint)?;
            self.progress.advance(&state.checkpoint);
        }
        if state.outgoing.is_full() {
            self.stop.cancel();
        }
        Ok(())
    }

    /// How many batches may go, after a wait where the queue is full. 0: the run is to stop, and what is
    /// not published stays so.
    async fn room(&self, target: &Target) -> Result<usize, StoreFault> {
        let mut is_told = false;
        loop {
            let waiting = target.queue.waiting().await?;
            let room = target.max_waiting.saturating_sub(waiting);
            if room > 0 {
                return Ok(usize::try_from(room).unwrap_or(usize::MAX).min(target.max_unconfirmed));
            }
            if !is_told {
                info!(
                    "{waiting} batches wait on the queue: more follow when workers have taken some"
                );
                is_told = true;
            }
            tokio::select! {
                () = self.stop.cancelled() => return Ok(0),
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    fn keep(&self, checkpoint: &Checkpoint) -> Result<(), StoreFault> {
        let Some(target) = &self.target else { return Ok(()) };
        target.checkpoint.write(checkpoint).map_err(|error| {
            StoreFault::Unavailable(format!("the checkpoint can't be written: {error}"))
        })
    }
}

#[async_trait]
impl Finish<BlockEnd> for Publisher {
    /// A block that comes again is not taken twice, so the whole may be tried again.
    async fn finish(&self, batch: &[Finished<BlockEnd>]) -> Result<Vec<Settled>, StoreFault> {
        let mut state = self.state.lock().await;
        for end in batch.iter().flat_map(|finished| &finished.records) {
            for window in state.windows.take(end.clone()) {
                state.outgoing.add(window);
            }
        }
        self.ahead.advance(state.windows.next(), state.outgoing.bytes());
        self.publish(&mut state).await?;
        self.ahead.advance(state.windows.next(), state.outgoing.bytes());
        let leases: Vec<_> = batch.iter().map(|end| (&end.lease, &end.settlement)).collect();
        let settled = self.instance.settle(&leases).await?;
        self.ahead.news.notify_one();
        Ok(settled)
    }
}
