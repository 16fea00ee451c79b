//! The rules that a gate is given, and the pace that follows from them.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_policy::pace::Rate;
use fetchwell_policy::robots::WhenUnreachable;
use fetchwell_policy::site::SiteState;
use fetchwell_policy::url::Site;

/// Where a pace comes from that an operator ordered…
pub const BY_ORDER: &str = "operator";
/// …one that robots.txt asks for…
pub const CRAWL_DELAY: &str = "Crawl-delay";
/// …and one that a group was given.
pub const GROUP_LIMIT: &str = "retailer limit";

/// The rules of robots.txt.
#[derive(Clone, Debug)]
pub struct RobotsRules {
    /// The name by which robots.txt files know us.
    pub product_token: String,
    /// What an unreachable file means.
    pub when_unreachable: WhenUnreachable,
    /// How long a copy is fresh.
    pub fresh_for: Duration,
    /// How old a copy may be that stands in for a file that cannot be reached.
    pub stale_for: Duration,
    /// A longer Crawl-delay makes the site's URLs fail.
    pub max_crawl_delay: Option<Duration>,
    /// A site that can't be reached for its robots.txt can't be reached for its pages either: with this,
    /// those that wait for it hear of that as of an attempt of their own.
    pub pages_fail_with_it: bool,
}

/// The pace that a site is given, and by whom.
#[derive(Clone, Debug)]
pub struct PaceRules {
    /// The interval where nothing else is said.
    pub default_interval: Duration,
    /// Intervals of single sites.
    pub sites: HashMap<Site, Duration>,
    /// Sites that are paced by concurrency instead: archives that are made to be read in bulk.
    pub concurrency: HashMap<Site, usize>,
    /// The pace of groups, which holds besides that of their sites.
    pub groups: GroupPace,
}

/// The pace of groups.
#[derive(Clone, Debug, Default)]
pub struct GroupPace {
    /// Where nothing else is said; `None`: groups have no pace of their own.
    pub default: Option<Rate>,
    /// Of single groups.
    pub named: HashMap<String, Rate>,
    /// Of single groups at each of their sites, in place of the site's own: for those whose limit somebody
    /// wrote down.
    pub at_sites: HashMap<String, Rate>,
}

/// All that the gate goes by.
#[derive(Clone, Debug)]
pub struct GateRules {
    /// The pace.
    pub pace: PaceRules,
    /// robots.txt.
    pub robots: RobotsRules,
    /// A site that has been down this long, while we were there to see it, is given up; so is one that asks for a
    /// longer wait, and a run whose store has failed for this long.
    pub give_up_after: Option<Duration>,
    /// While a site's breaker is open, each failed probe is an attempt of every URL that waited for it, and a URL
    /// ends when it has had this many. `None`: URLs wait unharmed.
    pub site_attempts: Option<u32>,
    /// The URLs of a host that does not exist, and never answered, fail for that; else the site does.
    pub missing_hosts_fail: bool,
}

impl GateRules {
    /// The pace of a site whose robots.txt asks for `crawl_delay`, and where it comes from.
    pub fn rate(&self, site: &Site, crawl_delay: Option<Duration>) -> (Rate, &'static str) {
        if self.pace.concurrency.contains_key(site) {
            return (Rate::every(Duration::ZERO), "concurrency");
        }
        let (interval, source) = match self.pace.sites.get(site) {
            Some(interval) => (*interval, "site setting"),
            None => (self.pace.default_interval, "default rate"),
        };
        let least_interval = crawl_delay.unwrap_or_default();
        if least_interval > interval {
            return (Rate::at_most_every(least_interval), CRAWL_DELAY);
        }
        (Rate { least_interval, ..Rate::every(interval) }, source)
    }

    /// The same for a request in the name of a group. The limit that a group was given is the site's pace for
    /// it, unless the site has a rate of its own or asks for more time.
    pub fn rate_for(
        &self,
        site: &Site,
        crawl_delay: Option<Duration>,
        group: Option<&str>,
    ) -> (Rate, &'static str) {
        let PaceRules { sites, concurrency, groups, .. } = &self.pace;
        let has_its_own = sites.contains_key(site) || concurrency.contains_key(site);
        let limit = group.and_then(|group| groups.at_sites.get(group));
        let Some(limit) = limit.filter(|_| !has_its_own) else {
            return self.rate(site, crawl_delay);
        };
        let least_interval = crawl_delay.unwrap_or_default();
        if least_interval > limit.interval {
            return (Rate::at_most_every(least_interval), CRAWL_DELAY);
        }
        // A burst would be too soon for any Crawl-delay.
        let burst = if least_interval.is_zero() { limit.burst } else { 1 };
        (Rate { least_interval, burst, ..*limit }, GROUP_LIMIT)
    }

    /// The pace that holds in the light of what an operator ordered, and where it comes from.
    pub fn ordered(
        &self,
        state: &SiteState,
        (rate, source): (Rate, &'static str),
    ) -> (Rate, &'static str) {
        match &state.orders.interval {
            None => (rate, source),
            Some(_) if state.orders.decide(rate) => (state.rate(rate), BY_ORDER),
            Some(_) => (state.rate(rate), CRAWL_DELAY),
        }
    }
}
