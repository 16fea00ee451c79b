//! Counts what is finished, once it is.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::{Finish, Finished, Settled, StoreFault};

use super::metrics::WorkMetrics;
use super::record::WorkRecord;

/// A finish that is counted.
pub(super) struct Counted<F> {
    pub(super) inner: F,
    pub(super) metrics: Arc<WorkMetrics>,
}

#[async_trait]
impl<F: Finish<WorkRecord>> Finish<WorkRecord> for Counted<F> {
    async fn finish(&self, batch: &[Finished<WorkRecord>]) -> Result<Vec<Settled>, StoreFault> {
        let settled = self.inner.finish(batch).await?;
        for (finished, settled) in batch.iter().zip(&settled) {
            self.metrics.settled(&finished.records, &finished.settlement, *settled);
        }
        Ok(settled)
    }
}
