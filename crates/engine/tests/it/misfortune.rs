//! What goes wrong inside: plans that panic or halt, crashes that repeat, sinks that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::budget::{Budget, Share};
use fetchwell_engine::pipeline::{Door, Ended};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{
    Finish, Finished, Settle, Settled, Settlement, Sink, SinkThenSettle,
};
use fetchwell_engine::ports::job::{Job, LeaseId, NewJob};
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::ports::politeness::Politeness;
use fetchwell_engine::ports::source::{Demand, Renewal, Source, Taken};
use fetchwell_engine::web::{Answer, Exchange, Leave, Outcome, Phases, Request, Web};
use fetchwell_policy::outcome::Happened;
use fetchwell_policy::retry::RetryRule;
use fetchwell_policy::url::{Site, WebUrl};
use fetchwell_simweb::{Failure, HitKind, Manner, SiteScript};
use fetchwell_testkit::rig::{Rig, Row, job};
use fetchwell_testkit::simulated_web::SimulatedWeb;
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
    records: Arc<parking_lot::Mutex<Vec<String>>>,
    source: Q,
}

#[async_trait]
impl<Q: Settle> Finish<String> for Moody<Q> {
    async fn finish(&self, batch: &[Finished<String>]) -> Result<Vec<Settled>, StoreError> {
        let left = |n: usize| n.checked_sub(1);
        if self.failures_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok() {
            return Err(StoreError::transient("the disk is full"));
        }
        let leases: Vec<_> = batch.iter().map(|f| (&f.lease, &f.settlement)).collect();
        let settled = self.source.settle(&leases).await?;
        let records = batch.iter().flat_map(|f| f.records.iter().cloned());
        self.records.lock().extend(records);
        Ok(settled)
    }
}

async fn run(rig: &Rig, sink_failures: usize) -> (Ended, Vec<String>) {
    let instance = Arc::new(rig.queue.instance());
    let records = Arc::new(parking_lot::Mutex::new(Vec::new()));
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
    let mut records = records.lock().clone();
    records.sort();
    (ended, records)
}

/// What fails by a fault of ours is tried again, at last alone, and then quarantined: with the panic's text, and not as
/// a failure of its site.
#[tokio::test(start_paused = true)]
async fn a_plan_that_panics_is_tried_again_and_at_last_quarantined_and_the_rest_goes_on() {
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
    let asked = |path: &str| rig.world.count(|hit| hit.path.as_ref() == path);
    assert_eq!((asked("/panics-later"), asked("/fine")), (4, 1));
    let (state, _) = rig.politeness.look(&Site::parse("a.test").unwrap()).await.unwrap();
    assert_eq!(state.unwrap().breaker.consecutive_failures, 0);
}

/// Panics some times, whichever URL it is.
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
        obituary: Arc::new(|lease, reason| vec![format!("{} died: {reason}", lease.job.url)]),
    };
    assert_eq!(rig.run_door(door, CancellationToken::new()).await.unwrap(), Ended::Exhausted);
    let mut records = records.lock().clone();
    records.sort();
    assert_eq!(records, urls);
    assert_eq!(rig.queue.ledger().done, 10);
}

/// A web that fails some times because we lack something, whatever is asked for.
struct Lacking {
    web: SimulatedWeb,
    failures_left: AtomicUsize,
}

#[async_trait]
impl Web for Lacking {
    async fn exchange(
        &self,
        request: &Request,
        leave: &mut dyn Leave,
        phases: &mut Phases,
    ) -> Exchange {
        let left = |n: usize| n.checked_sub(1);
        if self.failures_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok() {
            return Exchange::Failed(Happened::OurFault("no descriptor is left".to_owned()));
        }
        self.web.exchange(request, leave, phases).await
    }
}

/// Neither robots.txt, nor a probe, nor a page is said to have failed; and nothing is asked for without a rest.
#[tokio::test(start_paused = true)]
async fn what_we_lack_is_no_failure_of_any_site() {
    let sites: Vec<String> = (0..30).map(|n| format!("s{n}.test")).collect();
    let down = SiteScript::new("down.test")
        .outage(Duration::from_secs(10)..Duration::from_secs(200), Failure::Refuse);
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
    let is_fetched = |row: &&Row| row.happened == Happened::Answered(200);
    assert_eq!(rows.iter().filter(is_fetched).count(), 120, "{rows:?}");
    let first_time = |row: &&Row| row.attempts == 1;
    assert!(rows.iter().filter(first_time).count() >= 90, "{rows:?}");
    for site in &sites {
        let (state, _) = rig.politeness.look(&Site::parse(site).unwrap()).await.unwrap();
        assert_eq!(state.unwrap_or_default().breaker.consecutive_failures, 0, "{site}");
    }
}

/// A web whose answers to `/lost` can't be taken, some times, by a fault of ours.
struct Untaken {
    web: SimulatedWeb,
    failures_left: AtomicUsize,
}

