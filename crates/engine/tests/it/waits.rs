//! Waits that come to an end: hosts that do not exist, and sites that ask for more time than there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::plan::redirect_chain::Patience;
use fetchwell_engine::ports::politeness::Politeness;
use fetchwell_engine::web::{Exchange, Phases, Request, SendPermit, Web};
use fetchwell_policy::breaker::Breaker;
use fetchwell_policy::outcome::{FetchOutcome, NameFault, NetworkFault, WaitAskedBy};
use fetchwell_policy::retry::RetryRule;
use fetchwell_policy::url::Site;
use fetchwell_simweb::{HitKind, OutageKind, SiteScript, World};
use fetchwell_testkit::rig::{Rig, Row};
use fetchwell_testkit::simulated_web::SimulatedWeb;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const GIVE_UP_AFTER: Duration = Duration::from_secs(600);

fn pages(site: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("http://{site}/page/{n}")).collect()
}

/// A rig that gives up as `fetch` does.
fn rig(sites: impl IntoIterator<Item = SiteScript>) -> Rig {
    let mut rig = Rig::new(sites);
    rig.rules.give_up_after = Some(GIVE_UP_AFTER);
    rig.rules.missing_hosts_fail = true;
    rig.retry = RetryRule::FETCH;
    rig.patience = Some(Patience { since: rig.clock.now(), lasts: GIVE_UP_AFTER });
    rig
}

/// A web in which `gone.test` does not exist while the flag is set.
struct Names {
    web: SimulatedWeb,
    is_gone: Arc<AtomicBool>,
}

#[async_trait]
impl Web for Names {
    async fn exchange(
        &self,
        request: &Request,
        send_permit: &mut dyn SendPermit,
        phases: &mut Phases,
    ) -> Exchange {
        if request.url.host() == "gone.test" && self.is_gone.load(Ordering::SeqCst) {
            let fault = NetworkFault::Dns(NameFault::NoSuchName);
            return Exchange::Failed(FetchOutcome::Network(fault));
        }
        self.web.exchange(request, send_permit, phases).await
    }
}

fn with_gone_host(rig: Rig, world: &Arc<World>, is_gone: bool) -> (Rig, Arc<AtomicBool>) {
    let is_gone = Arc::new(AtomicBool::new(is_gone));
    let web = SimulatedWeb::new(world.clone(), "TestBot/1.0");
    let web = Arc::new(Names { web, is_gone: is_gone.clone() });
    (rig.with_web(web), is_gone)
}

fn sites() -> [SiteScript; 2] {
    ["gone.test", "there.test"].map(SiteScript::new)
}

fn of<'a>(rows: &'a [Row], site: &str) -> Vec<&'a Row> {
    rows.iter().filter(|row| row.url.contains(site)).collect()
}

