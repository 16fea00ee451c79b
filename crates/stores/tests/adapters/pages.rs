//! The page cache: one suite for every adapter.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreErrorKind;
use fetchwell_engine::ports::page_cache::PageCache;
use fetchwell_policy::time::Time;
use fetchwell_sqlite::db::Durability;
use fetchwell_stores::redis::RedisPages;
use fetchwell_stores::sqlite::{self, SqlitePages, bind_politeness};
use fetchwell_testkit::conformance::servers::{redis_connection, unused_redis};
use fetchwell_testkit::memory::MemoryPages;

const HOUR: Duration = Duration::from_secs(3_600);

fn hand_clock() -> (Arc<AtomicI64>, Clock) {
    let seconds = Arc::new(AtomicI64::new(1_000));
    let read = seconds.clone();
    (seconds, Clock::new(move || Time::from_secs(read.load(Ordering::Relaxed))))
}

/// Whatever clock it goes by.
async fn keeps_bodies(cache: &dyn PageCache) {
    assert_eq!(cache.get("a").await.unwrap(), None);
    cache.put("a", Bytes::from_static(b"zero"), HOUR).await.unwrap();
    cache.put("a", Bytes::from_static(b"\0one\xff"), HOUR).await.unwrap();
    cache.put("b", Bytes::new(), 2 * HOUR).await.unwrap();
    assert_eq!(cache.get("a").await.unwrap().as_deref(), Some(&b"\0one\xff"[..]));
    assert_eq!(cache.get("b").await.unwrap().as_deref(), Some(&b""[..]));
}

async fn conforms(cache: &dyn PageCache, seconds: &AtomicI64) {
    keeps_bodies(cache).await;
    seconds.fetch_add(3_599, Ordering::Relaxed);
    cache.put("c", Bytes::from_static(b"c"), HOUR).await.unwrap();
    assert!(cache.get("a").await.unwrap().is_some());
    seconds.fetch_add(1, Ordering::Relaxed);
    assert_eq!(cache.get("a").await.unwrap(), None, "its hour is over");
    assert_eq!(cache.sweep().await.unwrap(), 1);
    cache.put("b", Bytes::from_static(b"two"), HOUR).await.unwrap();
    assert_eq!(cache.get("b").await.unwrap().as_deref(), Some(&b"two"[..]));
    seconds.fetch_add(3_600, Ordering::Relaxed);
    assert_eq!(cache.sweep().await.unwrap(), 2);
}

#[tokio::test]
async fn memory_conforms() {
    let (seconds, clock) = hand_clock();
    conforms(&MemoryPages::new(clock), &seconds).await;
}

#[tokio::test]
async fn sqlite_conforms_and_remembers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (seconds, clock) = hand_clock();
    let open = || sqlite::open(&path, Durability::Process).unwrap();
    conforms(&SqlitePages::new(open(), clock.clone()), &seconds).await;
    let before = SqlitePages::new(open(), clock.clone());
    before.put("kept", Bytes::from_static(b"x"), HOUR).await.unwrap();
    drop(before);
    let after = SqlitePages::new(open(), clock);
    assert!(after.get("kept").await.unwrap().is_some());
}

/// Redis goes by its own clock, and forgets by itself.
#[tokio::test]
async fn redis_conforms_and_knows_when_to_forget() {
    let Some(address) = unused_redis().await else { return };
    let pages = RedisPages::open(&address).await.unwrap();
    keeps_bodies(&pages).await;
    let mut line = redis_connection(&address).await;
    for (key, most) in [("a", HOUR), ("b", 2 * HOUR)] {
        let left_ms: u64 = redis::cmd("PTTL").arg(key).query_async(&mut line).await.unwrap();
        let left = Duration::from_millis(left_ms);
        assert!(left <= most && left > most - HOUR / 2, "{key} is kept for {left:?}");
    }
    pages.put("a", Bytes::new(), Duration::ZERO).await.unwrap();
    assert_eq!(pages.sweep().await.unwrap(), 0);
    let large = Bytes::from(vec![0; RedisPages::MAX_BODY_BYTES + 1]);
    let refusal = pages.put("large", large, HOUR).await.unwrap_err();
    assert_eq!(refusal.kind(), StoreErrorKind::TooLarge, "{refusal}");
}

#[tokio::test]
async fn a_store_keeps_to_the_politeness_store_it_was_first_used_with() {
    let folder = tempfile::tempdir().unwrap();
    let db = sqlite::open(&folder.path().join("x.db"), Durability::Process).unwrap();
    assert_eq!(bind_politeness(&db, "itself").await.unwrap(), "itself");
    assert_eq!(bind_politeness(&db, "sqlite:/other.db").await.unwrap(), "itself");
}
