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

/// Asks the politeness store for permission to send a request to a site.
#[derive(Clone, Debug)]
pub struct SiteAsk {
    /// The site.
    pub site: Site,
    /// Its rate.
    pub rate: Rate,
    /// Whether the request is for the page for which robots.txt was just read.
    pub follows_robots: bool,
}

/// Reports the result of a request to the politeness store.
#[derive(Clone, Debug)]
pub struct SiteReport {
    /// The site.
    pub site: Site,
    /// The result.
    pub report: Report,
}

/// The result of [`Politeness::turn`].
#[derive(Debug, Default)]
pub struct Turn {
    /// The time of the store's clock, which the verdicts are based on.
    pub now: Time,
    /// One verdict per ask, in order.
    pub verdicts: Vec<Verdict>,
    /// Breakers that opened or closed.
    pub transitions: Vec<(Site, Transition)>,
}

/// The stored robots.txt of an origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsRecord {
    /// The content when it was last reachable; empty if there is no such file (4xx).
    #[serde(with = "crate::ports::readable")]
    pub body: Option<Vec<u8>>,
    /// The status code of the last conclusive response.
    pub status: Option<u16>,
    /// When `body` was read.
    pub fetched_at: Time,
    /// Since when it cannot be reached, and why; `None` if the last request for it succeeded.
    pub unreachable: Option<Unreachable>,
    /// When an operator had last ordered a re-read, as known when it was requested, by the store's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robots_forgotten: Option<Time>,
}

impl RobotsRecord {
    /// Whether it was requested before the last order to read it again, so that it must not be used. The order deletes
    /// the record, but not a file that is being read at that time.
    pub fn is_forgotten(&self, ordered_at: Option<Time>) -> bool {
        self.robots_forgotten < ordered_at
    }

    /// Converts its times to another clock, except that of the order, which is always by the store's; see
    /// [`Time::by_clock_ahead_by_us`].
    pub fn by_clock_ahead_by_us(self, ahead_us: i64) -> RobotsRecord {
        let moved = |time: Time| time.by_clock_ahead_by_us(ahead_us);
        let unreachable = self.unreachable.map(|unreachable| Unreachable {
            since: moved(unreachable.since),
            retry_at: moved(unreachable.retry_at),
            ..unreachable
        });
        RobotsRecord { fetched_at: moved(self.fetched_at), unreachable, ..self }
    }
}

/// A robots.txt that cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreachable {
    /// When the failures began.
    pub since: Time,
    /// The number of attempts since then.
    pub tries: u32,
    /// When to try again.
    pub retry_at: Time,
    /// Whether the site requested `retry_at` (`Retry-After`). Otherwise it is our own back-off.
    #[serde(default)]
    pub is_asked_for: bool,
    /// Why the last attempt failed.
    pub reason: String,
    /// The number of recoveries of its site at that time.
    #[serde(default)]
    pub recoveries: u32,
}

impl Unreachable {
    /// Whether the file must be fetched before the next page of the site, regardless of `retry_at`: the site has
    /// recovered since, or its breaker is open, so that the next page will follow a recovery.
    pub fn comes_first(&self, state: &SiteState) -> bool {
        self.recoveries != state.health.recoveries || state.breaker.blocked_until().is_some()
    }
}

/// The politeness state that all processes on a store share.
#[async_trait]
pub trait Politeness: Send + Sync {
    /// Records the reports, then answers the asks, in one atomic step and by the store's own clock.
    async fn turn(&self, reports: &[SiteReport], asks: &[SiteAsk]) -> Result<Turn, StoreError>;

    /// Checks a permit immediately before the request head is written. Also returns the store's time.
    async fn spend(
        &self,
        site: &Site,
        permit: &Permit,
        rate: Rate,
    ) -> Result<(Spend, Time), StoreError>;

    /// The stored robots.txt of an origin. Its times are by the clock of the engine, and an adapter converts them if its
    /// server has another one.
    async fn robots(&self, origin: &Origin) -> Result<Option<RobotsRecord>, StoreError>;

    /// Stores the robots.txt of an origin. Its times are by the clock of the engine.
    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreError>;

    /// Reads the state of a site without changing it. Also returns the store's time.
    async fn look(&self, site: &Site) -> Result<(Option<SiteState>, Time), StoreError>;

    /// Deletes the state of idle sites, never of one with a penalty. Returns how many were deleted.
    async fn sweep(&self) -> Result<u64, StoreError>;

    /// The sites that got an order at `since` or later that may end a wait, with the time of the last such order. Empty
    /// for a store that takes no orders.
    async fn orders_since(&self, _since: Time) -> Result<RecentOrders, StoreError> {
        Ok(RecentOrders::default())
    }
}

/// How long an order is listed as recent. After that it still applies.
pub const ORDERS_TOLD_FOR: Duration = Duration::from_hours(1);

/// The maximum number of sites in [`RecentOrders`].
pub const ORDERS_AT_ONCE: usize = 10_000;

/// The sites that recently got an order that may end a wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentOrders {
    /// The store's time of the query. A later order may be recorded with a slightly earlier time, by as much as giving
    /// it takes.
    pub now: Time,
    /// Each site with the time of its order, earliest first; at most [`ORDERS_AT_ONCE`].
    pub sites: Vec<(Site, Time)>,
}
