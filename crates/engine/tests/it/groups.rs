//! Groups (retailers) have a pace of their own, and lanes take turns: on a paused clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::job::{Job, Lane, NewJob};
use fetchwell_engine::ports::sites::Sites;
use fetchwell_policy::orders::Order;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::url::Site;
use fetchwell_simweb::{Hit, HitKind, OutageKind, SiteScript};
use fetchwell_testkit::rig::{Rig, job};
use tokio_util::sync::CancellationToken;

const RATE: f64 = 10.0;
const BURST: u32 = 20;

fn rig(sites: usize, rate: f64, burst: u32) -> Rig {
    let mut rig = Rig::new((0..sites).map(|number| SiteScript::new(&format!("s{number}.test"))));
    rig.rules.pace.groups.default = Some(Rate::per_second(rate, burst));
    rig
}

fn job_of(group: &str, party: &str, url: &str) -> NewJob {
    let lane = Lane { group: Some(group.to_owned()), party: Some(party.to_owned()) };
    NewJob::now(Job { lane, ..job(url) })
}

/// Pages of a group, whose name begins their paths, in the order of their times.
fn pages(rig: &Rig, group: &str) -> Vec<Hit> {
    let mut hits = rig.world.hits();
    hits.retain(|hit| hit.kind == HitKind::Page && hit.path.starts_with(&format!("/{group}/")));
    hits.sort_by_key(|hit| hit.at);
    hits
}

