//! Counts URLs once they are settled.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::{Finish, Finished, Settled, StoreFault};

use super::metrics::PageMetrics;
use super::record::PageRecord;

/// A finish that is counted. It comes after cache and log: what those refused is a dead letter by then.
pub(super) struct Counted {
    pub(super) inner: Arc<dyn Finish<PageRecord>>,
    pub(super) metrics: Arc<PageMetrics>,
}

#[async_trait]
impl Finish<PageRecord> for Counted {
    async fn finish(&self, batch: &[Finished<PageRecord>]) -> Result<Vec<Settled>, StoreFault> {
        let settled = self.inner.finish(batch).await?;
        for (finished, settled) in batch.iter().zip(&settled) {
            if *settled == Settled::Confirmed {
                let content_bytes = finished.records.iter().find_map(PageRecord::content_bytes);
                self.metrics.settled(finished, content_bytes);
            }
        }
        Ok(settled)
    }
}
