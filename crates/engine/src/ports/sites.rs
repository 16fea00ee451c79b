//! The port of those who look after sites: which are known, how each stands, and orders to them.

use async_trait::async_trait;
use fetchwell_policy::orders::Order;
use fetchwell_policy::site::SiteState;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};

use crate::ports::error::StoreError;
use crate::ports::politeness::{Politeness, RobotsRecord};

/// Sites on one page, at most.
pub const SITES_PER_PAGE: usize = 200;

/// Sites that are looked at for one page, at most: a text that few names have must not cost more.
pub const SITES_EXAMINED_PER_PAGE: usize = 20_000;

/// How a site may stand that somebody looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// An operator paused it.
    Paused,
    /// An operator gave it a pace.
    Rated,
    /// Its breaker is open, or a probe is under way.
    BreakerOpen,
    /// It asked for a rest that is not over.
    Resting,
    /// It answered 429 in the last hour.
    LimitedLately,
    /// It failed in the last hour.
    FailedLately,
}

impl Condition {
    /// All of them.
    pub const ALL: [Condition; 6] = [
        Condition::Paused,
        Condition::Rated,
        Condition::BreakerOpen,
        Condition::Resting,
        Condition::LimitedLately,
        Condition::FailedLately,
    ];

    /// In one word, as commands and queries have it.
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

    /// The condition of that word.
    pub fn parse(word: &str) -> Option<Condition> {
        Condition::ALL.into_iter().find(|condition| condition.as_str() == word)
    }

    /// Whether a site stands so. Each of them makes a site notable (see [`SiteState::is_notable`]).
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

/// Which sites are wanted.
#[derive(Clone, Debug, Default)]
pub struct SiteQuery {
    /// Those whose names come after this one.
    pub after: Option<String>,
    /// Those with this in their names; in small letters, as names are.
    pub text: Option<String>,
    /// Those that stand so.
    pub condition: Option<Condition>,
    /// At most so many, and [`SITES_PER_PAGE`] at most.
    pub most: usize,
}

impl SiteQuery {
    /// How many are wanted at the most.
    pub fn most(&self) -> usize {
        self.most.clamp(1, SITES_PER_PAGE)
    }

    /// Whether a site's name is one that is looked for. What is paced like a site and is none of the web's
    /// (a group, the receiver of webhooks) has an `@` in its name, and is not listed.
    pub fn wants_name(&self, name: &str) -> bool {
        !name.contains('@') && self.text.as_ref().is_none_or(|text| name.contains(text.as_str()))
    }

    /// Whether a site stands as it is looked for.
    pub fn wants_state(&self, state: &SiteState, now: Time) -> bool {
        self.condition.is_none_or(|condition| condition.holds(state, now))
    }
}

/// A site as the store knows it.
#[derive(Clone, Debug)]
pub struct KnownSite {
    /// Which.
    pub site: Site,
    /// Its politeness.
    pub state: SiteState,
    /// What is known of the robots.txt of its origins.
    pub robots: Vec<(Origin, RobotsRecord)>,
}

/// Some sites, in the order of their names.
#[derive(Clone, Debug, Default)]
pub struct SitesPage {
    /// The store's time when it was asked.
    pub now: Time,
    /// These.
    pub sites: Vec<KnownSite>,
    /// The name to go on after; `None` at the end. A page may have fewer sites than were asked for, or none,
    /// and yet another after it: only so many are looked at for one.
    pub next: Option<String>,
}

/// A politeness store, as those see it who look after sites. Orders stand in the store, so that all processes on it
/// heed them.
#[async_trait]
pub trait Sites: Politeness {
    /// A page of the sites that are known.
    async fn sites(&self, query: &SiteQuery) -> Result<SitesPage, StoreError>;

    /// One site, whether it was ever asked for or not. Also tells the store's time.
    async fn site(&self, site: &Site) -> Result<(KnownSite, Time), StoreError>;

    /// Gives an order to a site in somebody's name, also to one that was never asked for. Returns whether it
    /// changed anything.
    async fn order(&self, site: &Site, order: Order, by: &str) -> Result<bool, StoreError>;
}

/// The queues of a store, as far as sites are concerned.
#[async_trait]
pub trait Waiting: Send + Sync {
    /// How many URLs wait for each of these sites, in order; each queue is counted up to `most`. What is in
    /// somebody's hands, and deliveries of webhooks, do not count.
    async fn waiting_for(&self, sites: &[Site], most: u32) -> Result<Vec<u64>, StoreError>;
}

/// A page in the making: a store offers what it has, name by name, until told to stop.
pub struct PageInMaking<'a> {
    query: &'a SiteQuery,
    page: SitesPage,
    examined: usize,
}

impl<'a> PageInMaking<'a> {
    /// An empty one.
    pub fn new(query: &'a SiteQuery, now: Time) -> PageInMaking<'a> {
        PageInMaking { query, page: SitesPage { now, ..SitesPage::default() }, examined: 0 }
    }

    /// How many names it is worth to have at once.
    pub fn stride(&self) -> usize {
        /// Sites that are read in one step where few may be wanted.
        const SITES_PER_STEP: usize = 500;
        let is_sieved = self.query.text.is_some() || self.query.condition.is_some();
        let wanted = self.query.most() - self.page.sites.len().min(self.query.most());
        if is_sieved { SITES_PER_STEP } else { wanted }.min(SITES_EXAMINED_PER_PAGE - self.examined)
    }

    /// Puts a site on the page where it is wanted.
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

    /// Whether enough was found, or looked at.
    pub fn is_full(&self) -> bool {
        self.page.sites.len() >= self.query.most() || self.examined >= SITES_EXAMINED_PER_PAGE
    }

    /// Where to go on.
    pub fn after(&self) -> &str {
        self.page.next.as_deref().or(self.query.after.as_deref()).unwrap_or_default()
    }

    /// The page; `at_end`: the store has no more names.
    pub fn finish(mut self, at_end: bool) -> SitesPage {
        if at_end {
            self.page.next = None;
        }
        self.page
    }
}

/// The origins that a site has: plain and encrypted.
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
