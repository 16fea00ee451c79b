//! The port for managing sites: the known sites, their state, and operators' orders.

use async_trait::async_trait;
use fetchwell_policy::orders::Order;
use fetchwell_policy::site::SiteState;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};

use crate::ports::error::StoreError;
use crate::ports::politeness::{Politeness, RobotsRecord};

/// The maximum number of sites per page.
pub const SITES_PER_PAGE: usize = 200;

/// The maximum number of sites that are examined for one page. It bounds the cost of a filter that few sites match.
pub const SITES_EXAMINED_PER_PAGE: usize = 20_000;

/// A condition of a site, to filter by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// An operator paused it.
    Paused,
    /// An operator set its rate.
    Rated,
    /// Its breaker is open, or a probe is in flight.
    BreakerOpen,
    /// It has a penalty that is not over.
    Resting,
    /// It answered 429 in the last hour.
    LimitedLately,
    /// It failed in the last hour.
    FailedLately,
}

impl Condition {
    /// All conditions.
    pub const ALL: [Condition; 6] = [
        Condition::Paused,
        Condition::Rated,
        Condition::BreakerOpen,
        Condition::Resting,
        Condition::LimitedLately,
        Condition::FailedLately,
    ];

    /// The name of the condition, as used in commands and queries.
    pub fn as_str(self) -> &'static str {
        match self {
            Condition::Paused => "paused",
            Condition::Rated => "rated",
            Condition::BreakerOpen => "breaker-open",
            Condition::Resting => "resting",
            Condition::LimitedLately => "limited",
            Condition::FailedLately => "failed",
        }
    }

    /// Parses the name of a condition.
    pub fn parse(word: &str) -> Option<Condition> {
        Condition::ALL.into_iter().find(|condition| condition.as_str() == word)
    }

    /// Whether the condition holds for a site. Every condition makes a site notable (see [`SiteState::is_notable`]).
    pub fn holds(self, state: &SiteState, now: Time) -> bool {
        match self {
            Condition::Paused => state.orders.paused.is_some(),
            Condition::Rated => state.orders.interval.is_some(),
            Condition::BreakerOpen => state.breaker.blocked_until().is_some(),
            Condition::Resting => state.penalty_until > now,
            Condition::LimitedLately => state.limited.in_the_last_hour(now) > 0,
            Condition::FailedLately => state.failed.in_the_last_hour(now) > 0,
        }
    }
}

/// Selects sites.
#[derive(Clone, Debug, Default)]
pub struct SiteQuery {
    /// Only sites whose names sort after this one.
    pub after: Option<String>,
    /// Only sites whose names contain this text, which must be lower case, as names are.
    pub text: Option<String>,
    /// Only sites with this condition.
    pub condition: Option<Condition>,
    /// The maximum number of sites, up to [`SITES_PER_PAGE`].
    pub most: usize,
}

impl SiteQuery {
    /// The maximum number of sites, within the limits.
    pub fn most(&self) -> usize {
        self.most.clamp(1, SITES_PER_PAGE)
    }

    /// Whether the name of a site matches. Names with an `@` stand for something else that is paced like a site (a
    /// group, a webhook receiver) and are not listed.
    pub fn wants_name(&self, name: &str) -> bool {
        !name.contains('@') && self.text.as_ref().is_none_or(|text| name.contains(text.as_str()))
    }

    /// Whether the state of a site matches.
    pub fn wants_state(&self, state: &SiteState, now: Time) -> bool {
        self.condition.is_none_or(|condition| condition.holds(state, now))
    }
}

/// A site in the store.
#[derive(Clone, Debug)]
pub struct KnownSite {
    /// The site.
    pub site: Site,
    /// Its politeness state.
    pub state: SiteState,
    /// The stored robots.txt of its origins.
    pub robots: Vec<(Origin, RobotsRecord)>,
}

/// A page of sites, ordered by name.
#[derive(Clone, Debug, Default)]
pub struct SitesPage {
    /// The store's time of the query.
    pub now: Time,
    /// The sites.
    pub sites: Vec<KnownSite>,
    /// The name after which the next page begins; `None` at the end. A page may have fewer sites than requested, or
    /// none, even if more follow, because only [`SITES_EXAMINED_PER_PAGE`] are examined for it.
    pub next: Option<String>,
}

