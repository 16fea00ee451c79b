//! Finishes that doors are put together from.

use std::convert::Infallible;

use async_trait::async_trait;

use crate::ports::error::StoreError;
use crate::ports::finish::{Finish, Finished, Settle, Settled, Sink};

/// For a flow that only settles: its records have no values.
pub struct NoRecords;

#[async_trait]
impl Sink<Infallible> for NoRecords {
    async fn write(&self, _: &[&Infallible]) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Sink, then settle: for a sink and a source that share no transaction.
pub struct SinkThenSettle<S, Q> {
    /// Where the records go first.
    pub sink: S,
    /// Where the leases end after that.
    pub source: Q,
}

#[async_trait]
impl<R, S, Q> Finish<R> for SinkThenSettle<S, Q>
where
    R: Send + Sync,
    S: Sink<R>,
    Q: Settle,
{
    async fn finish(&self, batch: &[Finished<R>]) -> Result<Vec<Settled>, StoreError> {
        let records: Vec<&R> = batch.iter().flat_map(|finished| &finished.records).collect();
        if !records.is_empty() {
            self.sink.write(&records).await?;
        }
        let leases: Vec<_> = batch.iter().map(|f| (&f.lease, &f.settlement)).collect();
        self.source.settle(&leases).await
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::retry::History;
    use fetchwell_policy::time::Time;

    use super::*;
    use crate::budget::Share;
    use crate::ports::finish::Settlement;
    use crate::ports::job::{Job, Lane, Lease};
    use crate::web::Phases;

    struct FullDisk;

    #[async_trait]
    impl Sink<()> for FullDisk {
        async fn write(&self, _: &[&()]) -> Result<(), StoreError> {
            Err(StoreError::transient("no space is left"))
        }
    }

    struct NeverSettled;

    #[async_trait]
    impl Settle for NeverSettled {
        async fn settle(&self, _: &[(&Lease, &Settlement)]) -> Result<Vec<Settled>, StoreError> {
            panic!("it was settled, and its records are nowhere")
        }
    }

    #[tokio::test]
    async fn what_is_not_written_is_not_settled() {
        let url = "https://example.com/".to_owned();
        let lane = Lane::default();
        let payload = Vec::new();
        let job = Job { url, site: None, lane, deadline: None, payload };
        let history = History::default();
        let accepted_at = Time::EPOCH;
        let lease = Lease { id: 1, job, history, interruptions: 0, accepted_at };
        let records = vec![()];
        let settlement = Settlement::Done;
        let phases = Phases::default();
        let share = Share::none();
        let finish = SinkThenSettle { sink: FullDisk, source: NeverSettled };
        let fault = finish.finish(&[Finished { lease, records, settlement, phases, share }]).await;
        assert!(fault.unwrap_err().is_transient());
    }
}
