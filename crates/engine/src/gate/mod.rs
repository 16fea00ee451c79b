//! The gate: the one place that says *go*, *not before t*, or *never, because…*.
//!
//! It combines robots.txt, the pace of the site and the breaker. What all processes share lives in the
//! politeness store; here is what this process makes of it.

mod heads;
pub mod namespaced;
mod permit;
mod robots;
mod rules;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use fetchwell_policy::outcome::{Happened, WaitAskedBy};
use fetchwell_policy::pace::Rate;
use fetchwell_policy::robots::{Robots, WhenUnreachable};
use fetchwell_policy::site::{Permit, SiteState};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site, WebUrl};
use heads::Heads;
pub use permit::GateLeave;
pub use robots::RobotsView;
pub use rules::{BY_ORDER, CRAWL_DELAY, GROUP_LIMIT, GateRules, GroupPace, PaceRules, RobotsRules};
pub use verdict::{Outlook, rule_of};

use crate::clock::Clock;
use crate::ports::politeness::{Politeness, RobotsRecord};
use crate::store_health::StoreHealth;

/// The gate of one process.
pub struct Gate {
    /// What all processes on one store share.
    pub politeness: Arc<dyn Politeness>,
    rules: GateRules,
    clock: Clock,
    /// When this process last wrote a head to each site, by a clock that never jumps.
    heads: Arc<Heads>,
    started_at: Time,
    /// Which calls to the stores fail: the pipeline's, and those of its requests.
    pub health: Arc<StoreHealth>,
}

impl Gate {
    /// A gate on a politeness store.
    pub fn new(politeness: Arc<dyn Politeness>, rules: GateRules, clock: Clock) -> Gate {
        let started_at = clock.now();
        let heads = Arc::new(Heads::new());
        Gate { politeness, rules, clock, heads, started_at, health: Arc::default() }
    }

    /// The same in a process that keeps one record of its stores for all its pipelines.
    pub fn recording(self, health: StoreHealth) -> Gate {
        Gate { health: Arc::new(health), ..self }
    }

    /// The pace of a site whose robots.txt asks for `crawl_delay`, and where it comes from.
    pub fn rate(&self, site: &Site, crawl_delay: Option<Duration>) -> (Rate, &'static str) {
        self.rules.rate(site, crawl_delay)
    }

    /// The pace of a site in the light of what an operator ordered, and where it comes from.
    pub fn rate_under_orders(
        &self,
        state: &SiteState,
        site: &Site,
        crawl_delay: Option<Duration>,
    ) -> (Rate, &'static str) {
        self.rules.ordered(state, self.rate(site, crawl_delay))
    }

    /// The pace of a site for a request in the name of a group, and where it comes from.
    pub fn rate_for(
        &self,
        site: &Site,
        crawl_delay: Option<Duration>,
        group: Option<&str>,
    ) -> (Rate, &'static str) {
        self.rules.rate_for(site, crawl_delay, group)
    }

