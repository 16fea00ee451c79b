//! The simulated web of the demo: its sites, their troubles, and the URLs to fetch.

use std::time::Duration;

use fetchwell_policy::chance::Chance;
use fetchwell_simweb::{OutageKind, SiteScript, site_name};
use serde::Serialize;

/// The trouble of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Trouble {
    CrawlDelay,
    Limiter,
    Unavailable,
    Cuts,
    Flapping,
    Slow,
    Redirects,
    Robots,
    Dead,
}

impl Trouble {
    /// All troubles.
    pub(super) const ALL: [Trouble; 9] = [
        Trouble::CrawlDelay,
        Trouble::Limiter,
        Trouble::Unavailable,
        Trouble::Cuts,
        Trouble::Flapping,
        Trouble::Slow,
        Trouble::Redirects,
        Trouble::Robots,
        Trouble::Dead,
    ];

    /// The name of its sites.
    pub(super) fn word(self) -> &'static str {
        match self {
            Trouble::CrawlDelay => "crawl-delay",
            Trouble::Limiter => "limiter",
            Trouble::Unavailable => "unavailable",
            Trouble::Cuts => "cuts",
            Trouble::Flapping => "flapping",
            Trouble::Slow => "slow",
            Trouble::Redirects => "redirects",
            Trouble::Robots => "robots",
            Trouble::Dead => "dead",
        }
    }

    /// A short description.
    pub(super) fn about(self) -> &'static str {
        match self {
            Trouble::CrawlDelay => "Crawl-delay of 2 s",
            Trouble::Limiter => "429 if we go too fast",
            Trouble::Unavailable => "503 for a while",
            Trouble::Cuts => "drops connections",
            Trouble::Flapping => "up and down, repeatedly",
            Trouble::Slow => "answers after a second",
            Trouble::Redirects => "redirects to other sites",
            Trouble::Robots => "robots.txt blocks pages",
            Trouble::Dead => "never answers",
        }
    }

    /// One in this many sites has the trouble; there is always at least one.
    fn one_in(self) -> usize {
        match self {
            Trouble::Flapping => 60,
            Trouble::Dead => 150,
            _ => 35,
        }
    }
}

/// The size of the demo.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) sites: usize,
    pub(super) pages: usize,
    /// Between two requests to a site.
    pub(super) interval: Duration,
    pub(super) seed: u64,
}

#[derive(Debug)]
pub(super) struct DemoSite {
    pub(super) name: String,
    /// `None` if it behaves.
    pub(super) trouble: Option<Trouble>,
    script: SiteScript,
    pages: usize,
}

#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) sites: Vec<DemoSite>,
    /// The URLs for `fetch`.
    pub(super) urls: Vec<String>,
    /// The URLs that callers send.
    pub(super) messages: Vec<String>,
}

/// One in this many URLs is sent by a caller.
const ONE_IN_MESSAGES: usize = 3;

/// The longest time that a site without trouble should take; with very many pages it takes longer.
const LARGEST_TAKES: Duration = Duration::from_secs(25);
/// When outages begin, in addition to three intervals, and when they end.
const OUTAGE_FROM: Duration = Duration::from_secs(1);
const OUTAGE_TO: Duration = Duration::from_secs(14);

impl Scenario {
    /// The same size and seed give the same scenario.
    pub(super) fn new(size: &Size) -> Scenario {
        let troubled = Trouble::ALL.into_iter().flat_map(|trouble| {
            (1..=(size.sites / trouble.one_in()).max(1)).map(move |number| (trouble, number))
        });
        let troubled: Vec<(Trouble, usize)> = troubled.collect();
        let first_sound = troubled.len();
        let elsewhere = |page: usize| site_name(page % (size.sites - first_sound).max(1) + 1);
        let mut sites: Vec<DemoSite> = troubled
            .into_iter()
            .map(|(trouble, number)| {
                let name = format!("{}-{number:02}.test", trouble.word());
                let pages = pages_of(trouble, size.interval);
                let script = script(&name, trouble, size.interval, elsewhere);
                DemoSite { script, name, trouble: Some(trouble), pages }
            })
            .collect();
        sites.extend((first_sound..size.sites).map(|at| {
            let name = site_name(at - first_sound + 1);
            let script = SiteScript::new(&name).page_bytes(2_000);
            // A few of them have a bad page.
            let script = match at % 10 {
                0 => script.status("/page/4", 404),
                5 => script.fails_first("/page/5", 1, 500),
                _ => script,
            };
            DemoSite { name, trouble: None, script, pages: 0 }
        }));
        let left = size.pages.saturating_sub(sites.iter().map(|site| site.pages).sum());
        share_out(left, &mut sites[first_sound..], size);
        let (messages, urls) = urls(&sites, size.pages);
        Scenario { sites, urls, messages }
    }

    /// The total number of URLs.
    pub(super) fn pages(&self) -> usize {
        self.urls.len() + self.messages.len()
    }

    /// How long the largest site takes at this pace, if it has no trouble.
    pub(super) fn takes(&self, interval: Duration) -> Duration {
        let most = self.sites.iter().map(|site| site.pages).max().unwrap_or_default();
        interval.saturating_mul(u32::try_from(most).unwrap_or(u32::MAX))
    }

    pub(super) fn scripts(&self) -> impl Iterator<Item = SiteScript> + '_ {
        self.sites.iter().map(|site| site.script.clone())
    }
}

