//! How batches are published and taken.

use fetchwell_engine::ports::finish::Settlement;
use tokio::time::timeout;

use super::BatchStore;
use super::trial::{Trial, batch, ids, settle, take, take_what_is_there};
use crate::DEADLINE;

/// Its id and its body, byte for byte, even if it is not JSON.
pub async fn a_batch_is_taken_as_it_was_published(store: &dyn BatchStore) {
    let trial = Trial::of(store).await;
    let mut odd = batch("odd");
    odd.body = bytes::Bytes::from_static(b"\xff\x00 no JSON");
    trial.queue.publish(&[batch("b-1"), odd.clone()]).await.expect("batches go in");
    let leases = take(&*trial.worker, 2).await;
    assert_eq!(ids(&leases), ["b-1", "odd"]);
    assert_eq!(leases[0].job.payload, b"[\"b-1\"]");
    assert_eq!(leases[1].job.payload, odd.body);
    assert_eq!(leases[0].history.failures(), 0);
}

/// Publishing an empty list is allowed.
pub async fn nothing_published_is_nothing_waiting(store: &dyn BatchStore) {
    let trial = Trial::of(store).await;
    trial.publish(&[]).await;
    assert_eq!(trial.queue.waiting().await.expect("it is counted"), 0);
    assert!(trial.queue.dead().await.is_empty());
}

/// The producer can see how many batches are waiting.
pub async fn what_waits_is_counted(store: &dyn BatchStore) {
    let trial = Trial::of(store).await;
    // A connected worker would take them at once.
    trial.worker.leave().await.expect("it leaves");
    trial.publish(&["b-1", "b-2", "b-3"]).await;
    assert_eq!(trial.queue.waiting().await.expect("it is counted"), 3);
    assert_eq!(trial.reopened().await.waiting().await.expect("it is counted"), 3);
}

/// More than any limit on batches in flight.
pub async fn many_are_all_there_in_order(store: &dyn BatchStore) {
    let trial = Trial::of(store).await;
    let names: Vec<String> = (0..1_000).map(|n| format!("b-{n:04}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    trial.publish(&names).await;
    let mut seen = Vec::new();
    while seen.len() < names.len() {
        let lease = trial.take_one().await;
        seen.push(lease.job.url.clone());
        trial.settle(&lease, Settlement::Done).await;
    }
    assert_eq!(seen, names);
}

/// No batch goes to two workers.
pub async fn several_workers_share_what_is_there(store: &dyn BatchStore) {
    let trial = Trial::of(store).await;
    let another = trial.another().await;
    // The second worker gets a share, even if the first is given as many as it can hold.
    let names: Vec<String> = (0..200).map(|n| format!("b-{n:03}")).collect();
    trial.publish(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let mut seen = Vec::new();
    let mut shares = [0, 0];
    let sharing = async {
        while seen.len() < names.len() {
            for (worker, share) in [&*trial.worker, &*another].into_iter().zip(&mut shares) {
                for lease in take_what_is_there(worker, 1).await {
                    *share += 1;
                    seen.push(lease.job.url.clone());
                    settle(worker, &lease, Settlement::Done).await;
                }
            }
        }
    };
    timeout(DEADLINE, sharing).await.expect("what was published is delivered");
    seen.sort_unstable();
    assert_eq!(seen, names);
    assert!(shares.iter().all(|share| *share > 0), "{shares:?}");
}
