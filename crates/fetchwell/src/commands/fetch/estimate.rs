//! Estimates the remaining time of a run: that of its slowest site.
//!
//! A site gets one request per interval, however fast the others are. So an overall rate is too optimistic while there
//! are many sites: the last minutes belong to the site with the most URLs or the longest Crawl-delay.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_policy::url::{Site, WebUrl};

/// The remaining URLs, by site.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    sites: HashMap<Site, SiteLeft>,
    /// The site that takes longest, and its time.
    slowest: Option<(Site, Duration)>,
}

#[derive(Clone, Copy, Debug)]
struct SiteLeft {
    urls: u32,
    interval: Duration,
}

impl SiteLeft {
    fn takes(self) -> Duration {
        self.interval.saturating_mul(self.urls)
    }
}

impl Estimate {
    /// Estimates for these URLs. `interval` applies to a site until its first result shows another.
    pub(super) fn of<'a>(urls: impl Iterator<Item = &'a String>, interval: Duration) -> Estimate {
        let mut sites: HashMap<Site, SiteLeft> = HashMap::new();
        for url in urls.filter_map(|url| WebUrl::parse(url).ok()) {
            let left = sites.entry(url.site()).or_insert(SiteLeft { urls: 0, interval });
            left.urls = left.urls.saturating_add(1);
        }
        let mut estimate = Estimate { sites, slowest: None };
        estimate.find_slowest();
        estimate
    }

    /// Counts a result. `interval` is the pace of its site, if the URL got as far as the gate.
    pub(super) fn ended(&mut self, url: &str, interval: Option<Duration>) {
        let Some(site) = WebUrl::parse(url).ok().map(|url| url.site()) else { return };
        let Some(left) = self.sites.get_mut(&site) else { return };
        left.urls = left.urls.saturating_sub(1);
        left.interval = interval.unwrap_or(left.interval);
        let left = *left;
        if left.urls == 0 {
            self.sites.remove(&site);
        }
        match &self.slowest {
            // The other sites have not changed, so a search is only needed if the slowest one has.
            Some((slowest, _)) if *slowest == site => self.find_slowest(),
            Some((_, takes)) if left.takes() > *takes => {
                self.slowest = Some((site, left.takes()));
            }
            _ => {}
        }
    }

    /// The minimum remaining time.
    pub(super) fn left(&self) -> Duration {
        self.slowest.as_ref().map_or(Duration::ZERO, |(_, takes)| *takes)
    }

    fn find_slowest(&mut self) {
        let slowest = self.sites.iter().max_by_key(|(_, left)| left.takes());
        self.slowest = slowest.map(|(site, left)| (site.clone(), left.takes()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn urls(pages: &[(&str, usize)]) -> Vec<String> {
        let of = |(host, pages): &(&str, usize)| {
            let host = (*host).to_owned();
            (0..*pages).map(move |page| format!("http://{host}.test/{page}")).collect::<Vec<_>>()
        };
        pages.iter().flat_map(of).collect()
    }

    #[test]
    fn a_run_takes_as_long_as_its_slowest_site() {
        let urls = urls(&[("large", 100), ("small", 10)]);
        let mut estimate = Estimate::of(urls.iter(), SECOND);
        assert_eq!(estimate.left(), SECOND * 100);
        // Ten results in a second by all sites together do not make it any faster.
        for url in urls.iter().filter(|url| url.contains("small")).take(9) {
            estimate.ended(url, Some(SECOND));
        }
        assert_eq!(estimate.left(), SECOND * 100);
        estimate.ended("http://large.test/0", Some(SECOND));
        assert_eq!(estimate.left(), SECOND * 99);
        // The small site turns out to have a Crawl-delay. Its first result says so.
        let mut estimate = Estimate::of(urls.iter(), SECOND);
        estimate.ended("http://small.test/0", Some(SECOND * 30));
        assert_eq!(estimate.left(), SECOND * 270);
        for page in 1..10 {
            estimate.ended(&format!("http://small.test/{page}"), None);
        }
        assert_eq!(estimate.left(), SECOND * 100);
    }

    #[test]
    fn what_is_no_url_and_what_is_nobodys_takes_no_time() {
        let mut estimate = Estimate::of(["no url".to_owned()].iter(), SECOND);
        estimate.ended("no url", None);
        estimate.ended("http://other.test/", Some(SECOND));
        assert_eq!(estimate.left(), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn it_is_always_the_longest_of_all(
            counts in prop::collection::vec(1usize..5, 1..6),
            ends in prop::collection::vec((0usize..6, prop::option::of(0u64..4)), 0..40),
        ) {
            let names = ["a", "b", "c", "d", "e", "f"];
            let pages: Vec<(&str, usize)> = names.into_iter().zip(counts).collect();
            let all = urls(&pages);
            let mut estimate = Estimate::of(all.iter(), SECOND);
            for (site, interval) in ends {
                let interval = interval.map(Duration::from_secs);
                estimate.ended(&format!("http://{}.test/", names[site]), interval);
                let longest = estimate.sites.values().map(|left| left.takes()).max();
                prop_assert_eq!(estimate.left(), longest.unwrap_or_default());
            }
        }
    }
}
