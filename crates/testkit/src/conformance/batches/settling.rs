//! How batches are settled.

use std::time::Duration;

use fetchwell_engine::ports::batches::{DeadBatch, RetriedBatches};
use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_policy::retry::History;

use super::BatchStore;
use super::trial::{Trial, ids, settle, take};

const MINUTE: Duration = Duration::from_secs(60);

/// A batch that is done is not delivered again, even to workers that join later.
pub async fn what_is_done_is_gone(store: &dyn BatchStore) {
    let trial = Trial::of(store).await;
    trial.publish(&["b-1", "b-2"]).await;
    let lease = trial.take_one().await;
    assert_eq!(trial.settle(&lease, Settlement::Done).await, Settled::Confirmed);
    assert_eq!(trial.settle(&lease, Settlement::Done).await, Settled::Stale);
    trial.worker.leave().await.expect("it leaves");
    let next = take(&*trial.another().await, 1).await.remove(0);
    assert_eq!(next.job.url, "b-2");
}

/// The history travels with the batch, and so does the remaining work.
pub async fn another_attempt_brings_its_history_and_what_is_left(store: &dyn BatchStore) {
    let trial = Trial::of(store).await;
    trial.publish(&["b-1"]).await;
    let lease = trial.take_one().await;
    let history = History { url_failures: 2, ..History::default() };
    let at = trial.clock.now();
    let payload = Some(b"[]".to_vec());
    trial.settle(&lease, Settlement::Retry { at, history, payload }).await;
    let again = trial.take_one().await;
    assert_eq!((again.job.url.as_str(), again.history), ("b-1", history));
    assert_eq!(again.job.payload, b"[]");
    trial.settle(&again, Settlement::retry(at, history)).await;
    assert_eq!(trial.take_one().await.job.payload, b"[]");
}

/// Others go first.
pub async fn another_attempt_waits_for_its_time(store: &dyn BatchStore) {
    let trial = Trial::of(store).await;
    trial.publish(&["b-1"]).await;
    let lease = trial.take_one().await;
    let at = trial.clock.now() + MINUTE;
    trial.settle(&lease, Settlement::retry(at, History::default())).await;
    trial.publish(&["b-2"]).await;
    assert_eq!(trial.take_one().await.job.url, "b-2");
    trial.clock.advance(MINUTE);
    assert_eq!(trial.take_one().await.job.url, "b-1");
}

/// It is unchanged.
pub async fn what_is_handed_back_is_taken_again(store: &dyn BatchStore) {
    let trial = Trial::of(store).await;
    trial.publish(&["b-1"]).await;
    let lease = trial.take_one().await;
    let at = trial.clock.now();
    assert_eq!(trial.settle(&lease, Settlement::HandBack { at }).await, Settled::Confirmed);
    let again = trial.take_one().await;
    assert_eq!((again.job, again.history), (lease.job, lease.history));
}

/// It is not redelivered over and over.
pub async fn what_is_handed_back_for_later_waits(store: &dyn BatchStore) {
    let trial = Trial::of(store).await;
    trial.publish(&["b-1"]).await;
    let lease = trial.take_one().await;
    let at = trial.clock.now() + MINUTE;
    assert_eq!(trial.settle(&lease, Settlement::HandBack { at }).await, Settled::Confirmed);
    trial.publish(&["b-2"]).await;
    assert_eq!(trial.take_one().await.job.url, "b-2");
    trial.clock.advance(MINUTE);
    let again = trial.take_one().await;
    assert_eq!(again.job.url, "b-1");
    assert_eq!(trial.settle(&again, Settlement::Done).await, Settled::Confirmed);
}

