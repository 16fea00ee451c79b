//! When a batch is likely to end, from the pace of its sites and the limits of its retailers.
//!
//! It assumes one request per message, and that nothing else goes to these sites but what already waits for them.

use std::collections::HashMap;
use std::time::Duration;

use fetchwell_engine::gate::GateRules;
use fetchwell_engine::ports::sites::KnownSite;
use fetchwell_policy::robots::Robots;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use futures::future::join_all;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Api;
use super::fields::FetchRequest;

/// The state is read of so many sites: of those that would take longest by the settings alone.
const MOST_SITES_READ: usize = 16;
/// Counting what already waits for a site stops here.
const MOST_COUNTED: u32 = 10_000;
/// How long what was read of a site is reused. Reading it costs two trips to the store, and counting what waits takes as
/// long as accepting a hundred messages.
const READ_FOR: Duration = Duration::from_secs(1);
/// No more sites than this are kept.
const MOST_KEPT: usize = 4_096;
/// An estimate must not delay its batch: after this, the settings alone decide.
const PATIENCE: Duration = Duration::from_millis(500);

/// How many messages go to each site, by retailer.
type Load<'a> = HashMap<&'a Site, HashMap<&'a str, u32>>;

/// What was read of sites lately, with the messages of batches since then, accepted or not.
#[derive(Default)]
pub(super) struct Outlooks(Mutex<HashMap<Site, (Instant, SiteOutlook)>>);

/// What the store knows about a site.
#[derive(Clone)]
struct SiteOutlook {
    known: KnownSite,
    crawl_delay: Option<Duration>,
    /// How long its next page has to wait; `None` while it is paused.
    starts_in: Option<Duration>,
    /// How many URLs wait for it.
    waiting: u64,
}

impl Api {
    /// How long these messages are expected to take.
    pub(super) async fn expected_in(&self, messages: &[FetchRequest]) -> Duration {
        let load = load_of(messages);
        let sites = slowest(&load, &self.on.gate_rules);
        let reading = tokio::time::timeout(PATIENCE, self.read_outlooks(&sites));
        let outlooks = reading.await.unwrap_or_default();
        self.outlooks.add(&load);
        let longest = messages.iter().map(|message| message.deadline).max().unwrap_or_default();
        expected_in(&load, &self.on.gate_rules, &outlooks).map_or(longest, |span| span.min(longest))
    }

    /// What is known about these sites. A site that cannot be read is left out.
    async fn read_outlooks(&self, sites: &[Site]) -> HashMap<Site, SiteOutlook> {
        let mut known = self.outlooks.of(sites);
        let unread: Vec<Site> =
            sites.iter().filter(|site| !known.contains_key(*site)).cloned().collect();
        if !unread.is_empty() {
            let read = self.outlooks_in_store(&unread).await;
            self.outlooks.keep(&read);
            known.extend(read);
        }
        known
    }

    async fn outlooks_in_store(&self, sites: &[Site]) -> Vec<(Site, SiteOutlook)> {
        let rules = &self.on.gate_rules;
        let service = &self.on.sites;
        let reading = join_all(sites.iter().map(|site| service.known_site(site)));
        let (found, waiting) = tokio::join!(reading, service.waiting_for(sites, MOST_COUNTED));
        let waiting = waiting.unwrap_or_else(|_| vec![0; sites.len()]);
        let outlook = |(found, waiting): (Result<(KnownSite, Time), _>, u64)| {
            let (known, store_now) = found.ok()?;
            let delays = known.robots.iter().filter_map(|(_, record)| {
                let body = record.body.as_deref().unwrap_or_default();
                Robots::parse(body, &rules.robots.product_token).crawl_delay()
            });
            let crawl_delay = delays.max();
            let (rate, _) = rules.rate(&known.site, crawl_delay);
            let records = known.robots.iter().map(|(_, record)| record);
            let times = (store_now, self.on.clock.now());
            let starts_in = rules.outlook(&known.state, rate, records, times).next_slot_in;
            // The files are large, and no longer needed.
            let known = KnownSite { robots: Vec::new(), ..known };
            Some((known.site.clone(), SiteOutlook { known, crawl_delay, starts_in, waiting }))
        };
        found.into_iter().zip(waiting).filter_map(outlook).collect()
    }
}

impl Outlooks {
    /// What was read of these sites lately.
    fn of(&self, sites: &[Site]) -> HashMap<Site, SiteOutlook> {
        let kept = self.0.lock();
        let recent = |site: &Site| {
            let (at, outlook) = kept.get(site)?;
            (at.elapsed() < READ_FOR).then(|| (site.clone(), outlook.clone()))
        };
        sites.iter().filter_map(recent).collect()
    }

