//! How much of the byte budget a page holds: first its body, then the working memory of a step, then its records.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::budget::{Budget, Share};
use fetchwell_engine::pipeline::{Door, RunEnd};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settle, Settled, Settlement};
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::web::{Answer, Exchange, Outcome, Phases, Request, SendPermit, Web};
use fetchwell_policy::url::WebUrl;
use fetchwell_simweb::SiteScript;
use fetchwell_testkit::rig::Rig;
use tokio_util::sync::CancellationToken;

const KIB: usize = 1 << 10;
const BODY: usize = 10 * KIB;
const WORK: usize = 40 * KIB;

/// Serves pages whose bodies are charged to the budget although they are empty.
struct Counting {
    budget: Budget,
}

#[async_trait]
impl Web for Counting {
    async fn exchange(
        &self,
        request: &Request,
        leave: &mut dyn SendPermit,
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

    fn working_bytes(&self, _: &[u8]) -> usize {
        WORK
    }

    fn held_bytes(&self) -> Option<usize> {
        Some(self.held_bytes)
    }
}

/// Records how many bytes the pages of each batch hold.
struct Weighing<Q> {
    source: Q,
    batches: Arc<parking_lot::Mutex<Vec<Vec<usize>>>>,
}

#[async_trait]
impl<Q: Settle> Finish<String> for Weighing<Q> {
    async fn finish(&self, batch: &[Finished<String>]) -> Result<Vec<Settled>, StoreError> {
        tokio::time::sleep(Duration::from_secs(1)).await; // Lets more pages gather.
        let held = batch.iter().filter(|end| !end.records.is_empty());
        let held: Vec<usize> = held.map(|end| end.share.bytes()).collect();
        self.batches.lock().push(held);
        let leases: Vec<_> = batch.iter().map(|f| (&f.lease, &f.settlement)).collect();
        self.source.settle(&leases).await
    }
}

/// The bytes that the pages of each batch held, if the records of each page hold `held_bytes`.
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
        give_up_record: Arc::new(|lease, _, reason| {
            vec![format!("{} died: {reason}", lease.job.url)]
        }),
    };
    rig.run_door(door, CancellationToken::new()).await.unwrap();
    assert_eq!((rig.queue.ledger().done, budget.free_bytes()), (20, total));
    let batches = batches.lock().clone();
    batches.into_iter().filter(|batch| !batch.is_empty()).collect()
}

/// Reads one page from each of two sites.
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

    fn working_bytes(&self, _: &[u8]) -> usize {
        WORK
    }
}

/// A lease that waits for its second page must not hold memory that the steps of other leases wait for. Those leases
/// occupy all slots in flight, so the second page would never be requested.
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
        give_up_record: Arc::new(|lease, _, reason| {
            vec![format!("{} died: {reason}", lease.job.url)]
        }),
    };
    let running = rig.run_door(door, CancellationToken::new());
    let ended = tokio::time::timeout(Duration::from_secs(3_600), running).await;
    assert_eq!(ended.expect("they wait for each other").unwrap(), RunEnd::Exhausted);
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

/// The budget is exceeded by one page at a time, and no page waits forever.
#[tokio::test(start_paused = true)]
async fn a_budget_that_is_too_small_for_a_step_holds_nobody_up() {
    let batches = batches(64 * KIB, 3 * BODY).await;
    assert_eq!(batches.concat().len(), 20);
}
