//! Counts the jobs that wait for sites, by their positions in the one sorted set.

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::sites::Waiting;
use fetchwell_policy::url::Site;

use super::RedisQueue;

/// URLs that are still on the list are not filed under a site yet, and do not count.
#[async_trait]
impl Waiting for RedisQueue {
    async fn waiting_for(&self, sites: &[Site], most: u32) -> Result<Vec<u64>, StoreError> {
        #[derive(serde::Serialize)]
        struct Asked<'a> {
            sites: &'a [Site],
        }
        let counts: Vec<u64> =
            self.scripts.run(&self.scripts.waiting_for, &Asked { sites }).await?;
        Ok(counts.into_iter().map(|count| count.min(most.into())).collect())
    }
}
