//! Sites without pacing, on a paused clock: the store is asked now and then, and a failure is heeded at
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fetchwell_policy::breaker::BreakerRule;
use fetchwell_simweb::{Hit, OutageKind, SiteScript};
use fetchwell_testkit::rig::Rig;
use tokio_util::sync::CancellationToken;

const MAX_IN_FLIGHT: usize = 10;

/// Sites without pacing, and how often their store was asked.
fn rig(sites: impl IntoIterator<Item = SiteScript>) -> (Rig, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let mut rig = Rig::new(sites).with_watch(move |asks| {
        count.fetch_add(asks.len(), Ordering::Relaxed);
        Ok(Duration::ZERO)
    });
    rig.rules.pace.default_interval = Duration::ZERO;
    rig.limits.max_in_flight = MAX_IN_FLIGHT;
    (rig, asked)
}

/// Fetches pages for a while.
async fn run(rig: &Rig, pages: usize, at_most: Duration) {
    rig.enqueue((0..pages).map(|n| format!("http://fast.test/page/{n}")));
    let stop = CancellationToken::new();
    let timer = async {
        tokio::time::sleep(at_most).await;
        stop.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = rig.run_until(stop.clone()) => drop(ended.unwrap()),
        () = timer => {}
    }
}

#[tokio::test(start_paused = true)]
async fn the_store_is_asked_once_a_second_and_not_for_each_page() {
    let (rig, asked) = rig([SiteScript::new("fast.test").slow(Duration::from_millis(100))]);
    // 10 at once, 100 ms each: 100 pages a second, for ten seconds.
    run(&rig, 1_000, Duration::from_secs(60)).await;
    assert_eq!(rig.queue.ledger().done, 1_000);
    let asked = asked.load(Ordering::Relaxed);
    assert!((10..=15).contains(&asked), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_site_that_begins_to_fail_gets_no_more_than_what_was_under_way() {
    let up_for = Duration::from_secs(5);
    let ever = Duration::from_secs(3_600);
    let site = SiteScript::new("fast.test").slow(Duration::from_millis(100));
    let (rig, _) = rig([site.outage(up_for..ever, OutageKind::Status503 { retry_after: None })]);
    run(&rig, 5_000, Duration::from_secs(20)).await;
    let failed = rig.world.count(|hit| hit.status == Some(503));
    let opens_after = usize::try_from(BreakerRule::default().failure_threshold).unwrap();
    assert!(failed <= opens_after + 2 * MAX_IN_FLIGHT, "{failed} requests to a site that is down");
    assert!(rig.queue.ledger().balances());
}

#[tokio::test(start_paused = true)]
async fn sites_take_turns_and_none_gets_a_burst_while_others_wait() {
    let takes = Duration::from_millis(100);
    let names: Vec<String> = (0..2 * MAX_IN_FLIGHT).map(|n| format!("site-{n}.test")).collect();
    let (rig, _) = rig(names.iter().map(|name| SiteScript::new(name).slow(takes)));
    // Site by site, as they may lie in a list.
    let pages = |name| (0..5).map(move |n| format!("http://{name}/{n}"));
    rig.enqueue(names.iter().flat_map(pages));
    rig.run().await.unwrap();
    for name in &names {
        let hits = rig.world.hits_of(name);
        let closest = hits.windows(2).map(|pair| pair[1].at - pair[0].at).min();
        assert!(closest >= Some(takes), "{name} had two at once: {hits:?}");
    }
}

/// An archive: paced by how many requests are under way.
fn archive(site: SiteScript, at_once: usize) -> Rig {
    let (mut rig, _) = rig([site]);
    let name = fetchwell_policy::url::Site::parse("fast.test").unwrap();
    rig.rules.pace.concurrency.insert(name, at_once);
    rig
}

#[tokio::test(start_paused = true)]
async fn an_archive_has_no_more_under_way_than_its_bound() {
    let takes = Duration::from_millis(100);
    let rig = archive(SiteScript::new("fast.test").robots_status(404).slow(takes), 4);
    run(&rig, 100, Duration::from_secs(60)).await;
    assert_eq!(rig.queue.ledger().done, 100);
    let hits = rig.world.hits_of("fast.test");
    let soonest = hits.windows(5).map(|five| five[4].at - five[0].at).min();
    assert!(soonest >= Some(takes), "{soonest:?}");
}

#[tokio::test(start_paused = true)]
async fn an_archive_that_fails_rests_whether_it_asks_for_it_or_not() {
    for retry_after in [None, Some(Duration::ZERO), Some(Duration::from_secs(3))] {
        let failure = OutageKind::Status503 { retry_after };
        let from = Duration::from_secs(5);
        let to = Duration::from_millis(5_001);
        let site = SiteScript::new("fast.test").slow(Duration::from_millis(100));
        let rig = archive(site.outage(from..to, failure), 4);
        run(&rig, 400, Duration::from_secs(60)).await;
        assert_eq!(rig.queue.ledger().done, 400, "{retry_after:?}");
        let hits = rig.world.hits_of("fast.test");
        let failed = hits.iter().filter(|hit| hit.status == Some(503)).count();
        assert!((1..=4).contains(&failed), "{failed}");
        let least = retry_after.unwrap_or_default().max(Duration::from_secs(1));
        // One that was on its way may still come.
        let after = |hit: &&Hit| hit.at > to + Duration::from_millis(10);
        let next = hits.iter().find(after).map(|hit| hit.at - from);
        assert!(next >= Some(least), "{next:?}");
    }
}
