//! The whole flow on a simulated clock: politeness, skewed work, outages. Judged at the origin.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::politeness::{Politeness, SiteAsk};
use fetchwell_engine::ports::sites::Sites;
use fetchwell_policy::orders::Order;
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::site::{Spend, Verdict};
use fetchwell_policy::url::Site;
use fetchwell_simweb::{
    HitKind, OutageKind, SiteScript, count_status, judge, site_name, zipf_urls,
};
use fetchwell_testkit::rig::Rig;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

fn pages(site: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("http://{site}/page/{n}")).collect()
}

fn seconds(s: f64) -> Duration {
    Duration::from_secs_f64(s)
}

#[tokio::test(start_paused = true)]
async fn ten_workers_on_one_strict_site_never_come_too_soon() {
    let second = seconds(1.0);
    let shop = SiteScript::new("shop.test").crawl_delay(second).strict_limiter(second, None);
    let mut rig = Rig::new([shop.slow(seconds(3.0))]);
    rig.limits.max_in_flight = 10;
    rig.enqueue(pages("shop.test", 50));
    rig.run().await.unwrap();
    let hits = rig.world.hits();
    assert_eq!(rig.rows().len(), 50);
    assert_eq!(count_status(&hits, 429), 0);
    let verdict = judge(&hits, &rig.world.rule(second));
    assert!(verdict.is_polite(), "{verdict}");
    assert!(rig.queue.ledger().balances());
}

#[tokio::test(start_paused = true)]
async fn a_hundred_sites_at_one_a_second_give_nearly_a_hundred_a_second() {
    let names: Vec<String> = (1..=100).map(site_name).collect();
    let rig = Rig::new(names.iter().map(|name| SiteScript::new(name)));
    rig.enqueue(names.iter().flat_map(|name| pages(name, 60)));
    let started = Instant::now();
    rig.run().await.unwrap();
    let rate = 6_000.0 / started.elapsed().as_secs_f64();
    assert!(rate > 95.0, "{rate} pages a second");
    let verdict = judge(&rig.world.hits(), &rig.world.rule(seconds(1.0)));
    assert!(verdict.is_polite(), "{verdict}");
}

#[tokio::test(start_paused = true)]
async fn a_crawl_delay_of_five_keeps_five_seconds() {
    let rig = Rig::new([SiteScript::new("slow.test").crawl_delay(seconds(5.0))]);
    rig.enqueue(pages("slow.test", 20));
    let started = Instant::now();
    rig.run().await.unwrap();
    let verdict = judge(&rig.world.hits(), &rig.world.rule(seconds(1.0)));
    assert!(verdict.is_polite(), "{verdict}");
    assert!(started.elapsed() < seconds(19.0 * 5.0 * 1.02), "{:?}", started.elapsed());
}

/// The lower bound: the largest site at its pace, or all work at full capacity.
fn lower_bound(urls: &[String], interval: Duration, capacity_per_s: f64) -> f64 {
    let mut by_site = HashMap::new();
    for url in urls {
        *by_site.entry(url.split('/').nth(2).unwrap()).or_insert(0usize) += 1;
    }
    let largest = by_site.values().max().copied().unwrap_or(0) as f64;
    ((largest - 1.0) * interval.as_secs_f64()).max(urls.len() as f64 / capacity_per_s)
}

/// Fetches skewed work, and tells when the last page was asked for and what the bound is.
async fn skewed_run(with_dead_site: bool) -> (f64, f64) {
    let sites = 1_000;
    let count = 10_000;
    let latency = seconds(0.1);
    let urls = zipf_urls(sites, count, 1.0, 42);
    let mut scripts: Vec<_> = (1..=sites)
        .map(|rank| SiteScript::new(&site_name(rank)).page_bytes(200).slow(latency))
        .collect();
    let for_ever = seconds(0.0)..seconds(1e6);
    scripts.push(SiteScript::new("dead.test").outage(for_ever, OutageKind::Refuse));
    let mut rig = Rig::new(scripts);
    rig.limits.max_in_flight = 64;
    rig.rules.give_up_after = Some(seconds(600.0));
    if with_dead_site {
        rig.enqueue(pages("dead.test", 500));
    }
    rig.enqueue(&urls);
    rig.run().await.unwrap();
    let hits = rig.world.hits();
    let verdict = judge(&hits, &rig.world.rule(seconds(1.0)));
    assert!(verdict.is_polite(), "{verdict}");
    let fetched =
        rig.rows().iter().filter(|row| row.happened == FetchOutcome::Answered(200)).count();
    assert_eq!(fetched, count);
    let alive = hits.iter().filter(|hit| hit.site.as_ref() != "dead.test");
    let last_page_s = alive.map(|hit| hit.at.as_secs_f64()).fold(0.0, f64::max);
    (last_page_s, lower_bound(&urls, seconds(1.0), 64.0 / latency.as_secs_f64()))
}

