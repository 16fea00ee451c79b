//! One round over the feeds that are due: an ordinary door, on a queue in memory.
//!
//! A crash loses nothing. The links of a feed are stored before its state is, and its state only after its last link. A
//! feed without new state is read again, and adding a link twice has no effect.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::finish::SinkThenSettle;
use fetchwell_engine::memory::MemoryQueue;
use fetchwell_engine::pipeline::{self, Door, Runtime};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::feeds::{Claim, FeedMemory};
use fetchwell_engine::ports::finish::Sink;
use fetchwell_policy::units::quantity;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::in_hand::InHand;
use super::links::sort;
use super::memory::{is_due, validators};
use super::plan::{FeedJob, FeedReading, FeedRecord, give_up_record, job, plan};
use super::subscribed::Subscribed;
use super::{FeedPorts, FeedRules};

/// How long a claim keeps other processes from a feed, unless it is renewed.
const CLAIM_LASTS: Duration = Duration::from_secs(600);

/// The counters of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ingested {
    pub read: usize,
    /// Feeds that have not changed.
    pub unchanged: usize,
    /// Feeds that robots.txt disallows.
    pub disallowed: usize,
    /// Feeds that could not be read or are gone (410).
    pub failed: usize,
    /// Feeds that were not requested in time.
    pub not_reached: usize,
    /// Feeds that were not due, or that another process is reading.
    pub not_due: usize,
    pub new_links: u64,
}

impl Ingested {
    fn count(&mut self, reading: &FeedReading) {
        *match reading {
            FeedReading::Read { .. } => &mut self.read,
            FeedReading::Unchanged => &mut self.unchanged,
            FeedReading::Disallowed => &mut self.disallowed,
            FeedReading::Gone | FeedReading::Failed { .. } => &mut self.failed,
            FeedReading::NotReached { .. } => &mut self.not_reached,
        } += 1;
    }
}

/// A round in progress.
pub struct FeedRound {
    ports: FeedPorts,
    clock: Clock,
    queue: MemoryQueue,
    rules: FeedRules,
    /// The holder name of this round's claims.
    holder: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    in_hand: HashMap<String, InHand>,
    ingested: Ingested,
}

impl FeedRound {
    /// Claims the feeds that are due; with `all`, every feed that no other process is reading.
    pub async fn begin(
        ports: FeedPorts,
        clock: Clock,
        rules: FeedRules,
        feeds: Vec<Subscribed>,
        all: bool,
    ) -> Result<Arc<FeedRound>, StoreError> {
        let queue = MemoryQueue::private(clock.clone(), true);
        let holder = format!("{:016x}", fetchwell_engine::seed::random_seed());
        let state = Mutex::default();
        let round = Arc::new(FeedRound { ports, clock, queue, rules, holder, state });
        round.claim(feeds, all).await?;
        Ok(round)
    }

    /// Reads the claimed feeds. Failures of single feeds are logged and counted; they are not errors.
    pub async fn run(
        self: &Arc<FeedRound>,
        runtime: Runtime,
        stop: CancellationToken,
    ) -> Result<Ingested, StoreError> {
        let ended = tokio::select! {
            ended = pipeline::run(self.door(), runtime, stop) => ended,
            fault = self.keep_claims() => Err(fault),
        };
        self.release().await?;
        ended?;
        Ok(self.ingested())
    }

    async fn claim(&self, feeds: Vec<Subscribed>, all: bool) -> Result<(), StoreError> {
        let total = feeds.len();
        let due = self.due(feeds, all).await?;
        let urls: Vec<&str> = due.iter().map(|(feed, _)| feed.url.as_str()).collect();
        let granted = self.ports.feeds.claim(&urls, &self.claim_now()).await?;
        let granted = due.into_iter().zip(granted).filter(|(_, granted)| *granted);
        let ours: Vec<Subscribed> = granted.map(|((feed, _), _)| feed).collect();
        // Another process may have read them between the check and the claim.
        let claimed: Vec<String> = ours.iter().map(|feed| feed.url.clone()).collect();
        let due = self.due(ours, all).await?;
        let kept: HashSet<&str> = due.iter().map(|(feed, _)| feed.url.as_str()).collect();
        let over: Vec<&str> =
            claimed.iter().map(String::as_str).filter(|url| !kept.contains(url)).collect();
        self.ports.feeds.release(&over, &self.holder).await?;
        self.state.lock().ingested.not_due = total - due.len();
        self.enqueue(due);
        Ok(())
    }

