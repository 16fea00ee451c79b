//! `crawl --plan`: estimates a crawl from robots.txt and sitemaps alone.

use std::collections::BTreeMap;
use std::time::Duration;

use fetchwell_doors::fetch::gate_rules as fetch_gate_rules;
use fetchwell_engine::gate::{Gate, RobotsView};
use fetchwell_engine::ports::frontier::WaitingSite;
use fetchwell_policy::robots::Robots;
use fetchwell_policy::units::{format_duration, quantity};
use fetchwell_policy::url::{Origin, Site, WebUrl};
use fetchwell_settings::Settings;
use serde::Serialize;

use crate::commands::fetch::with_own_defaults;
use crate::console::exit::Exit;
use crate::console::table::{plain, table};
use crate::wiring::{Parts, gate_rules};

/// The maximum number of sites in the text.
const MAX_LINES: usize = 50;

/// The maximum number of sites in a plan: those with the most pages.
pub(super) const MAX_SITES: usize = 100_000;

/// What a crawl would begin with.
#[derive(Debug, Serialize)]
pub(super) struct CrawlForecast {
    /// Those with the most pages first.
    sites: Vec<SiteForecast>,
    /// The known pages: start pages, and pages that sitemaps name.
    pages: u64,
    /// How many of them `--limit` and `--limit-per-site` allow.
    pages_within_limits: u64,
    /// The minimum time for these.
    min_seconds: f64,
    limit: u64,
    limit_per_site: Option<u64>,
    /// Whether pages that are not known yet may be added: those to which these pages link.
    may_grow: bool,
    /// Whether it was stopped before all sitemaps were read, or has more sites than are listed.
    incomplete: bool,
}

#[derive(Debug, Serialize)]
struct SiteForecast {
    site: String,
    pages: u64,
    interval_seconds: f64,
    min_seconds: f64,
    /// Why its start page would not be fetched.
    start_page_refused: Option<String>,
}

/// What the plan knows about the pace of a site.
pub(super) struct SitePace {
    interval: Duration,
    start_page_refused: Option<String>,
}

/// The limits of a crawl.
#[derive(Clone, Copy)]
pub(super) struct ForecastLimits {
    pub(super) pages: u64,
    pub(super) pages_per_site: Option<u64>,
    pub(super) may_grow: bool,
    pub(super) incomplete: bool,
}

/// The pace of all sites, as far as it is known without another request.
pub(super) struct Paces<'a> {
    parts: &'a Parts,
    gate: Gate,
}