/// The operators' view of a politeness store. Orders are stored there, so that all processes on the store obey them.
#[async_trait]
pub trait Sites: Politeness {
    /// A page of the known sites.
    async fn sites(&self, query: &SiteQuery) -> Result<SitesPage, StoreError>;

    /// One site, even if no request was ever sent to it. Also returns the store's time.
    async fn site(&self, site: &Site) -> Result<(KnownSite, Time), StoreError>;

    /// Gives an order for a site in the name of `by`, even if no request was ever sent to the site. Returns whether it
    /// changed anything.
    async fn order(&self, site: &Site, order: Order, by: &str) -> Result<bool, StoreError>;
}

/// Counts the waiting URLs of sites over all queues of a store.
#[async_trait]
pub trait Waiting: Send + Sync {
    /// The number of waiting URLs for each of these sites, in order. Each queue is counted up to `most`. Leased URLs
    /// and webhook deliveries do not count.
    async fn waiting_for(&self, sites: &[Site], most: u32) -> Result<Vec<u64>, StoreError>;
}

/// Builds a page: the store offers its sites in the order of their names, until the page is full.
pub struct PageInMaking<'a> {
    query: &'a SiteQuery,
    page: SitesPage,
    examined: usize,
}

impl<'a> PageInMaking<'a> {
    /// Starts an empty page.
    pub fn new(query: &'a SiteQuery, now: Time) -> PageInMaking<'a> {
        PageInMaking { query, page: SitesPage { now, ..SitesPage::default() }, examined: 0 }
    }

    /// How many names the store should read next.
    pub fn stride(&self) -> usize {
        /// The number of sites to read at once if a filter may reject most of them.
        const SITES_PER_STEP: usize = 500;
        let is_sieved = self.query.text.is_some() || self.query.condition.is_some();
        let wanted = self.query.most() - self.page.sites.len().min(self.query.most());
        if is_sieved { SITES_PER_STEP } else { wanted }.min(SITES_EXAMINED_PER_PAGE - self.examined)
    }

    /// Adds a site to the page if it matches.
    pub fn offer(&mut self, name: &str, state: impl FnOnce() -> Option<SiteState>) {
        if self.is_full() {
            return;
        }
        self.examined += 1;
        let wanted = self.query.wants_name(name).then(state).flatten();
        let wanted = wanted.filter(|state| self.query.wants_state(state, self.page.now));
        if let (Some(state), Ok(site)) = (wanted, Site::parse(name)) {
            self.page.sites.push(KnownSite { site, state, robots: Vec::new() });
        }
        self.page.next = Some(name.to_owned());
    }

    /// Whether enough sites were found or examined.
    pub fn is_full(&self) -> bool {
        self.page.sites.len() >= self.query.most() || self.examined >= SITES_EXAMINED_PER_PAGE
    }

    /// The name after which to continue.
    pub fn after(&self) -> &str {
        self.page.next.as_deref().or(self.query.after.as_deref()).unwrap_or_default()
    }

    /// Returns the page. `at_end` means that the store has no more names.
    pub fn finish(mut self, at_end: bool) -> SitesPage {
        if at_end {
            self.page.next = None;
        }
        self.page
    }
}

/// The HTTPS and HTTP origins of a site.
pub fn origins_of(site: &Site) -> Vec<Origin> {
    ["https", "http"]
        .iter()
        .filter_map(|scheme| Origin::parse(&format!("{scheme}://{site}")).ok())
        .filter(|origin| origin.site() == *site)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_has_an_origin_a_scheme() {
        let origins = |name: &str| -> Vec<String> {
            let site = Site::parse(name).unwrap();
            origins_of(&site).iter().map(ToString::to_string).collect()
        };
        assert_eq!(origins("a.test"), ["https://a.test", "http://a.test"]);
        assert_eq!(origins("a.test:8080"), ["https://a.test:8080", "http://a.test:8080"]);
        assert!(origins_of(&Site::apart("group", "x")).is_empty());
    }

    #[test]
    fn each_condition_has_its_word() {
        for condition in Condition::ALL {
            assert_eq!(Condition::parse(condition.as_str()), Some(condition));
        }
        assert_eq!(Condition::parse("busy"), None);
    }
}
