//! The politeness store: the pace, the breaker and the robots.txt of each site.

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::breaker::Transition;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::{Permit, Report, SiteState, Spend, Verdict};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};
use serde::{Deserialize, Serialize};

use crate::ports::error::StoreError;

/// A site's question to the politeness store.
#[derive(Clone, Debug)]
pub struct SiteAsk {
    /// Which site.
    pub site: Site,
    /// Its pace.
    pub rate: Rate,
    /// The request is for the page that a robots.txt was just read for.
    pub follows_robots: bool,
}

/// A site's news for the politeness store.
#[derive(Clone, Debug)]
pub struct SiteReport {
    /// Which site.
    pub site: Site,
    /// What became of a request.
    pub report: Report,
}

/// The answer to a turn.
#[derive(Debug, Default)]
pub struct Turn {
    /// The store's clock: verdicts are by it.
    pub now: Time,
    /// A verdict for each question, in order.
    pub verdicts: Vec<Verdict>,
    /// Breakers that opened or closed.
    pub transitions: Vec<(Site, Transition)>,
}

/// What is known of an origin's robots.txt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsRecord {
    /// The text, when it was last reachable; empty when there is no such file (4xx).
    #[serde(with = "crate::ports::readable")]
    pub body: Option<Vec<u8>>,
    /// The status of the last answer that settled the matter.
    pub status: Option<u16>,
    /// When `body` was read.
    pub fetched_at: Time,
    /// Since when it cannot be reached, and why; `None`: it was there the last time.
    pub unreachable: Option<Unreachable>,
}

/// A robots.txt that cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreachable {
    /// Since when.
    pub since: Time,
    /// How often it was tried since.
    pub tries: u32,
    /// When to try again.
    pub retry_at: Time,
    /// The site asked us to wait until then (`Retry-After`); else that is our own back-off.
    #[serde(default)]
    pub is_asked_for: bool,
    /// What happened.
    pub reason: String,
    /// How often its site had recovered by then.
    #[serde(default)]
    pub recoveries: u32,
}

impl Unreachable {
    /// Whether the file comes before the site's next page, whatever `retry_at` says: the site has answered again
    /// since, or its breaker is open, so that the next page goes after a recovery.
    pub fn comes_first(&self, state: &SiteState) -> bool {
        self.recoveries != state.health.recoveries || state.breaker.blocked_until().is_some()
    }
}

/// The politeness store: what all processes on it share.
#[async_trait]
pub trait Politeness: Send + Sync {
    /// One atomic step: records the reports, then answers the questions, by the store's own clock.
    async fn turn(&self, reports: &[SiteReport], asks: &[SiteAsk]) -> Result<Turn, StoreError>;

    /// Judges a permit at the moment the head is about to be written. Also tells the store's time.
    async fn spend(
        &self,
        site: &Site,
        permit: &Permit,
        rate: Rate,
    ) -> Result<(Spend, Time), StoreError>;

    /// What is known of an origin's robots.txt.
    async fn robots(&self, origin: &Origin) -> Result<Option<RobotsRecord>, StoreError>;

    /// Keeps what was learnt of an origin's robots.txt.
    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreError>;

    /// Looks at a site without asking for anything. Also tells the store's time.
    async fn look(&self, site: &Site) -> Result<(Option<SiteState>, Time), StoreError>;

    /// Forgets sites at rest, never one in penalty. Returns how many.
    async fn sweep(&self) -> Result<u64, StoreError>;

    /// The sites that operators gave orders to that may end a wait, at `since` or later, each at its last one.
    /// A store that takes no orders has none.
    async fn orders_since(&self, _since: Time) -> Result<RecentOrders, StoreError> {
        Ok(RecentOrders::default())
    }
}

/// Orders are heard of for this long; then they just stand.
pub const ORDERS_TOLD_FOR: Duration = Duration::from_hours(1);

/// Sites in one answer about orders, at most.
pub const ORDERS_AT_ONCE: usize = 10_000;

/// The sites that such orders were given to lately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentOrders {
    /// The store's time when it was asked. What is given later may be noted with an earlier time, by as
    /// much as an order takes.
    pub now: Time,
    /// Each site, and when; the earliest first, [`ORDERS_AT_ONCE`] at most.
    pub sites: Vec<(Site, Time)>,
}