impl<'a> Paces<'a> {
    pub(super) fn new(settings: &Settings, parts: &'a Parts) -> Paces<'a> {
        let rules = fetch_gate_rules(gate_rules(&with_own_defaults(settings), None));
        Paces { parts, gate: parts.gate_by(rules) }
    }

    /// The paces of these sites. The Crawl-delay is known where robots.txt has been read: on the sites of start pages.
    pub(super) async fn of(
        &self,
        sites: &[WaitingSite],
        starts: &[String],
    ) -> Result<BTreeMap<String, SitePace>, Exit> {
        let mut start_pages: BTreeMap<Site, BTreeMap<Origin, WebUrl>> = BTreeMap::new();
        for start in starts.iter().filter_map(|start| WebUrl::parse(start).ok()) {
            start_pages.entry(start.site()).or_default().entry(start.origin()).or_insert(start);
        }
        let mut paces = BTreeMap::new();
        for WaitingSite { site: name, .. } in sites {
            let Ok(site) = Site::parse(name) else { continue };
            let starts = start_pages.get(&site);
            paces.insert(name.clone(), self.pace_of(&site, starts).await?);
        }
        Ok(paces)
    }

    async fn pace_of(
        &self,
        site: &Site,
        starts: Option<&BTreeMap<Origin, WebUrl>>,
    ) -> Result<SitePace, Exit> {
        let (state, _) = self.parts.politeness.look(site).await?;
        let state = state.unwrap_or_default();
        let mut crawl_delay = None;
        let mut start_page_refused = None;
        for (origin, start) in starts.into_iter().flatten() {
            let record = self.parts.politeness.robots(origin).await?;
            let view = self.gate.view(record.as_ref(), Some(&state));
            crawl_delay = crawl_delay.max(view.robots().and_then(Robots::crawl_delay));
            start_page_refused = start_page_refused.or_else(|| self.refusal(&view, start));
        }
        let rules = &self.gate.rules;
        let (rate, _) = rules.ordered(&state, rules.rate(site, crawl_delay));
        Ok(SitePace { interval: rate.interval, start_page_refused })
    }

    fn refusal(&self, view: &RobotsView, start: &WebUrl) -> Option<String> {
        match view {
            RobotsView::Known { robots, .. } => {
                let is_allowed = robots.verdict(start.path_and_query()).allowed;
                let disallowed = || format!("robots.txt disallows {}", start.path_and_query());
                let refused = (!is_allowed).then(disallowed);
                refused.or_else(|| self.gate.crawl_delay_refusal(robots))
            }
            RobotsView::Refused(happened) => Some(happened.to_string()),
            RobotsView::Fetch => Some("robots.txt was not read".to_owned()),
            RobotsView::Blocked { .. } => Some("robots.txt is unreachable".to_owned()),
        }
    }
}

impl CrawlForecast {
    pub(super) fn new(
        known: &[WaitingSite],
        paces: &mut BTreeMap<String, SitePace>,
        limits: ForecastLimits,
    ) -> CrawlForecast {
        let most = limits.pages_per_site.unwrap_or(u64::MAX);
        let mut sites = Vec::new();
        let mut work = Vec::new();
        for WaitingSite { site, pages } in known {
            let Some(pace) = paces.remove(site) else { continue };
            let wanted = (*pages).min(most);
            work.push((wanted, pace.interval));
            sites.push(SiteForecast {
                site: site.clone(),
                pages: *pages,
                interval_seconds: pace.interval.as_secs_f64(),
                min_seconds: min_time(wanted, pace.interval).as_secs_f64(),
                start_page_refused: pace.start_page_refused,
            });
        }
        let allowed: u64 = work.iter().map(|(pages, _)| *pages).sum();
        CrawlForecast {
            pages: sites.iter().map(|site| site.pages).sum(),
            pages_within_limits: allowed.min(limits.pages),
            sites,
            min_seconds: min_time_within(&work, limits.pages).as_secs_f64(),
            limit: limits.pages,
            limit_per_site: limits.pages_per_site,
            may_grow: limits.may_grow,
            incomplete: limits.incomplete,
        }
    }

