//! Plans that panic, halt or go on, and URLs that kill the process that fetches them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fetchwell_engine::pipeline::{Door, RunEnd};
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::ports::politeness::Politeness;
use fetchwell_engine::ports::source::{Demand, Source, Taken};
use fetchwell_engine::web::{Outcome, Request};
use fetchwell_policy::url::{Site, WebUrl};
use fetchwell_simweb::SiteScript;
use fetchwell_testkit::rig::Rig;
use tokio_util::sync::CancellationToken;

use super::{Moody, odd_door, run};

/// A job that fails because of an error in this process is retried, finally on its own, and then quarantined with the
/// text of the panic. This does not count as a failure of its site.
#[tokio::test(start_paused = true)]
async fn a_plan_that_panics_is_tried_again_and_at_last_quarantined_and_the_rest_goes_on() {
    let rig = Rig::new([SiteScript::new("a.test")]);
    let names = ["panics-first", "panics-later", "no-plan", "waits-for-nothing", "fine"];
    rig.enqueue(names.map(|name| format!("http://a.test/{name}")));
    let (ended, records) = run(&rig, 0).await;
    assert_eq!(ended, RunEnd::Exhausted);
    assert_eq!(records.len(), 5, "{records:?}");
    let said = |url: &str, word: &str| records.iter().any(|r| r.contains(url) && r.contains(word));
    assert!(said("panics-first", "at the first step"), "{records:?}");
    assert!(said("panics-later", "at the second step"), "{records:?}");
    assert!(said("no-plan", "no plan for this one"), "{records:?}");
    assert!(said("waits-for-nothing", "neither fetches nor finishes"), "{records:?}");
    let ledger = rig.queue.ledger();
    assert_eq!((ledger.done, ledger.dead, ledger.balances()), (1, 4, true));
    let asked = |path: &str| rig.world.count(|hit| hit.path.as_ref() == path);
    assert_eq!((asked("/panics-later"), asked("/fine")), (4, 1));
    let (state, _) = rig.politeness.look(&Site::parse("a.test").unwrap()).await.unwrap();
    assert_eq!(state.unwrap().breaker.consecutive_failures, 0);
}

/// Panics until `panics_left`, which all plans share, is used up.
struct Shaky {
    url: WebUrl,
    panics_left: Arc<AtomicUsize>,
}

impl Plan<String> for Shaky {
    fn step(&mut self, last: Option<Outcome>, _: Moment) -> Step<String> {
        if last.is_none() {
            return Step::Fetch(vec![Request::page(self.url.clone())]);
        }
        let left = |n: usize| n.checked_sub(1);
        let panics = self.panics_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left);
        assert!(panics.is_err(), "not this time");
        Step::Finish(vec![self.url.to_string()], Settlement::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn steps_that_panic_for_a_while_cost_no_url_its_result() {
    let sites = (0..10).map(|n| SiteScript::new(&format!("s{n}.test")));
    let rig = Rig::new(sites);
    let urls: Vec<String> = (0..10).map(|n| format!("http://s{n}.test/")).collect();
    rig.enqueue(&urls);
    let instance = Arc::new(rig.queue.instance());
    let records = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let panics_left = Arc::new(AtomicUsize::new(15));
    let door = Door {
        source: instance.clone(),
        planner: Arc::new(move |lease| {
            let url = WebUrl::parse(&lease.job.url).unwrap();
            Box::new(Shaky { url, panics_left: panics_left.clone() })
        }),
        finish: Arc::new(Moody {
            failures_left: AtomicUsize::new(0),
            records: records.clone(),
            source: instance,
        }),
        give_up_record: Arc::new(|lease, _, reason| {
            vec![format!("{} died: {reason}", lease.job.url)]
        }),
    };
    assert_eq!(rig.run_door(door, CancellationToken::new()).await.unwrap(), RunEnd::Exhausted);
    let mut records = records.lock().clone();
    records.sort();
    assert_eq!(records, urls);
    assert_eq!(rig.queue.ledger().done, 10);
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_halts_ends_the_run_and_loses_nothing() {
    let rig = Rig::new([SiteScript::new("a.test"), SiteScript::new("b.test")]);
    rig.enqueue((0..20).map(|n| format!("http://a.test/{n}")));
    rig.enqueue(["http://b.test/halts"]);
    let (ended, _) = run(&rig, 0).await;
    assert_eq!(ended, RunEnd::Halted("enough".to_owned()));
    let ledger = rig.queue.ledger();
    assert_eq!((ledger.in_flight, ledger.dead, ledger.balances()), (0, 0, true));
    assert!(ledger.waiting() >= 19, "{ledger:?}");
}

/// It does not wait for a follow-up request, because nothing more is sent after a stop.
#[tokio::test(start_paused = true)]
async fn who_is_stopped_hands_back_what_would_go_on() {
    let slow = Duration::from_secs(3);
    let rig = Rig::new([SiteScript::new("a.test").slow(slow), SiteScript::new("b.test")]);
    rig.enqueue(["http://a.test/goes-on"]);
    let instance = Arc::new(rig.queue.instance());
    let door = odd_door(instance.clone(), instance);
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        tokio::time::sleep(slow + slow / 2).await; // robots.txt was slow, too.
        stopping.cancel();
    });
    let began = rig.clock.now();
    assert_eq!(rig.run_door(door, stop).await.unwrap(), RunEnd::Stopped);
    let took = rig.clock.now().since(began);
    assert!(took < slow * 3, "{took:?}");
    let ledger = rig.queue.ledger();
    assert_eq!((ledger.queued, ledger.in_flight), (1, 0), "{ledger:?}");
}

/// Takes one lease, records its start, and dies.
async fn crash_while_fetching(rig: &Rig) {
    let unlucky = rig.queue.instance();
    unlucky.renew().await.unwrap();
    let demand = Demand { most: 1, most_per_site: 1, ..Demand::default() };
    let Taken::Jobs(leases) = unlucky.take(&demand).await.unwrap() else { panic!() };
    unlucky.started(&[leases[0].id]).await.unwrap();
    tokio::time::sleep(Duration::from_secs(21)).await;
}

#[tokio::test(start_paused = true)]
async fn a_url_that_kills_processes_is_quarantined_and_one_that_was_there_by_chance_is_not() {
    for (crashes, expected) in [(3, "http://a.test/deadly"), (4, "quarantined")] {
        let rig = Rig::new([SiteScript::new("a.test")]);
        rig.enqueue(["http://a.test/deadly"]);
        for _ in 0..crashes {
            crash_while_fetching(&rig).await;
        }
        rig.enqueue(["http://a.test/innocent"]);
        let (ended, records) = run(&rig, 0).await;
        assert_eq!(ended, RunEnd::Exhausted);
        assert!(records[0].contains(expected), "{crashes} crashes: {records:?}");
        assert_eq!(records[1], "http://a.test/innocent");
        assert!(rig.queue.ledger().balances());
    }
}