    /// The feeds that are due, with their stored state.
    async fn due(
        &self,
        feeds: Vec<Subscribed>,
        all: bool,
    ) -> Result<Vec<(Subscribed, FeedMemory)>, StoreError> {
        let urls: Vec<&str> = feeds.iter().map(|feed| feed.url.as_str()).collect();
        let memories = self.ports.feeds.memories(&urls).await?;
        let now = self.clock.wall();
        let due = feeds
            .into_iter()
            .zip(memories)
            .filter(|(feed, memory)| is_due(memory.as_ref(), &feed.categories, now, all));
        Ok(due.map(|(feed, memory)| (feed, memory.unwrap_or_default())).collect())
    }

    fn enqueue(&self, due: Vec<(Subscribed, FeedMemory)>) {
        let mut jobs = Vec::with_capacity(due.len());
        let mut state = self.state.lock();
        for (feed, before) in due {
            let feed_job = FeedJob::Feed(validators(&before, &feed.categories));
            jobs.push(job(&feed.url, &feed_job, self.clock.now() + self.rules.max_wait));
            state.in_hand.insert(feed.url.clone(), InHand::new(feed, before));
        }
        self.queue.enqueue(jobs);
    }

    fn claim_now(&self) -> Claim<'_> {
        let now = self.clock.wall();
        Claim { holder: &self.holder, now, until: now + CLAIM_LASTS }
    }

    pub fn is_empty(&self) -> bool {
        self.state.lock().in_hand.is_empty()
    }

    pub fn ingested(&self) -> Ingested {
        self.state.lock().ingested
    }

    fn door(self: &Arc<FeedRound>) -> Door<FeedRecord> {
        let instance = Arc::new(self.queue.instance());
        let max_redirects = self.rules.max_redirects;
        Door {
            source: instance.clone(),
            planner: Arc::new(move |lease| plan(lease, max_redirects)),
            finish: Arc::new(SinkThenSettle { sink: self.clone(), source: instance }),
            give_up_record: Arc::new(give_up_record),
        }
    }

    /// Renews the claims of feeds in progress. Returns only on a permanent error.
    async fn keep_claims(&self) -> StoreError {
        loop {
            tokio::time::sleep(CLAIM_LASTS / 3).await;
            let urls = self.urls_in_hand();
            let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
            match self.ports.feeds.claim(&urls, &self.claim_now()).await {
                Err(fault) if !fault.is_transient() => return fault,
                // A transient error: the next renewal is still in time.
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Releases the claims of unfinished feeds.
    async fn release(&self) -> Result<(), StoreError> {
        let urls = self.urls_in_hand();
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        self.state.lock().ingested.not_reached += urls.len();
        self.ports.feeds.release(&urls, &self.holder).await
    }

    fn urls_in_hand(&self) -> Vec<String> {
        self.state.lock().in_hand.keys().cloned().collect()
    }

    /// Stores a result. Idempotent.
    async fn take_in(&self, found: &FeedRecord) -> Result<(), StoreError> {
        match found {
            FeedRecord::Feed { url, reading } => {
                self.add(url, &self.pages(url, reading)).await?;
                self.note_reading(url, reading);
                self.keep_if_ended(url).await
            }
            FeedRecord::Link { feed, link, page } => {
                let page = page.as_ref().map(ToString::to_string);
                self.add(feed, &[page.as_ref().unwrap_or(link).clone()]).await?;
                if let Some(in_hand) = self.state.lock().in_hand.get_mut(feed) {
                    in_hand.note_link(link, page.as_deref());
                }
                self.keep_if_ended(feed).await
            }
        }
    }

    /// The links that need no resolving.
    fn pages(&self, url: &str, reading: &FeedReading) -> Vec<String> {
        match (reading, self.state.lock().in_hand.get(url)) {
            (FeedReading::Read { feed, .. }, Some(in_hand)) => {
                sort(feed, &in_hand.before.resolved).pages
            }
            _ => Vec::new(),
        }
    }

    async fn add(&self, url: &str, pages: &[String]) -> Result<(), StoreError> {
        let categories =
            self.state.lock().in_hand.get(url).map(|some| some.feed.categories.clone());
        for category in categories.unwrap_or_default() {
            let new = self.ports.links.add(&category, pages).await?;
            let mut state = self.state.lock();
            state.ingested.new_links += new;
            if let Some(in_hand) = state.in_hand.get_mut(url) {
                in_hand.new_links += new;
            }
        }
        Ok(())
    }

    /// Records the result of a feed and queues the links to resolve.
    fn note_reading(&self, url: &str, reading: &FeedReading) {
        let mut state = self.state.lock();
        let State { in_hand, ingested } = &mut *state;
        let Some(in_hand) = in_hand.get_mut(url) else { return };
        let Some(asked) = in_hand.note_reading(reading, self.clock.wall()) else { return };
        ingested.count(reading);
        tell(url, reading);
        if let FeedReading::Read { feed, .. } = reading {
            let feed_job = FeedJob::Link { feed: url.to_owned(), home: feed.home.clone() };
            let deadline = self.clock.now() + self.rules.max_wait;
            self.queue.enqueue(asked.iter().map(|link| job(link, &feed_job, deadline)).collect());
        }
    }

    async fn keep_if_ended(&self, url: &str) -> Result<(), StoreError> {
        let ended = |some: &InHand| Some((some.end()?.cloned(), some.new_links));
        let Some((memory, new_links)) = self.state.lock().in_hand.get(url).and_then(ended) else {
            return Ok(());
        };
        match memory {
            None => self.ports.feeds.release(&[url], &self.holder).await?,
            Some(memory) => {
                if !self.ports.feeds.keep(url, &self.holder, &memory).await? {
                    warn!("another process has read {url} meanwhile; its links are stored");
                }
            }
        }
        if new_links > 0 {
            info!("{url}: {}", quantity(new_links, "new link", "new links"));
        }
        self.state.lock().in_hand.remove(url);
        Ok(())
    }
}

fn tell(url: &str, reading: &FeedReading) {
    match reading {
        FeedReading::Read { feed, moved_to, .. } => {
            let gaps = feed.gaps.to_string();
            if !gaps.is_empty() {
                warn!("{url}: {gaps}");
            }
            if let Some(place) = moved_to {
                warn!("{url} has moved permanently to {place}: subscribe to that instead");
            }
        }
        FeedReading::Unchanged => {}
        FeedReading::Disallowed => info!("skipped {url}: robots.txt disallows it"),
        FeedReading::Gone => warn!(
            "{url} is gone (410) and will not be read again; remove it with `fetchwell feeds \
             remove`, or resume it with `fetchwell feeds add`"
        ),
        FeedReading::Failed { problem, .. } => warn!("cannot read {url}: {problem}"),
        FeedReading::NotReached { why } => info!("{url} is deferred to the next run: {why}"),
    }
}

/// Stores the records and queues the links to resolve. Leases are settled only afterwards; otherwise the queue might
/// look empty and end the flow.
#[async_trait]
impl Sink<FeedRecord> for FeedRound {
    async fn write(&self, records: &[&FeedRecord]) -> Result<(), StoreError> {
        for found in records {
            self.take_in(found).await?;
        }
        Ok(())
    }
}
