//! Building blocks for the [`Finish`] of a door.

use std::convert::Infallible;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::ports::error::StoreError;
use crate::ports::finish::{Finish, Finished, Settle, Settled, Sink};

/// The sink of a door that only settles: its record type has no values.
pub struct NoRecords;

#[async_trait]
impl Sink<Infallible> for NoRecords {
    async fn write(&self, _: &[&Infallible]) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Collects the records in memory.
#[async_trait]
impl<R: Clone + Send + Sync> Sink<R> for Mutex<Vec<R>> {
    async fn write(&self, records: &[&R]) -> Result<(), StoreError> {
        self.lock().extend(records.iter().copied().cloned());
        Ok(())
    }
}

/// Writes the records, then settles the leases: for a sink and a source that share no transaction.
pub struct SinkThenSettle<S, Q> {
    pub sink: S,
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

/// Called with a finished lease and how it was settled.
pub type OnSettled<R> = Box<dyn Fn(&Finished<R>, Settled) + Send + Sync>;

/// Reports how each lease was settled, to count or to log it. A batch that fails is repeated, and is not reported.
pub struct Observed<R> {
    /// Settles the leases.
    pub inner: Arc<dyn Finish<R>>,
    /// Called for each lease of a batch that `inner` has finished; also for leases that were stale.
    pub on_settled: OnSettled<R>,
}

#[async_trait]
impl<R: Send + Sync> Finish<R> for Observed<R> {
    async fn finish(&self, batch: &[Finished<R>]) -> Result<Vec<Settled>, StoreError> {
        let settled = self.inner.finish(batch).await?;
        for (finished, settled) in batch.iter().zip(&settled) {
            (self.on_settled)(finished, *settled);
        }
        Ok(settled)
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

    /// Writes nothing. Confirms the first lease of a batch, and reports the others as stale.
    struct FirstIsOurs;

    #[async_trait]
    impl Finish<()> for FirstIsOurs {
        async fn finish(&self, batch: &[Finished<()>]) -> Result<Vec<Settled>, StoreError> {
            let settled = |at: usize| if at == 0 { Settled::Confirmed } else { Settled::Stale };
            Ok((0..batch.len()).map(settled).collect())
        }
    }

    fn finished(id: i64) -> Finished<()> {
        let url = "https://example.com/".to_owned();
        let lane = Lane::default();
        let payload = Vec::new();
        let job = Job { url, site: None, lane, deadline: None, payload };
        let history = History::default();
        let accepted_at = Time::EPOCH;
        let lease = Lease { id, job, history, interruptions: 0, accepted_at };
        let records = vec![()];
        let settlement = Settlement::Done;
        let phases = Phases::default();
        let share = Share::none();
        Finished { lease, records, settlement, phases, share }
    }

    #[tokio::test]
    async fn what_is_not_written_is_not_settled() {
        let finish = SinkThenSettle { sink: FullDisk, source: NeverSettled };
        let fault = finish.finish(&[finished(1)]).await;
        assert!(fault.unwrap_err().is_transient());
    }

    /// The settlements that are reported for a batch of two leases.
    async fn reported(inner: impl Finish<()> + 'static) -> Vec<(i64, Settled)> {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let heard = reported.clone();
        let finish = Observed {
            inner: Arc::new(inner),
            on_settled: Box::new(move |finished: &Finished<()>, settled| {
                heard.lock().push((finished.lease.id, settled));
            }),
        };
        drop(finish.finish(&[finished(1), finished(2)]).await);
        reported.lock().clone()
    }

    #[tokio::test]
    async fn each_lease_of_a_batch_is_reported_once_the_batch_is_finished() {
        let all = [(1, Settled::Confirmed), (2, Settled::Stale)];
        assert_eq!(reported(FirstIsOurs).await, all);
        let failing = SinkThenSettle { sink: FullDisk, source: NeverSettled };
        assert!(reported(failing).await.is_empty());
    }
}