#[async_trait]
impl Web for Untaken {
    async fn exchange(
        &self,
        request: &Request,
        leave: &mut dyn Leave,
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
        Exchange::Failed(Happened::OurFault("no memory is left".to_owned()))
    }
}

/// The site was asked and has answered, so it is not asked for ever.
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
        assert_eq!((ended, records.len()), (Ended::Exhausted, 2));
        assert!(records[1].contains(expected), "{records:?}");
        assert_eq!(rig.world.count(|hit| hit.path.as_ref() == "/lost"), 4);
        let ledger = rig.queue.ledger();
        assert_eq!((ledger.done + ledger.dead, ledger.balances()), (2, true), "{ledger:?}");
        let (state, _) = rig.politeness.look(&Site::parse("a.test").unwrap()).await.unwrap();
        assert_eq!(state.unwrap().breaker.consecutive_failures, 0);
    }
}

/// What pages hold of the byte budget: their bodies, then what a step takes, then their records.
mod holding {
    use super::*;

    const KIB: usize = 1 << 10;
    const BODY: usize = 10 * KIB;
    const WORK: usize = 40 * KIB;

    /// Pages whose bodies count, though they are not there.
    struct Counting {
        budget: Budget,
    }

    #[async_trait]
    impl Web for Counting {
        async fn exchange(
            &self,
            request: &Request,
            leave: &mut dyn Leave,
            phases: &mut Phases,
        ) -> Exchange {
            if !leave.to_write().await {
                return Exchange::NotSent;
            }
            phases.first_byte = Duration::from_millis(1);
            let is_robots = request.url.path_and_query() == "/robots.txt";
            let mut share = Share::none();
            if !is_robots {
                self.budget.grow(&mut share, BODY).await;
            }
            Exchange::Answered(Answer {
                status: if is_robots { 404 } else { 200 },
                headers: Default::default(),
                body: Default::default(),
                share,
                wire: Box::default(),
            })
        }
    }

    struct Reader {
        url: WebUrl,
        budget: Budget,
        total: usize,
        held_bytes: usize,
    }

    impl Plan<String> for Reader {
        fn step(&mut self, last: Option<Outcome>, _: Moment) -> Step<String> {
            if last.is_none() {
                return Step::Fetch(vec![Request::page(self.url.clone())]);
            }
            let used = self.total - self.budget.free_bytes();
            let is_overdrawn = self.total < 20 * (BODY + WORK);
            assert!(is_overdrawn || used >= BODY + WORK, "the step began with {used} bytes");
            Step::Finish(vec![self.url.to_string()], Settlement::Done)
        }

        fn working_bytes(&self, body_bytes: usize) -> usize {
            assert_eq!(body_bytes, BODY);
            WORK
        }

        fn held_bytes(&self) -> Option<usize> {
            Some(self.held_bytes)
        }
    }

    /// Writes down what each batch holds.
    struct Weighing<Q> {
        source: Q,
        batches: Arc<parking_lot::Mutex<Vec<Vec<usize>>>>,
    }

    #[async_trait]
    impl<Q: Settle> Finish<String> for Weighing<Q> {
        async fn finish(&self, batch: &[Finished<String>]) -> Result<Vec<Settled>, StoreError> {
            tokio::time::sleep(Duration::from_secs(1)).await; // So that some gather.
            let held = batch.iter().filter(|end| !end.records.is_empty());
            let held: Vec<usize> = held.map(|end| end.share.bytes()).collect();
            self.batches.lock().push(held);
            let leases: Vec<_> = batch.iter().map(|f| (&f.lease, &f.settlement)).collect();
            self.source.settle(&leases).await
        }
    }

    /// What the pages of each batch held, where each page's records hold so much.
    async fn batches(total: usize, held_bytes: usize) -> Vec<Vec<usize>> {
        let rig = Rig::new((0..20).map(|n| SiteScript::new(&format!("s{n}.test"))));
        let budget = Budget::of_bytes(total);
        let rig = rig.with_web(Arc::new(Counting { budget: budget.clone() }));
        rig.enqueue((0..20).map(|n| format!("http://s{n}.test/")));
        let instance = Arc::new(rig.queue.instance());
        let batches = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let planning = budget.clone();
        let door = Door {
            source: instance.clone(),
            planner: Arc::new(move |lease| {
                let url = WebUrl::parse(&lease.job.url).unwrap();
                let budget = planning.clone();
                Box::new(Reader { url, budget, total, held_bytes })
            }),
            finish: Arc::new(Weighing { source: instance, batches: batches.clone() }),
            obituary: Arc::new(|lease, reason| vec![format!("{} died: {reason}", lease.job.url)]),
        };
        rig.run_door(door, CancellationToken::new()).await.unwrap();
        assert_eq!((rig.queue.ledger().done, budget.free_bytes()), (20, total));
        let batches = batches.lock().clone();
        batches.into_iter().filter(|batch| !batch.is_empty()).collect()
    }

    /// Reads a page of each of two sites.
    struct Twice {
        pages_left: Vec<WebUrl>,
    }

