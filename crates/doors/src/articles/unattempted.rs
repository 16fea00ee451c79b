//! Of the links of a source, those that are still to be fetched.
//!
//! Another run may fetch a link after this run has queued it. Only the holder of a lease fetches the link, so checking
//! after taking the lease is conclusive.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::articles::Articles;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Settle, Settlement};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::links::LINKS_TTL;
use fetchwell_engine::wrapped_source::LeaseHooks;
use fetchwell_policy::time::Time;

use super::record::uid;

/// Passes on leases whose links are still to be fetched, and settles the others.
pub(super) struct Unattempted {
    pub(super) ends: Arc<dyn Settle>,
    pub(super) articles: Arc<dyn Articles>,
    /// When the run began, by the store's clock.
    pub(super) run: Time,
    pub(super) clock: Clock,
}

#[async_trait]
impl LeaseHooks for Unattempted {
    /// What is not to be fetched ends before anything is passed on.
    async fn prepare(&self, leases: &mut Vec<Lease>) -> Result<(), StoreError> {
        let uids: Vec<String> = leases.iter().map(|lease| uid(&lease.job.url)).collect();
        let pending = self.articles.pending(&uids, self.run).await?;
        // Links expire after `LINKS_TTL`: an older job was left behind by an earlier run.
        let oldest = self.clock.now() - LINKS_TTL;
        let wanted: Vec<bool> = (leases.iter().zip(pending))
            .map(|(lease, pending)| pending && lease.accepted_at > oldest)
            .collect();
        let over: Vec<(&Lease, &Settlement)> = (leases.iter().zip(&wanted))
            .filter(|(_, wanted)| !**wanted)
            .map(|(lease, _)| (lease, &Settlement::Skipped))
            .collect();
        if !over.is_empty() {
            self.ends.settle(&over).await?;
        }
        let mut wanted = wanted.into_iter();
        leases.retain(|_| wanted.next() == Some(true));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use fetchwell_engine::memory::MemoryQueue;
    use fetchwell_engine::ports::articles::{ArticleResult, Counts, Fields, Wanted};
    use fetchwell_engine::ports::job::NewJob;
    use fetchwell_engine::ports::source::{Demand, Source, Taken};
    use fetchwell_engine::wrapped_source::WrappedSource;
    use fetchwell_testkit::samples::{NOW, lease};
    use parking_lot::Mutex;

    use super::*;

    /// Books that know what was attempted, and may be out of reach.
    #[derive(Default)]
    struct Books {
        attempted: Mutex<HashSet<String>>,
        is_gone: AtomicBool,
    }

    #[async_trait]
    impl Articles for Books {
        async fn now(&self) -> Result<Time, StoreError> {
            Ok(NOW)
        }

        async fn pending(&self, uids: &[String], _: Time) -> Result<Vec<bool>, StoreError> {
            if self.is_gone.load(Ordering::Relaxed) {
                return Err(StoreError::transient("gone"));
            }
            let attempted = self.attempted.lock();
            Ok(uids.iter().map(|uid| !attempted.contains(uid)).collect())
        }

        async fn keep(
            &self,
            article_results: &[&ArticleResult],
            _: Time,
        ) -> Result<(), StoreError> {
            self.attempted.lock().extend(article_results.iter().map(|one| one.uid.clone()));
            Ok(())
        }

        async fn trim(&self) -> Result<(), StoreError> {
            Ok(())
        }

        async fn find(&self, _: &str) -> Result<Option<Fields>, StoreError> {
            Ok(None)
        }

        async fn list(&self, _: &Wanted) -> Result<Vec<Fields>, StoreError> {
            Ok(Vec::new())
        }

        async fn count(&self) -> Result<Counts, StoreError> {
            Ok(Counts::default())
        }
    }

    struct Rig {
        queue: MemoryQueue,
        books: Arc<Books>,
        source: WrappedSource,
        hours: Arc<Mutex<u32>>,
    }

    /// A queue with these links on it, which were accepted at hour 0.
    async fn rig(urls: &[&str]) -> Rig {
        let hours = Arc::new(Mutex::new(0));
        let shown = hours.clone();
        let clock = Clock::new(move || NOW + Duration::from_secs(3_600) * *shown.lock());
        let queue = MemoryQueue::new(clock.clone(), Duration::from_secs(1_000 * 3_600), true);
        queue.enqueue(urls.iter().map(|url| NewJob::now(lease(url, "").job)).collect());
        let instance = Arc::new(queue.instance());
        let books = Arc::new(Books::default());
        instance.renew().await.unwrap();
        let ends = instance.clone();
        let unattempted = Unattempted { ends, articles: books.clone(), run: NOW, clock };
        let source = WrappedSource::new(instance, Arc::new(unattempted));
        Rig { queue, books, source, hours }
    }

    impl Rig {
        async fn take(&self) -> Result<Vec<String>, StoreError> {
            let demand = Demand { most: 10, most_per_site: 10, ..Demand::default() };
            Ok(match self.source.take(&demand).await? {
                Taken::Jobs(leases) => leases.into_iter().map(|lease| lease.job.url).collect(),
                Taken::Idle { .. } | Taken::Exhausted => Vec::new(),
            })
        }
    }

    #[tokio::test]
    async fn what_others_did_meanwhile_ends_unfetched() {
        let rig = rig(&["http://a.test/1", "http://a.test/2"]).await;
        rig.books.attempted.lock().insert(uid("http://a.test/1"));
        assert_eq!(rig.take().await.unwrap(), ["http://a.test/2"]);
        let ledger = rig.queue.ledger();
        assert_eq!((ledger.skipped, ledger.in_flight), (1, 1), "{ledger:?}");
    }

    #[tokio::test]
    async fn what_a_run_left_long_ago_ends_unfetched() {
        for (hours, skipped) in [(47, 0), (48, 1)] {
            let rig = rig(&["http://a.test/1"]).await;
            *rig.hours.lock() = hours;
            assert_eq!(rig.take().await.unwrap().len(), 1 - skipped, "{hours}");
            assert_eq!(rig.queue.ledger().skipped, skipped as i64, "{hours}");
        }
    }

    #[tokio::test]
    async fn leases_that_nobody_could_look_at_are_not_lost() {
        let rig = rig(&["http://a.test/1"]).await;
        rig.books.is_gone.store(true, Ordering::Relaxed);
        assert!(rig.take().await.is_err());
        assert_eq!(rig.queue.ledger().in_flight, 1);
        rig.books.is_gone.store(false, Ordering::Relaxed);
        assert_eq!(rig.take().await.unwrap(), ["http://a.test/1"]);
    }
}