    /// The shortest interval that a site has for requests in the name of any of these groups.
    pub(crate) fn shortest_interval<'a>(
        &self,
        site: &Site,
        crawl_delay: Option<Duration>,
        groups: impl Iterator<Item = Option<&'a str>>,
    ) -> Duration {
        let interval_for = |group| self.rate_for(site, crawl_delay, group).0.interval;
        if self.rules.pace.groups.at_sites.is_empty() {
            return interval_for(None); // All are alike, and there may be many.
        }
        groups.map(interval_for).min().unwrap_or_else(|| interval_for(None))
    }

    /// The pace of a permit, and where it comes from, in the light of what robots.txt asks for by now.
    pub(crate) fn rate_of(
        &self,
        permit: &Permit,
        site: &Site,
        crawl_delay: Option<Duration>,
        group: Option<&str>,
    ) -> (Rate, &'static str) {
        let (asked, source) = self.rate_for(site, crawl_delay, group);
        let interval = permit.rate.interval.max(asked.least_interval);
        let source = match interval {
            interval if permit.rate_is_ordered && interval == permit.rate.interval => BY_ORDER,
            interval if interval == asked.interval => source,
            _ => CRAWL_DELAY,
        };
        (Rate { interval, burst: permit.rate.burst.min(asked.burst), ..asked }, source)
    }

    /// The pace of a group, when it has one.
    pub fn group_rate(&self, group: &str) -> Option<Rate> {
        let GroupPace { default, named, .. } = &self.rules.pace.groups;
        named.get(group).copied().or(*default).filter(|rate| !rate.interval.is_zero())
    }

    /// The fastest pace that a group has.
    pub fn fastest_group_rate(&self) -> Option<Rate> {
        let GroupPace { default, named, .. } = &self.rules.pace.groups;
        let within_a_second = |rate: &Rate| {
            let intervals = 1_000_000 / rate.interval.as_micros().max(1);
            intervals.saturating_add(u128::from(rate.burst))
        };
        named.values().copied().chain(*default).max_by_key(within_a_second)
    }

    /// How many requests an archive origin may have at once.
    pub fn concurrency(&self, site: &Site) -> Option<usize> {
        self.rules.pace.concurrency.get(site).copied()
    }

    /// Whether a Crawl-delay is longer than we put up with; then, why its URLs fail.
    pub fn crawl_delay_refusal(&self, robots: &Robots) -> Option<String> {
        let delay = robots.crawl_delay()?;
        let most = self.rules.robots.max_crawl_delay?;
        (delay > most).then(|| {
            format!(
                "the site's Crawl-delay of {} s is over robots.max_crawl_delay ({} s)",
                delay.as_secs_f64(),
                most.as_secs_f64()
            )
        })
    }

    /// What a robots.txt record means now; see [`GateRules::view`].
    pub fn view(&self, record: Option<&RobotsRecord>, state: Option<&SiteState>) -> RobotsView {
        self.rules.view(record, state, self.clock.now())
    }

    /// What a site's next page waits for; see [`GateRules::outlook`].
    pub fn outlook<'a>(
        &self,
        state: &SiteState,
        rate: Rate,
        robots: impl IntoIterator<Item = &'a RobotsRecord>,
        times: (Time, Time),
    ) -> Outlook {
        self.rules.outlook(state, rate, robots, times)
    }

    /// How many attempts a URL has whose site is down; `None`: it waits unharmed.
    pub fn site_attempts(&self) -> Option<u32> {
        self.rules.site_attempts
    }

    /// What becomes of pages whose robots.txt can't be reached, as a log says it.
    pub(crate) fn while_robots_are_unreachable(&self) -> &'static str {
        match self.rules.robots.when_unreachable {
            WhenUnreachable::Defer => "pages wait",
            WhenUnreachable::Allow => "pages are fetched as if everything were allowed",
            WhenUnreachable::Disallow => "pages are skipped as if nothing were allowed",
        }
    }

    /// Whether pages hear of it when their robots.txt can't be reached.
    pub fn pages_fail_with_robots(&self) -> bool {
        self.rules.robots.pages_fail_with_it
    }

    /// What a probe asks for: the root, or robots.txt where we may not ask for the root. `copy` is an older copy of
    /// a robots.txt that could not be read.
    pub fn probe_url(
        &self,
        origin: &Origin,
        robots: Option<&Robots>,
        copy: Option<&[u8]>,
    ) -> WebUrl {
        let older = copy.map(|body| self.rules.parse(body));
        let root_allowed = match robots.or(older.as_deref()) {
            Some(robots) => robots.verdict("/").allowed,
            None => self.rules.robots.when_unreachable == WhenUnreachable::Allow,
        };
        if root_allowed { origin.root_url() } else { origin.robots_url() }
    }

    /// When a site that has been failing since `since` is given up.
    pub fn gives_up_at(&self, since: Time) -> Option<Time> {
        self.rules.give_up_after.map(|after| since.max(self.started_at) + after)
    }

    /// How long a store may fail before the run gives up; `None`: for ever.
    pub fn patience_with_stores(&self) -> Option<Duration> {
        self.rules.give_up_after
    }

    /// What happens to a URL whose site asks for this wait, where we don't wait that long.
    pub fn wait_too_long(&self, asked_by: WaitAskedBy, wait: Duration) -> Option<Happened> {
        let most = self.rules.give_up_after?;
        (wait > most).then_some(Happened::WaitTooLong { asked_by, wait, most })
    }

    /// Whether the URLs of a host fail that does not exist and never answered.
    pub fn missing_hosts_fail(&self) -> bool {
        self.rules.missing_hosts_fail
    }

    /// Leave to write one request head under `permit`, whose time by our clock is `at`.
    pub fn leave(&self, site: Site, permit: Permit, at: Time, rate: Rate) -> GateLeave {
        GateLeave::new(self, site, permit, at, rate)
    }

    /// Whether this process's last head to a site is so near that nobody else's can have come since: all keep
    /// an interval from it. The second half of that is left for the way to the store.
    pub fn was_last_to_ask(&self, site: &Site) -> bool {
        self.heads.is_near(site)
    }

    /// Sites whose pace this process has kept lately.
    pub fn sites_known(&self) -> usize {
        self.heads.sites_known()
    }

    /// Forgets when heads were written, where it does not matter any more.
    pub fn sweep_heads(&self) {
        self.heads.sweep();
    }
}

#[cfg(test)]
mod tests;
