//! Stores and sinks that fail, for a while or for good.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::budget::Share;
use fetchwell_engine::finish::SinkThenSettle;
use fetchwell_engine::pipeline::{Door, RunEnd};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Finished, Settlement, Sink};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_engine::ports::source::{Demand, Renewal, Source, Taken};
use fetchwell_engine::web::Phases;
use fetchwell_simweb::SiteScript;
use fetchwell_testkit::rig::Rig;
use tokio_util::sync::CancellationToken;

use super::{Odd, odd_door, run};

#[tokio::test(start_paused = true)]
async fn a_sink_that_fails_is_tried_again_and_nothing_is_fetched_twice() {
    let rig = Rig::new([SiteScript::new("a.test")]);
    rig.enqueue((0..30).map(|n| format!("http://a.test/{n}")));
    let (ended, records) = run(&rig, 7).await;
    assert_eq!((ended, records.len()), (RunEnd::Exhausted, 30));
    let pages = rig.world.count(|hit| hit.path.as_ref() != "/robots.txt");
    assert_eq!(pages, 30);
}

/// A source whose store is gone after the first renewal.
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

/// The site is slow, so that answers are still under way when the lease expires.
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

/// A stopped run waits until its results are stored, but no longer than the shutdown grace period.
#[tokio::test(start_paused = true)]
async fn who_is_stopped_while_its_sink_is_gone_ends_when_its_grace_is_over() {
    let rig = Rig::new([SiteScript::new("a.test")]);
    rig.enqueue(["http://a.test/"]);
    let instance = Arc::new(rig.queue.instance());
    let door = Door {
        source: instance.clone(),
        planner: Arc::new(|lease| Box::new(Odd(lease.job.url.clone()))),
        finish: Arc::new(SinkThenSettle { sink: Nowhere, source: instance }),
        give_up_record: Arc::new(|_, _, _| Vec::new()),
    };
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        stopping.cancel();
    });
    let began = rig.clock.now();
    assert_eq!(rig.run_door(door, stop).await.unwrap(), RunEnd::Stopped);
    let took = rig.clock.now().since(began);
    let grace = rig.limits.shutdown_grace;
    assert!(took > grace && took < grace + Duration::from_secs(10), "{took:?}");
    assert_eq!(rig.queue.ledger().in_flight, 1, "it is left for a rescue");
}

/// `give_up_after` applies to a store that stays down as well as to sites, and the run returns the error of the store.
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
        give_up_record: Arc::new(|_, _, _| Vec::new()),
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
    assert_eq!((ended, records.len()), (RunEnd::Exhausted, 5));
}

/// A sink that is never available.
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
