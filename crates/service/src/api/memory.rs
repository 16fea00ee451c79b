//! A memory budget for the bodies of all requests and responses.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::{Problem, ProblemKind};

/// The limit for all bodies together.
const TOTAL_BYTES: u64 = 256 << 20;

/// The unit in which the budget is counted.
const PIECE_BYTES: u64 = 1 << 10;

/// How long a request waits for memory before it gets a 503.
const PATIENCE: Duration = Duration::from_secs(10);

/// The memory that is still free.
pub(super) struct Memory(Arc<Semaphore>);

/// Reserved memory; released on drop.
pub(super) struct Held(OwnedSemaphorePermit);

impl Default for Memory {
    fn default() -> Memory {
        Memory(Arc::new(Semaphore::new(pieces(TOTAL_BYTES) as usize)))
    }
}

impl Memory {
    /// Waits for memory. A request for more than the total gets the total.
    pub(super) async fn take(&self, bytes: u64) -> Result<Held, Problem> {
        let share = self.0.clone().acquire_many_owned(pieces(bytes.min(TOTAL_BYTES)));
        match tokio::time::timeout(PATIENCE, share).await {
            Ok(Ok(permit)) => Ok(Held(permit)),
            _ => Err(Problem::new(ProblemKind::BUSY).retry_after(PATIENCE.as_secs())),
        }
    }
}

impl Held {
    /// Releases what is not needed after all.
    pub(super) fn shrink_to(&mut self, bytes: u64) {
        let surplus = self.0.num_permits().saturating_sub(pieces(bytes) as usize);
        drop(self.0.split(surplus));
    }
}

fn pieces(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(PIECE_BYTES)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use axum::response::Response;

    use super::*;
    use crate::server::until_sent;

    #[tokio::test(start_paused = true)]
    async fn there_is_only_so_much_and_it_comes_back() {
        let memory = Memory::default();
        let mut all = memory.take(TOTAL_BYTES + 1).await.unwrap_or_else(|_| panic!("all of it"));
        assert!(memory.take(1).await.is_err());
        all.shrink_to(TOTAL_BYTES - 1);
        assert!(memory.take(1).await.is_err());
        all.shrink_to(TOTAL_BYTES - PIECE_BYTES);
        assert!(memory.take(1).await.is_ok());
        let response = until_sent(Response::new("x".into()), all);
        assert!(memory.take(TOTAL_BYTES).await.is_err());
        drop(response);
        assert!(memory.take(TOTAL_BYTES).await.is_ok());
    }
}
