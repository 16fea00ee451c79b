//! Reads a feed once to show what would be added. Nothing is stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::finish::SinkThenSettle;
use fetchwell_engine::memory::MemoryQueue;
use fetchwell_engine::pipeline::{self, Door, Runtime};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_feed::Feed;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::FeedRules;
use super::links::sort;
use super::plan::{FeedJob, FeedReading, FeedRecord, Validators, give_up_record, job, plan};

/// A trial run on a queue in memory.
pub struct FeedTrial<'a> {
    pub rules: FeedRules,
    pub clock: Clock,
    /// Makes what a flow runs on. Reading a feed is one flow, resolving its links another.
    pub runtime: &'a dyn Fn() -> Runtime,
    pub stop: CancellationToken,
}

impl FeedTrial<'_> {
    /// Reads a feed; `None` if it was stopped before there was a result.
    pub async fn read(&self, url: &str) -> Result<Option<FeedReading>, StoreError> {
        let feed_job = FeedJob::Feed(Validators::default());
        Ok(match self.send([url.to_owned()], &feed_job).await?.pop() {
            Some(FeedRecord::Feed { reading, .. }) => Some(reading),
            Some(FeedRecord::Link { .. }) | None => None,
        })
    }

    /// Resolves the links of a feed that need it, and returns their pages.
    pub async fn resolve(
        &self,
        url: &str,
        feed: &Feed,
    ) -> Result<BTreeMap<String, String>, StoreError> {
        let feed_job = FeedJob::Link { feed: url.to_owned(), home: feed.home.clone() };
        let found = self.send(sort(feed, &BTreeMap::new()).asked, &feed_job).await?;
        let pair = |found| match found {
            FeedRecord::Link { link, page: Some(page), .. } => Some((link, page.to_string())),
            FeedRecord::Link { .. } | FeedRecord::Feed { .. } => None,
        };
        Ok(found.into_iter().filter_map(pair).collect())
    }

    /// Runs jobs through the engine's flow and collects their results.
    async fn send(
        &self,
        urls: impl IntoIterator<Item = String>,
        feed_job: &FeedJob,
    ) -> Result<Vec<FeedRecord>, StoreError> {
        let FeedRules { max_wait, max_redirects } = self.rules;
        let deadline = self.clock.now() + max_wait;
        let queue = MemoryQueue::private(self.clock.clone(), true);
        queue.enqueue(urls.into_iter().map(|url| job(&url, feed_job, deadline)).collect());
        let instance = Arc::new(queue.instance());
        let found: Arc<Mutex<Vec<FeedRecord>>> = Arc::default();
        let door = Door {
            source: instance.clone(),
            planner: Arc::new(move |lease| plan(lease, max_redirects)),
            finish: Arc::new(SinkThenSettle { sink: found.clone(), source: instance }),
            give_up_record: Arc::new(give_up_record),
        };
        pipeline::run(door, (self.runtime)(), self.stop.clone()).await?;
        let found = std::mem::take(&mut *found.lock());
        Ok(found)
    }
}
