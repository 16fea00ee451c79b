//! Sites that are down and come back, on a simulated clock: robots.txt first, and the same outcome for the same
//! outage. Judged at the origin.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_engine::budget::Share;
use fetchwell_engine::pipeline::Event;
use fetchwell_engine::ports::politeness::{Politeness, RobotsRecord, Unreachable};
use fetchwell_engine::ports::sites::Sites;
use fetchwell_engine::web::{Answer, Exchange, Phases, Request, SendPermit, Web};
use fetchwell_policy::orders::Order;
use fetchwell_policy::outcome::{FetchOutcome, SiteFault};
use fetchwell_policy::retry::RetryRule;
use fetchwell_policy::robots::WhenUnreachable;
use fetchwell_policy::url::{Origin, Site};
use fetchwell_simweb::{Hit, HitKind, OutageKind, SiteScript, judge};
use fetchwell_testkit::rig::{Rig, Row};
use tokio::time::{Instant, sleep, sleep_until};

const CLOSED: &str = "User-agent: *\nDisallow: /private";

fn seconds(s: f64) -> Duration {
    Duration::from_secs_f64(s)
}

fn down(from_s: f64, to_s: f64) -> Range<Duration> {
    seconds(from_s)..seconds(to_s)
}

fn pages(site: &str, path: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("http://{site}/{path}/{n}")).collect()
}

fn served(hits: &[Hit]) -> usize {
    hits.iter().filter(|hit| hit.kind == HitKind::Page && hit.status == Some(200)).count()
}

async fn order(rig: &Rig, site: &str, order: Order) {
    rig.politeness.order(&Site::parse(site).unwrap(), order, "ann").await.unwrap();
}

/// Its robots.txt could not be read either, and its own back-off is longer than the breaker's.
#[tokio::test(start_paused = true)]
async fn a_site_that_comes_back_is_asked_for_robots_txt_before_any_page() {
    for when in [WhenUnreachable::Allow, WhenUnreachable::Defer] {
        let shop = SiteScript::new("shop.test").robots(CLOSED);
        let mut rig = Rig::new([shop.outage(down(0.0, 400.0), OutageKind::Refuse)]);
        rig.rules.robots.when_unreachable = when;
        rig.enqueue(pages("shop.test", "private", 40));
        rig.enqueue(pages("shop.test", "open", 5));
        rig.run().await.unwrap();
        let hits = rig.world.hits_of("shop.test");
        assert_eq!(served(&hits), 5, "{when:?}: only what robots.txt allows");
        let back: Vec<&Hit> = hits.iter().filter(|hit| hit.status.is_some()).collect();
        let kinds: Vec<HitKind> = back.iter().take(3).map(|hit| hit.kind).collect();
        assert_eq!(kinds, [HitKind::Head, HitKind::Robots, HitKind::Page], "{when:?}");
        let rows = rig.rows();
        let skipped = |row: &&Row| row.happened == FetchOutcome::RobotsDisallow;
        assert_eq!((rows.len(), rows.iter().filter(skipped).count()), (45, 40), "{when:?}");
        let verdict = judge(&hits, &rig.world.rule(seconds(1.0)));
        assert!(verdict.is_polite(), "{when:?}: {verdict}");
    }
}

/// A robots.txt that could not be read, and is not tried again for five minutes.
async fn unread(rig: &Rig, origin: &str) {
    let now = rig.clock.now();
    let record = RobotsRecord {
        body: None,
        status: None,
        fetched_at: now,
        unreachable: Some(Unreachable {
            since: now,
            tries: 8,
            retry_at: now + seconds(300.0),
            is_asked_for: false,
            reason: "the connection broke".to_owned(),
            recoveries: 0,
        }),
        robots_forgotten: None,
    };
    let origin = Origin::parse(origin).unwrap();
    rig.politeness.keep_robots(&origin, &record).await.unwrap();
}

/// Too short an outage for the breaker: a page tells that the site is back, and robots.txt comes next.
#[tokio::test(start_paused = true)]
async fn the_first_page_that_is_served_again_is_followed_by_robots_txt() {
    let shop = SiteScript::new("shop.test").robots(CLOSED);
    let mut rig = Rig::new([shop.outage(down(0.0, 2.5), OutageKind::Refuse)]);
    rig.rules.robots.when_unreachable = WhenUnreachable::Allow;
    unread(&rig, "http://shop.test").await;
    rig.enqueue(pages("shop.test", "private", 40));
    rig.run().await.unwrap();
    let hits = rig.world.hits_of("shop.test");
    let back: Vec<HitKind> =
        hits.iter().filter(|hit| hit.status.is_some()).map(|hit| hit.kind).collect();
    assert_eq!(back, [HitKind::Page, HitKind::Robots]);
}

