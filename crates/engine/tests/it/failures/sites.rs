//! Sites that are down, slow or silent: the outcomes of their URLs, and when they are reported.

use std::time::Duration;

use fetchwell_engine::ports::job::{Job, NewJob};
use fetchwell_engine::ports::politeness::Politeness;
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::retry::RetryRule;
use fetchwell_policy::url::Site;
use fetchwell_simweb::{HitKind, OutageKind, SiteScript, Truncation};
use fetchwell_testkit::rig::{Rig, Row, job};

/// If the door asks for it, a failure to read robots.txt counts as an attempt at the page.
#[tokio::test(start_paused = true)]
async fn a_site_that_cannot_be_reached_for_its_robots_txt_cannot_be_reached_for_its_pages() {
    let for_ever = Duration::ZERO..Duration::from_secs(1_000_000);
    let mut rig = Rig::new([SiteScript::new("down.test").outage(for_ever, OutageKind::Refuse)]);
    rig.retry = RetryRule::RETRIEVER;
    rig.rules.robots.pages_fail_with_it = true;
    rig.enqueue(["http://down.test/1", "http://down.test/2"]);
    let began = rig.clock.now();
    rig.run().await.unwrap();
    let rows = rig.rows();
    let failed = |row: &Row| matches!(row.happened, FetchOutcome::Network(_)) && row.attempts == 3;
    assert!(rows.iter().all(failed), "{rows:?}");
    assert_eq!(rows.len(), 2);
    assert_eq!(rig.world.count(|hit| hit.kind == HitKind::Page), 0, "no page was asked for");
    assert!(rig.clock.now().since(began) < Duration::from_secs(40));
}

/// This holds whether the job waits for robots.txt, for its slot or for an answer.
#[tokio::test(start_paused = true)]
async fn who_is_in_the_window_hears_in_time_that_its_deadline_passed() {
    let slow = SiteScript::new("slow.test").slow(Duration::from_secs(20));
    let silent = SiteScript::new("silent.test").manner("/", Truncation::Stall);
    let busy = SiteScript::new("busy.test");
    let rig = Rig::new([slow, silent, busy]);
    let deadline = rig.clock.now() + Duration::from_secs(5);
    let urgent = |url: String| NewJob::now(Job { deadline: Some(deadline), ..job(&url) });
    let waiting = (0..9).map(|page| urgent(format!("http://busy.test/{page}")));
    let others = ["http://slow.test/", "http://silent.test/"].map(|url| urgent(url.to_owned()));
    rig.queue.enqueue(others.into_iter().chain(waiting).collect());
    rig.run().await.unwrap();
    let late = rig.clock.now().since(deadline);
    assert!(late <= Duration::from_secs(1), "the last was told {late:?} late");
    let rows = rig.rows();
    let passed = |row: &&Row| row.happened == FetchOutcome::DeadlinePassed;
    let fetched = |row: &&Row| row.happened == FetchOutcome::Answered(200);
    assert_eq!(rows.iter().filter(fetched).count(), 5, "{rows:?}");
    assert_eq!(rows.iter().filter(passed).count(), 6, "{rows:?}");
    assert_eq!(rig.queue.ledger().done, 11);
    // A request that was in flight counts as an attempt. A job that only waited does not.
    let silent = rows.iter().find(|row| row.url == "http://silent.test/").unwrap();
    let said = silent.held_up_by.as_deref().unwrap_or_default();
    assert!(silent.attempts == 1 && said.contains("under way"), "{silent:?}");
    let waited = rows.iter().filter(passed).filter(|row| row.url != silent.url);
    assert!(waited.clone().all(|row| row.attempts == 0), "{rows:?}");
    // Our own deadline does not count as a failure of the site.
    let (state, _) = rig.politeness.look(&Site::parse("silent.test").unwrap()).await.unwrap();
    assert_eq!(state.unwrap().breaker.consecutive_failures, 0);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_closed_site_is_told_when_its_deadline_passes() {
    let for_ever = Duration::ZERO..Duration::from_secs(1_000_000);
    let rig = Rig::new([SiteScript::new("down.test").outage(for_ever, OutageKind::Refuse)]);
    let deadline = rig.clock.now() + Duration::from_secs(1_000);
    let urgent = Job { deadline: Some(deadline), ..job("http://down.test/") };
    rig.queue.enqueue(vec![NewJob::now(urgent)]);
    rig.run().await.unwrap();
    let row = rig.rows().remove(0);
    assert_eq!(row.happened, FetchOutcome::DeadlinePassed);
    assert!(row.held_up_by.is_some_and(|why| why.contains("its circuit is open")));
    let late = rig.clock.now().since(deadline);
    assert!(late <= Duration::from_secs(1), "it was told {late:?} late");
}
