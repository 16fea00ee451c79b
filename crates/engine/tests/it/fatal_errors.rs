//! Errors of stores that no retry can fix, and panics of the engine: the run hands back what it holds, and ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::pipeline::{self, Door, Event, RunEnd};
use fetchwell_engine::ports::error::{StoreError, StoreErrorKind};
use fetchwell_engine::ports::finish::{Finish, Finished, Settle, Settled, Settlement};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_engine::ports::source::{Demand, Renewal, Source, Taken};
use fetchwell_engine::store_health::StoreCall;
use fetchwell_engine::web::{Outcome, Request};
use fetchwell_policy::url::WebUrl;
use fetchwell_simweb::SiteScript;
use fetchwell_testkit::rig::Rig;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

const URLS: i64 = 30;

/// Fetches one page; its record is the URL.
struct OnePage(String);

impl Plan<String> for OnePage {
    fn step(&mut self, last: Option<Outcome>, _: Moment) -> Step<String> {
        match last {
            None => Step::Fetch(vec![Request::page(WebUrl::parse(&self.0).unwrap())]),
            Some(_) => Step::Finish(vec![self.0.clone()], Settlement::Done),
        }
    }
}

/// A source that fails with `fail` after `takes_left` takes.
struct Failing<Q> {
    source: Arc<Q>,
    takes_left: AtomicUsize,
    fail: fn() -> StoreError,
}

#[async_trait]
impl<Q: Source> Source for Failing<Q> {
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreError> {
        let left = |n: usize| n.checked_sub(1);
        match self.takes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left) {
            Ok(_) => self.source.take(demand).await,
            Err(_) => Err((self.fail)()),
        }
    }

    async fn started(&self, leases: &[LeaseId]) -> Result<(), StoreError> {
        self.source.started(leases).await
    }

    async fn renew(&self) -> Result<Renewal, StoreError> {
        self.source.renew().await
    }
}

/// Settles a batch unless `refuse` finds something wrong with it.
struct Choosy<Q, F> {
    source: Arc<Q>,
    refuse: F,
}

#[async_trait]
impl<Q, F> Finish<String> for Choosy<Q, F>
where
    Q: Settle,
    F: Fn(&[Finished<String>]) -> Option<StoreError> + Send + Sync,
{
    async fn finish(&self, batch: &[Finished<String>]) -> Result<Vec<Settled>, StoreError> {
        if let Some(fault) = (self.refuse)(batch) {
            return Err(fault);
        }
        let leases: Vec<_> = batch.iter().map(|f| (&f.lease, &f.settlement)).collect();
        self.source.settle(&leases).await
    }
}

fn nothing_is_wrong(_: &[Finished<String>]) -> Option<StoreError> {
    None
}

fn has_records(batch: &[Finished<String>]) -> bool {
    batch.iter().any(|finished| !finished.records.is_empty())
}

/// A door on a queue of [`URLS`] URLs whose first `takes` takes work.
fn door(
    rig: &Rig,
    takes: usize,
    fail: fn() -> StoreError,
    refuse: impl Fn(&[Finished<String>]) -> Option<StoreError> + Send + Sync + 'static,
) -> Door<String> {
    rig.enqueue((0..URLS).map(|n| format!("http://a.test/{n}")));
    let instance = Arc::new(rig.queue.instance());
    let takes_left = AtomicUsize::new(takes);
    Door {
        source: Arc::new(Failing { source: instance.clone(), takes_left, fail }),
        planner: Arc::new(|lease| Box::new(OnePage(lease.job.url.clone()))),
        finish: Arc::new(Choosy { source: instance, refuse }),
        give_up_record: Arc::new(|_, cause, reason| vec![format!("given up, {cause:?}: {reason}")]),
    }
}

/// Runs such a door, and returns its result and how long it took.
async fn run(
    rig: &Rig,
    takes: usize,
    fail: fn() -> StoreError,
    refuse: impl Fn(&[Finished<String>]) -> Option<StoreError> + Send + Sync + 'static,
) -> (Result<RunEnd, StoreError>, Duration) {
    let door = door(rig, takes, fail, refuse);
    let began = rig.clock.now();
    let ended = rig.run_door(door, CancellationToken::new()).await;
    (ended, rig.clock.now().since(began))
}

