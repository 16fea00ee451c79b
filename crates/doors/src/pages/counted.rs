//! Counts URLs once they are settled, and logs those of which there is no event.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settled, Settlement};
use tracing::info;

use super::metrics::PageMetrics;
use super::record::PageRecord;

/// A finish that is counted. It comes after cache and log: what those refused is a dead letter by then.
pub(super) struct Counted {
    pub(super) inner: Arc<dyn Finish<PageRecord>>,
    pub(super) metrics: Arc<PageMetrics>,
}

#[async_trait]
impl Finish<PageRecord> for Counted {
    async fn finish(&self, batch: &[Finished<PageRecord>]) -> Result<Vec<Settled>, StoreError> {
        let settled = self.inner.finish(batch).await?;
        for (finished, settled) in batch.iter().zip(&settled) {
            if *settled == Settled::Confirmed {
                log(finished);
                let content_bytes = finished.records.iter().find_map(PageRecord::content_bytes);
                self.metrics.settled(finished, content_bytes);
            }
        }
        Ok(settled)
    }
}

/// A page that was fetched has its event; of the others only this tells at once.
fn log(finished: &Finished<PageRecord>) {
    let url = &finished.lease.job.url;
    match &finished.settlement {
        Settlement::Skipped => info!(url, reason = "robots.txt disallows it", "skipped"),
        Settlement::Dead { reason } => info!(url, reason, "a dead letter"),
        Settlement::Done | Settlement::Retry { .. } | Settlement::HandBack { .. } => {}
    }
}
