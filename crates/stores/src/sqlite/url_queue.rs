//! A list of URLs on SQLite: they are added to the queue directly.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::NewJob;
use fetchwell_engine::ports::queue::Queue;
use fetchwell_engine::ports::rounds::Rounds;
use fetchwell_engine::ports::url_queue::{Backlog, DeadLetterWorker, UrlQueue};

use super::SqliteQueue;
use super::rounds::job;

/// URLs added per transaction.
const PUSH_AT_ONCE: usize = 10_000;

#[async_trait]
impl UrlQueue for SqliteQueue {
    async fn push(&self, urls: &[String]) -> Result<(), StoreError> {
        for urls in urls.chunks(PUSH_AT_ONCE) {
            self.enqueue(urls.iter().map(|url| NewJob::now(job(url.clone()))).collect()).await?;
        }
        Ok(())
    }

    fn dead_letter_worker(&self) -> Arc<dyn DeadLetterWorker> {
        Arc::new(self.instance())
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        let ledger = self.ledger().await?;
        let waiting = Rounds::waiting(self).await?;
        let dead = u64::try_from(ledger.dead).unwrap_or(0);
        Ok(Backlog { ledger, on_list: None, waiting, dead })
    }

    async fn waited_longest(&self) -> Result<Option<Duration>, StoreError> {
        let oldest = self.oldest_waiting().await?;
        Ok(oldest.map(|accepted_at| self.clock.now().since(accepted_at)))
    }
}
