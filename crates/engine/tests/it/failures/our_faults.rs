//! Errors in this process do not count as failures of the site.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::pipeline::RunEnd;
use fetchwell_engine::ports::politeness::Politeness;
use fetchwell_engine::web::{Exchange, Phases, Request, SendPermit, Web};
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::url::Site;
use fetchwell_simweb::{OutageKind, SiteScript};
use fetchwell_testkit::rig::{Rig, Row};
use fetchwell_testkit::simulated_web::SimulatedWeb;

use super::run;

/// A web that fails the first `failures_left` requests of any kind, because this process lacks a resource.
struct Lacking {
    web: SimulatedWeb,
    failures_left: AtomicUsize,
}

#[async_trait]
impl Web for Lacking {
    async fn exchange(
        &self,
        request: &Request,
        leave: &mut dyn SendPermit,
        phases: &mut Phases,
    ) -> Exchange {
        let left = |n: usize| n.checked_sub(1);
        if self.failures_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok() {
            return Exchange::Failed(FetchOutcome::OurFault("no descriptor is left".to_owned()));
        }
        self.web.exchange(request, leave, phases).await
    }
}

/// No failure is recorded for robots.txt, a probe or a page, and requests are not repeated without a pause.
#[tokio::test(start_paused = true)]
async fn what_we_lack_is_no_failure_of_any_site() {
    let sites: Vec<String> = (0..30).map(|n| format!("s{n}.test")).collect();
    let down = SiteScript::new("down.test")
        .outage(Duration::from_secs(10)..Duration::from_secs(200), OutageKind::Refuse);
    let mut rig = Rig::new(sites.iter().map(|site| SiteScript::new(site)).chain([down]));
    rig.rules.give_up_after = Some(Duration::from_secs(600));
    rig.limits.max_in_flight = 16;
    let web = SimulatedWeb::new(rig.world.clone(), "TestBot/1.0");
    let web = Arc::new(Lacking { web, failures_left: AtomicUsize::new(400) });
    let rig = rig.with_web(web.clone());
    let urls = sites.iter().flat_map(|site| (0..3).map(move |n| format!("http://{site}/{n}")));
    rig.enqueue(urls);
    rig.enqueue((0..30).map(|n| format!("http://down.test/{n}")));
    let began = rig.clock.now();
    rig.run().await.unwrap();
    assert_eq!(web.failures_left.load(Ordering::SeqCst), 0);
    let took = rig.clock.now().since(began);
    assert!(took >= Duration::from_secs(400 / 16 - 2), "it went on without a rest: {took:?}");
    let rows = rig.rows();
    assert_eq!(rows.len(), 120);
    let is_fetched = |row: &&Row| row.happened == FetchOutcome::Answered(200);
    assert_eq!(rows.iter().filter(is_fetched).count(), 120, "{rows:?}");
    let first_time = |row: &&Row| row.attempts == 1;
    assert!(rows.iter().filter(first_time).count() >= 90, "{rows:?}");
    for site in &sites {
        let (state, _) = rig.politeness.look(&Site::parse(site).unwrap()).await.unwrap();
        assert_eq!(state.unwrap_or_default().breaker.consecutive_failures, 0, "{site}");
    }
}

/// A web that loses the first `failures_left` answers to `/lost` because of an error in this process.
struct Untaken {
    web: SimulatedWeb,
    failures_left: AtomicUsize,
}

#[async_trait]
impl Web for Untaken {
    async fn exchange(
        &self,
        request: &Request,
        leave: &mut dyn SendPermit,
        phases: &mut Phases,
    ) -> Exchange {
        let answer = self.web.exchange(request, leave, phases).await;
        let left = |n: usize| n.checked_sub(1);
        let is_taken = request.url.path_and_query() != "/lost"
            || !matches!(answer, Exchange::Answered(_))
            || self.failures_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_err();
        if is_taken {
            return answer;
        }
        Exchange::Failed(FetchOutcome::OurFault("no memory is left".to_owned()))
    }
}

/// The site has answered, so the page must not be requested forever.
#[tokio::test(start_paused = true)]
async fn an_answer_that_we_cannot_take_is_asked_for_again_and_at_last_quarantined() {
    for (failures, expected) in [(3, "http://a.test/lost"), (usize::MAX, "no memory is left")] {
        let rig = Rig::new([SiteScript::new("a.test").slow(Duration::from_millis(5))]);
        let web = SimulatedWeb::new(rig.world.clone(), "TestBot/1.0");
        let failures_left = AtomicUsize::new(failures);
        let rig = rig.with_web(Arc::new(Untaken { web, failures_left }));
        rig.enqueue(["http://a.test/lost", "http://a.test/fine"]);
        let running = tokio::time::timeout(Duration::from_secs(3_600), run(&rig, 0));
        let (ended, records) = running.await.expect("it is asked for again and again");
        assert_eq!((ended, records.len()), (RunEnd::Exhausted, 2));
        assert!(records[1].contains(expected), "{records:?}");
        assert_eq!(rig.world.count(|hit| hit.path.as_ref() == "/lost"), 4);
        let ledger = rig.queue.ledger();
        assert_eq!((ledger.done + ledger.dead, ledger.balances()), (2, true), "{ledger:?}");
        let (state, _) = rig.politeness.look(&Site::parse("a.test").unwrap()).await.unwrap();
        assert_eq!(state.unwrap().breaker.consecutive_failures, 0);
    }
}