    impl Plan<String> for Twice {
        fn step(&mut self, _: Option<Outcome>, _: Moment) -> Step<String> {
            match self.pages_left.pop() {
                Some(url) => Step::Fetch(vec![Request::page(url)]),
                None => Step::Finish(vec!["read".to_owned()], Settlement::Done),
            }
        }

        fn working_bytes(&self, _: usize) -> usize {
            WORK
        }
    }

    /// A lease that waits for its second page must not keep the memory that the others' steps wait for: they hold all
    /// places in flight, so the second page would never be asked for.
    #[tokio::test(start_paused = true)]
    async fn who_waits_for_its_next_page_holds_no_memory_that_others_wait_for() {
        let mut rig = Rig::new((0..20).map(|n| SiteScript::new(&format!("s{n}.test"))));
        rig.limits.max_in_flight = 4;
        let total = 64 * KIB;
        let budget = Budget::of_bytes(total);
        let rig = rig.with_web(Arc::new(Counting { budget: budget.clone() }));
        rig.enqueue((0..20).map(|n| format!("http://s{n}.test/")));
        let instance = Arc::new(rig.queue.instance());
        let door = Door {
            source: instance.clone(),
            planner: Arc::new(|lease| {
                let first = WebUrl::parse(&lease.job.url).unwrap();
                let second = WebUrl::parse("http://s0.test/second").unwrap();
                Box::new(Twice { pages_left: vec![second, first] })
            }),
            finish: Arc::new(Weighing { source: instance, batches: Arc::default() }),
            obituary: Arc::new(|lease, reason| vec![format!("{} died: {reason}", lease.job.url)]),
        };
        let running = rig.run_door(door, CancellationToken::new());
        let ended = tokio::time::timeout(Duration::from_secs(3_600), running).await;
        assert_eq!(ended.expect("they wait for each other").unwrap(), Ended::Exhausted);
        assert_eq!((rig.queue.ledger().done, budget.free_bytes()), (20, total));
    }

    #[tokio::test(start_paused = true)]
    async fn records_count_until_they_are_stored() {
        let batches = batches(100 << 20, 3 * BODY).await;
        assert_eq!(batches.concat(), [3 * BODY; 20]);
        assert!(batches.len() < 20, "nothing gathered: {batches:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn large_records_go_one_at_a_time() {
        let batches = batches(1 << 30, 10 << 20).await;
        assert!(batches.iter().all(|batch| batch.len() == 1), "{batches:?}");
    }

    /// One page more than the budget at a time, and no page waits for ever.
    #[tokio::test(start_paused = true)]
    async fn a_budget_that_is_too_small_for_a_step_holds_nobody_up() {
        let batches = batches(64 * KIB, 3 * BODY).await;
        assert_eq!(batches.concat().len(), 20);
    }
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
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreError> {
        self.source.take(demand).await
    }

    async fn started(&self, leases: &[LeaseId]) -> Result<(), StoreError> {
        self.source.started(leases).await
    }

    async fn renew(&self) -> Result<Renewal, StoreError> {
        match self.renewals.fetch_add(1, Ordering::SeqCst) {
            0 => self.source.renew().await,
            _ => Err(StoreError::transient("the store is gone")),
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
    let instance = Arc::new(rig.queue.instance());
    let lease_ttl = Duration::from_secs(20);
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

/// Who is to give up on sites that stay down gives up on a store that does, too, and says what is wrong with it.
#[tokio::test(start_paused = true)]
async fn who_is_to_give_up_does_so_when_its_store_has_failed_for_that_long() {
    let patience = Duration::from_secs(600);
    let mut rig = Rig::new([SiteScript::new("a.test")]);
    rig.rules.give_up_after = Some(patience);
    rig.enqueue(["http://a.test/"]);
    let instance = Arc::new(rig.queue.instance());
    let door = Door {
        source: instance.clone(),
        planner: Arc::new(|lease| Box::new(Odd(lease.job.url.clone()))),
        finish: Arc::new(SinkThenSettle { sink: Nowhere, source: instance }),
        obituary: Arc::new(|_, _| Vec::new()),
    };
    let began = rig.clock.now();
    let fault = rig.run_door(door, CancellationToken::new()).await.unwrap_err();
    assert!(fault.to_string().contains("the broker is gone"), "{fault}");
    let took = rig.clock.now().since(began);
    assert!(took >= patience && took < patience + Duration::from_secs(10), "{took:?}");
    assert_eq!(rig.queue.ledger().in_flight, 1, "it is left for a rescue");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_comes_back_in_time_is_not_given_up() {
    let mut rig = Rig::new([SiteScript::new("a.test")]);
    rig.rules.give_up_after = Some(Duration::from_secs(60));
    rig.enqueue((0..5).map(|n| format!("http://a.test/{n}")));
    let (ended, records) = run(&rig, 100).await;
    assert_eq!((ended, records.len()), (Ended::Exhausted, 5));
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
    async fn write(&self, _: &[&String]) -> Result<(), StoreError> {
        Err(StoreError::transient("the broker is gone"))
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
