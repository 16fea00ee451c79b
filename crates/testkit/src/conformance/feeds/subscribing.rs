//! How subscriptions are added and removed.

use std::time::Duration;

use fetchwell_engine::ports::feeds::Subscription;

use super::FeedsStore;

fn subscription(url: &str, category: &str) -> Subscription {
    let url = url.to_owned();
    let category = category.to_owned();
    Subscription { url, category, interval: None, title: String::new() }
}

/// Whatever characters they contain.
pub async fn a_subscription_is_there_once_and_the_last_word_counts(store: &dyn FeedsStore) {
    let feeds = store.open_feeds().await;
    assert_eq!(feeds.subscriptions().await.expect("none yet"), []);
    let first = subscription("http://ä.test/?a=\"1\"&b= 2", "News, [1] \"x\"");
    assert_eq!(feeds.subscribe(&[first.clone(), first.clone()]).await.expect("it goes in"), 1);
    let titled =
        Subscription { interval: Some(Duration::from_secs(60)), title: "T".into(), ..first };
    assert_eq!(feeds.subscribe(std::slice::from_ref(&titled)).await.expect("it changes"), 0);
    let another = store.open_feeds().await;
    assert_eq!(another.subscriptions().await.expect("they are read"), [titled]);
    assert_eq!(feeds.subscribe(&[]).await.expect("nothing is done"), 0);
}

/// They are sorted by category, then by feed.
pub async fn one_feed_may_be_subscribed_to_for_several_categories(store: &dyn FeedsStore) {
    let feeds = store.open_feeds().await;
    let all = [subscription("u", "b"), subscription("v", "a"), subscription("u", "a")];
    assert_eq!(feeds.subscribe(&all).await.expect("they go in"), 3);
    let [ub, va, ua] = all;
    assert_eq!(feeds.subscriptions().await.expect("they are read"), [ua, va, ub]);
}

/// Removing twice has the same effect as once.
pub async fn what_is_taken_out_is_gone_and_nothing_else(store: &dyn FeedsStore) {
    let feeds = store.open_feeds().await;
    let [a, b] = [subscription("u", "a"), subscription("u", "b")];
    feeds.subscribe(&[a.clone(), b.clone()]).await.expect("they go in");
    assert_eq!(feeds.unsubscribe(std::slice::from_ref(&a)).await.expect("it goes"), 1);
    assert_eq!(feeds.unsubscribe(&[a]).await.expect("it is gone"), 0);
    assert_eq!(feeds.subscriptions().await.expect("they are read"), [b]);
}

pub async fn more_than_fit_in_one_step_go_in_and_come_out(store: &dyn FeedsStore) {
    let feeds = store.open_feeds().await;
    let many: Vec<_> = (0..1_200).map(|n| subscription(&format!("u{n:04}"), "a")).collect();
    assert_eq!(feeds.subscribe(&many).await.expect("they go in"), 1_200);
    assert_eq!(feeds.subscriptions().await.expect("they are read"), many);
    let urls: Vec<&str> = many.iter().map(|subscription| subscription.url.as_str()).collect();
    assert_eq!(feeds.memories(&urls).await.expect("nothing is remembered"), vec![None; 1_200]);
    assert_eq!(feeds.unsubscribe(&many).await.expect("they go"), 1_200);
}
