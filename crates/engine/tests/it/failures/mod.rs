//! Internal failures: plans that panic or halt, crashes that repeat, sinks that fail.

mod holding;
mod our_faults;
mod plans;
mod sites;
mod stores;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use fetchwell_engine::pipeline::{Door, RunEnd};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settle, Settled, Settlement};
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::ports::source::Source;
use fetchwell_engine::web::{Outcome, Request};
use fetchwell_policy::url::WebUrl;
use fetchwell_testkit::rig::Rig;
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

/// Fails `failures_left` times, then stores the records that it gets.
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

async fn run(rig: &Rig, sink_failures: usize) -> (RunEnd, Vec<String>) {
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
        give_up_record: Arc::new(|lease, _, reason| {
            vec![format!("{} died: {reason}", lease.job.url)]
        }),
    };
    let ended = rig.run_door(door, CancellationToken::new()).await.unwrap();
    let mut records = records.lock().clone();
    records.sort();
    (ended, records)
}

/// A door with [`Odd`] plans whose results are stored at the first attempt.
fn odd_door(source: Arc<dyn Source>, settles: Arc<impl Settle + 'static>) -> Door<String> {
    Door {
        source,
        planner: Arc::new(|lease| Box::new(Odd(lease.job.url.clone()))),
        finish: Arc::new(Moody {
            failures_left: AtomicUsize::new(0),
            records: Arc::default(),
            source: settles,
        }),
        give_up_record: Arc::new(|_, _, _| Vec::new()),
    }
}
