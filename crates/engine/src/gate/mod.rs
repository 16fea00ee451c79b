//! The gate: the only place that decides *go*, *not before t*, or *never, because…*.
//!
//! It combines robots.txt, the pace of the site and the breaker. The state that all processes share is in the
//! politeness store; the gate applies the rules of this process to it.

mod group_turns;
mod heads;
pub mod namespaced;
mod permit;
mod robots;
mod rules;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use fetchwell_policy::outcome::{FetchOutcome, WaitAskedBy};
use fetchwell_policy::pace::Rate;
use fetchwell_policy::robots::{Robots, WhenUnreachable};
use fetchwell_policy::site::{Permit, SiteState};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site, WebUrl};
use group_turns::KeptTurns;
use heads::Heads;
pub use permit::GatePermit;
pub use robots::RobotsView;
pub use rules::{BY_ORDER, CRAWL_DELAY, GROUP_LIMIT, GateRules, GroupPace, PaceRules, RobotsRules};
pub use verdict::{Outlook, rule_of};

use crate::clock::Clock;
use crate::ports::politeness::{Politeness, RobotsRecord};
use crate::store_health::StoreHealth;

/// The gate of one process.
pub struct Gate {
    /// Shared by all processes on one store.
    pub politeness: Arc<dyn Politeness>,
    pub rules: GateRules,
    clock: Clock,
    /// When this process last wrote a head to each site, by a clock that never jumps.
    pub(crate) heads: Arc<Heads>,
    kept_turns: Arc<KeptTurns>,
    started_at: Time,
    /// Which store calls fail, of the pipeline and of its requests.
    pub health: Arc<StoreHealth>,
}

impl Gate {
    pub fn new(politeness: Arc<dyn Politeness>, rules: GateRules, clock: Clock) -> Gate {
        let started_at = clock.now();
        let heads = Arc::new(Heads::new());
        let kept_turns = Arc::default();
        Gate { politeness, rules, clock, heads, kept_turns, started_at, health: Arc::default() }
    }

    /// Uses a health record that all pipelines of a process share.
    pub fn recording(self, health: StoreHealth) -> Gate {
        Gate { health: Arc::new(health), ..self }
    }

    /// The shortest interval of a site for requests of any of these groups.
    pub(crate) fn shortest_interval<'a>(
        &self,
        site: &Site,
        crawl_delay: Option<Duration>,
        groups: impl Iterator<Item = Option<&'a str>>,
    ) -> Duration {
        let interval_for = |group| self.rules.rate_for(site, crawl_delay, group).0.interval;
        if self.rules.pace.groups.at_sites.is_empty() {
            return interval_for(None); // They are all equal, and there may be many.
        }
        groups.map(interval_for).min().unwrap_or_else(|| interval_for(None))
    }

    /// The pace of a permit, given what robots.txt asks for by now, and where it comes from.
    pub(crate) fn rate_of(
        &self,
        permit: &Permit,
        site: &Site,
        crawl_delay: Option<Duration>,
        group: Option<&str>,
    ) -> (Rate, &'static str) {
        let (asked, source) = self.rules.rate_for(site, crawl_delay, group);
        let interval = permit.rate.interval.max(asked.least_interval);
        let source = match interval {
            interval if permit.rate_is_ordered && interval == permit.rate.interval => BY_ORDER,
            interval if interval == asked.interval => source,
            _ => CRAWL_DELAY,
        };
        (Rate { interval, burst: permit.rate.burst.min(asked.burst), ..asked }, source)
    }

    /// The pace of a group, if it has one.
    pub fn group_rate(&self, group: &str) -> Option<Rate> {
        let GroupPace { default, named, .. } = &self.rules.pace.groups;
        named.get(group).copied().or(*default).filter(|rate| !rate.interval.is_zero())
    }

    /// The fastest pace of any group.
    pub fn fastest_group_rate(&self) -> Option<Rate> {
        let GroupPace { default, named, .. } = &self.rules.pace.groups;
        let within_a_second = |rate: &Rate| {
            let intervals = 1_000_000 / rate.interval.as_micros().max(1);
            intervals.saturating_add(u128::from(rate.burst))
        };
        named.values().copied().chain(*default).max_by_key(within_a_second)
    }

    /// The maximum number of concurrent requests to an archive.
    pub fn concurrency(&self, site: &Site) -> Option<usize> {
        self.rules.pace.concurrency.get(site).copied()
    }

    /// Why the URLs of a site fail, if its Crawl-delay is longer than allowed.
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

    /// What happens to pages whose robots.txt is unreachable, for a log line.
    pub(crate) fn while_robots_are_unreachable(&self) -> &'static str {
        match self.rules.robots.when_unreachable {
            WhenUnreachable::Defer => "pages wait",
            WhenUnreachable::Allow => "pages are fetched as if everything were allowed",
            WhenUnreachable::Disallow => "pages are skipped as if nothing were allowed",
        }
    }

    /// The URL of a probe: the root, or robots.txt if the root is disallowed. `copy` is an older copy of a robots.txt
    /// that could not be read.
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

    /// The outcome for a URL whose site asks for this wait, if that is too long.
    pub fn wait_too_long(&self, asked_by: WaitAskedBy, wait: Duration) -> Option<FetchOutcome> {
        let most = self.rules.give_up_after?;
        (wait > most).then_some(FetchOutcome::WaitTooLong { asked_by, wait, most })
    }

    /// The right to write one request head under `permit`, which is due at `at` by the local clock.
    pub fn send_permit(&self, site: Site, permit: Permit, at: Time, rate: Rate) -> GatePermit {
        GatePermit::new(self, site, permit, at, rate)
    }
}

#[cfg(test)]
mod tests;
