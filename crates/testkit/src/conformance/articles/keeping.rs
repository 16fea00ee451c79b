//! How articles and failures are stored and read.

use fetchwell_engine::ports::articles::{Status, Wanted};

use super::ArticlesStore;
use super::trial::{Run, article, article_at, count, failure, find, listed, site_failure};

/// All fields, with any content.
pub async fn an_article_is_read_as_it_was_kept(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    assert_eq!(find(&articles, "a").await, None);
    let kept = article("a", &["news"]);
    Run::begin(&articles).await.keep(&kept).await;
    assert_eq!(find(&store.open_articles().await, "a").await, Some(kept.fields));
}

/// It is also in the index, once.
pub async fn an_article_stands_in_all_its_categories(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    let run = Run::begin(&articles).await;
    run.keep(&article("a", &["news", "world: asia"])).await;
    run.keep(&article("b", &["news"])).await;
    assert_eq!(listed(&articles, Some("world: asia"), None).await, ["a"]);
    assert_eq!(listed(&articles, Some("news"), None).await, ["a", "b"]);
    assert_eq!(listed(&articles, None, None).await, ["a", "b"]);
    assert_eq!(listed(&articles, Some("none"), None).await, [""; 0]);
    let counts = count(&articles).await;
    assert_eq!((counts.articles, counts.attempted), (2, 2));
    let by_category = [("news".to_owned(), 2), ("world: asia".to_owned(), 1)];
    assert_eq!(counts.by_category, by_category.into());
}

/// Failures have an index of their own.
pub async fn a_failure_stands_in_no_index_of_articles(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    let run = Run::begin(&articles).await;
    run.keep(&article("a", &["news"])).await;
    run.keep(&failure("b", "FAIL_HTTP")).await;
    run.keep(&site_failure("c")).await;
    assert_eq!(listed(&articles, None, Some(Status::Success)).await, ["a"]);
    assert_eq!(listed(&articles, None, Some(Status::Failure)).await, ["b", "c"]);
    assert_eq!(listed(&articles, Some("news"), Some(Status::Failure)).await, ["b", "c"]);
    assert_eq!(listed(&articles, Some("other"), Some(Status::Failure)).await, [""; 0]);
    let counts = count(&articles).await;
    assert_eq!((counts.articles, counts.by_category["news"]), (1, 1));
    let failures = [("FAIL_HTTP".to_owned(), 1), ("FAIL_TIMEOUT".to_owned(), 1)];
    assert_eq!(counts.failures, failures.into());
}

/// The caller repeats the call if the answer was lost.
pub async fn what_is_kept_again_is_there_once(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    let run = Run::begin(&articles).await;
    for _ in 0..3 {
        run.keep(&article("a", &["news"])).await;
        run.keep(&failure("b", "FAIL_HTTP")).await;
    }
    assert_eq!(listed(&articles, None, None).await, ["a", "b"]);
    let counts = count(&articles).await;
    assert_eq!((counts.articles, counts.attempted, counts.failures["FAIL_HTTP"]), (1, 2, 1));
}

/// The fields of the failure are gone, but the failure is still counted.
pub async fn a_failure_gives_way_to_an_article_and_leaves_no_field(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    Run::begin(&articles).await.keep(&site_failure("a")).await;
    store.let_pass(super::trial::SECOND).await;
    let kept = article("a", &["news"]);
    Run::begin(&articles).await.keep(&kept).await;
    assert_eq!(find(&articles, "a").await, Some(kept.fields));
    assert_eq!(listed(&articles, None, None).await, ["a"]);
    assert_eq!(listed(&articles, None, Some(Status::Failure)).await, [""; 0]);
    assert_eq!(count(&articles).await.failures["FAIL_TIMEOUT"], 1);
}

/// A process that was suspended for long continues, and others have finished before it.
pub async fn a_failure_that_comes_late_replaces_no_article(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    let run = Run::begin(&articles).await;
    let kept = article("a", &["news"]);
    run.keep(&kept).await;
    run.keep(&failure("a", "FAIL_HTTP")).await;
    assert_eq!(find(&articles, "a").await, Some(kept.fields));
    assert_eq!(count(&articles).await.failures, [].into());
}

/// By the time at which they were fetched.
pub async fn the_newest_are_listed_first(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    let run = Run::begin(&articles).await;
    for (uid, fetched_ts) in [("b", 20), ("c", 30), ("a", 10)] {
        run.keep(&article_at(uid, &["news"], 1_700_000_000 + fetched_ts)).await;
    }
    run.keep(&failure("f", "FAIL_HTTP")).await;
    assert_eq!(listed(&articles, None, None).await, ["c", "b", "a", "f"]);
    assert_eq!(listed(&articles, Some("news"), None).await, ["c", "b", "a", "f"]);
    let two = Wanted { category: None, status: Some(Status::Success), most: 2, text: None };
    let found = articles.list(&two).await.expect("they can be listed");
    assert_eq!(found.iter().map(|fields| &fields["uid"]).collect::<Vec<_>>(), ["c", "b"]);
}

/// In any case; the newest first, of one category and one status if wanted.
pub async fn a_text_is_found_in_titles_and_urls_in_any_case(store: &dyn ArticlesStore) {
    let articles = store.open_articles().await;
    let run = Run::begin(&articles).await;
    for (uid, url, fetched_ts) in [
        ("a", "https://a.test/100%25", 10),
        ("b", "https://b.test/Foxes_in_the_city", 20),
        ("c", "https://c.test/other", 30),
    ] {
        let mut kept = article_at(uid, &["news"], 1_700_000_000 + fetched_ts);
        kept.fields.insert("url".to_owned(), url.to_owned());
        run.keep(&kept).await;
    }
    run.keep(&failure("f", "FAIL_HTTP")).await;
    for (text, category, expected) in [
        ("title OF", None, &["c", "b", "a"][..]),
        ("foxes_IN", None, &["b"]),
        ("foxesXin", None, &[]),
        ("100%", None, &["a"]),
        ("%", None, &["a"]),
        ("ä", Some("news"), &["c", "b", "a"]),
        ("Ä", None, &["c", "b", "a"]),
        ("Ä", Some("sport"), &[]),
    ] {
        let category = category.map(str::to_owned);
        let wanted = Wanted { category, text: Some(text.to_owned()), most: 9, status: None };
        let found = articles.list(&wanted).await.expect("they can be searched");
        let uids: Vec<_> = found.iter().map(|fields| fields["uid"].as_str()).collect();
        assert_eq!(uids, expected, "{text} in {:?}", wanted.category);
    }
    let one = Wanted { text: Some("title".to_owned()), most: 1, ..Wanted::default() };
    assert_eq!(articles.list(&one).await.expect("they can be searched").len(), 1);
}

/// In any order of interleaving.
pub async fn many_that_keep_at_once_keep_all(store: &dyn ArticlesStore) {
    let all = [store.open_articles().await, store.open_articles().await];
    let article_results: Vec<_> =
        (0..100).map(|n| article(&format!("{n:04}"), &["news"])).collect();
    let article_results: Vec<_> = article_results.iter().collect();
    let run = all[0].now().await.expect("the store has a clock");
    let kept =
        futures::future::join_all(all.iter().map(|articles| articles.keep(&article_results, run)));
    assert!(kept.await.iter().all(Result::is_ok));
    let counts = count(&all[0]).await;
    assert_eq!((counts.articles, counts.attempted, counts.by_category["news"]), (100, 100, 100));
}
