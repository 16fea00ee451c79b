use std::time::Duration;

use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_testkit::conformance::HandClock;
use fetchwell_testkit::conformance::adapters::SqliteStore;
use fetchwell_testkit::conformance::rounds::{RoundsStore, take_urls};

use super::*;

const NOON: Time = Time::from_secs(1_800_000_000);
const MINUTE: Duration = Duration::from_secs(60);

fn entry(name: &str, every: Duration) -> ScheduleEntry {
    ScheduleEntry {
        kind: EntryKind::Url,
        url: format!("http://a.test/{name}"),
        every,
        jitter: Duration::ZERO,
        start: Some(NOON),
    }
}

/// A scheduler of its own on the store, as each process has one.
async fn scheduler(
    store: &SqliteStore,
    entries: &[ScheduleEntry],
    max_waiting: u64,
) -> RoundScheduler {
    let clock = HandClock::new().clock();
    let queue: Arc<dyn UrlQueue> = store.open_rounds(clock.clone()).await.into();
    let rounds: Arc<dyn Rounds> = queue;
    let sitemaps = Sitemaps::new(rounds.clone(), clock, true, max_waiting);
    RoundScheduler::new(entries.to_vec(), rounds, sitemaps, max_waiting)
}

/// What waits, by the names of its pages; and takes it.
async fn taken(store: &SqliteStore) -> Vec<String> {
    let urls = take_urls(&*store.open_rounds(HandClock::new().clock()).await).await;
    urls.iter().filter_map(|url| Some(url.rsplit_once('/')?.1.to_owned())).collect()
}

#[tokio::test]
async fn each_is_put_once_a_round_and_missed_rounds_are_one() {
    let store = SqliteStore::new();
    let plan = [entry("1", MINUTE), entry("2", MINUTE * 2)];
    let mut some = scheduler(&store, &plan, 0).await;
    some.pass(NOON - MINUTE).await.unwrap();
    assert!(taken(&store).await.is_empty(), "before their start");
    for (after, expected) in
        [(0, &["1", "2"][..]), (30, &[]), (60, &["1"]), (61, &[]), (600, &["1", "2"])]
    {
        some.pass(NOON + Duration::from_secs(after)).await.unwrap();
        assert_eq!(taken(&store).await, expected, "after {after} s");
    }
    // A late round has moved none after it.
    assert_eq!(some.due_entries(NOON + Duration::from_secs(659)).await.unwrap().len(), 0);
    assert_eq!(some.due_entries(NOON + Duration::from_secs(660)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_restart_and_a_second_scheduler_put_nothing_twice() {
    let store = SqliteStore::new();
    let plan: Vec<ScheduleEntry> = (0..50).map(|n| entry(&n.to_string(), MINUTE)).collect();
    let mut one = scheduler(&store, &plan, 0).await;
    let mut other = scheduler(&store, &plan, 0).await;
    for round in 0..5 {
        let now = NOON + MINUTE * round;
        let (first, second) = tokio::join!(one.pass(now), other.pass(now));
        first.and(second).unwrap();
        scheduler(&store, &plan, 0).await.pass(now).await.unwrap();
        assert_eq!(taken(&store).await.len(), 50, "round {round}");
    }
    // One whose clock is a little behind brings nothing back.
    other.pass(NOON + MINUTE * 4 - Duration::from_secs(1)).await.unwrap();
    assert!(taken(&store).await.is_empty());
}

#[tokio::test]
async fn a_plan_may_change() {
    let store = SqliteStore::new();
    let pass = async |plan: &[ScheduleEntry], after_s| {
        let now = NOON + Duration::from_secs(after_s);
        scheduler(&store, plan, 0).await.pass(now).await.unwrap();
        taken(&store).await
    };
    assert_eq!(pass(&[entry("1", MINUTE * 10)], 0).await, ["1"]);
    // One is added; another comes more often.
    assert_eq!(pass(&[entry("1", MINUTE * 10), entry("2", MINUTE)], 30).await, ["2"]);
    assert_eq!(pass(&[entry("1", MINUTE * 5), entry("2", MINUTE)], 310).await, ["1", "2"]);
    // Less often again, and one is gone: nothing of what was put comes twice.
    assert!(pass(&[entry("1", MINUTE * 10)], 320).await.is_empty());
    assert_eq!(pass(&[entry("1", MINUTE * 10)], 600).await, ["1"]);
    // It comes back, and is due.
    assert_eq!(pass(&[entry("1", MINUTE * 10), entry("2", MINUTE)], 601).await, ["2"]);
}

#[tokio::test]
async fn what_is_due_waits_for_a_list_that_is_too_long() {
    let store = SqliteStore::new();
    let plan = [entry("1", MINUTE), entry("2", MINUTE)];
    let mut some = scheduler(&store, &plan, 2).await;
    some.pass(NOON).await.unwrap();
    some.pass(NOON + MINUTE).await.unwrap();
    some.pass(NOON + MINUTE * 2).await.unwrap();
    assert_eq!(taken(&store).await.len(), 2, "nothing on top of two");
    some.pass(NOON + MINUTE * 2).await.unwrap();
    assert_eq!(taken(&store).await, ["1", "2"]);
}
