//! The finish of this door: stores the result, settles the lease, then logs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use fetchwell_engine::ports::articles::{ArticleResult, Articles};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settle, Settled, Settlement};
use fetchwell_policy::time::Time;
use tracing::{info, warn};

use super::record::ArticleRecord;

pub(super) struct KeepThenSettle {
    pub(super) articles: Arc<dyn Articles>,
    /// When the run began, by the store's clock.
    pub(super) run: Time,
    pub(super) ends: Arc<dyn Settle>,
    pub(super) tally: Arc<Tally>,
}

/// Counters of one run.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) stored: AtomicU64,
    pub(super) failed: AtomicU64,
}

#[async_trait]
impl Finish<ArticleRecord> for KeepThenSettle {
    async fn finish(&self, batch: &[Finished<ArticleRecord>]) -> Result<Vec<Settled>, StoreError> {
        let article_results: Vec<ArticleResult> =
            batch.iter().flat_map(|end| &end.records).map(ArticleRecord::article_result).collect();
        if !article_results.is_empty() {
            self.articles.keep(&article_results.iter().collect::<Vec<_>>(), self.run).await?;
        }
        let ends: Vec<_> =
            batch.iter().map(|end| (&end.lease, settlement(&end.settlement))).collect();
        let settled = self.ends.settle(&ends).await?;
        let confirmed = batch.iter().zip(&settled).filter(|(_, end)| **end == Settled::Confirmed);
        for record in confirmed.flat_map(|(end, _)| &end.records) {
            self.tally.tell(record);
        }
        Ok(settled)
    }
}

/// Links that are given up are stored as failures with a code, so the queue needs no dead letter.
fn settlement(asked: &Settlement) -> &Settlement {
    match asked {
        Settlement::Dead { .. } => &Settlement::Done,
        other => other,
    }
}

impl Tally {
    fn tell(&self, record: &ArticleRecord) {
        match record {
            ArticleRecord::Stored { article, .. } => {
                self.stored.fetch_add(1, Ordering::Relaxed);
                info!("[canon] ✅ Stored canonical → {}", article.uid);
            }
            ArticleRecord::Failed { failure, what, .. } => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                let url = &failure.url;
                let reason = failure.reason.as_str();
                warn!(url, reason, "[canon] ⚠️ {what} → skip");
            }
        }
    }
}
