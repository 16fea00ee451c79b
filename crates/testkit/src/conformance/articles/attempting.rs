//! Which links are not fetched again, and for how long.

use super::ArticlesStore;
use super::trial::{DAY, Run, SECOND, article, count, failure, find, site_failure};

/// The pending links are returned in the given order.
pub async fn what_was_kept_is_not_pending(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    let run = Run::begin(&articles).await;
    assert_eq!(run.pending(&["a", "b", "c", "d"]).await, ["a", "b", "c", "d"]);
    run.keep(&article("b", &["news"])).await;
    run.keep(&failure("c", "FAIL_EMPTY")).await;
    assert_eq!(run.pending(&["d", "c", "b", "a"]).await, ["d", "a"]);
    let another = Run::begin(&store.open_articles().await).await;
    assert_eq!(another.pending(&["a", "b", "c", "d"]).await, ["a", "d"]);
    assert_eq!(another.pending(&[]).await, [""; 0]);
}

/// Only an article counts, not a failure. The attempt is recorded again, so that it still counts after the article
/// expires.
pub async fn a_link_that_has_an_article_is_not_pending_though_no_attempt_is_noted(
    store: &dyn ArticlesStore,
) {
    let articles = store.open_articles().await;
    let run = Run::begin(&articles).await;
    run.keep(&article("a", &["news"])).await;
    run.keep(&failure("b", "FAIL_HTTP")).await;
    store.forget_attempt("a").await;
    store.forget_attempt("b").await;
    assert_eq!(count(&articles).await.attempted, 0);
    let run = Run::begin(&articles).await;
    assert_eq!(run.pending(&["a", "b", "c"]).await, ["b", "c"]);
    assert_eq!(count(&articles).await.attempted, 1);
    store.let_pass(DAY * 8).await;
    let run = Run::begin(&articles).await;
    assert_eq!(run.pending(&["a", "b"]).await, ["b"], "the article is over, the attempt is not");
    store.let_pass(DAY * 23).await;
    assert!(Run::begin(&articles).await.is_pending("a").await);
}

/// After 29 days it still counts, after 31 it does not, whatever else is attempted meanwhile.
pub async fn an_attempt_counts_for_30_days(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    let run = Run::begin(&articles).await;
    run.keep(&article("a", &["news"])).await;
    run.keep(&failure("b", "FAIL_HTTP")).await;
    store.let_pass(DAY * 29).await;
    let run = Run::begin(&articles).await;
    assert_eq!(run.pending(&["a", "b"]).await, [""; 0]);
    run.keep(&failure("c", "FAIL_HTTP")).await;
    store.let_pass(DAY * 2).await;
    let run = Run::begin(&articles).await;
    assert_eq!(run.pending(&["a", "b", "c"]).await, ["a", "b"]);
    // A new attempt starts a new period.
    run.keep(&article("a", &["news"])).await;
    assert_eq!(run.pending(&["a", "b"]).await, ["b"]);
}

/// The last failure is stored in any case.
pub async fn a_failure_of_the_site_counts_after_three_runs(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    for n in 1..=3 {
        let run = Run::begin(&articles).await;
        assert!(run.is_pending("a").await, "run {n}");
        run.keep(&site_failure("a")).await;
        assert_eq!(count(&articles).await.attempted, u64::from(n == 3), "run {n}");
        assert_eq!(find(&articles, "a").await.expect("a failure")["reason"], "FAIL_TIMEOUT");
        store.let_pass(SECOND).await;
    }
    assert!(!Run::begin(&articles).await.is_pending("a").await);
}

/// The link is not pending for a run that began before another run recorded the site failure.
pub async fn runs_at_one_time_count_as_one(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    let one = Run::begin(&articles).await;
    let other = Run::begin(&articles).await;
    store.let_pass(SECOND).await;
    assert!(other.is_pending("a").await);
    one.keep(&site_failure("a")).await;
    assert!(!other.is_pending("a").await);
    // It had already taken the link.
    other.keep(&site_failure("a")).await;
    for attempted in [0, 1] {
        store.let_pass(SECOND).await;
        let next = Run::begin(&articles).await;
        assert!(next.is_pending("a").await);
        next.keep(&site_failure("a")).await;
        assert_eq!(count(&articles).await.attempted, attempted);
    }
}

/// The caller repeats the call if the answer was lost.
pub async fn what_comes_again_counts_once(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    for attempted in [0, 0, 1] {
        let run = Run::begin(&articles).await;
        for _ in 0..4 {
            run.keep(&site_failure("a")).await;
        }
        assert_eq!(count(&articles).await.attempted, attempted);
        store.let_pass(SECOND).await;
    }
}

pub async fn an_article_ends_the_count_of_failures(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    for _ in 0..2 {
        Run::begin(&articles).await.keep(&site_failure("a")).await;
        store.let_pass(SECOND).await;
    }
    Run::begin(&articles).await.keep(&article("a", &["news"])).await;
    store.let_pass(DAY * 31).await;
    let run = Run::begin(&articles).await;
    run.keep(&site_failure("a")).await;
    store.let_pass(SECOND).await;
    assert!(Run::begin(&articles).await.is_pending("a").await);
}

/// The URL is to blame then, so earlier site failures do not matter.
pub async fn a_failure_of_the_link_counts_at_once_whatever_came_before(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    Run::begin(&articles).await.keep(&site_failure("a")).await;
    store.let_pass(SECOND).await;
    Run::begin(&articles).await.keep(&failure("a", "FAIL_HTTP")).await;
    store.let_pass(SECOND).await;
    assert!(!Run::begin(&articles).await.is_pending("a").await);
}

/// A site that fails once a month is not down.
pub async fn failures_long_ago_count_no_more(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    for _ in 0..4 {
        let run = Run::begin(&articles).await;
        assert!(run.is_pending("a").await);
        run.keep(&site_failure("a")).await;
        store.let_pass(DAY * 8).await;
    }
    assert_eq!(count(&articles).await.attempted, 0);
}