/// In no stretch of time are there more than the burst and what the rate brings.
fn keeps_its_pace(hits: &[Hit], rate: f64, burst: u32) {
    for (first, from) in hits.iter().enumerate() {
        for (last, to) in hits.iter().enumerate().skip(first) {
            let span = (to.at - from.at).as_secs_f64();
            let most = f64::from(burst) + rate * span + 1e-6;
            let many = (last - first + 1) as f64;
            assert!(many <= most, "{many} within {span} s, from {:?} on", from.at);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_keeps_its_pace_over_all_its_sites_and_uses_it() {
    let rig = rig(200, RATE, BURST);
    let urls = (0..600).map(|n| job_of("r", "c", &format!("http://s{}.test/r/{n}", n % 200)));
    rig.queue.enqueue(urls.collect());
    rig.run().await.unwrap();
    let hits = pages(&rig, "r");
    assert_eq!(hits.len(), 600);
    keeps_its_pace(&hits, RATE, BURST);
    let took = (hits[599].at - hits[0].at).as_secs_f64();
    let least = f64::from(600 - BURST) / RATE;
    assert!(took < least * 1.03, "{took} s, where {least} s would do");
}

/// A shop whose retailer was given a rate and a burst.
fn shop(sites: impl IntoIterator<Item = SiteScript>) -> Rig {
    let mut rig = Rig::new(sites);
    let limit = Rate::per_second(RATE, BURST);
    rig.rules.pace.groups.default = Some(limit);
    rig.rules.pace.groups.named.insert("r".to_owned(), limit);
    rig.rules.pace.groups.at_sites.insert("r".to_owned(), limit);
    rig
}

fn of_shop(group: &str, count: usize) -> Vec<NewJob> {
    (0..count).map(|n| job_of(group, "c", &format!("http://shop.test/{group}/{n}"))).collect()
}

fn took(hits: &[Hit]) -> f64 {
    (hits[hits.len() - 1].at - hits[0].at).as_secs_f64()
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_a_retailer_is_the_pace_of_its_shop() {
    let rig = shop([SiteScript::new("shop.test")]);
    rig.queue.enqueue(of_shop("r", 500));
    rig.run().await.unwrap();
    let hits = pages(&rig, "r");
    assert_eq!(hits.len(), 500);
    keeps_its_pace(&hits, RATE, BURST);
    let least = f64::from(500 - BURST) / RATE;
    assert!(took(&hits) < least * 1.1, "{} s, where {least} s would do", took(&hits));
    let at_once = hits.iter().filter(|hit| hit.at - hits[0].at < Duration::from_millis(10));
    // Its robots.txt took a slot, too.
    let at_once = at_once.count();
    assert!((BURST as usize - 2..=BURST as usize).contains(&at_once), "{at_once} at once");
}

#[tokio::test(start_paused = true)]
async fn two_processes_share_the_pace_of_a_shop() {
    let rig = shop([SiteScript::new("shop.test")]);
    rig.queue.enqueue(of_shop("r", 300));
    let stop = CancellationToken::new;
    let (a, b) = tokio::join!(rig.run_until(stop()), rig.run_until(stop()));
    a.and(b).unwrap();
    let hits = pages(&rig, "r");
    assert_eq!(hits.len(), 300);
    keeps_its_pace(&hits, RATE, BURST);
    assert!(took(&hits) < f64::from(300 - BURST) / RATE * 1.25, "{} s", took(&hits));
}

#[tokio::test(start_paused = true)]
async fn others_keep_the_interval_of_a_shop() {
    let rig = shop([SiteScript::new("shop.test")]);
    rig.queue.enqueue(of_shop("other", 30));
    rig.run().await.unwrap();
    let hits = pages(&rig, "other");
    assert_eq!(hits.len(), 30);
    let gaps = hits.windows(2).map(|pair| pair[1].at - pair[0].at);
    assert!(gaps.min().is_some_and(|gap| gap >= Duration::from_secs(1)));
}

/// Both take turns. The retailer's limit holds as ever, and the others come no more often than by themselves.
#[tokio::test(start_paused = true)]
async fn a_retailer_and_others_share_a_shop() {
    let rig = shop([SiteScript::new("shop.test")]);
    rig.queue.enqueue(of_shop("r", 100));
    rig.queue.enqueue(of_shop("other", 10));
    rig.run().await.unwrap();
    let own = pages(&rig, "r");
    let others = pages(&rig, "other");
    assert_eq!((own.len(), others.len()), (100, 10));
    keeps_its_pace(&own, RATE, BURST);
    let gaps = others.windows(2).map(|pair| pair[1].at - pair[0].at);
    assert!(gaps.min().is_some_and(|gap| gap >= Duration::from_secs(1)));
    assert!(took(&others) < 20.0, "{} s", took(&others));
    assert!(took(&own) < 30.0, "{} s", took(&own));
}

/// A permit requested for a retailer's page also covers other pages. Each decision reads the clock, so counting reads
/// counts decisions.
#[tokio::test(start_paused = true)]
async fn without_a_pace_by_order_a_retailer_and_others_share_a_permit() {
    // A permit is good for a second, which is an odd number of pages: both kinds ask for some.
    let mut rig = shop([SiteScript::new("shop.test").slow(Duration::from_millis(150))]);
    rig.limits.max_in_flight = 1;
    let read = Arc::new(AtomicUsize::new(0));
    let counted = read.clone();
    let clock = rig.clock.clone();
    rig.clock = Clock::new(move || {
        assert!(counted.fetch_add(1, Ordering::Relaxed) < 100_000, "it goes round in circles");
        clock.now()
    });
    let site = Site::parse("shop.test").unwrap();
    rig.politeness.order(&site, Order::SetInterval(Duration::ZERO), "ann").await.unwrap();
    rig.queue.enqueue(of_shop("r", 100));
    rig.queue.enqueue(of_shop("other", 100));
    rig.run().await.unwrap();
    assert_eq!((pages(&rig, "r").len(), pages(&rig, "other").len()), (100, 100));
    let read = read.load(Ordering::Relaxed);
    assert!(read < 50_000, "the clock was read {read} times for 200 pages");
}

#[tokio::test(start_paused = true)]
async fn a_crawl_delay_a_sites_own_rate_and_a_rest_bind_a_retailer() {
    let second = Duration::from_secs(1);
    let rig = shop([SiteScript::new("shop.test").crawl_delay(2 * second)]);
    rig.queue.enqueue(of_shop("r", 10));
    rig.run().await.unwrap();
    let gaps = |rig: &Rig| -> Vec<Duration> {
        pages(rig, "r").windows(2).map(|pair| pair[1].at - pair[0].at).collect()
    };
    assert!(gaps(&rig).iter().all(|gap| *gap >= 2 * second), "{:?}", gaps(&rig));

    let mut rig = shop([SiteScript::new("shop.test")]);
    rig.rules.pace.sites.insert(Site::parse("shop.test").unwrap(), second / 2);
    rig.queue.enqueue(of_shop("r", 10));
    rig.run().await.unwrap();
    assert!(gaps(&rig).iter().all(|gap| *gap >= second / 2), "{:?}", gaps(&rig));

    let rest = 30 * second;
    let failure = OutageKind::Status503 { retry_after: Some(rest) };
    let rig = shop([SiteScript::new("shop.test").outage(2 * second..3 * second, failure)]);
    rig.queue.enqueue(of_shop("r", 100));
    rig.run().await.unwrap();
    let hits = rig.world.hits_of("shop.test");
    let refused = hits.iter().rposition(|hit| hit.status == Some(503)).unwrap();
    let rested = hits[refused + 1].at - hits[refused].at;
    assert!(rested >= rest, "the next came after {rested:?}");
}

#[tokio::test(start_paused = true)]
async fn two_processes_share_the_pace_of_a_group() {
    let rig = rig(100, RATE, 5);
    let urls = (0..300).map(|n| job_of("r", "c", &format!("http://s{}.test/r/{n}", n % 100)));
    rig.queue.enqueue(urls.collect());
    let stop = CancellationToken::new;
    let (a, b) = tokio::join!(rig.run_until(stop()), rig.run_until(stop()));
    a.and(b).unwrap();
    let hits = pages(&rig, "r");
    assert_eq!(hits.len(), 300);
    keeps_its_pace(&hits, RATE, 5);
    let took = (hits[299].at - hits[0].at).as_secs_f64();
    assert!(took < 295.0 / RATE * 1.25, "{took} s");
}

#[tokio::test(start_paused = true)]
async fn a_slow_group_does_not_hold_up_another_at_the_same_site() {
    let mut rig = rig(1, RATE, BURST);
    rig.rules.pace.groups.named.insert("slow".to_owned(), Rate::per_second(0.05, 1));
    let slow = (0..5).map(|n| job_of("slow", "c", &format!("http://s0.test/slow/{n}")));
    let quick = (0..60).map(|n| job_of("quick", "c", &format!("http://s0.test/quick/{n}")));
    rig.queue.enqueue(slow.chain(quick).collect());
    rig.run().await.unwrap();
    let slow = pages(&rig, "slow");
    let quick = pages(&rig, "quick");
    assert_eq!((slow.len(), quick.len()), (5, 60));
    keeps_its_pace(&slow, 0.05, 1);
    let took = (quick[59].at - quick[0].at).as_secs_f64();
    assert!(took < 66.0, "{took} s for 60 pages at one a second, and at most five others between");
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_one_caller_does_not_hold_up_another() {
    let rig = rig(1, 1_000.0, 1_000);
    let flood = (0..500).map(|n| job_of("r", "flood", &format!("http://s0.test/flood/{n}")));
    rig.queue.enqueue(flood.collect());
    rig.queue.enqueue(vec![job_of("r", "b", "http://s0.test/b/1")]);
    rig.run().await.unwrap();
    let flood = pages(&rig, "flood");
    let b = pages(&rig, "b");
    let before = flood.iter().filter(|hit| hit.at < b[0].at).count();
    assert!(before <= 2, "{before} pages of the flood came before it");
}

#[tokio::test(start_paused = true)]
async fn a_group_with_work_for_hours_leaves_the_window_to_others() {
    let mut rig = rig(3_000, 1.0, 1);
    rig.limits.window = 256;
    let flood = (0..3_000).map(|n| job_of("slow", "a", &format!("http://s{n}.test/slow/{n}")));
    rig.queue.enqueue(flood.collect());
    rig.rules.pace.groups.named.insert("other".to_owned(), Rate::per_second(100.0, 100));
    let other = (0..200).map(|n| job_of("other", "b", &format!("http://s{n}.test/other/{n}")));
    rig.queue.enqueue(other.collect());
    let stop = CancellationToken::new();
    let ends = tokio::time::timeout(Duration::from_secs(20), rig.run_until(stop)).await;
    assert!(ends.is_err(), "the slow group has work for most of an hour");
    assert_eq!(pages(&rig, "other").len(), 200);
}

#[tokio::test(start_paused = true)]
async fn robots_and_probes_are_nobodys() {
    let rig = rig(30, 1.0, 1);
    let urls = (0..30).map(|n| job_of("r", "c", &format!("http://s{n}.test/r/{n}")));
    rig.queue.enqueue(urls.collect());
    rig.run().await.unwrap();
    keeps_its_pace(&pages(&rig, "r"), 1.0, 1);
    assert_eq!(rig.world.count(|hit| hit.kind == HitKind::Robots), 30);
}

/// The next turn of a slow group is further ahead than a request waits for with its connection. Each process reserved
/// turns that it did not use, always after those of the other, and neither ever sent a request.
#[tokio::test(start_paused = true)]
async fn two_processes_share_the_turns_of_a_slow_group() {
    let rig = rig(40, 0.25, 1);
    let urls = (0..40).map(|n| job_of("r", "c", &format!("http://s{n}.test/r/{n}")));
    rig.queue.enqueue(urls.collect());
    let stop = CancellationToken::new;
    let both = async { tokio::join!(rig.run_until(stop()), rig.run_until(stop())) };
    let ended = tokio::time::timeout(Duration::from_secs(3_600), both).await;
    let hits = pages(&rig, "r");
    assert_eq!(hits.len(), 40, "after an hour");
    let (a, b) = ended.unwrap();
    a.and(b).unwrap();
    keeps_its_pace(&hits, 0.25, 1);
    assert!(took(&hits) < 39.0 / 0.25 * 1.5, "{} s", took(&hits));
}
