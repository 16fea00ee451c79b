//! What goes wrong inside: plans that panic or halt, crashes that repeat, sinks that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::adapters::NewJob;
use fetchwell_engine::http::budget::Share;
use fetchwell_engine::pipeline::{Door, Ended};
use fetchwell_engine::ports::{
    Demand, Finish, Finished, Job, LeaseId, Moment, Plan, Politeness, Renewal, Settle, Settled,
    Settlement, Sink, SinkThenSettle, Source, Step, StoreFault, Taken,
};
use fetchwell_engine::web::{Outcome, Phases, Request};
use fetchwell_policy::outcome::Happened;
use fetchwell_policy::retry::RetryRule;
use fetchwell_policy::url::{Site, WebUrl};
use fetchwell_simweb::{Failure, HitKind, Manner, SiteScript};
use fetchwell_testkit::rig::{Rig, Row, job};
use tokio_util::sync::CancellationToken;

/// Does what its URL says.
struct Odd(String);

impl Plan<String> for Odd {
    fn step(&mut self, last: Option<Outcome>, _: Moment) -> Step<String> {
        let says = |word: &str| self.0.contains(word);
        match last {
            None if says("panics-first") => panic!("at the first step"),
            None => Step::Fetch(vec![Request::page(WebUrl::parse(&self.0).unwrap())]),
            Some(_) if says("panics-later") => panic!("at the second step"),
            Some(_) if says("waits-for-nothing") => Step::Fetch(Vec::new()),
            Some(_) if says("halts") => Step::Halt("enough".to_owned()),
            Some(_) if says("goes-on") => {
                Step::Fetch(vec![Request::page(WebUrl::parse("http://b.test/").unwrap())])
            }
            Some(_) => Step::Finish(vec![self.0.clone()], Settlement::Done),
        }
    }
}

/// Fails some times, then keeps what it is given.
struct Moody<Q> {
    failures_left: AtomicUsize,
    records: Arc<std::sync::Mutex<Vec<String>>>,
    source: Q,
}

#[async_trait]
impl<Q: Settle> Finish<String> for Moody<Q> {
    async fn finish(&self, batch: &[Finished<String>]) -> Result<Vec<Settled>, StoreFault> {
        let left = |n: usize| n.checked_sub(1);
        if self.failures_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok() {
            return Err(StoreFault::Unavailable("the disk is full".to_owned()));
        }
        let leases: Vec<_> = batch.iter().map(|f| (&f.lease, &f.settlement)).collect();
        let settled = self.source.settle(&leases).await?;
        let records = batch.iter().flat_map(|f| f.records.iter().cloned());
        self.records.lock().unwrap().extend(records);
        Ok(settled)
    }
}