    pub(super) fn text(&self) -> String {
        let rows: Vec<[String; 5]> = self
            .sites
            .iter()
            .take(MAX_LINES)
            .map(|site| {
                [
                    plain(&site.site),
                    site.pages.to_string(),
                    seconds(site.interval_seconds),
                    whole_seconds(site.min_seconds),
                    site.start_page_refused.as_deref().map(plain).unwrap_or_default(),
                ]
            })
            .collect();
        let mut text = match rows.is_empty() {
            true => String::new(),
            false => table(["site", "pages", "interval", "minimum time", "start page"], &rows),
        };
        let more = self.sites.len().saturating_sub(MAX_LINES);
        if more > 0 {
            text.push_str(&format!("… and {}\n", quantity(more, "more site", "more sites")));
        }
        let pages = quantity(self.pages, "page", "pages");
        let sites = quantity(self.sites.len(), "site", "sites");
        let time = whole_seconds(self.min_seconds);
        text.push_str(&format!("Known: {pages} on {sites}. Minimum time: {time}"));
        if self.pages_within_limits < self.pages {
            text.push_str(&format!(" for the {} that the limits allow", self.pages_within_limits));
        }
        text.push_str(".\n");
        if self.incomplete {
            text.push_str(
                "There are more: not all sitemaps were read, or there are too many sites.\n",
            );
        }
        if self.may_grow {
            text.push_str("Links on these pages may lead to more.\n");
        }
        text
    }
}

/// The minimum time for the pages of one site.
fn min_time(pages: u64, interval: Duration) -> Duration {
    interval.saturating_mul(u32::try_from(pages.saturating_sub(1)).unwrap_or(u32::MAX))
}

/// The minimum time for `limit` pages of these sites, which are fetched in parallel. Each entry is a number of pages and
/// the interval between them.
fn min_time_within(sites: &[(u64, Duration)], limit: u64) -> Duration {
    let done_after = |time: Duration| -> u64 {
        let of_site = |(pages, interval): &(u64, Duration)| match interval.as_nanos() {
            0 => *pages,
            interval => {
                let sent = time.as_nanos() / interval + 1;
                u64::try_from(sent).unwrap_or(u64::MAX).min(*pages)
            }
        };
        sites.iter().map(of_site).sum()
    };
    let ends = sites.iter().map(|(pages, interval)| min_time(*pages, *interval));
    let longest = ends.max().unwrap_or_default();
    let wanted = done_after(longest).min(limit);
    let mut too_short = Duration::ZERO;
    let mut enough = longest;
    if done_after(too_short) >= wanted {
        return too_short;
    }
    while enough - too_short > Duration::from_millis(1) {
        let middle = too_short + (enough - too_short) / 2;
        if done_after(middle) >= wanted {
            enough = middle;
        } else {
            too_short = middle;
        }
    }
    enough
}

fn seconds(seconds: f64) -> String {
    format_duration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// Rounded up.
fn whole_seconds(seconds: f64) -> String {
    self::seconds((seconds - 0.01).ceil().max(0.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secs(secs: f64) -> Duration {
        Duration::from_secs_f64(secs)
    }

    #[test]
    fn sites_are_fetched_side_by_side() {
        for (sites, limit, expected) in [
            (&[][..], 10, 0.0),
            (&[(1, 1.0)], 10, 0.0),
            (&[(11, 1.0)], 100, 10.0),
            (&[(11, 1.0), (5, 10.0)], 100, 40.0),
            // The slow site need not be finished.
            (&[(11, 1.0), (5, 10.0)], 13, 10.0),
            (&[(11, 1.0), (5, 10.0)], 2, 0.0),
            (&[(1_000, 0.0), (5, 10.0)], 1_002, 10.0),
        ] {
            let sites: Vec<_> = sites.iter().map(|(pages, s)| (*pages, secs(*s))).collect();
            let got = min_time_within(&sites, limit).as_secs_f64();
            assert!((got - expected).abs() < 0.01, "{sites:?} {limit}: {got}");
        }
    }

    proptest! {
        #[test]
        fn a_higher_limit_takes_no_less_time(
            sites in prop::collection::vec((1u64..50, 0u64..5_000), 0..6), limit in 1u64..200,
        ) {
            let sites: Vec<_> =
                sites.iter().map(|(pages, ms)| (*pages, Duration::from_millis(*ms))).collect();
            let longest = sites.iter().map(|(pages, interval)| min_time(*pages, *interval)).max();
            prop_assert!(min_time_within(&sites, limit) <= min_time_within(&sites, limit + 1));
            prop_assert_eq!(min_time_within(&sites, u64::MAX), longest.unwrap_or_default());
        }
    }

    fn known(site: &str, pages: u64) -> WaitingSite {
        WaitingSite { site: site.to_owned(), pages }
    }

    #[test]
    fn the_text_has_a_line_per_site_and_the_whole() {
        let pace = |interval_s, refused: Option<&str>| SitePace {
            interval: Duration::from_secs(interval_s),
            start_page_refused: refused.map(str::to_owned),
        };
        let mut paces = BTreeMap::from([
            ("a.test".to_owned(), pace(1, None)),
            ("b.test".to_owned(), pace(10, Some("robots.txt disallows /"))),
        ]);
        let limits =
            ForecastLimits { pages: 100, pages_per_site: None, may_grow: true, incomplete: false };
        let sites = [known("a.test", 5_000), known("b.test", 2)];
        let forecast = CrawlForecast::new(&sites, &mut paces, limits);
        assert_eq!(
            forecast.text(),
            "site    pages  interval  minimum time  start page\n\
             a.test  5000   1s        1h23m19s\n\
             b.test  2      10s       10s           robots.txt disallows /\n\
             Known: 5002 pages on 2 sites. Minimum time: 1m37s for the 100 that the limits allow.\n\
             Links on these pages may lead to more.\n"
        );
    }
}