/// What was not served before is not served "again": the file has its back-off.
#[tokio::test(start_paused = true)]
async fn a_robots_txt_that_keeps_failing_is_not_asked_for_with_every_page() {
    let mut rig = Rig::new([SiteScript::new("shop.test").robots_status(503)]);
    rig.rules.robots.when_unreachable = WhenUnreachable::Allow;
    rig.enqueue(pages("shop.test", "page", 60));
    rig.run().await.unwrap();
    let hits = rig.world.hits_of("shop.test");
    assert_eq!(served(&hits), 60);
    let robots = hits.iter().filter(|hit| hit.kind == HitKind::Robots).count();
    assert!((2..=6).contains(&robots), "{robots} times");
}

#[tokio::test(start_paused = true)]
async fn a_reset_breaker_has_robots_txt_read_at_once() {
    let shop = SiteScript::new("shop.test").robots(CLOSED);
    let rig = Rig::new([shop.outage(down(0.0, 900.0), OutageKind::Refuse)]);
    rig.enqueue(pages("shop.test", "private", 10));
    rig.enqueue(pages("shop.test", "open", 3));
    let started = Instant::now();
    let operator = async {
        sleep_until(started + seconds(910.0)).await; // Neither a probe nor robots.txt is due soon.
        let before = rig.world.hits_of("shop.test").len();
        order(&rig, "shop.test", Order::ResetBreaker).await;
        sleep_until(started + seconds(912.0)).await;
        let after = rig.world.hits_of("shop.test").split_off(before);
        assert_eq!(after.first().map(|hit| hit.kind), Some(HitKind::Robots), "{after:?}");
    };
    let (ended, ()) = tokio::join!(rig.run(), operator);
    ended.unwrap();
    assert_eq!(served(&rig.world.hits_of("shop.test")), 3);
    assert_eq!(rig.rows().len(), 13);
}

/// The order deletes the stored copy, and the file that arrives after it is from before the order.
#[tokio::test(start_paused = true)]
async fn a_robots_txt_that_is_being_read_when_an_operator_orders_that_is_read_again() {
    let rig = Rig::new([SiteScript::new("shop.test").robots(CLOSED).slow(seconds(3.0))]);
    rig.enqueue(pages("shop.test", "open", 4));
    let operator = async {
        sleep(seconds(1.0)).await;
        order(&rig, "shop.test", Order::ForgetRobots).await;
    };
    let (ended, ()) = tokio::join!(rig.run(), operator);
    ended.unwrap();
    let kinds: Vec<HitKind> = rig.world.hits_of("shop.test").iter().map(|hit| hit.kind).collect();
    use HitKind::{Page, Robots};
    assert_eq!(kinds, [Robots, Robots, Page, Page, Page, Page]);
}

/// Another process was reading it when the order was given, and stored it afterwards.
#[tokio::test(start_paused = true)]
async fn a_stored_robots_txt_from_before_an_order_is_not_used() {
    for (is_ordered, robots_read) in [(false, 0), (true, 1)] {
        let rig = Rig::new([SiteScript::new("shop.test").robots(CLOSED)]);
        if is_ordered {
            order(&rig, "shop.test", Order::ForgetRobots).await;
        }
        let record = RobotsRecord {
            body: Some(Vec::new()),
            status: Some(200),
            fetched_at: rig.clock.now(),
            unreachable: None,
            robots_forgotten: None,
        };
        let origin = Origin::parse("http://shop.test").unwrap();
        rig.politeness.keep_robots(&origin, &record).await.unwrap();
        rig.enqueue(pages("shop.test", "private", 3));
        rig.run().await.unwrap();
        let hits = rig.world.hits_of("shop.test");
        let robots = hits.iter().filter(|hit| hit.kind == HitKind::Robots).count();
        assert_eq!(robots, robots_read, "ordered: {is_ordered}");
        assert_eq!(served(&hits), if is_ordered { 0 } else { 3 });
    }
}