async fn run(rig: &Rig, sink_failures: usize) -> (Ended, Vec<String>) {
    let instance = Arc::new(rig.queue.instance());
    let records = Arc::new(std::sync::Mutex::new(Vec::new()));
    let door = Door {
        source: instance.clone(),
        planner: Arc::new(|lease| {
            assert!(!lease.job.url.contains("no-plan"), "no plan for this one");
            Box::new(Odd(lease.job.url.clone()))
        }),
        finish: Arc::new(Moody {
            failures_left: AtomicUsize::new(sink_failures),
            records: records.clone(),
            source: instance,
        }),
        obituary: Arc::new(|lease, reason| vec![format!("{} died: {reason}", lease.job.url)]),
    };
    let ended = rig.run_door(door, CancellationToken::new()).await.unwrap();
    let mut records = records.lock().unwrap().clone();
    records.sort();
    (ended, records)
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_panics_ends_its_own_url_with_the_panics_text_and_the_rest_goes_on() {
    let rig = Rig::new([SiteScript::new("a.test")]);
    let names = ["panics-first", "panics-later", "no-plan", "waits-for-nothing", "fine"];
    rig.enqueue(names.map(|name| format!("http://a.test/{name}")));
    let (ended, records) = run(&rig, 0).await;
    assert_eq!(ended, Ended::Exhausted);
    assert_eq!(records.len(), 5, "{records:?}");
    let said = |url: &str, word: &str| records.iter().any(|r| r.contains(url) && r.contains(word));
    assert!(said("panics-first", "at the first step"), "{records:?}");
    assert!(said("panics-later", "at the second step"), "{records:?}");
    assert!(said("no-plan", "no plan for this one"), "{records:?}");
    assert!(said("waits-for-nothing", "neither fetches nor finishes"), "{records:?}");
    let ledger = rig.queue.ledger();
    assert_eq!((ledger.done, ledger.dead, ledger.balances()), (1, 4, true));
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_halts_ends_the_run_and_loses_nothing() {
    let rig = Rig::new([SiteScript::new("a.test"), SiteScript::new("b.test")]);
    rig.enqueue((0..20).map(|n| format!("http://a.test/{n}")));
    rig.enqueue(["http://b.test/halts"]);
    let (ended, _) = run(&rig, 0).await;
    assert_eq!(ended, Ended::Halted("enough".to_owned()));
    let ledger = rig.queue.ledger();
    assert_eq!((ledger.in_flight, ledger.dead, ledger.balances()), (0, 0, true));
    assert!(ledger.queued + ledger.delayed >= 19, "{ledger:?}");
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_fails_is_tried_again_and_nothing_is_fetched_twice() {
    let rig = Rig::new([SiteScript::new("a.test")]);
    rig.enqueue((0..30).map(|n| format!("http://a.test/{n}")));
    let (ended, records) = run(&rig, 7).await;
    assert_eq!((ended, records.len()), (Ended::Exhausted, 30));
    let pages = rig.world.count(|hit| hit.path.as_ref() != "/robots.txt");
    assert_eq!(pages, 30);
}

/// A source whose store is gone after the first sign of life.
struct CutOff<Q> {
    source: Arc<Q>,
    renewals: AtomicUsize,
}

#[async_trait]
impl<Q: Source> Source for CutOff<Q> {
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreFault> {
        self.source.take(demand).await
    }

    async fn started(&self, leases: &[LeaseId]) -> Result<(), StoreFault> {
        self.source.started(leases).await
    }

    async fn renew(&self) -> Result<Renewal, StoreFault> {
        match self.renewals.fetch_add(1, Ordering::SeqCst) {
            0 => self.source.renew().await,
            _ => Err(StoreFault::Unavailable("the store is gone".to_owned())),
        }
    }
}

/// A door of odd plans whose results are kept at once.
fn odd_door(source: Arc<dyn Source>, settles: Arc<impl Settle + 'static>) -> Door<String> {
    Door {
        source,
        planner: Arc::new(|lease| Box::new(Odd(lease.job.url.clone()))),
        finish: Arc::new(Moody {
            failures_left: AtomicUsize::new(0),
            records: Arc::default(),
            source: settles,
        }),
        obituary: Arc::new(|_, _| Vec::new()),
    }
}

/// The site is slow, so that answers are still under way when the lease is over.
#[tokio::test(start_paused = true)]
async fn who_cannot_renew_its_lease_asks_for_nothing_more_before_it_ends() {
    let rig = Rig::new([SiteScript::new("a.test").slow(Duration::from_secs(3))]);
    rig.enqueue((0..60).map(|n| format!("http://a.test/{n}")));
    let (instance, lease_ttl) = (Arc::new(rig.queue.instance()), Duration::from_secs(20));
    let cut_off = CutOff { source: instance.clone(), renewals: AtomicUsize::new(0) };
    let door = odd_door(Arc::new(cut_off), instance);
    let run = rig.run_door(door, CancellationToken::new());
    assert!(tokio::time::timeout(lease_ttl * 2, run).await.is_err(), "it waits for its store");
    let last = rig.world.hits().last().unwrap().at;
    assert!(last < lease_ttl, "it still asked for pages at {last:?}");
}

/// Without results that are safe there is no end; but there is no hurry either.
#[tokio::test(start_paused = true)]
async fn who_is_stopped_while_its_sink_is_gone_ends_when_its_grace_is_over() {
    let rig = Rig::new([SiteScript::new("a.test")]);
    rig.enqueue(["http://a.test/"]);
    let instance = Arc::new(rig.queue.instance());
    let door = Door {
        source: instance.clone(),
        planner: Arc::new(|lease| Box::new(Odd(lease.job.url.clone()))),
        finish: Arc::new(SinkThenSettle { sink: Nowhere, source: instance }),
        obituary: Arc::new(|_, _| Vec::new()),
    };
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        stopping.cancel();
    });
    let began = rig.clock.now();
    assert_eq!(rig.run_door(door, stop).await.unwrap(), Ended::Stopped);
    let took = rig.clock.now().since(began);
    let grace = rig.limits.shutdown_grace;
    assert!(took > grace && took < grace + Duration::from_secs(10), "{took:?}");
    assert_eq!(rig.queue.ledger().in_flight, 1, "it is left for a rescue");
}

/// What is to follow an answer is not waited for: nothing is sent any more.
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
    assert_eq!(rig.run_door(door, stop).await.unwrap(), Ended::Stopped);
    let took = rig.clock.now().since(began);
    assert!(took < slow * 3, "{took:?}");
    let ledger = rig.queue.ledger();
    assert_eq!((ledger.queued, ledger.in_flight), (1, 0), "{ledger:?}");
}

/// A sink that is never there.
struct Nowhere;