fn no_table() -> StoreError {
    StoreError::incompatible("no such table: job")
}

fn panics() -> StoreError {
    panic!("in a task of the engine")
}

fn panics_at_news(_: Event) {
    panic!("in the engine itself")
}

#[tokio::test(start_paused = true)]
async fn an_error_that_no_retry_mends_ends_the_run_and_what_was_taken_goes_back() {
    let rig = Rig::new([SiteScript::new("a.test").slow(Duration::from_secs(3))]);
    let (ended, took) = run(&rig, 1, no_table, nothing_is_wrong).await;
    let fault = ended.unwrap_err();
    assert_eq!(fault.kind(), StoreErrorKind::Incompatible);
    assert!(fault.to_string().contains("no such table: job"), "{fault}");
    assert!(took <= rig.limits.shutdown_grace, "{took:?}");
    let ledger = rig.queue.ledger();
    assert_eq!(ledger.in_flight, 0, "{ledger:?}");
    assert_eq!(ledger.waiting() + ledger.done, URLS, "{ledger:?}");
    assert!(ledger.balances());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_at_the_start_for_good_ends_the_run_at_once() {
    let rig = Rig::new([SiteScript::new("a.test")]);
    let (ended, took) = run(&rig, 0, no_table, nothing_is_wrong).await;
    assert_eq!(ended.unwrap_err().kind(), StoreErrorKind::Incompatible);
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// The pages are fetched again another time.
#[tokio::test(start_paused = true)]
async fn results_that_the_store_never_takes_go_back() {
    let rig = Rig::new([SiteScript::new("a.test")]);
    let refuse =
        |batch: &[Finished<String>]| has_records(batch).then(|| StoreError::bug("no such lane"));
    let (ended, took) = run(&rig, usize::MAX, no_table, refuse).await;
    assert_eq!(ended.unwrap_err().kind(), StoreErrorKind::Bug);
    assert!(took <= rig.limits.shutdown_grace, "{took:?}");
    let ledger = rig.queue.ledger();
    assert_eq!((ledger.in_flight, ledger.waiting()), (0, URLS), "{ledger:?}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_takes_nothing_back_is_not_waited_for() {
    let rig = Rig::new([SiteScript::new("a.test")]);
    let refuse = |_: &[Finished<String>]| Some(StoreError::corrupt("a page of the file"));
    let (ended, took) = run(&rig, usize::MAX, no_table, refuse).await;
    assert_eq!(ended.unwrap_err().kind(), StoreErrorKind::Corrupt);
    assert!(took < rig.limits.shutdown_grace, "{took:?}");
    assert!(rig.queue.ledger().in_flight > 0, "it is left for a rescue");
}

#[tokio::test(start_paused = true)]
async fn a_politeness_store_that_cannot_be_used_ends_the_run() {
    let rig = Rig::new([SiteScript::new("a.test")]);
    let rig = rig.with_watch(|_| Err(StoreError::corrupt("the state of a site")));
    let (ended, took) = run(&rig, usize::MAX, no_table, nothing_is_wrong).await;
    assert_eq!(ended.unwrap_err().kind(), StoreErrorKind::Corrupt);
    assert!(took <= rig.limits.shutdown_grace, "{took:?}");
    let ledger = rig.queue.ledger();
    assert_eq!((ledger.in_flight, ledger.waiting()), (0, URLS), "{ledger:?}");
}

/// Runs a door whose store refuses every batch with a record in which `is_large` is true.
async fn run_with_large_records(is_large: fn(&str) -> bool) -> (Ledger, Vec<String>) {
    let rig = Rig::new([SiteScript::new("a.test")]);
    let stored = Arc::new(Mutex::new(Vec::new()));
    let keep = stored.clone();
    let refuse = move |batch: &[Finished<String>]| {
        let records = || batch.iter().flat_map(|finished| &finished.records);
        if records().any(|record| is_large(record)) {
            return Some(StoreError::too_large("a page of 3 GiB"));
        }
        keep.lock().extend(records().cloned());
        None
    };
    let (ended, _) = run(&rig, usize::MAX, no_table, refuse).await;
    assert_eq!(ended.unwrap(), RunEnd::Exhausted);
    let stored = std::mem::take(&mut *stored.lock());
    (rig.queue.ledger(), stored)
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_too_large_ends_its_url_with_the_reason_and_no_other() {
    let (ledger, stored) = run_with_large_records(|record| record.ends_with("/7")).await;
    assert_eq!((ledger.done, ledger.dead), (URLS - 1, 1), "{ledger:?}");
    assert!(ledger.balances());
    let given_up: Vec<_> = stored.iter().filter(|record| record.starts_with("given up")).collect();
    assert_eq!(given_up, ["given up, TooLarge: a page of 3 GiB"]);
    assert_eq!(stored.len(), usize::try_from(URLS).unwrap());
}

#[tokio::test(start_paused = true)]
async fn if_even_the_reason_is_too_large_the_url_ends_without_a_record() {
    let is_large = |record: &str| record.ends_with("/7") || record.starts_with("given up");
    let (ledger, stored) = run_with_large_records(is_large).await;
    assert_eq!((ledger.done, ledger.dead), (URLS - 1, 1), "{ledger:?}");
    assert_eq!(stored.len(), usize::try_from(URLS - 1).unwrap());
}

/// The text of the error differs from call to call.
#[tokio::test(start_paused = true)]
async fn a_store_for_which_everything_is_too_large_ends_the_run() {
    let rig = Rig::new([SiteScript::new("a.test")]);
    let calls = AtomicUsize::new(0);
    let refuse = move |_: &[Finished<String>]| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        Some(StoreError::too_large(format!("call {call}")))
    };
    let (ended, took) = run(&rig, usize::MAX, no_table, refuse).await;
    assert_eq!(ended.unwrap_err().kind(), StoreErrorKind::TooLarge);
    assert!(took < rig.limits.shutdown_grace, "{took:?}");
    let ledger = rig.queue.ledger();
    assert_eq!((ledger.dead, ledger.done), (0, 0), "{ledger:?}");
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_engine_is_an_error_that_says_so() {
    let rig = Rig::new([SiteScript::new("a.test")]);
    let (ended, _) = run(&rig, 0, panics, nothing_is_wrong).await;
    let fault = ended.unwrap_err();
    assert_eq!(fault.kind(), StoreErrorKind::Bug);
    assert!(fault.to_string().contains("panicked: in a task of the engine"), "{fault}");
    let rig = Rig::new([SiteScript::new("a.test")]);
    let rig = rig.with_event_sink(Arc::new(panics_at_news));
    let (ended, _) = run(&rig, usize::MAX, no_table, nothing_is_wrong).await;
    let fault = ended.unwrap_err();
    assert_eq!(fault.kind(), StoreErrorKind::Bug);
    assert!(fault.to_string().contains("panicked: in the engine itself"), "{fault}");
}

/// `/readyz` relies on the same record.
#[tokio::test(start_paused = true)]
async fn a_panic_of_the_engine_is_known_to_all_pipelines_of_the_process() {
    let in_a_task = Rig::new([SiteScript::new("a.test")]);
    let in_the_engine = Rig::new([SiteScript::new("a.test")]);
    let in_the_engine = in_the_engine.with_event_sink(Arc::new(panics_at_news));
    for (rig, takes) in [(in_a_task, 0), (in_the_engine, usize::MAX)] {
        let runtime = rig.runtime();
        let other = runtime.gate.health.beside();
        let door = door(&rig, takes, panics, nothing_is_wrong);
        pipeline::run(door, runtime, CancellationToken::new()).await.unwrap_err();
        assert_eq!(other.fatal().unwrap().call, StoreCall::Engine, "after {takes} takes");
    }
}
