//! Claims on feeds, and what is stored about them.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::feeds::{Claim, FeedMemory, Feeds};
use fetchwell_policy::time::Time;

use super::FeedsStore;

const NOON: Time = Time::from_secs(1_700_000_000);
const HOUR: Duration = Duration::from_secs(3_600);

async fn claim(feeds: &Arc<dyn Feeds>, urls: &[&str], holder: &str, now: Time) -> Vec<bool> {
    let claim = Claim { holder, now, until: now + HOUR };
    feeds.claim(urls, &claim).await.expect("a claim is granted or not")
}

fn memory() -> FeedMemory {
    FeedMemory {
        etag: Some("\"é\"".into()),
        read_for: ["news".to_owned()].into(),
        read_at: Some(NOON),
        due: NOON + HOUR,
        failures: 3,
        resolved: [("http://t.test/1".to_owned(), "http://a.test/1".to_owned())].into(),
        ..FeedMemory::default()
    }
}

async fn remembered(feeds: &Arc<dyn Feeds>, url: &str) -> Option<FeedMemory> {
    feeds.memories(&[url]).await.expect("memories can be read").remove(0)
}

/// All fields.
pub async fn what_is_kept_is_remembered_by_all(store: &dyn FeedsStore) {
    let feeds = store.open_feeds().await;
    assert_eq!(claim(&feeds, &["u"], "a", NOON).await, [true]);
    assert_eq!(remembered(&feeds, "u").await, None, "a claim is no memory");
    assert!(feeds.keep("u", "a", &memory()).await.expect("it is kept"));
    let another = store.open_feeds().await;
    let both = another.memories(&["v", "u"]).await.expect("memories can be read");
    assert_eq!(both, [None, Some(memory())]);
}

/// In any order of interleaving.
pub async fn of_several_that_claim_a_feed_one_gets_it(store: &dyn FeedsStore) {
    let all = [store.open_feeds().await, store.open_feeds().await, store.open_feeds().await];
    let holders = ["a", "b", "c"];
    for n in 0..20 {
        let url = format!("u{n}");
        let urls = [url.as_str()];
        let claims =
            all.iter().zip(holders).map(|(feeds, holder)| claim(feeds, &urls, holder, NOON));
        let granted = futures::future::join_all(claims).await.concat();
        assert_eq!(granted.iter().filter(|granted| **granted).count(), 1, "{granted:?}");
    }
}

/// And not earlier.
pub async fn a_claim_ends_by_the_time_that_is_told(store: &dyn FeedsStore) {
    let feeds = store.open_feeds().await;
    assert_eq!(claim(&feeds, &["u", "v"], "a", NOON).await, [true, true]);
    let nearly = NOON + HOUR - Duration::from_micros(1);
    assert_eq!(claim(&feeds, &["u", "w"], "b", nearly).await, [false, true]);
    assert_eq!(claim(&feeds, &["u"], "b", NOON + HOUR).await, [true]);
    assert_eq!(claim(&feeds, &["u"], "a", NOON + HOUR).await, [false]);
}

/// This extends it.
pub async fn whoever_has_a_claim_may_claim_again(store: &dyn FeedsStore) {
    let feeds = store.open_feeds().await;
    claim(&feeds, &["u"], "a b", NOON).await;
    assert_eq!(claim(&feeds, &["u"], "a b", NOON + HOUR / 2).await, [true]);
    assert_eq!(claim(&feeds, &["u"], "b", NOON + HOUR).await, [false]);
}

/// Another process may have newer data by then.
pub async fn without_the_claim_nothing_is_kept(store: &dyn FeedsStore) {
    let feeds = store.open_feeds().await;
    assert!(!feeds.keep("u", "a", &memory()).await.expect("an answer"));
    claim(&feeds, &["u"], "a", NOON).await;
    assert!(!feeds.keep("u", "b", &memory()).await.expect("an answer"));
    claim(&feeds, &["u"], "b", NOON + HOUR).await;
    assert!(!feeds.keep("u", "a", &memory()).await.expect("an answer"));
    assert_eq!(remembered(&feeds, "u").await, None);
    assert!(feeds.keep("u", "b", &memory()).await.expect("an answer"));
    assert!(!feeds.keep("u", "b", &FeedMemory::default()).await.expect("the claim is over"));
    assert_eq!(remembered(&feeds, "u").await, Some(memory()));
    assert_eq!(claim(&feeds, &["u"], "a", NOON).await, [true]);
}

/// The stored data remains.
pub async fn what_is_released_is_free_and_only_ones_own_can_be(store: &dyn FeedsStore) {
    let feeds = store.open_feeds().await;
    claim(&feeds, &["u"], "a", NOON).await;
    feeds.keep("u", "a", &memory()).await.expect("it is kept");
    claim(&feeds, &["u"], "a", NOON).await;
    feeds.release(&["u", "v"], "b").await.expect("nothing happens");
    assert_eq!(claim(&feeds, &["u"], "b", NOON).await, [false]);
    feeds.release(&["u", "v"], "a").await.expect("it is free");
    assert_eq!(claim(&feeds, &["u"], "b", NOON).await, [true]);
    assert_eq!(remembered(&feeds, "u").await, Some(memory()));
}

/// Even if the feed was claimed.
pub async fn what_is_forgotten_is_as_new(store: &dyn FeedsStore) {
    let feeds = store.open_feeds().await;
    claim(&feeds, &["u"], "a", NOON).await;
    feeds.keep("u", "a", &memory()).await.expect("it is kept");
    claim(&feeds, &["u"], "a", NOON).await;
    feeds.forget(&["u", "v"]).await.expect("it is forgotten");
    assert_eq!(remembered(&feeds, "u").await, None);
    assert_eq!(claim(&feeds, &["u"], "b", NOON).await, [true]);
}
