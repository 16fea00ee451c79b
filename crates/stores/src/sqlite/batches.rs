//! Batches on SQLite.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::batches::{Batch, BatchQueue, DeadBatch, DeadBatches, RetriedBatches};
use fetchwell_engine::ports::dead_letters::{
    DeadLetter, DeadLetters, LETTERS_PER_PAGE, Letters, Revision,
};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::{Job, Lane, NewJob};
use fetchwell_engine::ports::queue::{Instance, Queue};
use sha2::{Digest, Sha256};

use super::SqliteQueue;

#[async_trait]
impl BatchQueue for SqliteQueue {
    async fn publish(&self, batches: &[Batch]) -> Result<(), StoreError> {
        self.enqueue(batches.iter().map(job).collect()).await?;
        Ok(())
    }

    async fn waiting(&self) -> Result<u64, StoreError> {
        Ok(u64::try_from(self.ledger().await?.waiting()).unwrap_or(0))
    }

    fn worker(&self, _prefetch: u16) -> Arc<dyn Instance> {
        Arc::new(self.instance())
    }
}

#[async_trait]
impl DeadBatches for SqliteQueue {
    async fn dead_batches(&self) -> Result<Vec<DeadBatch>, StoreError> {
        let mut batches = Vec::new();
        let mut from = None;
        loop {
            let page = self.dead_letters(from.as_deref(), LETTERS_PER_PAGE).await?;
            let batch =
                |letter: DeadLetter| DeadBatch { id: letter.url, reason: letter.group.reason };
            batches.extend(page.letters.into_iter().map(batch));
            from = page.next;
            if from.is_none() {
                return Ok(batches);
            }
        }
    }

    async fn retry_dead(&self, ids: Option<&[String]>) -> Result<RetriedBatches, StoreError> {
        let mut retried = RetriedBatches::default();
        let Some(ids) = ids else {
            retried.count = self.revise(&Letters::All, Revision::Retry).await?;
            return Ok(retried);
        };
        for id in ids {
            let count = self.revise(&Letters::OfUrl(id.clone()), Revision::Retry).await?;
            retried.count += count;
            retried.unknown.extend((count == 0).then(|| id.clone()));
        }
        Ok(retried)
    }
}

/// A batch has no site yet: the worker that takes it knows where the archive is.
fn job(batch: &Batch) -> NewJob {
    let url = batch.id.clone();
    let payload = batch.body.to_vec();
    let job = Job { url, site: None, lane: Lane::default(), deadline: None, payload };
    NewJob { job, key: Some(key(&batch.id)), due: None }
}

/// Keeps a batch that is already waiting from being added again.
fn key(id: &str) -> [u8; 16] {
    let mut key = [0; 16];
    key.copy_from_slice(&Sha256::digest(id)[..16]);
    key
}