    fn keep(&self, read: &[(Site, SiteOutlook)]) {
        let mut kept = self.0.lock();
        if kept.len() + read.len() > MOST_KEPT {
            kept.clear();
        }
        let now = Instant::now();
        kept.extend(read.iter().map(|(site, outlook)| (site.clone(), (now, outlook.clone()))));
    }

    /// Adds the messages of a batch to those that wait for their sites.
    fn add(&self, load: &Load<'_>) {
        let mut kept = self.0.lock();
        for (site, retailers) in load {
            if let Some((_, outlook)) = kept.get_mut(*site) {
                outlook.waiting += retailers.values().map(|count| u64::from(*count)).sum::<u64>();
            }
        }
    }
}

fn load_of(messages: &[FetchRequest]) -> Load<'_> {
    let mut load = Load::new();
    for message in messages {
        let by_retailer = load.entry(&message.site).or_default();
        *by_retailer.entry(&message.retailer).or_default() += 1;
    }
    load
}

/// The sites that take longest by the settings alone.
fn slowest(load: &Load<'_>, rules: &GateRules) -> Vec<Site> {
    let mut sites: Vec<(Duration, &Site)> = load
        .iter()
        .map(|(site, messages)| {
            (site_takes(site, messages, rules, None).unwrap_or_default(), *site)
        })
        .collect();
    sites.sort_by(|one, other| other.cmp(one));
    sites.into_iter().take(MOST_SITES_READ).map(|(_, site)| site.clone()).collect()
}

/// The longest of all sites and retailers; `None` if a site is paused.
fn expected_in(
    load: &Load<'_>,
    rules: &GateRules,
    outlooks: &HashMap<Site, SiteOutlook>,
) -> Option<Duration> {
    let mut longest = Duration::ZERO;
    let mut retailers: HashMap<&str, u32> = HashMap::new();
    for (site, messages) in load {
        longest = longest.max(site_takes(site, messages, rules, outlooks.get(*site))?);
        for (retailer, count) in messages {
            *retailers.entry(*retailer).or_default() += count;
        }
    }
    let groups = &rules.pace.groups;
    for (retailer, count) in retailers {
        let Some(limit) = groups.named.get(retailer).or(groups.default.as_ref()) else { continue };
        let after_the_burst = count.saturating_sub(limit.burst);
        longest = longest.max(limit.interval.saturating_mul(after_the_burst));
    }
    Some(longest)
}

