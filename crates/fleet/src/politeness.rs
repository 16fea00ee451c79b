//! The politeness store, as a process sees it over the network.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::politeness::{
    Politeness, RecentOrders, RobotsRecord, SiteAsk, SiteReport, Turn,
};
use fetchwell_engine::shared_politeness::SharedPoliteness;
use fetchwell_policy::breaker::BreakerRule;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::{Permit, SiteState, Spend};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};

use crate::network::{Link, Store, at_once};
use crate::scenario::Feature;
use crate::site_states::{REPORTS, RemoteSiteStates};

/// The politeness store of a process.
pub(crate) fn politeness(link: &Arc<Link>, clock: &Clock, seed: u64) -> Arc<dyn Politeness> {
    let link = link.clone();
    let clock = clock.clone();
    if !link.sim.has(Feature::SharedStates) {
        return Arc::new(RemotePoliteness::new(link, clock));
    }
    let site_states = RemoteSiteStates { link: link.clone() };
    let shared = SharedPoliteness::new(site_states, clock, BreakerRule::default(), seed);
    Arc::new(Watched { link, shared })
}

/// Tells the server which reports a turn has, so that the checks know when they are recorded.
struct Watched {
    link: Arc<Link>,
    shared: SharedPoliteness<RemoteSiteStates>,
}

#[async_trait]
impl Politeness for Watched {
    async fn turn(&self, reports: &[SiteReport], asks: &[SiteAsk]) -> Result<Turn, StoreError> {
        let turn = REPORTS.scope(reports.to_vec(), self.shared.turn(reports, asks)).await?;
        self.link.sim.note_verdicts(&self.link.process, asks, &turn);
        Ok(turn)
    }

    async fn spend(
        &self,
        site: &Site,
        permit: &Permit,
        rate: Rate,
    ) -> Result<(Spend, Time), StoreError> {
        self.shared.spend(site, permit, rate).await
    }

    async fn robots(&self, origin: &Origin) -> Result<Option<RobotsRecord>, StoreError> {
        self.shared.robots(origin).await
    }

    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreError> {
        self.shared.keep_robots(origin, record).await
    }

    async fn look(&self, site: &Site) -> Result<(Option<SiteState>, Time), StoreError> {
        self.shared.look(site).await
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        self.shared.sweep().await
    }

    async fn orders_since(&self, since: Time) -> Result<RecentOrders, StoreError> {
        self.shared.orders_since(since).await
    }
}

/// Every call goes through the network to the one store of the fleet. As in the adapters of servers, the times of
/// robots.txt are by the store's clock in the store, and by the machine's clock in the process.
struct RemotePoliteness {
    link: Arc<Link>,
    /// The clock of the machine.
    clock: Clock,
}

impl RemotePoliteness {
    fn new(link: Arc<Link>, clock: Clock) -> RemotePoliteness {
        RemotePoliteness { link, clock }
    }

    /// How far the clock of the store is ahead of that of the machine.
    fn ahead_us(&self) -> i64 {
        self.link.sim.clock.now().as_micros() - self.clock.now().as_micros()
    }
}

#[async_trait]
impl Politeness for RemotePoliteness {
    async fn turn(&self, reports: &[SiteReport], asks: &[SiteAsk]) -> Result<Turn, StoreError> {
        let reports = reports.to_vec();
        let asks = asks.to_vec();
        let sim = self.link.sim.clone();
        let process = self.link.process.clone();
        let turn = self.link.call(Store::Politeness, "a turn", move || {
            let turn = at_once(sim.politeness.turn(&reports, &asks))?;
            sim.on_turn(&process, &reports, &asks, &turn);
            Ok(turn)
        });
        turn.await
    }

    async fn spend(
        &self,
        site: &Site,
        permit: &Permit,
        rate: Rate,
    ) -> Result<(Spend, Time), StoreError> {
        let site = site.clone();
        let permit = *permit;
        let sim = self.link.sim.clone();
        let process = self.link.process.clone();
        let spent = self.link.call(Store::Politeness, "a spending", move || {
            let spent = at_once(sim.politeness.spend(&site, &permit, rate))?;
            let word = match spent.0 {
                Spend::Go => "go",
                Spend::Wait(_) => "wait",
                Spend::Void => "void",
            };
            sim.note(&process.name, "spend", format_args!("{site} {word}"));
            Ok(spent)
        });
        spent.await
    }

    async fn robots(&self, origin: &Origin) -> Result<Option<RobotsRecord>, StoreError> {
        let origin = origin.clone();
        let sim = self.link.sim.clone();
        let found = self
            .link
            .call(Store::Politeness, "a lookup", move || at_once(sim.politeness.robots(&origin)));
        let record = found.await?;
        Ok(record.map(|record| record.by_clock_ahead_by_us(-self.ahead_us())))
    }

    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreError> {
        let origin = origin.clone();
        let record = record.clone().by_clock_ahead_by_us(self.ahead_us());
        let sim = self.link.sim.clone();
        let kept = self.link.call(Store::Politeness, "a robots.txt", move || {
            at_once(sim.politeness.keep_robots(&origin, &record))
        });
        kept.await
    }

    async fn look(&self, site: &Site) -> Result<(Option<SiteState>, Time), StoreError> {
        let site = site.clone();
        let sim = self.link.sim.clone();
        self.link
            .call(Store::Politeness, "a look", move || at_once(sim.politeness.look(&site)))
            .await
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        let sim = self.link.sim.clone();
        self.link.call(Store::Politeness, "a sweep", move || at_once(sim.politeness.sweep())).await
    }

    async fn orders_since(&self, since: Time) -> Result<RecentOrders, StoreError> {
        let sim = self.link.sim.clone();
        self.link
            .call(Store::Politeness, "a poll for orders", move || {
                at_once(sim.politeness.orders_since(since))
            })
            .await
    }
}
