//! A run on a slow politeness store does not end before the store has heard all: a penalty outlives us.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::pipeline::Door;
use fetchwell_engine::ports::{
    Lease, Moment, Plan, Politeness, Settlement, Sink, SinkThenSettle, Step, StoreFault,
};
use fetchwell_engine::web::{Outcome, Request};
use fetchwell_policy::url::{Site, WebUrl};
use fetchwell_simweb::SiteScript;
use fetchwell_testkit::rig::Rig;
use tokio_util::sync::CancellationToken;

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
    let rig = Rig::new([SiteScript::new("a.test").status("/too-fast", 429)])
        .with_watch(|_| Duration::from_secs(1));
    rig.enqueue(["http://a.test/too-fast"]);
    let instance = Arc::new(rig.queue.instance());
    let door = Door {
        source: instance.clone(),
        planner: Arc::new(plan),
        finish: Arc::new(SinkThenSettle { sink: Nowhere, source: instance }),
        obituary: Arc::new(|_, _| Vec::new()),
    };
    rig.run_door(door, CancellationToken::new()).await.unwrap();
    assert_eq!(rig.queue.ledger().done, 1);
    let state = rig.politeness.look(&Site::parse("a.test").unwrap()).await.unwrap().0.unwrap();
    assert_eq!(state.limited_in_a_row, 1);
}
