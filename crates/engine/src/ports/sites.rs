//! The port for managing sites: the known sites, their state, and operators' orders.

use std::cmp::Reverse;
use std::collections::BTreeMap;

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

/// What sites are ranked by. A site with a rank above zero is notable (see [`SiteState::is_notable`]), so stores find
/// all of them without reading every site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteRank {
    /// How bad its condition is: down, resting, paused, failed lately, limited lately.
    Trouble,
    /// The number of 429 in the last hour.
    Limited,
    /// The number of failures in the last hour.
    Failed,
}

impl SiteRank {
    /// The rank of a site.
    pub fn of(self, state: &SiteState, now: Time) -> u32 {
        match self {
            SiteRank::Trouble => {
                let ranks = [
                    (5, Condition::BreakerOpen),
                    (4, Condition::Resting),
                    (3, Condition::Paused),
                    (2, Condition::FailedLately),
                    (1, Condition::LimitedLately),
                ];
                let worst = ranks.iter().find(|(_, condition)| condition.holds(state, now));
                worst.map_or(0, |(rank, _)| *rank)
            }
            SiteRank::Limited => state.limited.in_the_last_hour(now),
            SiteRank::Failed => state.failed.in_the_last_hour(now),
        }
    }
}

/// The order of a page of sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SiteOrder {
    /// All sites, by name.
    #[default]
    Name,
    /// Only sites with a rank above zero: highest rank first, then by name. [`SITES_EXAMINED_PER_PAGE`] sites are
    /// ranked together; where there are more, the next ones follow after these.
    Ranked(SiteRank),
    /// Only sites whose rank is zero, by name.
    Unranked(SiteRank),
}

/// Selects sites.
#[derive(Clone, Debug, Default)]
pub struct SiteQuery {
    /// Their order.
    pub order: SiteOrder,
    /// Where to continue: the `next` of the page before, in the same order. By name: only sites whose names sort after
    /// this one.
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
        let is_in_order = match self.order {
            SiteOrder::Name => true,
            SiteOrder::Ranked(rank) => rank.of(state, now) > 0,
            SiteOrder::Unranked(rank) => rank.of(state, now) == 0,
        };
        is_in_order && self.condition.is_none_or(|condition| condition.holds(state, now))
    }

    /// Whether only notable sites can match.
    pub fn wants_only_notable(&self) -> bool {
        self.condition.is_some() || matches!(self.order, SiteOrder::Ranked(_))
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
    /// The `after` of the next page; `None` at the end. A page may have fewer sites than requested, or
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
    /// The last name that was examined.
    last: Option<String>,
    /// Whether the store offered more names than the page has room for.
    is_more: bool,
    ranking: Option<Ranking>,
}

/// The highest ranks so far, one more than the page has room for.
struct Ranking {
    by: SiteRank,
    after: RankedAfter,
    best: BTreeMap<(Reverse<u32>, String), SiteState>,
}

/// Where a page of ranked sites continues. As text: `BEYOND/RANK/NAME`, or `BEYOND/` for the first page of a window.
#[derive(Debug, Default, PartialEq, Eq)]
struct RankedAfter {
    /// The sites that are ranked together are those after this name.
    beyond: String,
    /// The rank and the name of the last site that was listed.
    listed: Option<(u32, String)>,
}

impl RankedAfter {
    fn parse(text: &str) -> RankedAfter {
        // No name of a site contains a slash.
        let mut parts = text.splitn(3, '/');
        let beyond = parts.next().unwrap_or_default().to_owned();
        let rank = parts.next().and_then(|rank| rank.parse().ok());
        let listed = rank.zip(parts.next().map(str::to_owned));
        RankedAfter { beyond, listed }
    }

    fn text(&self) -> String {
        match &self.listed {
            Some((rank, name)) => format!("{}/{rank}/{name}", self.beyond),
            None => format!("{}/", self.beyond),
        }
    }
}

