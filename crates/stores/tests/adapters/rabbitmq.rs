//! RabbitMQ: what its queue promises besides what every queue of batches does.

use std::time::Duration;

use bytes::Bytes;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::batches::{Batch, BatchQueue};
use fetchwell_engine::ports::error::StoreErrorKind;
use fetchwell_engine::ports::finish::{Settle, Settled, Settlement};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::source::{Demand, Renewal, Source, Taken};
use fetchwell_stores::rabbitmq::{RabbitInstance, RabbitQueue};
use fetchwell_testkit::conformance::rabbitmq::{DrainedBatch, RabbitStore};
use fetchwell_testkit::eventually::{eventually, eventually_ok};
use fetchwell_testkit::fault_proxy::{Cut, FaultProxy, Faults};
use tokio::time::sleep;

const POLL: Duration = Duration::from_millis(20);

fn batch(id: &str) -> Batch {
    Batch { id: id.to_owned(), body: Bytes::from_static(b"[]") }
}

/// The broker, through a proxy that can be told to misbehave.
async fn proxied(store: &RabbitStore) -> (FaultProxy, RabbitQueue) {
    let (user, rest) = store.url.split_once('@').unwrap();
    let (address, vhost) = rest.split_once('/').unwrap();
    let proxy = FaultProxy::start(address.parse().unwrap()).await.unwrap();
    let url = format!("{user}@{}/{vhost}", proxy.address());
    let queue = RabbitQueue::open(&url, &store.queue, false, Clock::system()).await.unwrap();
    (proxy, queue)
}

async fn renewed(worker: &RabbitInstance) -> Renewal {
    eventually_ok("the connection to come back", async || worker.renew().await).await
}

async fn take_one(worker: &RabbitInstance) -> Lease {
    let demand = Demand { most: 1, ..Demand::default() };
    eventually_ok("the batch", async || match worker.take(&demand).await {
        Ok(Taken::Jobs(mut leases)) => Ok(leases.remove(0)),
        other => Err(format!("{other:?}")),
    })
    .await
}

#[tokio::test]
async fn a_broker_that_is_away_is_a_fault_that_names_it() {
    let url = "amqp://me:secret@127.0.0.1:1/%2f";
    let opened = RabbitQueue::open(url, "batches", false, Clock::system()).await;
    let fault = opened.err().unwrap();
    assert_eq!(fault.kind(), StoreErrorKind::Transient);
    let words = fault.to_string();
    assert!(
        words.contains("127.0.0.1:1") && words.contains("check that the broker runs"),
        "{words}"
    );
    assert!(!words.contains("secret"), "{words}");
}

#[tokio::test]
async fn a_wrong_password_is_told() {
    let Some(store) = RabbitStore::if_there() else { return };
    let url = store.url.replace("guest:guest", "guest:secret");
    let opened = RabbitQueue::open(&url, &store.queue, false, Clock::system()).await;
    let words = opened.err().unwrap().to_string();
    assert!(words.contains("check user, password") && !words.contains("secret"), "{words}");
}

/// What an earlier connection brought is not ours any more, and nothing new is given before that is known.
#[tokio::test]
async fn after_a_lost_connection_the_lease_is_lost_and_the_batch_comes_again() {
    let Some(store) = RabbitStore::if_there() else { return };
    let (proxy, queue) = proxied(&store).await;
    queue.publish(&[batch("b-1")]).await.unwrap();
    let worker = queue.instance(4);
    assert!(matches!(renewed(&worker).await, Renewal::Held { .. }));
    let lease = take_one(&worker).await;
    let connections = proxy.accepted();
    proxy.cut(Cut::Reset);
    proxy.accepted_more_than(connections).await;
    let demand = Demand { most: 1, ..Demand::default() };
    // It is back, and has the batch again; and yet it gives nothing.
    eventually_ok("the connection", async || worker.take(&demand).await).await;
    for _ in 0..10 {
        let taken = worker.take(&demand).await.unwrap();
        assert!(matches!(taken, Taken::Idle { .. }), "{taken:?}");
        sleep(POLL).await;
    }
    let settled = worker.settle(&[(&lease, &Settlement::Done)]).await.unwrap();
    assert_eq!(settled, [Settled::Stale]);
    assert_eq!(renewed(&worker).await, Renewal::Lost);
    assert!(matches!(renewed(&worker).await, Renewal::Held { .. }));
    let again = take_one(&worker).await;
    assert_eq!(again.job.url, "b-1");
    let settled = worker.settle(&[(&again, &Settlement::Done)]).await.unwrap();
    assert_eq!(settled, [Settled::Confirmed]);
}

/// A dead letter is safe before the batch is acknowledged.
#[tokio::test]
async fn a_batch_is_not_acknowledged_before_its_dead_letter_is_confirmed() {
    let Some(store) = RabbitStore::if_there() else { return };
    let (proxy, queue) = proxied(&store).await;
    queue.publish(&[batch("b-1")]).await.unwrap();
    let worker = queue.instance(4);
    renewed(&worker).await;
    let lease = take_one(&worker).await;
    proxy.down(Faults::stall()); // The broker hears us, and we do not hear it.
    let direct = store.open(Clock::system()).await;
    let dead = Settlement::Dead { reason: "no batch".to_owned() };
    let settling = async { worker.settle(&[(&lease, &dead)]).await };
    tokio::select! {
        settled = settling => panic!("settled without a confirmation: {settled:?}"),
        () = eventually("the dead letter", async || direct.dead().await.unwrap() > 0) => {}
    }
    proxy.cut(Cut::Reset);
    drop(worker);
    let waits = async || direct.waiting().await.unwrap() > 0;
    eventually("the batch, which was not acknowledged", waits).await;
    let id = "b-1".to_owned();
    let body = b"[]".to_vec();
    let reason = "no batch".to_owned();
    assert_eq!(store.drain_dead().await, [DrainedBatch { id, body, reason }]);
}

#[tokio::test]
async fn what_can_t_be_published_is_told_and_goes_when_the_broker_is_back() {
    let Some(store) = RabbitStore::if_there() else { return };
    let (proxy, queue) = proxied(&store).await;
    proxy.refuse().await.unwrap();
    proxy.cut(Cut::Reset);
    // At first the connection is not known to be lost.
    let is_told = async || queue.publish(&[batch("b-1")]).await.is_err();
    eventually("the fault to be told", is_told).await;
    let before = store.open(Clock::system()).await.waiting().await.unwrap();
    proxy.accept().await.unwrap();
    queue.publish(&[batch("b-2")]).await.unwrap();
    assert_eq!(queue.waiting().await.unwrap(), before + 1);
}

/// A queue that is deleted under our feet takes nothing with it unnoticed.
#[tokio::test]
async fn a_message_that_no_queue_takes_is_no_message_published() {
    let Some(store) = RabbitStore::if_there() else { return };
    let queue = store.open(Clock::system()).await;
    store.delete().await;
    assert!(queue.publish(&[batch("b-1")]).await.is_err(), "nobody has it");
    queue.publish(&[batch("b-1")]).await.unwrap();
    assert_eq!(queue.waiting().await.unwrap(), 1);
}
