//! Sink, then settle, with dead letters whose details a door knows.

use std::sync::Arc;

use async_trait::async_trait;

use super::instance::RedisInstance;
use crate::ports::{Finish, Finished, Settled, Sink, StoreFault};

/// Writes records to a sink, then ends the leases. Records that are dead letters don't go to the sink: what
/// they tell goes in by the script that settles, so that no URL is dead without it.
pub struct RedisFinish<R, S> {
    /// Where the other records go first.
    pub sink: S,
    /// Where the leases end after that.
    pub instance: Arc<RedisInstance>,
    /// The details of a record that is a dead letter, as a JSON object.
    pub details: fn(&R) -> Option<String>,
}

#[async_trait]
impl<R: Send + Sync, S: Sink<R>> Finish<R> for RedisFinish<R, S> {
    async fn finish(&self, batch: &[Finished<R>]) -> Result<Vec<Settled>, StoreFault> {
        let mut records = Vec::new();
        let mut ends = Vec::with_capacity(batch.len());
        for finished in batch {
            let mut letter = None;
            for record in &finished.records {
                match (self.details)(record) {
                    None => records.push(record),
                    details => letter = details,
                }
            }
            ends.push((&finished.lease, &finished.settlement, letter));
        }
        if !records.is_empty() {
            self.sink.write(&records).await?;
        }
        self.instance.settle_with(&ends).await
    }
}
