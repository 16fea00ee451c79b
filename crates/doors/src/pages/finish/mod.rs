//! Caches the page, publishes its event, and settles the lease, in this order: a page is in the cache before its event
//! can be read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_engine::budget::Share;
use fetchwell_engine::ports::error::{StoreError, StoreErrorKind};
use fetchwell_engine::ports::event_log::{EventLog, LogEvent, Published};
use fetchwell_engine::ports::finish::{Finish, Finished, Settled, Settlement, Sink};
use fetchwell_engine::ports::page_cache::PageCache;
use fetchwell_policy::rfc3339::rfc3339;
use futures::{StreamExt, TryStreamExt, stream};

use super::record::{DeadLetterDetails, LetterFailure, PageRecord, WebpageFetched};

/// Pages written to the cache concurrently.
const MAX_PUTS_AT_ONCE: usize = 32;

/// Puts the pages of a batch into the cache, publishes their events, then passes the batch on to `then`. A page that
/// the cache or the log permanently refuses becomes a dead letter.
///
/// After an error the whole batch is finished again. That is safe: a page overwrites itself, and a repeated event has
/// the same ID.
pub struct CacheThenEvent<F> {
    pub cache: Arc<dyn PageCache>,
    pub ttl: Duration,
    pub log: Arc<dyn EventLog>,
    /// Settles the leases and stores the dead letters.
    pub then: F,
}

/// The sink behind [`CacheThenEvent`], which has already written everything.
pub struct Written;

#[async_trait]
impl Sink<PageRecord> for Written {
    async fn write(&self, _: &[&PageRecord]) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Why pages were refused, by their index in the batch.
type Refusals = BTreeMap<usize, String>;

#[async_trait]
impl<F: Finish<PageRecord>> Finish<PageRecord> for CacheThenEvent<F> {
    async fn finish(&self, batch: &[Finished<PageRecord>]) -> Result<Vec<Settled>, StoreError> {
        let mut refusals = self.put_pages(batch).await?;
        self.publish_events(batch, &mut refusals).await?;
        if refusals.is_empty() {
            return self.then.finish(batch).await;
        }
        let revised: Vec<Finished<PageRecord>> = batch
            .iter()
            .enumerate()
            .map(|(at, finished)| match refusals.remove(&at) {
                Some(reason) => given_up(finished, reason),
                None => copy_of(finished),
            })
            .collect();
        self.then.finish(&revised).await
    }
}

impl<F> CacheThenEvent<F> {
    async fn put_pages(&self, batch: &[Finished<PageRecord>]) -> Result<Refusals, StoreError> {
        let puts = pages_of(batch).map(|(at, content, event)| async move {
            match self.cache.put(&event.cache_key, content.clone(), self.ttl).await {
                Ok(()) => Ok(None),
                Err(fault) if fault.kind() == StoreErrorKind::TooLarge => {
                    Ok(Some((at, fault.detail())))
                }
                Err(fault) => Err(fault),
            }
        });
        // Collected before the stream is made: otherwise the compiler cannot prove that the borrows live long enough.
        let puts: Vec<_> = puts.collect();
        let refused = stream::iter(puts).buffer_unordered(MAX_PUTS_AT_ONCE);
        refused.try_filter_map(|refused| async move { Ok(refused) }).try_collect().await
    }

    async fn publish_events(
        &self,
        batch: &[Finished<PageRecord>],
        refusals: &mut Refusals,
    ) -> Result<(), StoreError> {
        let cached = pages_of(batch).filter(|(at, ..)| !refusals.contains_key(at));
        let (places, events): (Vec<usize>, Vec<LogEvent>) =
            cached.map(|(at, _, event)| (at, event.to_event())).unzip();
        if events.is_empty() {
            return Ok(());
        }
        let published = self.log.publish(&events).await?;
        for (at, published) in places.into_iter().zip(published) {
            if let Published::Refused { reason } = published {
                refusals.insert(at, reason);
            }
        }
        Ok(())
    }
}

/// The pages of a batch, with their index in it.
fn pages_of(
    batch: &[Finished<PageRecord>],
) -> impl Iterator<Item = (usize, &Bytes, &WebpageFetched)> {
    batch.iter().enumerate().flat_map(|(at, finished)| {
        finished.records.iter().filter_map(move |record| match record {
            PageRecord::Fetched { content, event } => Some((at, content, event)),
            PageRecord::DeadLetter { .. } => None,
        })
    })
}

/// The same lease, settled as a dead letter.
fn given_up(finished: &Finished<PageRecord>, reason: String) -> Finished<PageRecord> {
    let lease = &finished.lease;
    let event = finished.records.iter().find_map(|record| match record {
        PageRecord::Fetched { event, .. } => Some(event),
        PageRecord::DeadLetter { .. } => None,
    });
    let details = DeadLetterDetails {
        failure: LetterFailure::UrlSpecific,
        error: None,
        reason: reason.clone(),
        status_code: event.map(|event| event.status_code),
        attempts: lease.history.failures().saturating_add(1),
        first_at: rfc3339(lease.accepted_at),
        last_at: event.map(|event| event.fetched_at.clone()).unwrap_or_default(),
    };
    let letter = PageRecord::DeadLetter { url: lease.job.url.clone(), details };
    let settlement = Settlement::Dead { reason };
    Finished { records: vec![letter], settlement, ..copy_of(finished) }
}

/// The copy holds no share of the byte budget: the original still has it.
fn copy_of(finished: &Finished<PageRecord>) -> Finished<PageRecord> {
    Finished {
        lease: finished.lease.clone(),
        records: finished.records.clone(),
        settlement: finished.settlement.clone(),
        phases: finished.phases,
        share: Share::none(),
    }
}

#[cfg(test)]
mod tests;
