//! `{list}:size`: how many URLs wait anywhere, for whoever can read a key.

use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::rounds::{Round, Rounds};
use fetchwell_engine::ports::source::Source;
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_policy::time::Time;

use super::rig::{LEASE_TTL, POLL, Rig, settle, take};

#[tokio::test]
async fn it_follows_a_url_from_the_list_to_its_end() {
    let Some(rig) = Rig::if_there().await else { return };
    rig.push(&["http://a.test/1", "http://a.test/2", "http://b.test/1", "bad"]).await;
    let worker = rig.worker().await;
    assert_eq!(rig.size().await, 4, "on the list, as others see it");
    let leases = take(&worker, 10).await;
    assert_eq!((leases.len(), rig.list().await.len()), (4, 0));
    assert_eq!(rig.size().await, 4, "leased, and nobody has begun");
    let ids: Vec<_> = leases[..3].iter().map(|lease| lease.id).collect();
    worker.started(&ids).await.unwrap();
    assert_eq!(rig.size().await, 1);
    settle(&worker, &leases[0], Settlement::Done).await;
    settle(&worker, &leases[1], Settlement::Dead { reason: "so".to_owned() }).await;
    assert_eq!(rig.size().await, 1);
    let later = rig.clock.now() + POLL * 100;
    settle(&worker, &leases[2], Settlement::retry(later, leases[2].history)).await;
    assert_eq!(rig.size().await, 2, "delayed");
    settle(&worker, &leases[3], Settlement::HandBack { at: later }).await;
    assert_eq!(rig.size().await, 2);
    worker.leave().await.unwrap();
    assert_eq!((rig.size().await, rig.list().await.len()), (2, 2), "back on the list");
}

#[tokio::test]
async fn a_heartbeat_counts_what_producers_push_and_what_the_dead_held() {
    let Some(rig) = Rig::if_there().await else { return };
    rig.push(&["http://a.test/1", "http://a.test/2"]).await;
    let dead = rig.worker().await;
    let leases = take(&dead, 2).await;
    dead.started(&[leases[0].id, leases[1].id]).await.unwrap();
    assert_eq!(rig.size().await, 0);
    rig.push(&["http://a.test/3"]).await;
    rig.clock.advance(LEASE_TTL);
    rig.worker().await;
    assert_eq!(rig.size().await, 3);
    assert_eq!(rig.queue.waiting().await.unwrap(), 3);
}

#[tokio::test]
async fn what_we_put_on_the_list_ourselves_counts_at_once() {
    let Some(rig) = Rig::if_there().await else { return };
    let urls = ["http://a.test/1".to_owned(), "http://a.test/2".to_owned()];
    rig.queue.push(&urls).await.unwrap();
    assert_eq!(rig.size().await, 2);
    let round = Round { entry: "e".to_owned(), due: Time::from_secs(1_700_000_000) };
    rig.queue.put(&round, &urls, 0).await.unwrap();
    assert_eq!((rig.size().await, rig.list().await.len()), (4, 4));
}

/// Instances of the version before this one know nothing of two of our keys, and leave things there.
#[tokio::test]
async fn what_an_earlier_version_left_behind_is_not_counted_for_ever() {
    let Some(rig) = Rig::if_there().await else { return };
    rig.push(&["http://a.test/1", "http://a.test/2"]).await;
    let dead = rig.worker().await;
    let leases = take(&dead, 2).await;
    dead.started(&[leases[0].id, leases[1].id]).await.unwrap();
    let epoch: i64 = rig.ask("HGET crawler_queue:ledger last_epoch").await;
    rig.clock.advance(LEASE_TTL);
    let worker = rig.worker().await;
    // It rescues, and another ends the jobs, without a look at these.
    let age = rig.clock.now().as_micros() - 1;
    rig.ask::<()>(&format!("ZADD crawler_queue:under_way {epoch} {}", leases[0].id)).await;
    rig.ask::<()>(&format!("ZADD crawler_queue:accepted {age} 99")).await;
    rig.ask::<()>("ZADD crawler_queue:accepted 1 98").await;
    assert_eq!(rig.queue.waiting().await.unwrap(), 1);
    worker.renew().await.unwrap();
    assert_eq!(rig.queue.waiting().await.unwrap(), 2);
    let waited = rig.queue.waited_longest().await.unwrap();
    assert_eq!(waited, Some(LEASE_TTL), "jobs that are gone have not waited");
}
