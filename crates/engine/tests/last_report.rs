//! A run on a slow politeness store does not end before the store has heard all: a penalty outlives us.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::adapters::memory::MemoryPoliteness;
use fetchwell_engine::gate::Gate;
use fetchwell_engine::pipeline::{self, Door, Plant};
use fetchwell_engine::ports::{
    Lease, Moment, Plan, Politeness, RobotsRecord, Settlement, Sink, SinkThenSettle, SiteAsk,
    SiteReport, Step, StoreFault, Turn,
};
use fetchwell_engine::web::{Outcome, Request};
use fetchwell_policy::breaker::BreakerRule;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::{Permit, SiteState, Spend};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site, WebUrl};
use fetchwell_simweb::SiteScript;
use fetchwell_testkit::rig::Rig;
use fetchwell_testkit::simulated_web::SimulatedWeb;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Takes its time over each turn.
struct Slow(MemoryPoliteness);

#[async_trait]
impl Politeness for Slow {
    async fn turn(&self, reports: &[SiteReport], asks: &[SiteAsk]) -> Result<Turn, StoreFault> {
        sleep(Duration::from_secs(1)).await;
        self.0.turn(reports, asks).await
    }

    async fn spend(
        &self,
        site: &Site,
        permit: &Permit,
        rate: Rate,
    ) -> Result<(Spend, Time), StoreFault> {
        self.0.spend(site, permit, rate).await
    }

    async fn robots(&self, origin: &Origin) -> Result<Option<RobotsRecord>, StoreFault> {
        self.0.robots(origin).await
    }

    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreFault> {
        self.0.keep_robots(origin, record).await
    }

    async fn look(&self, site: &Site) -> Result<(Option<SiteState>, Time), StoreFault> {
        self.0.look(site).await
    }

    async fn sweep(&self) -> Result<u64, StoreFault> {
        self.0.sweep().await
    }
}

/// One attempt, whatever comes of it.
struct Once(WebUrl);

impl Plan<()> for Once {
    fn step(&mut self, last: Option<Outcome>, _: Moment) -> Step<()> {
        match last {
            None => Step::Fetch(vec![Request::page(self.0.clone())]),
            Some(_) => Step::Finish(Vec::new(), Settlement::Done),
        }
    }
}

fn plan(lease: &Lease) -> Box<dyn Plan<()>> {
    Box::new(Once(WebUrl::parse(&lease.job.url).unwrap()))
}

struct Nowhere;

#[async_trait]
impl Sink<()> for Nowhere {
    async fn write(&self, _: &[&()]) -> Result<(), StoreFault> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_answer_is_told_before_the_run_ends() {
    let rig = Rig::new([SiteScript::new("a.test").status("/too-fast", 429)]);
    rig.enqueue(["http://a.test/too-fast"]);
    let store = MemoryPoliteness::new(rig.clock.clone(), BreakerRule::default(), 7);
    let politeness = Arc::new(Slow(store));
    let instance = Arc::new(rig.queue.instance());
    let door = Door {
        source: instance.clone(),
        planner: Arc::new(plan),
        finish: Arc::new(SinkThenSettle { sink: Nowhere, source: instance }),
        obituary: Arc::new(|_, _| Vec::new()),
    };
    let plant = Plant {
        gate: Gate::new(politeness.clone(), rig.rules.clone(), rig.clock.clone()),
        web: Arc::new(SimulatedWeb::new(rig.world.clone(), "TestBot/1.0")),
        limits: rig.limits,
        clock: rig.clock.clone(),
        seed: 11,
        watcher: Arc::new(|_| {}),
    };
    pipeline::run(door, plant, CancellationToken::new()).await.unwrap();
    assert_eq!(rig.queue.ledger().done, 1);
    let state = politeness.look(&Site::parse("a.test").unwrap()).await.unwrap().0.unwrap();
    assert_eq!(state.limited_in_a_row, 1);
}