/// Enough pages for some of them to meet the trouble, and few enough to finish in time.
fn pages_of(trouble: Trouble, interval: Duration) -> usize {
    let in_secs = |secs: f64| (secs / interval.as_secs_f64().max(0.001)) as usize;
    match trouble {
        Trouble::CrawlDelay | Trouble::Limiter => 8,
        Trouble::Dead => 5,
        Trouble::Unavailable | Trouble::Cuts => in_secs(6.0).clamp(8, 40),
        Trouble::Flapping => in_secs(8.0).clamp(8, 100),
        _ => 12,
    }
}

fn script(
    name: &str,
    trouble: Trouble,
    interval: Duration,
    elsewhere: impl Fn(usize) -> String,
) -> SiteScript {
    let from = OUTAGE_FROM + 3 * interval;
    let second = Duration::from_secs(1);
    let unavailable = OutageKind::Status503 { retry_after: None };
    let site = SiteScript::new(name).page_bytes(2_000);
    match trouble {
        Trouble::CrawlDelay => site.crawl_delay(2 * second),
        Trouble::Limiter => site.strict_limiter(second.max(2 * interval), Some(second)),
        Trouble::Unavailable => site.outage(from..OUTAGE_TO, unavailable),
        Trouble::Cuts => site.outage(from..OUTAGE_TO, OutageKind::Refuse),
        Trouble::Flapping => site.flapping(3 * second, 4 * second, unavailable),
        Trouble::Slow => site.slow(second),
        Trouble::Redirects => (1..=pages_of(trouble, interval)).fold(site, |site, page| {
            let target = format!("http://{}/from/{name}/{page}", elsewhere(page));
            site.redirect(&format!("/page/{page}"), &target)
        }),
        Trouble::Robots => site.robots("User-agent: *\nDisallow: /page/1\n"),
        Trouble::Dead => site.outage(Duration::ZERO..Duration::MAX, OutageKind::Refuse),
    }
}

/// Distributes the pages over the sites, very unevenly.
fn share_out(pages: usize, sites: &mut [DemoSite], size: &Size) {
    if sites.is_empty() {
        return;
    }
    let mut chance = Chance::seeded(size.seed);
    let weights: Vec<f64> = sites.iter().map(|_| 0.05 + chance.unit().powi(3)).collect();
    let total: f64 = weights.iter().sum();
    let most = LARGEST_TAKES.as_secs_f64() / size.interval.as_secs_f64().max(0.001);
    let mut left = pages;
    for (site, weight) in sites.iter_mut().zip(weights) {
        let share = (pages as f64 * weight / total).min(most) as usize;
        site.pages = share.min(left);
        left -= site.pages;
    }
    // Distribute what rounding and the maximum left over.
    let count = sites.len();
    for at in 0..left {
        sites[at % count].pages += 1;
    }
}

/// Returns the URLs for callers and those for `fetch`; in each, all first pages come first, then all second ones, and
/// so on. Every site has some of both, and callers get different pages of neighbouring sites.
fn urls(sites: &[DemoSite], most: usize) -> (Vec<String>, Vec<String>) {
    let longest = sites.iter().map(|site| site.pages).max().unwrap_or_default();
    let with = |page: usize| sites.iter().enumerate().filter(move |(_, site)| site.pages >= page);
    let places = (1..=longest).flat_map(|page| with(page).map(move |(at, site)| (at, page, site)));
    let mut messages = Vec::new();
    let mut others = Vec::new();
    for (at, page, site) in places.take(most) {
        let to =
            if (at + page).is_multiple_of(ONE_IN_MESSAGES) { &mut messages } else { &mut others };
        to.push(format!("http://{}/page/{page}", site.name));
    }
    (messages, others)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn size(sites: usize, pages: usize) -> Size {
        Size { sites, pages, interval: Duration::from_millis(500), seed: 1 }
    }

    #[test]
    fn there_are_as_many_sites_and_pages_as_were_asked_for() {
        for (sites, pages) in [(300, 4_000), (40, 300), (20, 1_000), (10, 5), (10, 10_000)] {
            let scenario = Scenario::new(&size(sites, pages));
            assert_eq!(scenario.sites.len(), sites);
            assert_eq!(scenario.pages(), pages, "{sites} sites");
            let all = scenario.urls.iter().chain(&scenario.messages);
            assert_eq!(all.collect::<HashSet<_>>().len(), pages);
            for trouble in Trouble::ALL {
                assert!(
                    scenario.sites.iter().any(|site| site.trouble == Some(trouble)),
                    "{trouble:?}"
                );
            }
        }
    }

    #[test]
    fn a_third_are_messages_and_every_site_is_in_both_parts() {
        let scenario = Scenario::new(&size(300, 4_000));
        assert!((1_200..1_500).contains(&scenario.messages.len()), "{}", scenario.messages.len());
        for site in scenario.sites.iter().filter(|site| site.pages >= ONE_IN_MESSAGES) {
            let here = format!("http://{}/", site.name);
            for part in [&scenario.urls, &scenario.messages] {
                assert!(part.iter().any(|url| url.starts_with(&here)), "{here}");
            }
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_demo() {
        let urls = |seed| Scenario::new(&Size { seed, ..size(300, 4_000) }).urls;
        assert_eq!(urls(1), urls(1));
        assert_ne!(urls(1), urls(2));
    }
}