#[tokio::test(start_paused = true)]
async fn skewed_work_takes_as_long_as_the_largest_site() {
    let (took_s, bound_s) = skewed_run(false).await;
    assert!(took_s <= bound_s * 1.02, "{took_s} s, lower bound {bound_s} s");
}

#[tokio::test(start_paused = true)]
async fn one_dead_site_changes_nothing_for_the_others() {
    let (took_s, bound_s) = skewed_run(true).await;
    assert!(took_s <= bound_s * 1.02, "{took_s} s, lower bound {bound_s} s");
}

#[tokio::test(start_paused = true)]
async fn a_two_hour_outage_is_sat_out_with_rare_probes_and_nothing_is_lost() {
    let outage = seconds(60.0)..seconds(60.0 + 7_200.0);
    let rig = Rig::new([
        SiteScript::new("shop.test").outage(outage.clone(), OutageKind::Refuse),
        SiteScript::new("other.test"),
    ]);
    rig.enqueue(pages("shop.test", 200));
    rig.enqueue(pages("other.test", 200));
    rig.run().await.unwrap();
    let hits = rig.world.hits_of("shop.test");
    let during = hits.iter().filter(|hit| outage.contains(&hit.at));
    let (probes, others): (Vec<_>, Vec<_>) = during.partition(|hit| hit.kind == HitKind::Head);
    assert_eq!(others.len(), 5, "five failures open the breaker, and nothing goes after them");
    let times = others.last().into_iter().chain(&probes).map(|hit| hit.at.as_secs_f64());
    let times: Vec<f64> = times.collect();
    let waits: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).round()).collect();
    assert_eq!(waits[..4], [30.0, 60.0, 120.0, 240.0]);
    assert!(waits[4..].iter().all(|wait_s| *wait_s == 300.0), "{waits:?}");
    let rows = rig.rows();
    assert_eq!(rows.len(), 400);
    assert!(rows.iter().all(|row| row.happened == FetchOutcome::Answered(200)), "nothing is lost");
    assert!(rig.queue.dead().is_empty());
    let verdict = judge(&hits, &rig.world.rule(seconds(1.0)));
    assert!(verdict.is_polite(), "no burst after the outage: {verdict}");
    let others_done = rig.world.hits_of("other.test").last().unwrap().at;
    assert!(others_done < seconds(205.0), "the other site ran at full speed: {others_done:?}");
}

#[tokio::test(start_paused = true)]
async fn a_503_with_retry_after_rests_the_whole_site() {
    let busy = seconds(3.5)..seconds(4.5);
    let rest = seconds(120.0);
    let busy = SiteScript::new("busy.test")
        .outage(busy, OutageKind::Status503 { retry_after: Some(rest) });
    let rig = Rig::new([busy]);
    rig.enqueue(pages("busy.test", 10));
    rig.run().await.unwrap();
    let hits = rig.world.hits_of("busy.test");
    let refused = hits.iter().position(|hit| hit.status == Some(503)).unwrap();
    let rested = hits[refused + 1].at - hits[refused].at;
    assert!(rested >= rest, "the next page came after {rested:?}");
    assert_eq!((count_status(&hits, 503), count_status(&hits, 200)), (1, 10));
}

#[tokio::test(start_paused = true)]
async fn a_dead_site_is_given_up_after_a_while() {
    let for_ever = seconds(0.0)..seconds(1e6);
    let mut rig = Rig::new([SiteScript::new("dead.test").outage(for_ever, OutageKind::Refuse)]);
    rig.rules.give_up_after = Some(seconds(600.0));
    rig.enqueue(pages("dead.test", 500));
    let started = Instant::now();
    rig.run().await.unwrap();
    let rows = rig.rows();
    assert_eq!(rows.len(), 500);
    assert!(rows.iter().all(|row| matches!(row.happened, FetchOutcome::SiteStayedDown { .. })));
    assert!(started.elapsed() < seconds(610.0), "{:?}", started.elapsed());
}

/// Hits are by the time since the world began; so are these.
async fn at(world_time_s: f64, started: Instant) {
    tokio::time::sleep_until(started + seconds(world_time_s)).await;
}