#[tokio::test(start_paused = true)]
async fn urls_of_a_host_that_does_not_exist_fail_within_seconds_and_no_other_does() {
    let rig = rig(sites());
    let world = rig.world.clone();
    let (rig, _) = with_gone_host(rig, &world, true);
    rig.enqueue(pages("gone.test", 500));
    rig.enqueue(pages("there.test", 5));
    let started = Instant::now();
    rig.run().await.unwrap();
    let rows = rig.rows();
    let gone = of(&rows, "gone.test");
    assert_eq!(gone.len(), 500);
    assert!(gone.iter().all(|row| row.happened == FetchOutcome::NoSuchHost), "{:?}", gone[0]);
    assert!(gone.iter().all(|row| row.attempts == 1), "{:?}", gone[0]);
    let there = of(&rows, "there.test");
    assert!(there.iter().all(|row| row.happened == FetchOutcome::Answered(200)), "{there:?}");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    // The URLs are to blame, so nothing is held against the site.
    let (state, _) = rig.politeness.look(&Site::parse("gone.test").unwrap()).await.unwrap();
    assert!(state.is_none_or(|state| state.breaker == Breaker::default()));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_answered_before_is_a_site_that_is_down() {
    let rig = rig(sites());
    let world = rig.world.clone();
    let (rig, is_gone) = with_gone_host(rig, &world, false);
    rig.enqueue(pages("gone.test", 1));
    rig.run().await.unwrap();
    is_gone.store(true, Ordering::SeqCst);
    rig.enqueue(["http://gone.test/later"]);
    let started = Instant::now();
    rig.run().await.unwrap();
    let rows = rig.rows();
    assert_eq!(rows.len(), 2);
    let is_of_site = |happened: &FetchOutcome| {
        matches!(happened, FetchOutcome::Network(_) | FetchOutcome::SiteStayedDown { .. })
    };
    assert!(is_of_site(&rows[1].happened), "{:?}", rows[1]);
    assert!(started.elapsed() >= Duration::from_secs(500), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn where_sites_are_to_blame_a_missing_host_is_waited_for() {
    let mut rig = rig(sites());
    rig.rules.give_up_after = None;
    rig.rules.missing_hosts_fail = false;
    rig.patience = None;
    rig.retry = RetryRule::PAGES;
    let world = rig.world.clone();
    let (rig, is_gone) = with_gone_host(rig, &world, true);
    rig.enqueue(pages("gone.test", 5));
    let stop = CancellationToken::new();
    let ends = tokio::time::timeout(Duration::from_secs(3_600), rig.run_until(stop)).await;
    assert!(ends.is_err() && rig.rows().is_empty(), "{:?}", rig.rows());
    is_gone.store(false, Ordering::SeqCst);
    rig.run().await.unwrap();
    assert_eq!(rig.rows().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_redirect_to_a_host_that_does_not_exist_fails_its_own_url_only() {
    let there = SiteScript::new("there.test").redirect("/away", "http://gone.test/x");
    let rig = rig([there]);
    let world = rig.world.clone();
    let (rig, _) = with_gone_host(rig, &world, true);
    rig.enqueue(["http://there.test/away", "http://there.test/here"]);
    rig.run().await.unwrap();
    let mut rows = rig.rows();
    rows.sort_by_key(|row| row.url.clone());
    assert_eq!(rows[0].happened, FetchOutcome::NoSuchHost);
    assert_eq!(rows[1].happened, FetchOutcome::Answered(200));
}

#[tokio::test(start_paused = true)]
async fn a_robots_txt_that_leads_to_such_a_host_is_out_of_reach() {
    let there = SiteScript::new("there.test").robots_redirect("http://gone.test/robots.txt");
    let rig = rig([there]);
    let world = rig.world.clone();
    let (rig, _) = with_gone_host(rig, &world, true);
    rig.enqueue(["http://there.test/here"]);
    rig.run().await.unwrap();
    let rows = rig.rows();
    assert!(matches!(rows[0].happened, FetchOutcome::SiteStayedDown { .. }), "{rows:?}");
    assert_eq!(rig.world.count(|hit| hit.kind == HitKind::Page), 0);
}

fn is_too_long(row: &Row, by: WaitAskedBy) -> bool {
    matches!(row.happened, FetchOutcome::WaitTooLong { asked_by, .. } if asked_by == by)
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_beyond_our_patience_ends_the_sites_urls_at_once() {
    let hour = Duration::from_secs(3_600);
    // Robots.txt answers, and the pages do not; or nothing does.
    let pages_only = SiteScript::new("busy.test").busy("/page/*", 503, hour);
    let failure = OutageKind::Status503 { retry_after: Some(hour) };
    let all = SiteScript::new("busy.test").outage(Duration::ZERO..10 * hour, failure);
    for site in [pages_only, all] {
        let rig = rig([site, SiteScript::new("there.test")]);
        rig.enqueue(pages("busy.test", 200));
        rig.enqueue(pages("there.test", 5));
        let started = Instant::now();
        rig.run().await.unwrap();
        let rows = rig.rows();
        let busy = of(&rows, "busy.test");
        assert_eq!(busy.len(), 200);
        let is_right = |row: &&Row| {
            is_too_long(row, WaitAskedBy::RetryAfter) || is_too_long(row, WaitAskedBy::Penalty)
        };
        let wrong: Vec<_> = busy.iter().filter(|row| !is_right(row)).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
        assert_eq!(of(&rows, "there.test").len(), 5);
    }
}

/// How long we stay away is then our own choice.
#[tokio::test(start_paused = true)]
async fn a_429_without_a_retry_after_is_not_said_to_have_had_one() {
    let mut rig = rig([SiteScript::new("busy.test").status("/page/*", 429)]);
    rig.rules.give_up_after = Some(Duration::from_secs(30));
    rig.enqueue(pages("busy.test", 20));
    rig.run().await.unwrap();
    let rows = rig.rows();
    assert_eq!(rows.len(), 20);
    let ended = rows.iter().filter(|row| matches!(row.happened, FetchOutcome::WaitTooLong { .. }));
    assert!(ended.clone().count() > 0, "{rows:?}");
    assert!(ended.clone().all(|row| is_too_long(row, WaitAskedBy::Penalty)), "{rows:?}");
}

#[tokio::test(start_paused = true)]
async fn a_shorter_retry_after_is_waited_for() {
    let rest = Duration::from_secs(300);
    let failure = OutageKind::Status503 { retry_after: Some(rest) };
    let outage = Duration::from_secs(2)..Duration::from_secs(3);
    let rig = rig([SiteScript::new("busy.test").outage(outage, failure)]);
    rig.enqueue(pages("busy.test", 10));
    rig.run().await.unwrap();
    let rows = rig.rows();
    assert_eq!(rows.len(), 10);
    assert!(rows.iter().all(|row| row.happened == FetchOutcome::Answered(200)), "{rows:?}");
}

#[tokio::test(start_paused = true)]
async fn a_crawl_delay_beyond_our_patience_ends_what_would_wait_for_it() {
    for (delay_s, give_up_s) in [(3_600, 600), (60, 20), (5, 2)] {
        let delay = Duration::from_secs(delay_s);
        let mut rig = rig([SiteScript::new("slow.test").crawl_delay(delay)]);
        rig.rules.give_up_after = Some(Duration::from_secs(give_up_s));
        rig.enqueue(pages("slow.test", 50));
        let started = Instant::now();
        rig.run().await.unwrap();
        let rows = rig.rows();
        let fetched = rows.iter().filter(|row| row.happened == FetchOutcome::Answered(200)).count();
        let ended = rows.iter().filter(|row| is_too_long(row, WaitAskedBy::CrawlDelay)).count();
        assert_eq!((rows.len(), fetched + ended), (50, 50), "{delay_s}: {rows:?}");
        assert!((1..=2).contains(&fetched), "{delay_s}: {fetched} were fetched");
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_crawl_delay_within_our_patience_is_kept_however_long_the_list_is() {
    let rig = rig([SiteScript::new("slow.test").crawl_delay(Duration::from_secs(60))]);
    rig.enqueue(pages("slow.test", 30));
    rig.run().await.unwrap();
    let rows = rig.rows();
    assert!(rows.iter().all(|row| row.happened == FetchOutcome::Answered(200)), "{rows:?}");
    assert_eq!(rows.len(), 30);
}
