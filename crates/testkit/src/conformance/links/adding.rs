//! How links are added, read and expire.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::links::{CategoryLinks, CategorySet, LINKS_TTL};

use super::LinksStore;

const SECOND: Duration = Duration::from_secs(1);

fn urls(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("http://a.test/{name}")).collect()
}

async fn add(links: &Arc<dyn CategoryLinks>, category: &str, names: &[&str]) -> u64 {
    links.add(category, &urls(names)).await.expect("links are added")
}

/// Each category with the names of its links.
async fn seen(links: &Arc<dyn CategoryLinks>) -> Vec<(String, Vec<String>)> {
    let sets = links.snapshot().await.expect("links can be read");
    let name = |url: String| url.replace("http://a.test/", "");
    sets.into_iter()
        .map(|CategorySet { category, urls }| (category, urls.into_iter().map(name).collect()))
        .collect()
}

fn set(category: &str, names: &[&str]) -> (String, Vec<String>) {
    (category.to_owned(), names.iter().map(|name| (*name).to_owned()).collect())
}

/// Whatever characters they contain.
pub async fn links_are_kept_as_they_are_each_once(store: &dyn LinksStore) {
    let links = store.open_links().await;
    assert_eq!(seen(&links).await, []);
    assert_eq!(add(&links, "jobs report", &["b", "a", "b", "ä?x=1&y=*#f"]).await, 3);
    assert_eq!(add(&links, "jobs report", &["a", "c"]).await, 1);
    let again = store.open_links().await;
    assert_eq!(seen(&again).await, [set("jobs report", &["a", "b", "c", "ä?x=1&y=*#f"])]);
}

/// Categories are sorted by name.
pub async fn a_link_may_stand_in_several_categories(store: &dyn LinksStore) {
    let links = store.open_links().await;
    for category in ["world:asia", "a*b", "wörld"] {
        assert_eq!(add(&links, category, &["x"]).await, 1, "{category}");
    }
    let expected = ["a*b", "world:asia", "wörld"].map(|category| set(category, &["x"]));
    assert_eq!(seen(&links).await, expected);
}

/// Neither links nor a category are added, and the expiry does not change.
pub async fn nothing_is_added_by_adding_nothing(store: &dyn LinksStore) {
    let links = store.open_links().await;
    assert_eq!(add(&links, "empty", &[]).await, 0);
    add(&links, "news", &["1"]).await;
    store.let_pass(LINKS_TTL - SECOND).await;
    add(&links, "news", &[]).await;
    assert_eq!(seen(&links).await, [set("news", &["1"])]);
    store.let_pass(SECOND).await;
    assert_eq!(seen(&links).await, []);
}

pub async fn more_than_fit_in_one_step_go_in_and_come_out(store: &dyn LinksStore) {
    let links = store.open_links().await;
    let many: Vec<String> = (0..5_000).map(|n| format!("http://a.test/page/{n}")).collect();
    assert_eq!(links.add("news", &many).await.expect("they go in"), 5_000);
    let sets = links.snapshot().await.expect("links can be read");
    assert_eq!(sets.len(), 1);
    assert_eq!(sets[0].urls, many.into_iter().collect());
}

/// As a whole: an old link lives as long as the newest one.
pub async fn a_category_lives_for_48_hours_after_the_last_add(store: &dyn LinksStore) {
    let links = store.open_links().await;
    add(&links, "busy", &["1"]).await;
    add(&links, "quiet", &["1"]).await;
    store.let_pass(LINKS_TTL / 2).await;
    // Even if nothing in it is new.
    assert_eq!(add(&links, "busy", &["1"]).await, 0);
    store.let_pass(LINKS_TTL / 2).await;
    assert_eq!(seen(&links).await, [set("busy", &["1"])]);
    store.let_pass(LINKS_TTL / 2).await;
    assert_eq!(seen(&links).await, []);
}

/// Its old links do not come back.
pub async fn a_category_that_was_forgotten_begins_anew(store: &dyn LinksStore) {
    let links = store.open_links().await;
    add(&links, "news", &["old"]).await;
    store.let_pass(LINKS_TTL).await;
    assert_eq!(add(&links, "news", &["old", "new"]).await, 2);
    assert_eq!(seen(&links).await, [set("news", &["new", "old"])]);
}

/// In any order of interleaving.
pub async fn several_that_add_at_once_count_each_link_once(store: &dyn LinksStore) {
    let all = [store.open_links().await, store.open_links().await, store.open_links().await];
    let many: Vec<String> = (0..300).map(|n| format!("http://a.test/{n}")).collect();
    let adds = all.iter().map(|links| links.add("news", &many));
    let added = futures::future::join_all(adds).await;
    let added: u64 = added.into_iter().map(|added| added.expect("they go in")).sum();
    assert_eq!(added, 300);
}