#[async_trait]
impl Sink<String> for Nowhere {
    async fn write(&self, _: &[&String]) -> Result<(), StoreFault> {
        Err(StoreFault::Unavailable("the broker is gone".to_owned()))
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_sink_did_not_take_is_not_settled() {
    let rig = Rig::new([]);
    rig.enqueue(["http://a.test/"]);
    let source = rig.queue.instance();
    source.renew().await.unwrap();
    let demand = Demand { most: 1, most_per_site: 1, ..Demand::default() };
    let Taken::Jobs(mut leases) = source.take(&demand).await.unwrap() else { panic!() };
    let finished = Finished {
        lease: leases.remove(0),
        records: vec!["a page".to_owned()],
        settlement: Settlement::Done,
        phases: Phases::default(),
        share: Share::none(),
    };
    let finish = SinkThenSettle { sink: Nowhere, source };
    assert!(finish.finish(&[finished]).await.is_err());
    let ledger = rig.queue.ledger();
    assert_eq!((ledger.in_flight, ledger.done), (1, 0));
}

/// Takes one lease, says that it started, and dies.
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
        assert_eq!(ended, Ended::Exhausted);
        assert!(records[0].contains(expected), "{crashes} crashes: {records:?}");
        assert_eq!(records[1], "http://a.test/innocent");
        assert!(rig.queue.ledger().balances());
    }
}

/// Where a door wants it so, what keeps us from reading robots.txt counts as an attempt at the page.
#[tokio::test(start_paused = true)]
async fn a_site_that_cannot_be_reached_for_its_robots_txt_cannot_be_reached_for_its_pages() {
    let for_ever = Duration::ZERO..Duration::from_secs(1_000_000);
    let mut rig = Rig::new([SiteScript::new("down.test").outage(for_ever, Failure::Refuse)]);
    rig.retry = RetryRule::RETRIEVER;
    rig.rules.robots.pages_fail_with_it = true;
    rig.enqueue(["http://down.test/1", "http://down.test/2"]);
    let began = rig.clock.now();
    rig.run().await.unwrap();
    let rows = rig.rows();
    let failed = |row: &Row| matches!(row.happened, Happened::Network(_)) && row.attempts == 3;
    assert!(rows.iter().all(failed), "{rows:?}");
    assert_eq!(rows.len(), 2);
    assert_eq!(rig.world.count(|hit| hit.kind == HitKind::Page), 0, "no page was asked for");
    assert!(rig.clock.now().since(began) < Duration::from_secs(40));
}

/// Whether it waits for robots.txt, for its slot or for an answer.
#[tokio::test(start_paused = true)]
async fn who_is_in_the_window_hears_in_time_that_its_deadline_passed() {
    let slow = SiteScript::new("slow.test").slow(Duration::from_secs(20));
    let silent = SiteScript::new("silent.test").manner("/", Manner::Stall);
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
    let passed = |row: &&Row| row.happened == Happened::DeadlinePassed;
    let fetched = |row: &&Row| row.happened == Happened::Answered(200);
    assert_eq!(rows.iter().filter(fetched).count(), 5, "{rows:?}");
    assert_eq!(rows.iter().filter(passed).count(), 6, "{rows:?}");
    assert_eq!(rig.queue.ledger().done, 11);
    // A request that was under way is an attempt, and is said to have been; whatever waited is not.
    let silent = rows.iter().find(|row| row.url == "http://silent.test/").unwrap();
    let said = silent.held_up_by.as_deref().unwrap_or_default();
    assert!(silent.attempts == 1 && said.contains("under way"), "{silent:?}");
    let waited = rows.iter().filter(passed).filter(|row| row.url != silent.url);
    assert!(waited.clone().all(|row| row.attempts == 0), "{rows:?}");
    // A deadline of ours is no failure of the site.
    let (state, _) = rig.politeness.look(&Site::parse("silent.test").unwrap()).await.unwrap();
    assert_eq!(state.unwrap().breaker.consecutive_failures, 0);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_closed_site_is_told_when_its_deadline_passes() {
    let for_ever = Duration::ZERO..Duration::from_secs(1_000_000);
    let rig = Rig::new([SiteScript::new("down.test").outage(for_ever, Failure::Refuse)]);
    let deadline = rig.clock.now() + Duration::from_secs(1_000);
    let urgent = Job { deadline: Some(deadline), ..job("http://down.test/") };
    rig.queue.enqueue(vec![NewJob::now(urgent)]);
    rig.run().await.unwrap();
    let row = rig.rows().remove(0);
    assert_eq!(row.happened, Happened::DeadlinePassed);
    assert!(row.held_up_by.is_some_and(|why| why.contains("its circuit is open")));
    let late = rig.clock.now().since(deadline);
    assert!(late <= Duration::from_secs(1), "it was told {late:?} late");
}