impl<'a> PageInMaking<'a> {
    /// Starts an empty page.
    pub fn new(query: &'a SiteQuery, now: Time) -> PageInMaking<'a> {
        let ranking = match query.order {
            SiteOrder::Ranked(by) => {
                let after = RankedAfter::parse(query.after.as_deref().unwrap_or_default());
                Some(Ranking { by, after, best: BTreeMap::new() })
            }
            SiteOrder::Name | SiteOrder::Unranked(_) => None,
        };
        let page = SitesPage { now, ..SitesPage::default() };
        PageInMaking { query, page, examined: 0, last: None, is_more: false, ranking }
    }

    /// How many names the store should read next.
    pub fn stride(&self) -> usize {
        /// The number of sites to read at once if a filter may reject most of them.
        const SITES_PER_STEP: usize = 500;
        let is_sieved = self.query.text.is_some()
            || self.query.condition.is_some()
            || self.query.order != SiteOrder::Name;
        let wanted = self.query.most() - self.page.sites.len().min(self.query.most());
        if is_sieved { SITES_PER_STEP } else { wanted }.min(SITES_EXAMINED_PER_PAGE - self.examined)
    }

    /// Adds a site to the page if it matches.
    pub fn offer(&mut self, name: &str, state: impl FnOnce() -> Option<SiteState>) {
        if self.is_full() {
            self.is_more = true;
            return;
        }
        self.examined += 1;
        let wanted = self.query.wants_name(name).then(state).flatten();
        let wanted = wanted.filter(|state| self.query.wants_state(state, self.page.now));
        if let (Some(state), Ok(site)) = (wanted, Site::parse(name)) {
            match &mut self.ranking {
                Some(ranking) => ranking.offer(name, state, self.page.now, self.query.most()),
                None => self.page.sites.push(KnownSite { site, state, robots: Vec::new() }),
            }
        }
        self.last = Some(name.to_owned());
    }

    /// Whether enough sites were found or examined.
    pub fn is_full(&self) -> bool {
        self.page.sites.len() >= self.query.most() || self.examined >= SITES_EXAMINED_PER_PAGE
    }

    /// The name after which to continue.
    pub fn after(&self) -> &str {
        let begin = match &self.ranking {
            Some(ranking) => Some(ranking.after.beyond.as_str()),
            None => self.query.after.as_deref(),
        };
        self.last.as_deref().or(begin).unwrap_or_default()
    }

    /// Returns the page. `at_end` means that the store has no more names.
    pub fn finish(mut self, at_end: bool) -> SitesPage {
        let beyond = self.last.filter(|_| !at_end || self.is_more);
        match self.ranking {
            Some(ranking) => ranking.finish(&mut self.page, self.query.most(), beyond),
            None => self.page.next = beyond,
        }
        self.page
    }
}

impl Ranking {
    fn offer(&mut self, name: &str, state: SiteState, now: Time, most: usize) {
        let rank = self.by.of(&state, now);
        let key = (Reverse(rank), name.to_owned());
        let listed = self.after.listed.as_ref();
        if listed.is_some_and(|(rank, name)| key <= (Reverse(*rank), name.clone())) {
            return;
        }
        self.best.insert(key, state);
        if self.best.len() > most + 1 {
            self.best.pop_last();
        }
    }

    /// `beyond`: the last name of this window, if there are more names.
    fn finish(self, page: &mut SitesPage, most: usize, beyond: Option<String>) {
        let is_more = self.best.len() > most;
        let mut listed = None;
        for ((Reverse(rank), name), state) in self.best.into_iter().take(most) {
            if let Ok(site) = Site::parse(&name) {
                page.sites.push(KnownSite { site, state, robots: Vec::new() });
            }
            listed = Some((rank, name));
        }
        let next = match is_more {
            true => Some(RankedAfter { beyond: self.after.beyond, listed }),
            false => beyond.map(|beyond| RankedAfter { beyond, listed: None }),
        };
        page.next = next.map(|next| next.text());
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

    /// A page of these sites; those whose names say so are paused.
    fn offer_all(query: &SiteQuery, names: &[String]) -> SitesPage {
        let now = Time::from_secs(1_000);
        let mut making = PageInMaking::new(query, now);
        let after = making.after().to_owned();
        for name in names.iter().filter(|name| **name > after) {
            making.offer(name, || {
                let mut state = SiteState::default();
                if name.contains("paused") {
                    state.obey(Order::Pause, "ops", now);
                }
                Some(state)
            });
        }
        let at_end = !making.is_full();
        making.finish(at_end)
    }

    #[test]
    fn where_more_sites_have_a_rank_than_are_examined_each_is_still_listed_once() {
        let kind = |n: usize| if n.is_multiple_of(150) { "paused" } else { "plain" };
        let names: Vec<String> = (0..SITES_EXAMINED_PER_PAGE + 301)
            .map(|n| format!("{n:06}-{}.test", kind(n)))
            .collect();
        let order = SiteOrder::Ranked(SiteRank::Trouble);
        let mut query = SiteQuery { order, most: 100, ..SiteQuery::default() };
        let mut pages = Vec::new();
        loop {
            let page = offer_all(&query, &names);
            pages.push(page.sites.len());
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        assert_eq!(pages, [100, 34, 2], "two windows, the first of two pages");
    }

    #[test]
    fn a_place_in_a_ranking_is_a_text() {
        for text in ["a.test/", "/", "a.test:81/3/b.test", "/12/b.test"] {
            assert_eq!(RankedAfter::parse(text).text(), text);
        }
        assert_eq!(RankedAfter::parse("odd").text(), "odd/");
    }

    #[test]
    fn each_condition_has_its_word() {
        for condition in Condition::ALL {
            assert_eq!(Condition::parse(condition.as_str()), Some(condition));
        }
        assert_eq!(Condition::parse("busy"), None);
    }
}
