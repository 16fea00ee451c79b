//! Counts the jobs that wait for sites, in all queues of a file.

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::sites::Waiting;
use fetchwell_policy::url::Site;
use fetchwell_sqlite::db::Db;

use crate::shared::job_state::sql;

const COUNT: &str = sql!(
    "
    SELECT coalesce(sum((
        SELECT count(*) FROM (
            SELECT 1 FROM job
            WHERE job.queue = queue.id AND job.site = ?1 AND job.state < {leased} LIMIT ?2
        )
    )), 0) FROM queue WHERE queue.name <> 'webhooks'"
);

/// Counts waiting jobs in the queues of a file.
pub struct SqliteWaiting {
    db: Db,
}

impl SqliteWaiting {
    /// Uses an open file.
    pub fn new(db: Db) -> SqliteWaiting {
        SqliteWaiting { db }
    }
}

#[async_trait]
impl Waiting for SqliteWaiting {
    async fn waiting_for(&self, sites: &[Site], most: u32) -> Result<Vec<u64>, StoreError> {
        let sites = sites.to_vec();
        self.db
            .write(move |tx| {
                let mut statement = tx.prepare_cached(COUNT)?;
                let count =
                    |site: &Site| statement.query_row((site.as_str(), most), |row| row.get(0));
                sites.iter().map(count).collect()
            })
            .await
    }
}
