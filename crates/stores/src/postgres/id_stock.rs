//! Reserves job ids in advance, which saves a round trip in each transaction that needs a few.

use std::sync::Arc;

use fetchwell_engine::ports::job::LeaseId;
use parking_lot::Mutex;
use sqlx::Row;

use super::database::Tx;

/// How many ids are reserved at once, unless more are needed.
const STOCK: usize = 4_096;

/// Job ids reserved by this process. Those of a failed transaction are never used.
#[derive(Clone, Default)]
pub(super) struct IdStock(Arc<Mutex<Vec<LeaseId>>>);

impl IdStock {
    /// Takes `count` ids in ascending order.
    pub(super) async fn take(&self, tx: &mut Tx, count: usize) -> sqlx::Result<Vec<LeaseId>> {
        if let Some(ids) = self.in_stock(count) {
            return Ok(ids);
        }
        let query = sqlx::query(
            "SELECT nextval('fetchwell_job_id') FROM generate_series(1, $1) ORDER BY 1",
        );
        let rows = tx.fetch(query.bind(super::count(count.max(STOCK)))).await?;
        let mut ids: Vec<LeaseId> =
            rows.iter().map(|row| row.try_get(0)).collect::<sqlx::Result<_>>()?;
        // The rest of the old stock, whose ids are smaller than all of these, is discarded.
        *self.0.lock() = ids.split_off(count);
        Ok(ids)
    }

    fn in_stock(&self, count: usize) -> Option<Vec<LeaseId>> {
        let mut stock = self.0.lock();
        (count <= stock.len()).then(|| stock.drain(..count).collect())
    }
}
