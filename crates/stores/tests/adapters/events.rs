//! The embedded log of events: what is old goes, and nobody who reads on notices.

use std::time::Duration;

use fetchwell_engine::ports::event_log::{EventLog, LogEvent};
use fetchwell_sqlite::db::Durability;
use fetchwell_stores::sqlite::{self, EventPage, SqliteEvents};
use fetchwell_testkit::conformance::HandClock;

const DAY: Duration = Duration::from_secs(86_400);

fn events(ids: std::ops::Range<usize>) -> Vec<LogEvent> {
    ids.map(|id| LogEvent { id: id.to_string(), key: [0; 32], value: "{}".to_owned() }).collect()
}

fn without_cursors(reading: EventPage) -> Vec<LogEvent> {
    reading.events.into_iter().map(|(_, event)| event).collect()
}

#[tokio::test]
async fn what_is_old_goes_and_cursors_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let db = sqlite::open(&folder.path().join("x.db"), Durability::Process).unwrap();
    let clock = HandClock::new();
    let log = SqliteEvents::new(db, clock.clock());
    log.publish(&events(0..1_200)).await.unwrap();
    let before = log.read(0, 10_000).await.unwrap();
    assert_eq!(before.events.last().map(|(cursor, _)| *cursor), Some(before.next));
    assert_eq!(without_cursors(before.clone()), events(0..1_200));
    clock.advance(DAY);
    log.publish(&events(1_200..1_203)).await.unwrap();
    assert_eq!(log.sweep(DAY).await.unwrap(), 0, "a day is not over before it is");
    clock.advance(Duration::from_secs(1));
    assert_eq!(log.sweep(DAY).await.unwrap(), 1_200);
    assert_eq!(without_cursors(log.read(before.next, 2).await.unwrap()), events(1_200..1_202));
    assert_eq!(without_cursors(log.read(0, 10).await.unwrap()), events(1_200..1_203));
    clock.advance(2 * DAY);
    assert_eq!(log.sweep(DAY).await.unwrap(), 3);
    let last = log.read(before.next, 10).await.unwrap();
    assert_eq!((last.events, last.next), (Vec::new(), before.next));
    log.publish(&events(9_000..9_001)).await.unwrap();
    let cursor = log.read(0, 10).await.unwrap().next;
    assert!(cursor > before.next + 3, "no cursor is given twice: {cursor}");
}
