//! A politeness store in memory that a test can observe.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::memory::MemoryPoliteness;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::politeness::{
    Politeness, RecentOrders, RobotsRecord, SiteAsk, SiteReport, Turn,
};
use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::{Permit, SiteState, Spend};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};
use tokio::time::sleep;

/// Sees the questions of each turn, and decides how long the turn takes or why it fails.
pub(crate) type Watch = Arc<dyn Fn(&[SiteAsk]) -> Result<Duration, StoreError> + Send + Sync>;

/// The store, and its observer.
pub(crate) struct WatchedPoliteness {
    pub(crate) store: Arc<MemoryPoliteness>,
    pub(crate) watch: Watch,
    /// How long a failing turn takes.
    pub(crate) failing_takes: Duration,
}

#[async_trait]
impl Politeness for WatchedPoliteness {
    async fn turn(&self, reports: &[SiteReport], asks: &[SiteAsk]) -> Result<Turn, StoreError> {
        let watched = (self.watch)(asks);
        let takes = *watched.as_ref().unwrap_or(&self.failing_takes);
        if !takes.is_zero() {
            sleep(takes).await;
        }
        watched?;
        self.store.turn(reports, asks).await
    }

    async fn spend(
        &self,
        site: &Site,
        permit: &Permit,
        rate: Rate,
    ) -> Result<(Spend, Time), StoreError> {
        self.store.spend(site, permit, rate).await
    }

    async fn robots(&self, origin: &Origin) -> Result<Option<RobotsRecord>, StoreError> {
        self.store.robots(origin).await
    }

    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreError> {
        self.store.keep_robots(origin, record).await
    }

    async fn look(&self, site: &Site) -> Result<(Option<SiteState>, Time), StoreError> {
        self.store.look(site).await
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        self.store.sweep().await
    }

    async fn orders_since(&self, since: Time) -> Result<RecentOrders, StoreError> {
        self.store.orders_since(since).await
    }
}
