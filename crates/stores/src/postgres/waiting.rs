//! Counts the jobs that wait for sites, in all queues of a database.

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::sites::Waiting;
use fetchwell_policy::url::Site;
use sqlx::Row;

use super::database::Database;
use crate::shared::job_state::sql;

const COUNT: &str = sql!(
    "
    SELECT coalesce(sum(counted.jobs), 0)::BIGINT
    FROM unnest($1::TEXT[]) WITH ORDINALITY AS wanted (site, place)
    LEFT JOIN fetchwell_queue AS queue ON queue.name <> 'webhooks'
    LEFT JOIN LATERAL (
        SELECT count(*) AS jobs FROM (
            SELECT 1 FROM fetchwell_job AS job
            WHERE job.queue = queue.id AND job.site = wanted.site AND job.state < {leased} LIMIT $2
        ) AS found
    ) AS counted ON TRUE
    GROUP BY place ORDER BY place"
);

#[async_trait]
impl Waiting for Database {
    async fn waiting_for(&self, sites: &[Site], most: u32) -> Result<Vec<u64>, StoreError> {
        let names: Vec<&str> = sites.iter().map(Site::as_str).collect();
        let query = sqlx::query(COUNT).bind(names).bind(i64::from(most));
        self.read(query, |row| Ok(u64::try_from(row.try_get::<i64, _>(0)?).unwrap_or(0))).await
    }
}
