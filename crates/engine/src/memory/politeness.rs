//! The politeness store in memory.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use async_trait::async_trait;
use fetchwell_policy::breaker::{BreakerRule, Transition};
use fetchwell_policy::chance::Chance;
use fetchwell_policy::orders::Order;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::{Permit, SiteState, Spend};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};
use parking_lot::Mutex;

use crate::clock::Clock;
use crate::ports::error::StoreError;
use crate::ports::politeness::{
    ORDERS_AT_ONCE, ORDERS_TOLD_FOR, Politeness, RecentOrders, RobotsRecord, SiteAsk, SiteReport,
    Turn,
};
use crate::ports::sites::{KnownSite, PageInMaking, SiteQuery, Sites, SitesPage, origins_of};

/// A politeness store in memory.
pub struct MemoryPoliteness {
    clock: Clock,
    rule: BreakerRule,
    state: Mutex<Shared>,
}

struct Shared {
    sites: BTreeMap<Site, SiteState>,
    robots: HashMap<Origin, RobotsRecord>,
    ordered_at: HashMap<Site, Time>,
    chance: Chance,
}

impl MemoryPoliteness {
    pub fn new(clock: Clock, rule: BreakerRule, seed: u64) -> MemoryPoliteness {
        let chance = Chance::seeded(seed);
        let state = Shared {
            sites: BTreeMap::new(),
            robots: HashMap::new(),
            ordered_at: HashMap::new(),
            chance,
        };
        MemoryPoliteness { clock, rule, state: Mutex::new(state) }
    }

    pub fn sites_known(&self) -> usize {
        self.state.lock().sites.len()
    }
}

#[async_trait]
impl Politeness for MemoryPoliteness {
    async fn turn(&self, reports: &[SiteReport], asks: &[SiteAsk]) -> Result<Turn, StoreError> {
        let now = self.clock.now();
        let mut shared = self.state.lock();
        let Shared { sites, chance, .. } = &mut *shared;
        let mut turn = Turn { now, ..Turn::default() };
        for SiteReport { site, report } in reports {
            let state = sites.entry(site.clone()).or_default();
            let transition = state.record(report, now, &self.rule, chance.unit());
            if transition != Transition::None {
                turn.transitions.push((site.clone(), transition));
            }
        }
        for ask in asks {
            let state = sites.entry(ask.site.clone()).or_default();
            turn.verdicts.push(state.ask(now, ask.rate, ask.follows_robots, &self.rule));
        }
        Ok(turn)
    }

    async fn spend(
        &self,
        site: &Site,
        permit: &Permit,
        rate: Rate,
    ) -> Result<(Spend, Time), StoreError> {
        let now = self.clock.now();
        let mut shared = self.state.lock();
        let state = shared.sites.entry(site.clone()).or_default();
        Ok((state.spend(permit, now, rate), now))
    }

    async fn robots(&self, origin: &Origin) -> Result<Option<RobotsRecord>, StoreError> {
        Ok(self.state.lock().robots.get(origin).cloned())
    }

    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreError> {
        self.state.lock().robots.insert(origin.clone(), record.clone());
        Ok(())
    }

    async fn look(&self, site: &Site) -> Result<(Option<SiteState>, Time), StoreError> {
        Ok((self.state.lock().sites.get(site).cloned(), self.clock.now()))
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        let now = self.clock.now();
        let mut shared = self.state.lock();
        let before = shared.sites.len();
        shared.sites.retain(|_, state| !state.is_forgettable(now));
        Ok((before - shared.sites.len()) as u64)
    }

    async fn orders_since(&self, since: Time) -> Result<RecentOrders, StoreError> {
        let shared = self.state.lock();
        let now = self.clock.now();
        let lately = shared.ordered_at.iter().filter(|(_, at)| **at >= since);
        let mut sites: Vec<(Site, Time)> = lately.map(|(site, at)| (site.clone(), *at)).collect();
        sites.sort_unstable_by(|(a, at_a), (b, at_b)| (at_a, a).cmp(&(at_b, b)));
        sites.truncate(ORDERS_AT_ONCE);
        Ok(RecentOrders { now, sites })
    }
}

#[async_trait]
impl Sites for MemoryPoliteness {
    async fn sites(&self, query: &SiteQuery) -> Result<SitesPage, StoreError> {
        let shared = self.state.lock();
        let mut making = PageInMaking::new(query, self.clock.now());
        let after = making.after().to_owned();
        let beyond = (Bound::Excluded(after.as_str()), Bound::Unbounded);
        let mut known = shared.sites.range::<str, _>(beyond);
        while !making.is_full() {
            let Some((site, state)) = known.next() else { break };
            making.offer(site.as_str(), || Some(state.clone()));
        }
        let at_end = known.next().is_none();
        let mut page = making.finish(at_end);
        for known in &mut page.sites {
            known.robots = shared.robots_of(&known.site);
        }
        Ok(page)
    }

    async fn site(&self, site: &Site) -> Result<(KnownSite, Time), StoreError> {
        let shared = self.state.lock();
        let state = shared.sites.get(site).cloned().unwrap_or_default();
        let known = KnownSite { site: site.clone(), state, robots: shared.robots_of(site) };
        Ok((known, self.clock.now()))
    }

    async fn order(&self, site: &Site, order: Order, by: &str) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let mut shared = self.state.lock();
        if order == Order::ForgetRobots {
            for origin in origins_of(site) {
                shared.robots.remove(&origin);
            }
        }
        if order.may_end_a_wait() {
            shared.ordered_at.retain(|_, at| *at >= now - ORDERS_TOLD_FOR);
            shared.ordered_at.insert(site.clone(), now);
        }
        Ok(shared.sites.entry(site.clone()).or_default().obey(order, by, now))
    }
}

impl Shared {
    fn robots_of(&self, site: &Site) -> Vec<(Origin, RobotsRecord)> {
        let record = |origin: Origin| Some((origin.clone(), self.robots.get(&origin)?.clone()));
        origins_of(site).into_iter().filter_map(record).collect()
    }
}
