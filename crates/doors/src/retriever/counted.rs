//! Counts results once they are stored.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settled, Settlement};
use fetchwell_engine::ports::inbox::FetchResult;

/// Called with the status of each result that was stored.
pub type OnResult = Arc<dyn Fn(&str) + Send + Sync>;

/// A finish that is counted.
pub(super) struct Counted {
    pub(super) inner: Arc<dyn Finish<FetchResult>>,
    pub(super) on_result: OnResult,
}

#[async_trait]
impl Finish<FetchResult> for Counted {
    async fn finish(&self, batch: &[Finished<FetchResult>]) -> Result<Vec<Settled>, StoreError> {
        let settled = self.inner.finish(batch).await?;
        for (finished, settled) in batch.iter().zip(&settled) {
            // A record beside a retry is no result yet.
            let is_final = !matches!(finished.settlement, Settlement::Retry { .. });
            if is_final && *settled == Settled::Confirmed {
                finished.records.iter().for_each(|result| (self.on_result)(&result.status));
            }
        }
        Ok(settled)
    }
}
