//! The rules of a gate, and the pace that follows from them.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_policy::pace::Rate;
use fetchwell_policy::robots::WhenUnreachable;
use fetchwell_policy::site::SiteState;
use fetchwell_policy::url::Site;

/// The source of a pace: an operator's order…
pub const BY_ORDER: &str = "operator";
/// …the Crawl-delay in robots.txt…
pub const CRAWL_DELAY: &str = "Crawl-delay";
/// …or the limit of a group.
pub const GROUP_LIMIT: &str = "retailer limit";

/// The rules of robots.txt.
#[derive(Clone, Debug)]
pub struct RobotsRules {
    /// The product token to look for in robots.txt files.
    pub product_token: String,
    /// What an unreachable file means.
    pub when_unreachable: WhenUnreachable,
    /// How long a copy is fresh.
    pub fresh_for: Duration,
    /// How old a copy may be that replaces an unreachable file.
    pub stale_for: Duration,
    /// A longer Crawl-delay makes the site's URLs fail.
    pub max_crawl_delay: Option<Duration>,
    /// If a site cannot be reached for its robots.txt, its pages cannot be reached either: if set, this counts as a
    /// failed attempt of each page that waits for the file.
    pub pages_fail_with_it: bool,
}

/// The pace of sites and groups.
#[derive(Clone, Debug)]
pub struct PaceRules {
    /// The interval of sites without a setting of their own.
    pub default_interval: Duration,
    /// Intervals of individual sites.
    pub sites: HashMap<Site, Duration>,
    /// Sites that are paced by concurrency instead: archives that are made to be read in bulk.
    pub concurrency: HashMap<Site, usize>,
    /// The pace of groups, which applies in addition to that of their sites.
    pub groups: GroupPace,
}

#[derive(Clone, Debug, Default)]
pub struct GroupPace {
    /// For groups without a setting of their own; `None` if those have no pace.
    pub default: Option<Rate>,
    /// For individual groups.
    pub named: HashMap<String, Rate>,
    /// For individual groups at each of their sites, in place of the site's own pace. Only groups with an explicit
    /// limit are listed.
    pub at_sites: HashMap<String, Rate>,
}

/// All rules of a gate.
#[derive(Clone, Debug)]
pub struct GateRules {
    pub pace: PaceRules,
    pub robots: RobotsRules,
    /// A site that has been down this long while this process was running is given up; so is one that asks for a longer
    /// wait, and a run whose store has failed for this long.
    pub give_up_after: Option<Duration>,
    /// While a site's breaker is open, each failed probe counts as an attempt of every URL that waited for it, and a
    /// URL ends when it has had this many. `None`: waiting costs no attempts.
    pub site_attempts: Option<u32>,
    /// If set, the URLs of a host that does not exist and never answered fail. Otherwise it is a failure of the site.
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

    /// The same for a request of a group. The limit of the group is the site's pace for it, unless the site has a rate
    /// of its own or a longer Crawl-delay.
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
        // A burst would violate any Crawl-delay.
        let burst = if least_interval.is_zero() { limit.burst } else { 1 };
        (Rate { least_interval, burst, ..*limit }, GROUP_LIMIT)
    }

    /// The pace under an operator's orders, and where it comes from.
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