/// It is kept, whatever its content, and not delivered again.
pub async fn what_is_given_up_is_kept_with_its_reason(store: &dyn BatchStore) {
    let trial = Trial::of(store).await;
    trial.publish(&["b-1", "b-2"]).await;
    let lease = trial.take_one().await;
    let reason = "no JSON — at all".to_owned();
    let dead = Settlement::Dead { reason: reason.clone() };
    assert_eq!(trial.settle(&lease, dead).await, Settled::Confirmed);
    assert_eq!(trial.queue.dead().await, [("b-1".to_owned(), reason)]);
    trial.worker.leave().await.expect("it leaves");
    assert_eq!(take(&*trial.another().await, 1).await[0].job.url, "b-2");
}

/// Listing removes nothing; a batch that is put back has its id, its body and an empty history.
pub async fn what_is_given_up_can_be_listed_and_put_back(store: &dyn BatchStore) {
    let trial = Trial::of(store).await;
    assert!(trial.queue.dead_batches().await.expect("they are listed").is_empty());
    let nothing = trial.queue.retry_dead(None).await.expect("there is none");
    assert_eq!(nothing, RetriedBatches::default());
    trial.publish(&["b-1", "b-2", "b-3"]).await;
    let history = History { url_failures: 2, paced: 1, ..History::default() };
    for lease in take(&*trial.worker, 3).await {
        trial.settle(&lease, Settlement::retry(trial.clock.now(), history)).await;
    }
    for _ in 0..3 {
        let lease = trial.take_one().await;
        let reason = format!("{} is no batch", lease.job.url);
        assert_eq!(trial.settle(&lease, Settlement::Dead { reason }).await, Settled::Confirmed);
    }
    for _ in 0..2 {
        let mut dead = trial.reopened().await.dead_batches().await.expect("they are listed");
        dead.sort_by(|a, b| a.id.cmp(&b.id));
        let of = |id: &str| DeadBatch { id: id.to_owned(), reason: format!("{id} is no batch") };
        assert_eq!(dead, [of("b-1"), of("b-2"), of("b-3")]);
    }
    let named = ["b-2".to_owned(), "nobody".to_owned()];
    let retried = trial.queue.retry_dead(Some(&named)).await.expect("it goes back");
    assert_eq!(retried, RetriedBatches { count: 1, unknown: vec!["nobody".to_owned()] });
    let lease = trial.take_one().await;
    assert_eq!((lease.job.url.as_str(), lease.history), ("b-2", History::default()));
    assert_eq!(lease.job.payload, b"[\"b-2\"]");
    assert_eq!(trial.settle(&lease, Settlement::Done).await, Settled::Confirmed);
    let retried = trial.queue.retry_dead(None).await.expect("they go back");
    assert_eq!(retried, RetriedBatches { count: 2, unknown: Vec::new() });
    let mut leases = take(&*trial.worker, 2).await;
    leases.sort_by(|a, b| a.job.url.cmp(&b.job.url));
    assert_eq!(ids(&leases), ["b-1", "b-3"]);
    assert!(trial.queue.dead_batches().await.expect("they are listed").is_empty());
}

/// Batches that were taken and not settled return to the queue.
pub async fn what_a_worker_leaves_is_taken_by_another(store: &dyn BatchStore) {
    let trial = Trial::of(store).await;
    trial.publish(&["b-1", "b-2"]).await;
    take(&*trial.worker, 2).await;
    trial.worker.leave().await.expect("it leaves");
    let another = trial.another().await;
    let mut leases = take(&*another, 2).await;
    leases.sort_by(|a, b| a.job.url.cmp(&b.job.url));
    assert_eq!([leases[0].job.url.as_str(), &leases[1].job.url], ["b-1", "b-2"]);
    assert_eq!(settle(&*another, &leases[0], Settlement::Done).await, Settled::Confirmed);
}

/// A late result is rejected.
pub async fn a_settlement_after_leaving_is_stale(store: &dyn BatchStore) {
    let trial = Trial::of(store).await;
    trial.publish(&["b-1"]).await;
    let lease = trial.take_one().await;
    trial.worker.leave().await.expect("it leaves");
    assert_eq!(trial.settle(&lease, Settlement::Done).await, Settled::Stale);
    assert_eq!(take(&*trial.another().await, 1).await[0].job.url, "b-1");
}
