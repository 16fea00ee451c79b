//! Prints the rows of a crawl.

use async_trait::async_trait;
use fetchwell_doors::crawl::CrawlRecord;
use fetchwell_doors::fetch::FetchRow;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settled, Sink};
use fetchwell_stores::sqlite::CrawlFinish;

use crate::commands::fetch::Stdout;

/// Prints rows, then settles their leases.
pub(super) struct Printed {
    pub(super) stdout: Stdout,
    pub(super) settle: CrawlFinish<CrawlRecord>,
}

#[async_trait]
impl Finish<CrawlRecord> for Printed {
    async fn finish(&self, batch: &[Finished<CrawlRecord>]) -> Result<Vec<Settled>, StoreError> {
        let records = batch.iter().flat_map(|finished| &finished.records);
        let rows: Vec<&FetchRow> = records.filter_map(CrawlRecord::row).collect();
        if !rows.is_empty() {
            self.stdout.write(&rows).await?;
        }
        self.settle.finish(batch).await
    }
}
