use std::time::Duration;

use crate::chance::SimRng;
use crate::outage::OutageKind;
use crate::script::SiteScript;
use crate::world::World;

impl World {
    /// A world of [`mixed_sites`].
    pub fn of_sites(count: usize, seed: u64) -> World {
        World::new(mixed_sites(count, seed))
    }
}

/// The sites `site-0001.test`, `site-0002.test` and so on. Most are healthy; some have each of the problems that a
/// crawler meets. The same seed gives the same sites.
pub fn mixed_sites(count: usize, seed: u64) -> Vec<SiteScript> {
    let mut chance = SimRng::new(seed);
    (1..=count).map(|rank| mixed_site(&site_name(rank), &mut chance)).collect()
}

/// `urls` different URLs on the sites of [`mixed_sites`], with a Zipf distribution: the site of rank r is drawn with a
/// weight of 1/r^exponent.
pub fn zipf_urls(sites: usize, urls: usize, exponent: f64, seed: u64) -> Vec<String> {
    if sites == 0 {
        return Vec::new();
    }
    let mut weight_up_to: Vec<f64> = Vec::with_capacity(sites);
    let mut total = 0.0;
    for rank in 1..=sites {
        total += (rank as f64).powf(-exponent);
        weight_up_to.push(total);
    }
    let mut chance = SimRng::new(seed);
    let mut pages = vec![0_u32; sites];
    let draw = |_| {
        let drawn = chance.unit() * total;
        let index = weight_up_to.partition_point(|&weight| weight <= drawn).min(sites - 1);
        pages[index] += 1;
        format!("http://{}/page/{}", site_name(index + 1), pages[index])
    };
    (0..urls).map(draw).collect()
}

/// The name of the site of this rank; the first rank is 1.
pub fn site_name(rank: usize) -> String {
    format!("site-{rank:04}.test")
}

fn mixed_site(name: &str, chance: &mut SimRng) -> SiteScript {
    // Every site has a few failing pages among those that `zipf_urls` requests.
    let site = SiteScript::new(name)
        .page_bytes(2_048 + chance.below(30_000) as usize)
        .status("/page/7", 404)
        .status("/page/11", 500)
        .redirect("/page/13", "/page/14")
        .fails_first("/page/17", 2, 503)
        .binary("/page/19", "image/png", 4_096);
    let between_ms = |chance: &mut SimRng, from: u64, to: u64| {
        Duration::from_millis(from + chance.below(to - from))
    };
    let failure = match chance.below(3) {
        0 => OutageKind::Status503 { retry_after: Some(Duration::from_secs(2)) },
        1 => OutageKind::Refuse,
        _ => OutageKind::Stall,
    };
    match chance.below(100) {
        0..=9 => site.crawl_delay(Duration::from_secs(1 + chance.below(3))),
        10..=19 => site.robots("User-agent: *\nDisallow: /page/5\nDisallow: /private/\n"),
        20..=22 => site.robots_status(503),
        23..=27 => {
            let min_interval = between_ms(chance, 500, 1_000);
            site.strict_limiter(min_interval, Some(Duration::from_secs(2)))
        }
        28..=34 => site.slow(between_ms(chance, 100, 2_000)),
        35..=37 => site.trickling(between_ms(chance, 500, 3_000)),
        38..=42 => {
            let from = between_ms(chance, 0, 30_000);
            let lasts = between_ms(chance, 5_000, 30_000);
            site.outage(from..from + lasts, failure)
        }
        43..=45 => {
            let up_for = between_ms(chance, 5_000, 20_000);
            let down_for = between_ms(chance, 2_000, 10_000);
            site.flapping(up_for, down_for, failure)
        }
        _ => site,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{mixed_sites, zipf_urls};

    #[test]
    fn the_same_seed_makes_the_same_world() {
        assert_eq!(mixed_sites(300, 42), mixed_sites(300, 42));
        assert_ne!(mixed_sites(300, 42), mixed_sites(300, 43));
        assert_eq!(zipf_urls(300, 900, 1.1, 42), zipf_urls(300, 900, 1.1, 42));
        assert_ne!(zipf_urls(300, 900, 1.1, 42), zipf_urls(300, 900, 1.1, 43));
    }

    #[test]
    fn a_mixed_world_has_every_trouble() {
        let sites = mixed_sites(1_000, 1);
        let count = |wanted: fn(&crate::SiteScript) -> bool| {
            sites.iter().filter(|site| wanted(site)).count()
        };
        assert_eq!(sites[0].name(), "site-0001.test");
        assert_eq!(sites[999].name(), "site-1000.test");
        assert!(count(|site| site.strict_limiter.is_some()) > 10);
        assert!(count(|site| site.flapping.is_some()) > 10);
        assert!(count(|site| !site.outages.is_empty()) > 10);
        assert!(count(|site| !site.first_byte_after.is_zero()) > 10);
    }

    #[test]
    fn zipf_urls_differ_and_favour_the_first_sites() {
        let urls = zipf_urls(1_000, 10_000, 1.0, 7);
        assert_eq!(urls.iter().collect::<HashSet<_>>().len(), 10_000);
        let of = |name: &str| urls.iter().filter(|url| url.contains(name)).count();
        assert!((1_100..1_600).contains(&of("site-0001.test")), "{}", of("site-0001.test"));
        assert!(of("site-0001.test") > 5 * of("site-0010.test"));
        assert!(zipf_urls(0, 10, 1.0, 7).is_empty());
    }
}
