//! What expires, and what stays.

use super::ArticlesStore;
use super::trial::{DAY, Run, SECOND, article, count, failure, find, listed};

/// From the time at which each was stored.
pub async fn articles_and_failures_are_kept_for_7_days(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    let run = Run::begin(&articles).await;
    run.keep(&article("a", &["news"])).await;
    run.keep(&failure("b", "FAIL_HTTP")).await;
    store.let_pass(DAY * 7 - SECOND * 10).await;
    assert!(find(&articles, "a").await.is_some() && find(&articles, "b").await.is_some());
    store.let_pass(SECOND * 10).await;
    assert!(find(&articles, "a").await.is_none() && find(&articles, "b").await.is_none());
    assert_eq!(listed(&articles, None, None).await, [""; 0]);
}

/// Failures are counted for ever.
pub async fn what_is_over_leaves_every_index_but_that_of_failures(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    let run = Run::begin(&articles).await;
    run.keep(&article("a", &["news", "world"])).await;
    run.keep(&failure("b", "FAIL_HTTP")).await;
    store.let_pass(DAY * 7).await;
    articles.trim().await.expect("what is over goes");
    let counts = count(&articles).await;
    assert_eq!((counts.articles, counts.by_category, counts.attempted), (0, [].into(), 2));
    assert_eq!(counts.failures["FAIL_HTTP"], 1);
}

/// An active category stays, but its old articles do not.
pub async fn what_is_alive_stays_when_what_is_over_goes(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    Run::begin(&articles).await.keep(&article("old", &["busy", "quiet"])).await;
    store.let_pass(DAY * 5).await;
    Run::begin(&articles).await.keep(&article("new", &["busy"])).await;
    articles.trim().await.expect("nothing is over");
    assert_eq!(count(&articles).await.by_category["busy"], 2);
    store.let_pass(DAY * 4).await;
    articles.trim().await.expect("what is over goes");
    let counts = count(&articles).await;
    assert_eq!((counts.articles, counts.by_category), (1, [("busy".to_owned(), 1)].into()));
    assert_eq!(listed(&articles, Some("busy"), None).await, ["new"]);
}

pub async fn more_than_fit_in_one_step_are_taken_out(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    let article_results: Vec<_> =
        (0..1_200).map(|n| article(&format!("{n:04}"), &["news"])).collect();
    let run = articles.now().await.expect("the store has a clock");
    articles.keep(&article_results.iter().collect::<Vec<_>>(), run).await.expect("they are kept");
    assert_eq!(count(&articles).await.articles, 1_200);
    store.let_pass(DAY * 6).await;
    Run::begin(&articles).await.keep(&article("new", &["news"])).await;
    store.let_pass(DAY).await;
    articles.trim().await.expect("what is over goes");
    let counts = count(&articles).await;
    assert_eq!((counts.articles, counts.by_category["news"], counts.attempted), (1, 1, 1_201));
    store.let_pass(DAY * 23).await;
    articles.trim().await.expect("what is over goes");
    assert_eq!(count(&articles).await.attempted, 1);
}

/// Otherwise the uids of all attempts would accumulate.
pub async fn attempts_that_are_over_are_forgotten(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    Run::begin(&articles).await.keep(&article("old", &["news"])).await;
    store.let_pass(DAY * 20).await;
    Run::begin(&articles).await.keep(&article("new", &["news"])).await;
    store.let_pass(DAY * 10).await;
    articles.trim().await.expect("what is over goes");
    assert_eq!(count(&articles).await.attempted, 1);
    assert_eq!(Run::begin(&articles).await.pending(&["old", "new"]).await, ["old"]);
}
