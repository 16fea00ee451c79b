//! Reports that must reach the politeness store in time: a penalty before the run ends, and a late request before the
//! next one is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::finish::SinkThenSettle;
use fetchwell_engine::memory::MemoryPoliteness;
use fetchwell_engine::pipeline::Door;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Settlement, Sink};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::ports::politeness::Politeness;
use fetchwell_engine::web::{Exchange, Outcome, Phases, Request, SendPermit, Web};
use fetchwell_policy::outcome::{FetchOutcome, NetworkFault};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Site, WebUrl};
use fetchwell_simweb::SiteScript;
use fetchwell_testkit::rig::Rig;
use fetchwell_testkit::simulated_web::SimulatedWeb;
use parking_lot::Mutex;
use tokio::time::sleep;
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
    async fn write(&self, _: &[&()]) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Asks for each URL once.
async fn run(rig: &Rig) {
    let instance = Arc::new(rig.queue.instance());
    let door = Door {
        source: instance.clone(),
        planner: Arc::new(plan),
        finish: Arc::new(SinkThenSettle { sink: Nowhere, source: instance }),
        give_up_record: Arc::new(|_, _, _| Vec::new()),
    };
    rig.run_door(door, CancellationToken::new()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_last_answer_is_told_before_the_run_ends() {
    let rig = Rig::new([SiteScript::new("a.test").status("/too-fast", 429)])
        .with_watch(|_| Ok(Duration::from_secs(1)));
    rig.enqueue(["http://a.test/too-fast"]);
    run(&rig).await;
    assert_eq!(rig.queue.ledger().done, 1);
    let state = rig.politeness.look(&Site::parse("a.test").unwrap()).await.unwrap().0.unwrap();
    assert_eq!(state.limited_in_a_row, 1);
}

/// A web where a head is held up on its way while the politeness store is away.
struct HeldUp {
    web: SimulatedWeb,
    store: Arc<MemoryPoliteness>,
    store_is_away: Arc<AtomicBool>,
    clock: Clock,
    /// When the head left, and which one the store knew of a moment later.
    left: Mutex<Option<(Time, Time)>>,
}

const HOP: Duration = Duration::from_millis(50);

#[async_trait]
impl Web for HeldUp {
    async fn exchange(
        &self,
        request: &Request,
        send_permit: &mut dyn SendPermit,
        phases: &mut Phases,
    ) -> Exchange {
        if request.url.path_and_query() != "/late" {
            return self.web.exchange(request, send_permit, phases).await;
        }
        if !send_permit.to_write().await {
            return Exchange::NotSent;
        }
        self.store_is_away.store(true, Ordering::Relaxed);
        sleep(HOP).await;
        self.store_is_away.store(false, Ordering::Relaxed);
        let left = self.clock.now();
        send_permit.left_late();
        sleep(HOP).await;
        let state = self.store.look(&request.url.site()).await.unwrap().0.unwrap();
        *self.left.lock() = Some((left, state.pace.last_head()));
        Exchange::Failed(FetchOutcome::Network(NetworkFault::Reset))
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_request_is_reported_as_soon_as_the_store_is_back() {
    late_request_is_reported_at_once(Duration::ZERO).await;
}

/// The call begins before the request leaves, and fails after it.
#[tokio::test(start_paused = true)]
async fn a_late_request_does_not_wait_for_the_retry_of_a_call_that_fails_after_it() {
    late_request_is_reported_at_once(HOP + HOP / 5).await;
}

async fn late_request_is_reported_at_once(failing_turns_take: Duration) {
    let store_is_away = Arc::new(AtomicBool::new(false));
    let is_away = store_is_away.clone();
    let refused = Arc::new(AtomicBool::new(false));
    let was_refused = refused.clone();
    // The second site answers while the store is away, so that the report about it fails.
    let sites = [SiteScript::new("a.test"), SiteScript::new("b.test").slow(HOP / 5)];
    let mut rig = Rig::new(sites).with_watch(move |_| {
        if is_away.load(Ordering::Relaxed) {
            was_refused.store(true, Ordering::Relaxed);
            return Err(StoreError::transient("away"));
        }
        Ok(Duration::ZERO)
    });
    rig.failing_turns_take = failing_turns_take;
    let web = Arc::new(HeldUp {
        web: SimulatedWeb::new(rig.world.clone(), "TestBot/1.0"),
        store: rig.politeness.clone(),
        store_is_away,
        clock: rig.clock.clone(),
        left: Mutex::default(),
    });
    let rig = rig.with_web(web.clone());
    rig.enqueue(["http://a.test/late", "http://b.test/"]);
    run(&rig).await;
    assert!(refused.load(Ordering::Relaxed), "the store was not called while it was away");
    let (left, known) = web.left.lock().unwrap();
    assert!(known >= left, "the store only knew of a request sent {:?} earlier", left.since(known));
}