/// How long a site takes for these messages, which take turns; `None` while it is paused.
fn site_takes(
    site: &Site,
    messages: &HashMap<&str, u32>,
    rules: &GateRules,
    outlook: Option<&SiteOutlook>,
) -> Option<Duration> {
    let crawl_delay = outlook.and_then(|outlook| outlook.crawl_delay);
    let interval = |retailer: Option<&str>| {
        let asked = rules.rate_for(site, crawl_delay, retailer);
        match outlook {
            Some(outlook) => rules.ordered(&outlook.known.state, asked).0.interval,
            None => asked.0.interval,
        }
    };
    let mut span = match outlook {
        Some(outlook) => outlook.starts_in?,
        None => Duration::ZERO,
    };
    let ahead = outlook.map_or(0, |outlook| u32::try_from(outlook.waiting).unwrap_or(u32::MAX));
    span = span.saturating_add(interval(None).saturating_mul(ahead));
    // The first request needs no interval before it.
    let mut is_first = ahead == 0;
    for (retailer, count) in messages {
        let intervals = count.saturating_sub(u32::from(is_first));
        is_first = false;
        span = span.saturating_add(interval(Some(retailer)).saturating_mul(intervals));
    }
    Some(span)
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::gate::{GroupPace, PaceRules, RobotsRules};
    use fetchwell_policy::orders::Order;
    use fetchwell_policy::pace::Rate;
    use fetchwell_policy::robots::WhenUnreachable;
    use fetchwell_policy::site::SiteState;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn rules() -> GateRules {
        GateRules {
            pace: PaceRules {
                default_interval: SECOND,
                sites: HashMap::from([(site("slow.test"), SECOND * 10)]),
                concurrency: HashMap::new(),
                groups: GroupPace {
                    default: Some(Rate::per_second(10.0, 20)),
                    named: HashMap::from([("strict".to_owned(), Rate::per_second(0.5, 2))]),
                    at_sites: HashMap::from([("own".to_owned(), Rate::per_second(4.0, 1))]),
                },
            },
            robots: RobotsRules {
                product_token: "fetchwell".to_owned(),
                when_unreachable: WhenUnreachable::Defer,
                fresh_for: SECOND,
                stale_for: SECOND,
                max_crawl_delay: None,
                pages_fail_with_it: true,
            },
            give_up_after: None,
            site_attempts: None,
            missing_hosts_fail: false,
        }
    }

    fn site(name: &str) -> Site {
        Site::parse(name).unwrap()
    }

    /// The seconds for so many messages of a retailer to each site.
    fn seconds(load: &[(&str, &str, u32)], outlooks: &HashMap<Site, SiteOutlook>) -> Option<f64> {
        let sites: Vec<Site> = load.iter().map(|(name, ..)| site(name)).collect();
        let mut all = Load::new();
        for (site, (_, retailer, count)) in sites.iter().zip(load) {
            all.entry(site).or_default().insert(*retailer, *count);
        }
        expected_in(&all, &rules(), outlooks).map(|span| span.as_secs_f64())
    }

    fn outlook(name: &str) -> SiteOutlook {
        let state = SiteState::default();
        let known = KnownSite { site: site(name), state, robots: Vec::new() };
        SiteOutlook { known, crawl_delay: None, starts_in: Some(Duration::ZERO), waiting: 0 }
    }

    #[test]
    fn the_slowest_site_or_retailer_decides() {
        let nothing = HashMap::new();
        let seconds = |load: &[_]| seconds(load, &nothing);
        assert_eq!(seconds(&[("a.test", "shop", 1)]), Some(0.0));
        assert_eq!(seconds(&[("a.test", "shop", 101)]), Some(100.0));
        assert_eq!(seconds(&[("a.test", "shop", 50), ("slow.test", "shop", 7)]), Some(60.0));
        // A retailer's rate is also its pace at a site, unless the site has its own.
        assert_eq!(seconds(&[("a.test", "own", 101)]), Some(25.0));
        assert_eq!(seconds(&[("slow.test", "own", 7)]), Some(60.0));
        // 1,020 messages to as many sites: the limit of the retailer, after its burst.
        let names: Vec<String> = (0..1_020).map(|number| format!("s{number}.test")).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), "shop", 1)).collect();
        assert_eq!(seconds(&many), Some(100.0));
        let strict: Vec<_> = many.iter().map(|(name, ..)| (*name, "strict", 1)).collect();
        assert_eq!(seconds(&strict), Some(2_036.0));
    }

    #[test]
    fn what_is_known_of_a_site_counts() {
        let with = |outlook: SiteOutlook| {
            let outlooks = HashMap::from([(outlook.known.site.clone(), outlook)]);
            seconds(&[("a.test", "shop", 11)], &outlooks)
        };
        let plain = || outlook("a.test");
        assert_eq!(with(plain()), Some(10.0));
        assert_eq!(with(SiteOutlook { starts_in: Some(SECOND * 60), ..plain() }), Some(70.0));
        assert_eq!(with(SiteOutlook { crawl_delay: Some(SECOND * 5), ..plain() }), Some(50.0));
        assert_eq!(with(SiteOutlook { waiting: 100, ..plain() }), Some(111.0));
        let mut ordered = plain();
        ordered.known.state.obey(Order::SetInterval(SECOND * 3), "me", Time::from_secs(1));
        assert_eq!(with(ordered), Some(30.0));
        assert_eq!(with(SiteOutlook { starts_in: None, ..plain() }), None, "it is paused");
    }

    #[tokio::test(start_paused = true)]
    async fn a_site_is_read_once_a_second_and_later_batches_are_added() {
        let outlooks = Outlooks::default();
        let sites = [site("a.test"), site("b.test")];
        assert!(outlooks.of(&sites).is_empty());
        let with = |name: &str, waiting| (site(name), SiteOutlook { waiting, ..outlook(name) });
        outlooks.keep(&[with("a.test", 7), with("b.test", 8)]);
        let load = Load::from([(&sites[1], HashMap::from([("shop", 2), ("other", 3)]))]);
        outlooks.add(&load);
        let known = outlooks.of(&sites);
        assert_eq!((known[&sites[0]].waiting, known[&sites[1]].waiting), (7, 13));
        tokio::time::advance(READ_FOR).await;
        assert!(outlooks.of(&sites).is_empty());
        for number in 0..=MOST_KEPT {
            outlooks.keep(&[with(&format!("s{number}.test"), 1)]);
        }
        assert!(outlooks.0.lock().len() <= MOST_KEPT);
    }

    #[test]
    fn the_sites_that_take_longest_are_looked_at() {
        let names: Vec<Site> = (0..40).map(|number| site(&format!("s{number}.test"))).collect();
        let slow = site("slow.test");
        let mut load: Load<'_> =
            names.iter().map(|site| (site, HashMap::from([("shop", 2)]))).collect();
        load.insert(&slow, HashMap::from([("shop", 3)]));
        let looked_at = slowest(&load, &rules());
        assert_eq!((looked_at.len(), &looked_at[0]), (MOST_SITES_READ, &slow));
    }
}
