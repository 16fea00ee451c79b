//! Publishing events and reading them back.

use std::collections::BTreeSet;

use fetchwell_engine::ports::event_log::{LogEvent, Published};
use futures::future::join_all;

use super::EventStore;

/// More than any log accepts by default.
const TOO_MANY_BYTES: usize = 1_100_000;
const LARGE_BATCH: usize = 10_000;

/// An event whose key consists of this byte.
fn event(key: u8, id: impl Into<String>) -> LogEvent {
    let id = id.into();
    LogEvent { value: format!(r#"{{"number":"{id}"}}"#), id, key: [key; 32] }
}

/// This many confirmations.
fn confirmed(many: usize) -> Vec<Published> {
    vec![Published::Confirmed; many]
}

/// The ids of the events of a key.
fn ids(events: &[LogEvent], key: u8) -> Vec<&str> {
    events.iter().filter(|event| event.key == [key; 32]).map(|event| event.id.as_str()).collect()
}

/// Key, value and id are identical.
pub async fn an_event_is_read_as_it_was_published(store: &dyn EventStore) {
    let key = std::array::from_fn(|at| (at * 8) as u8);
    let value = r#"{"url":"http://ä.test/\u0000?a=\"b\"","content_type":null}"#.to_owned();
    let event = LogEvent { id: "0123456789abcdef".to_owned(), key, value };
    let published = store.open().await.publish(std::slice::from_ref(&event)).await;
    assert_eq!(published.expect("the log answers"), confirmed(1));
    assert_eq!(store.read().await, [event]);
}

/// An empty batch is not an error.
pub async fn nothing_published_is_nothing_read(store: &dyn EventStore) {
    let published = store.open().await.publish(&[]).await.expect("the log answers");
    assert_eq!(published, []);
    assert_eq!(store.read().await, []);
}

/// Within a batch, and from one batch to the next.
pub async fn the_order_of_a_key_is_kept(store: &dyn EventStore) {
    let log = store.open().await;
    for batch in 0..4 {
        let events: Vec<LogEvent> =
            (0..200).map(|n| event((n % 5) as u8, (batch * 200 + n).to_string())).collect();
        assert_eq!(log.publish(&events).await.expect("the log answers"), confirmed(200));
    }
    let read = store.read().await;
    for key in 0..5 {
        let expected: Vec<String> =
            (0..800).filter(|n| n % 5 == i32::from(key)).map(|n| n.to_string()).collect();
        assert_eq!(ids(&read, key), expected, "key {key}");
    }
}

/// If the answer to a batch is lost, it is published again with the same ids.
pub async fn a_batch_may_come_again(store: &dyn EventStore) {
    let log = store.open().await;
    let events: Vec<LogEvent> = (0..10).map(|n| event(n, n.to_string())).collect();
    for _ in 0..2 {
        assert_eq!(log.publish(&events).await.expect("the log answers"), confirmed(10));
    }
    let read = store.read().await;
    for one in &events {
        assert!((1..=2).contains(&read.iter().filter(|event| *event == one).count()), "{one:?}");
    }
    assert!(read.iter().all(|event| events.contains(event)));
}

/// All others are accepted.
pub async fn an_event_that_is_too_large_is_refused_alone(store: &dyn EventStore) {
    let log = store.open().await;
    let mut events: Vec<LogEvent> = (0..5).map(|n| event(n, n.to_string())).collect();
    events[2].value = format!(r#"{{"url":"{}"}}"#, "x".repeat(TOO_MANY_BYTES));
    let published = log.publish(&events).await.expect("the log answers");
    for (at, one) in published.iter().enumerate() {
        match one {
            Published::Confirmed => assert_ne!(at, 2),
            Published::Refused { reason } => {
                assert_eq!(at, 2, "{reason}");
                assert!(reason.contains(&events[2].value.len().to_string()), "{reason}");
            }
        }
    }
    events.remove(2);
    let mut read = store.read().await;
    read.sort_by_key(|event| event.key);
    assert_eq!(read, events);
}

/// More than any buffer on the way can hold.
pub async fn a_large_batch_is_all_there(store: &dyn EventStore) {
    let events: Vec<LogEvent> =
        (0..LARGE_BATCH).map(|n| event((n % 251) as u8, n.to_string())).collect();
    let published = store.open().await.publish(&events).await.expect("the log answers");
    assert_eq!(published, confirmed(LARGE_BATCH));
    let read = store.read().await;
    assert_eq!(read.len(), LARGE_BATCH);
    let ids: BTreeSet<String> = read.into_iter().map(|event| event.id).collect();
    assert_eq!(ids.len(), LARGE_BATCH);
}

/// Concurrent batches do not interfere with each other.
pub async fn what_several_publish_at_once_is_all_there(store: &dyn EventStore) {
    let log = store.open().await;
    let batches = (0..8_u8).map(|key| {
        let batch: Vec<LogEvent> = (0..300).map(|n| event(key, format!("{key}-{n}"))).collect();
        let log = &log;
        async move { log.publish(&batch).await.expect("the log answers") }
    });
    for published in join_all(batches).await {
        assert_eq!(published, confirmed(300));
    }
    let read = store.read().await;
    for key in 0..8 {
        let expected: Vec<String> = (0..300).map(|n| format!("{key}-{n}")).collect();
        assert_eq!(ids(&read, key), expected);
    }
}

/// Confirmed events outlive the process that published them.
pub async fn everything_is_there_for_another_process(store: &dyn EventStore) {
    for n in 0..3 {
        let published = store.open().await.publish(&[event(7, n.to_string())]).await;
        assert_eq!(published.expect("the log answers"), confirmed(1));
    }
    assert_eq!(ids(&store.read().await, 7), ["0", "1", "2"]);
}