/// While the breaker is open nothing is tried, so robots.txt's own back-off does not grow and holds up no probe.
#[tokio::test(start_paused = true)]
async fn probes_go_when_they_are_due_also_where_robots_txt_was_never_read() {
    let rig =
        Rig::new([SiteScript::new("shop.test").outage(down(0.0, 1_000.0), OutageKind::Refuse)]);
    rig.enqueue(pages("shop.test", "page", 3));
    rig.run().await.unwrap();
    let hits = rig.world.hits_of("shop.test");
    let probes = hits.iter().filter(|hit| hit.kind == HitKind::Head);
    let times: Vec<f64> = probes.map(|hit| hit.at.as_secs_f64()).collect();
    let waits: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).round()).collect();
    assert_eq!(waits, [60.0, 120.0, 240.0, 300.0, 300.0]);
    assert_eq!(rig.rows().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_site_that_does_not_know_head_is_up() {
    for status in [405, 501] {
        let shop = SiteScript::new("shop.test").status("/", status);
        let mut rig = Rig::new([shop.outage(down(2.5, 60.0), OutageKind::Refuse)]);
        rig.rules.give_up_after = Some(seconds(3_600.0));
        rig.enqueue(pages("shop.test", "page", 20));
        rig.run().await.unwrap();
        let rows = rig.rows();
        assert_eq!(rows.len(), 20);
        let fetched = |row: &Row| row.happened == FetchOutcome::Answered(200);
        assert!(rows.iter().all(fetched), "HEAD answers {status}: {rows:?}");
    }
}

/// An archive of which one file is broken: that answers 500 at once, and the others take their time.
struct Archive;

#[async_trait]
impl Web for Archive {
    async fn exchange(
        &self,
        request: &Request,
        send_permit: &mut dyn SendPermit,
        phases: &mut Phases,
    ) -> Exchange {
        if !send_permit.to_write().await {
            return Exchange::NotSent;
        }
        let (status, takes) = match request.url.path_and_query() {
            "/robots.txt" => (404, seconds(0.0)),
            path if path.starts_with("/broken.warc") => (500, seconds(0.01)),
            _ => (200, seconds(60.0)),
        };
        sleep(takes).await;
        phases.first_byte = takes;
        Exchange::Answered(Answer {
            status,
            headers: http::HeaderMap::new(),
            body: Bytes::from_static(b"x"),
            share: Share::none(),
            wire: Box::default(),
        })
    }
}

#[tokio::test(start_paused = true)]
async fn one_broken_file_of_an_archive_opens_no_breaker_for_the_others() {
    let opened = Arc::new(AtomicUsize::new(0));
    let counted = opened.clone();
    let mut rig =
        Rig::new([]).with_web(Arc::new(Archive)).with_event_sink(Arc::new(move |event| {
            if matches!(event, Event::CircuitOpened { .. }) {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        }));
    rig.retry = RetryRule::ARCHIVE;
    rig.rules.pace.concurrency = HashMap::from([(Site::parse("archive.test").unwrap(), 8)]);
    rig.enqueue((0..4).map(|n| format!("http://archive.test/good{n}.warc")));
    rig.enqueue((0..30).map(|n| format!("http://archive.test/broken.warc?range={n}")));
    rig.run().await.unwrap();
    assert_eq!(opened.load(Ordering::SeqCst), 0, "the breaker opened");
    let rows = rig.rows();
    let good = |row: &&Row| row.happened == FetchOutcome::Answered(200);
    assert_eq!((rows.len(), rows.iter().filter(good).count()), (34, 4));
}

/// Five files that fail are no longer one.
#[tokio::test(start_paused = true)]
async fn an_archive_of_which_every_file_fails_is_down() {
    let for_ever = OutageKind::Status503 { retry_after: None };
    let mut rig = Rig::new([SiteScript::new("archive.test").outage(down(0.0, 300.0), for_ever)]);
    let opened = Arc::new(AtomicUsize::new(0));
    let counted = opened.clone();
    rig = rig.with_event_sink(Arc::new(move |event| {
        if matches!(event, Event::CircuitOpened { .. }) {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    }));
    rig.retry = RetryRule::ARCHIVE;
    rig.rules.robots.when_unreachable = WhenUnreachable::Allow;
    rig.rules.pace.concurrency = HashMap::from([(Site::parse("archive.test").unwrap(), 8)]);
    rig.enqueue((0..20).map(|n| format!("http://archive.test/{n}.warc")));
    rig.run().await.unwrap();
    assert!(opened.load(Ordering::SeqCst) > 0, "the breaker never opened");
    assert_eq!(rig.rows().len(), 20);
}

/// A retriever whose messages go to a site that is down from `from_s` on.
async fn messages_to_a_dead_site(from_s: f64, failure: OutageKind) -> (Vec<Row>, Duration) {
    let dead = SiteScript::new("dead.test").outage(down(from_s, 1e6), failure);
    let mut rig = Rig::new([dead]);
    rig.retry = RetryRule::RETRIEVER;
    rig.rules.robots.pages_fail_with_it = true;
    rig.rules.site_attempts = Some(3);
    rig.enqueue(pages("dead.test", "page", 300));
    let started = Instant::now();
    rig.run().await.unwrap();
    assert!(rig.queue.ledger().balances());
    (rig.rows(), started.elapsed())
}

/// Whether robots.txt was read before the outage or not, and however many messages there are: three attempts,
/// own ones or failed probes.
#[tokio::test(start_paused = true)]
async fn the_same_outage_has_the_same_outcome() {
    for from_s in [0.0, 2.5] {
        let (rows, took) = messages_to_a_dead_site(from_s, OutageKind::Refuse).await;
        assert_eq!(rows.len(), 300);
        let failed = rows.iter().filter(|row| row.happened != FetchOutcome::Answered(200));
        for row in failed.clone() {
            let no_connection = matches!(
                row.happened,
                FetchOutcome::Network(_)
                    | FetchOutcome::ProbesFailed { last: SiteFault::Network, .. }
            );
            assert!(no_connection && row.attempts == 3, "down from {from_s} s: {row:?}");
        }
        assert!(failed.count() >= 297, "down from {from_s} s");
        assert!(took < seconds(600.0), "down from {from_s} s: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_failed_probe_says_how_a_message_ends() {
    let (rows, took) = messages_to_a_dead_site(2.5, OutageKind::Stall).await;
    assert!(took < seconds(900.0), "{took:?}");
    let waited =
        rows.iter().filter(|row| matches!(row.happened, FetchOutcome::ProbesFailed { .. }));
    for row in waited.clone() {
        let FetchOutcome::ProbesFailed { last, .. } = row.happened else { panic!("{row:?}") };
        assert_eq!((last, row.attempts), (SiteFault::TimedOut, 3), "{row:?}");
    }
    assert!(waited.count() > 200, "most never had a request of their own");
}

/// Without that rule they wait unharmed, as in every other door.
#[tokio::test(start_paused = true)]
async fn what_waits_for_a_probe_in_another_door_is_unharmed() {
    let rig =
        Rig::new([SiteScript::new("shop.test").outage(down(2.5, 2_000.0), OutageKind::Refuse)]);
    rig.enqueue(pages("shop.test", "page", 30));
    rig.run().await.unwrap();
    assert!(rig.rows().iter().all(|row| row.happened == FetchOutcome::Answered(200)));
    assert_eq!(rig.rows().len(), 30);
}

/// Where the site says 1 s it is 1 s, also for the fifth time, plus what the pace takes.
#[tokio::test(start_paused = true)]
async fn a_retry_after_of_one_second_is_one_second() {
    let interval = seconds(0.1);
    let second = seconds(1.0);
    let strict = SiteScript::new("strict.test").strict_limiter(seconds(5.5), Some(second));
    let mut rig = Rig::new([strict]);
    rig.rules.pace.default_interval = interval;
    rig.enqueue(["http://strict.test/1", "http://strict.test/2"]);
    rig.run().await.unwrap();
    let hits = rig.world.hits_of("strict.test");
    let limited: Vec<_> = hits.windows(2).filter(|pair| pair[0].status == Some(429)).collect();
    assert!(limited.len() >= 5, "{hits:?}");
    for pair in limited {
        let waited = pair[1].at - pair[0].at;
        let most = second + interval + seconds(0.01);
        assert!((second..=most).contains(&waited), "{waited:?} after {:?}", pair[0].at);
    }
    assert_eq!(rig.rows().len(), 2);
}