#[tokio::test(start_paused = true)]
async fn paused_sites_are_left_alone_and_a_resume_is_felt_within_a_second() {
    let names: Vec<String> = (1..=200).map(site_name).collect();
    let asks = Arc::new(AtomicUsize::new(0));
    let counted = asks.clone();
    let mut rig = Rig::new(
        names.iter().map(|name| SiteScript::new(name)).chain([SiteScript::new("open.test")]),
    )
    .with_watch(move |of_turn| {
        counted.fetch_add(of_turn.len(), Ordering::SeqCst);
        Ok(Duration::ZERO)
    });
    rig.limits.window = 64;
    for name in &names {
        order(&rig, name, Order::Pause).await;
        rig.enqueue(pages(name, 5));
    }
    rig.enqueue(pages("open.test", 10));
    let started = Instant::now();
    let stop = CancellationToken::new();
    let operator = async {
        at(3_600.0, started).await;
        let asked = asks.load(Ordering::SeqCst);
        assert!(asked < 200 * 10, "paused sites were asked for {asked} times in an hour");
        let ledger = rig.queue.ledger();
        let waiting = ledger.waiting();
        assert_eq!((waiting, ledger.in_flight), (1_000, 0), "what waits can be seen to wait");
        order(&rig, &names[7], Order::Resume).await;
        at(3_601.0, started).await;
        let first = rig.world.hits_of(&names[7]).first().map(|hit| hit.at);
        assert!(first.is_some(), "nothing was felt of the order for a second");
        at(3_620.0, started).await;
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(rig.run_until(stop.clone()), operator);
    ended.unwrap();
    let hits = rig.world.hits();
    let allowed = ["open.test", names[7].as_str()];
    assert!(hits.iter().all(|hit| allowed.contains(&hit.site.as_ref())), "the others stay paused");
    assert_eq!(rig.rows().len(), 15);
    let verdict = judge(&hits, &rig.world.rule(seconds(1.0)));
    assert!(verdict.is_polite(), "{verdict}");
}

#[tokio::test(start_paused = true)]
async fn an_order_that_was_given_while_nobody_worked_is_heard_by_whoever_comes_next() {
    let rig = Rig::new([SiteScript::new("shop.test")]);
    order(&rig, "shop.test", Order::Pause).await;
    rig.enqueue(pages("shop.test", 5));
    let started = Instant::now();
    let stop = CancellationToken::new();
    let operator = async {
        at(30.0, started).await;
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(rig.run_until(stop.clone()), operator);
    ended.unwrap();
    order(&rig, "shop.test", Order::Resume).await;
    at(60.0, started).await;
    rig.run().await.unwrap();
    let first = rig.world.hits_of("shop.test").first().map(|hit| hit.at).unwrap();
    assert!(first < seconds(61.0), "the first request came at {first:?}");
    assert_eq!(rig.rows().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_is_reset_by_order_lets_pages_go_at_once() {
    let outage = seconds(3.5)..seconds(600.0);
    let rig = Rig::new([SiteScript::new("shop.test").outage(outage, OutageKind::Refuse)]);
    rig.enqueue(pages("shop.test", 20));
    let started = Instant::now();
    let operator = async {
        at(620.0, started).await; // The next probe is due at 760 s or so.
        let before = rig.world.hits_of("shop.test").len();
        order(&rig, "shop.test", Order::ResetBreaker).await;
        at(621.0, started).await;
        assert!(rig.world.hits_of("shop.test").len() > before, "nothing was felt of the order");
    };
    let (ended, ()) = tokio::join!(rig.run(), operator);
    ended.unwrap();
    assert_eq!(rig.rows().len(), 20);
}

async fn order(rig: &Rig, site: &str, order: Order) {
    rig.politeness.order(&Site::parse(site).unwrap(), order, "ann").await.unwrap();
}

/// The store takes so long to answer that another process has been there since the robots.txt.
#[tokio::test(start_paused = true)]
async fn a_page_follows_its_robots_txt_only_if_the_store_answers_in_time() {
    let interval = seconds(1.0);
    for fails in [false, true] {
        let began = Instant::now();
        let rig = Rig::new([SiteScript::new("shop.test")]);
        let politeness = rig.politeness.clone();
        let other_head = Arc::new(Mutex::new(None));
        let told = other_head.clone();
        let rig = rig.with_watch(move |asks| {
            let Some(ask) = asks.iter().find(|ask| ask.follows_robots) else {
                return Ok(Duration::ZERO);
            };
            let site = ask.site.clone();
            let rate = ask.rate;
            let politeness = politeness.clone();
            let told = told.clone();
            tokio::spawn(async move {
                let ask = SiteAsk { site: site.clone(), rate, follows_robots: false };
                let turn = politeness.turn(&[], &[ask]).await.unwrap();
                let Verdict::Go(permit) = turn.verdicts[0] else { panic!("{turn:?}") };
                tokio::time::sleep(permit.slot.at.since(turn.now)).await;
                let (spent, _) = politeness.spend(&site, &permit, rate).await.unwrap();
                assert_eq!(spent, Spend::Go);
                *told.lock() = Some(began.elapsed());
            });
            match fails {
                true => Err(StoreError::transient("the store restarts")),
                false => Ok(seconds(1.1)),
            }
        });
        rig.enqueue(pages("shop.test", 1));
        rig.run().await.unwrap();
        let hits = rig.world.hits();
        let page = hits.iter().find(|hit| hit.kind == HitKind::Page).unwrap();
        let other_head = other_head.lock().unwrap();
        let distance = page.at.abs_diff(other_head);
        assert!(distance + seconds(0.005) >= interval, "fails: {fails}, {distance:?}");
    }
}
