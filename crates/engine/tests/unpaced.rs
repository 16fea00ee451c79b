//! Sites without pacing, on a paused clock: the store is asked now and then, and a failure is heeded at
//! once.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::adapters::memory::MemoryPoliteness;
use fetchwell_engine::gate::Gate;
use fetchwell_engine::journey::{Journey, Stage};
use fetchwell_engine::pipeline::{self, Door, Plant};
use fetchwell_engine::ports::{
    Lease, Moment, Plan, Politeness, RobotsRecord, Settlement, Sink, SinkThenSettle, SiteAsk,
    SiteReport, Step, StoreFault, Turn,
};
use fetchwell_engine::web::Outcome;
use fetchwell_policy::breaker::BreakerRule;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::retry::RetryRule;
use fetchwell_policy::site::{Permit, SiteState, Spend};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site, WebUrl};
use fetchwell_simweb::{Failure, SiteScript};
use fetchwell_testkit::rig::Rig;
use fetchwell_testkit::simulated_web::SimulatedWeb;
use tokio_util::sync::CancellationToken;

const MAX_IN_FLIGHT: usize = 10;

/// Counts the questions.
struct Counting {
    store: MemoryPoliteness,
    asks: AtomicUsize,
}

#[async_trait]
impl Politeness for Counting {
    async fn turn(&self, reports: &[SiteReport], asks: &[SiteAsk]) -> Result<Turn, StoreFault> {
        self.asks.fetch_add(asks.len(), Ordering::Relaxed);
        self.store.turn(reports, asks).await
    }

    async fn spend(
        &self,
        site: &Site,
        permit: &Permit,
        rate: Rate,
    ) -> Result<(Spend, Time), StoreFault> {
        self.store.spend(site, permit, rate).await
    }

    async fn robots(&self, origin: &Origin) -> Result<Option<RobotsRecord>, StoreFault> {
        self.store.robots(origin).await
    }

    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreFault> {
        self.store.keep_robots(origin, record).await
    }

    async fn look(&self, site: &Site) -> Result<(Option<SiteState>, Time), StoreFault> {
        self.store.look(site).await
    }

    async fn sweep(&self) -> Result<u64, StoreFault> {
        self.store.sweep().await
    }
}

struct PagePlan(Journey);

impl Plan<()> for PagePlan {
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<()> {
        let Some(outcome) = last else { return Step::Fetch(vec![self.0.request()]) };
        match self.0.step(outcome, moment) {
            Stage::Fetch(request) => Step::Fetch(vec![request]),
            Stage::Retry { at, history } => {
                Step::Finish(Vec::new(), Settlement::retry(at, history))
            }
            Stage::Over(_) => Step::Finish(Vec::new(), Settlement::Done),
        }
    }
}

fn plan(lease: &Lease) -> Box<dyn Plan<()>> {
    let url = WebUrl::parse(&lease.job.url).unwrap();
    Box::new(PagePlan(Journey::new(url, RetryRule::PAGES, 5, lease.history)))
}

struct Nowhere;

#[async_trait]
impl Sink<()> for Nowhere {
    async fn write(&self, _: &[&()]) -> Result<(), StoreFault> {
        Ok(())
    }
}

/// Fetches pages of a site without pacing for a while. Returns how often the store was asked.
async fn run(rig: &Rig, pages: usize, at_most: Duration) -> usize {
    rig.enqueue((0..pages).map(|n| format!("http://fast.test/page/{n}")));
    let rule = BreakerRule { jitter_share: 0.0, ..BreakerRule::default() };
    let store = MemoryPoliteness::new(rig.clock.clone(), rule, 7);
    let politeness = Arc::new(Counting { store, asks: AtomicUsize::new(0) });
    let instance = Arc::new(rig.queue.instance());
    let door = Door {
        source: instance.clone(),
        planner: Arc::new(plan),
        finish: Arc::new(SinkThenSettle { sink: Nowhere, source: instance }),
        obituary: Arc::new(|_, _| Vec::new()),
    };
    let mut rules = rig.rules.clone();
    rules.pace.default_interval = Duration::ZERO;
    let mut limits = rig.limits;
    limits.max_in_flight = MAX_IN_FLIGHT;
    let plant = Plant {
        gate: Gate::new(politeness.clone(), rules, rig.clock.clone()),
        web: Arc::new(SimulatedWeb::new(rig.world.clone(), "TestBot/1.0")),
        limits,
        clock: rig.clock.clone(),
        seed: 11,
        watcher: Arc::new(|_| {}),
    };
    let stop = CancellationToken::new();
    let ended = pipeline::run(door, plant, stop.clone());
    let timer = async {
        tokio::time::sleep(at_most).await;
        stop.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = ended => drop(ended.unwrap()),
        () = timer => {}
    }
    politeness.asks.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn the_store_is_asked_once_a_second_and_not_for_each_page() {
    let rig = Rig::new([SiteScript::new("fast.test").slow(Duration::from_millis(100))]);
    // 10 at once, 100 ms each: 100 pages a second, for ten seconds.
    let asks = run(&rig, 1_000, Duration::from_secs(60)).await;
    assert_eq!(rig.queue.ledger().done, 1_000);
    assert!((10..=15).contains(&asks), "{asks}");
}

#[tokio::test(start_paused = true)]
async fn a_site_that_begins_to_fail_gets_no_more_than_what_was_under_way() {
    let (up_for, ever) = (Duration::from_secs(5), Duration::from_secs(3_600));
    let site = SiteScript::new("fast.test").slow(Duration::from_millis(100));
    let rig = Rig::new([site.outage(up_for..ever, Failure::Status503 { retry_after: None })]);
    run(&rig, 5_000, Duration::from_secs(20)).await;
    let failed = rig.world.count(|hit| hit.status == Some(503));
    let opens_after = usize::try_from(BreakerRule::default().failure_threshold).unwrap();
    assert!(failed <= opens_after + 2 * MAX_IN_FLIGHT, "{failed} requests to a site that is down");
    assert!(rig.queue.ledger().balances());
}
