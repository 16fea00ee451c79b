//! How rounds are added.

use std::time::Duration;

use fetchwell_engine::ports::rounds::{MAX_URLS_PER_ROUND, MEMORY, Put, Round};
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_policy::time::Time;

use super::{RoundsStore, take_urls};
use crate::conformance::HandClock;

const NOON: Time = Time::from_secs(1_700_000_000);
const HOUR: Duration = Duration::from_secs(3_600);

fn round(entry: &str, due: Time) -> Round {
    Round { entry: entry.to_owned(), due }
}

fn urls(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("http://a.test/{name}")).collect()
}

async fn open(store: &dyn RoundsStore) -> Box<dyn UrlQueue> {
    store.open_rounds(HandClock::new().clock()).await
}

async fn put(queue: &dyn UrlQueue, entry: &str, due: Time, names: &[&str]) -> Put {
    queue.put(&round(entry, due), &urls(names), 0).await.expect("a round is put or not")
}

async fn last(queue: &dyn UrlQueue, entry: &str) -> Option<Time> {
    queue.last_rounds(&[entry]).await.expect("rounds can be read")[0]
}

/// The second process is told that it is already done.
pub async fn a_round_is_put_once(store: &dyn RoundsStore) {
    let queue = open(store).await;
    assert_eq!(last(&*queue, "e").await, None);
    assert_eq!(put(&*queue, "e", NOON, &["1", "2"]).await, Put::Done);
    let another = open(store).await;
    assert_eq!(put(&*another, "e", NOON, &["1", "2"]).await, Put::Before);
    assert_eq!(last(&*another, "e").await, Some(NOON));
    assert_eq!(queue.waiting().await.expect("it is counted"), 2);
    assert_eq!(put(&*another, "e", NOON + HOUR, &["1"]).await, Put::Done);
    assert_eq!(take_urls(&*queue).await, urls(&["1", "2", "1"]));
}

pub async fn rounds_of_several_entries_are_apart(store: &dyn RoundsStore) {
    let queue = open(store).await;
    assert_eq!(put(&*queue, "e", NOON, &["e"]).await, Put::Done);
    assert_eq!(put(&*queue, "f", NOON - HOUR, &["f"]).await, Put::Done);
    let last = queue.last_rounds(&["f", "g", "e"]).await.expect("rounds can be read");
    assert_eq!(last, [Some(NOON - HOUR), None, Some(NOON)]);
    assert!(queue.last_rounds(&[]).await.expect("none").is_empty());
}

/// A clock that is behind the others must not repeat old rounds.
pub async fn an_earlier_round_is_over(store: &dyn RoundsStore) {
    let queue = open(store).await;
    assert_eq!(put(&*queue, "e", NOON, &["now"]).await, Put::Done);
    assert_eq!(put(&*queue, "e", NOON - HOUR, &["then"]).await, Put::Before);
    assert_eq!(last(&*queue, "e").await, Some(NOON));
    assert_eq!(take_urls(&*queue).await, urls(&["now"]));
}

/// However long the queue is.
pub async fn a_round_without_urls_is_only_noted(store: &dyn RoundsStore) {
    let queue = open(store).await;
    put(&*queue, "e", NOON, &["1"]).await;
    let noted = queue.put(&round("f", NOON), &[], 1).await.expect("it is noted");
    assert_eq!((noted, last(&*queue, "f").await), (Put::Done, Some(NOON)));
    assert_eq!(take_urls(&*queue).await, urls(&["1"]));
}

/// Such a round is still to be added.
pub async fn nothing_goes_on_a_queue_that_is_too_deep(store: &dyn RoundsStore) {
    let queue = open(store).await;
    put(&*queue, "e", NOON, &["1", "2"]).await;
    let at_most = async |most| queue.put(&round("f", NOON), &urls(&["3"]), most).await;
    assert_eq!(at_most(2).await.expect("an answer"), Put::TooDeep { waiting: 2 });
    assert_eq!(last(&*queue, "f").await, None);
    assert_eq!(at_most(3).await.expect("an answer"), Put::Done);
    assert_eq!(take_urls(&*queue).await, urls(&["1", "2", "3"]));
}

/// All of them, or none.
pub async fn as_many_urls_as_there_may_be_go_in_as_one(store: &dyn RoundsStore) {
    let queue = open(store).await;
    let many: Vec<String> =
        (0..MAX_URLS_PER_ROUND).map(|n| format!("http://a.test/page/{n}")).collect();
    let put = queue.put(&round("e", NOON), &many, 1).await.expect("they go in");
    assert_eq!(put, Put::Done);
    assert_eq!(queue.waiting().await.expect("it is counted"), many.len() as u64);
}

/// Only one of them adds it.
pub async fn several_that_put_one_round_at_once_put_it_once(store: &dyn RoundsStore) {
    let queues = [open(store).await, open(store).await, open(store).await];
    for n in 0..20 {
        let due = NOON + HOUR * n;
        let puts = queues.iter().map(|queue| put(&**queue, "e", due, &["x"]));
        let puts = futures::future::join_all(puts).await;
        let done = puts.iter().filter(|put| **put == Put::Done).count();
        assert_eq!(done, 1, "{puts:?}");
    }
    assert_eq!(take_urls(&*queues[0]).await.len(), 20);
}

/// Otherwise the names of all scheduled entries would accumulate.
pub async fn what_is_long_over_is_forgotten(store: &dyn RoundsStore) {
    let queue = open(store).await;
    put(&*queue, "old", NOON, &[]).await;
    put(&*queue, "new", NOON + MEMORY - HOUR, &[]).await;
    assert_eq!(last(&*queue, "old").await, Some(NOON));
    put(&*queue, "newer", NOON + MEMORY, &[]).await;
    assert_eq!(last(&*queue, "old").await, None);
    assert_eq!(last(&*queue, "new").await, Some(NOON + MEMORY - HOUR));
}
