//! When the source is asked for more leases, and which sites it must not hand out.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;

/// A take may find nothing although new work arrived, because that work is for closed sites. Then notifications of new
/// work trigger another take only this often.
const NEWS_GAP: Duration = Duration::from_millis(20);

/// A take is one transaction that blocks others, so it closes and opens at most this many sites.
const MOST_CLOSED_PER_TAKE: usize = 512;

/// What is known about the source. Only one take runs at a time.
pub(super) struct Supply {
    is_taking: bool,
    /// No take starts before this.
    not_before: Time,
    /// New work arrived since the last take began.
    more_came: bool,
    /// When a take last found nothing due.
    found_nothing_at: Option<Time>,
    is_exhausted: bool,
    /// Sites that the next take closes until the given time; a time that has passed opens the site.
    closed: BTreeMap<Site, Time>,
    /// Sites to close once their handed-back leases are in the store, because it cannot close a site without leases.
    closing: HashMap<Site, Time>,
}

impl Supply {
    pub(super) fn new(now: Time) -> Supply {
        Supply {
            is_taking: false,
            not_before: now,
            more_came: false,
            found_nothing_at: None,
            is_exhausted: false,
            closed: BTreeMap::new(),
            closing: HashMap::new(),
        }
    }

    pub(super) fn is_taking(&self) -> bool {
        self.is_taking
    }

    /// The earliest time of the next take.
    pub(super) fn not_before(&self) -> Time {
        self.not_before
    }

    /// Whether the last take found the source exhausted, and nothing was put back since.
    pub(super) fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// Begins a take and returns the sites that it closes.
    pub(super) fn begin(&mut self) -> Vec<(Site, Time)> {
        self.is_taking = true;
        self.more_came = false;
        let mut closed: Vec<(Site, Time)> = std::mem::take(&mut self.closed).into_iter().collect();
        self.closed.extend(closed.drain(MOST_CLOSED_PER_TAKE.min(closed.len())..));
        closed
    }

    /// The take returned, with a result or an error.
    pub(super) fn ended(&mut self) {
        self.is_taking = false;
        self.is_exhausted = false;
    }

    /// The take returned leases. There may be more, so the next take may follow at once.
    pub(super) fn found_some(&mut self, now: Time) {
        self.not_before = now;
    }

    /// Nothing is due before `until`.
    pub(super) fn found_nothing(&mut self, now: Time, until: Time) {
        self.found_nothing_at = Some(now);
        self.not_before = match (self.closed.is_empty(), self.more_came) {
            (false, _) => now,
            (true, true) => now + NEWS_GAP,
            (true, false) => until,
        };
    }

    /// The source is exhausted, unless a lease is settled for later.
    pub(super) fn found_the_end(&mut self) {
        self.is_exhausted = true;
        self.not_before = Time::FAR_FUTURE;
    }

    /// The take failed, so the next one closes its sites. A site that was closed or opened since the take began keeps
    /// its newer time.
    pub(super) fn failed(&mut self, closed: Vec<(Site, Time)>, retry_at: Time) {
        for (site, until) in closed {
            self.closed.entry(site).or_insert(until);
        }
        self.not_before = retry_at;
    }

    /// The source announced new work.
    pub(super) fn more_came(&mut self, now: Time) {
        self.more_came = true;
        let at = self.found_nothing_at.map_or(now, |at| now.max(at + NEWS_GAP));
        self.take_by(at);
    }

    /// A lease goes back to the source and is due at `at`.
    pub(super) fn has_more_at(&mut self, at: Time) {
        self.is_exhausted = false;
        self.take_by(at);
    }

    /// Makes the next take due at `at` at the latest.
    pub(super) fn take_by(&mut self, at: Time) {
        self.not_before = self.not_before.min(at);
    }

    /// Makes the next take close a site: the source hands out nothing of it before `until`.
    pub(super) fn close(&mut self, site: &Site, until: Time) {
        self.closed.insert(site.clone(), until);
    }

    /// Like `close`, but only once the leases handed back for the site are in the store.
    pub(super) fn close_when_settled(&mut self, site: &Site, until: Time) {
        self.closing.insert(site.clone(), until);
    }

    /// A lease of the site was settled.
    pub(super) fn settled(&mut self, site: &Site) {
        if let Some(until) = self.closing.remove(site) {
            self.close(site, until);
        }
    }

    /// Makes the next take open a site again.
    pub(super) fn open(&mut self, site: &Site, now: Time) {
        self.closing.remove(site);
        self.close(site, now);
    }

    /// Starts over after this instance lost all its leases.
    pub(super) fn start_over(&mut self, now: Time) {
        self.closing.clear();
        self.is_exhausted = false;
        self.not_before = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::EPOCH;

    fn site(name: &str) -> Site {
        Site::parse(name).unwrap()
    }

    #[test]
    fn a_site_is_closed_once_what_went_back_of_it_is_in_the_store() {
        let later = Time::from_secs(60);
        let mut supply = Supply::new(NOW);
        supply.close_when_settled(&site("a.test"), later);
        supply.close_when_settled(&site("b.test"), later);
        assert!(supply.begin().is_empty());
        supply.settled(&site("a.test"));
        assert_eq!(supply.begin(), [(site("a.test"), later)]);
        supply.open(&site("b.test"), NOW);
        supply.settled(&site("b.test"));
        assert_eq!(supply.begin(), [(site("b.test"), NOW)], "it was opened meanwhile");
    }

    #[test]
    fn a_take_that_failed_closes_its_sites_the_next_time() {
        let later = Time::from_secs(60);
        let mut supply = Supply::new(NOW);
        supply.close(&site("a.test"), later);
        let closed = supply.begin();
        assert!(supply.is_taking());
        supply.ended();
        supply.failed(closed, later);
        assert_eq!((supply.is_taking(), supply.not_before()), (false, later));
        assert_eq!(supply.begin(), [(site("a.test"), later)]);
    }

    #[test]
    fn a_site_opened_during_a_take_that_failed_stays_open() {
        let later = Time::from_secs(60);
        let mut supply = Supply::new(NOW);
        supply.close(&site("a.test"), later);
        let closed = supply.begin();
        supply.open(&site("a.test"), NOW);
        supply.ended();
        supply.failed(closed, later);
        assert_eq!(supply.begin(), [(site("a.test"), NOW)]);
    }

    #[test]
    fn an_exhausted_source_is_asked_again_when_something_goes_back() {
        let later = Time::from_secs(60);
        let mut supply = Supply::new(NOW);
        supply.found_the_end();
        assert_eq!((supply.is_exhausted(), supply.not_before()), (true, Time::FAR_FUTURE));
        supply.has_more_at(later);
        assert_eq!((supply.is_exhausted(), supply.not_before()), (false, later));
    }

    #[test]
    fn what_came_in_during_a_take_that_found_nothing_is_looked_for_soon() {
        let later = Time::from_secs(60);
        let mut supply = Supply::new(NOW);
        supply.begin();
        supply.found_nothing(NOW, later);
        assert_eq!(supply.not_before(), later);
        supply.begin();
        supply.more_came(NOW);
        supply.found_nothing(NOW, later);
        assert_eq!(supply.not_before(), NOW + NEWS_GAP);
    }
}
