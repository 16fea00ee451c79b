//! Helpers for the cases: links, their results, and a run.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::articles::{
    ArticleFailure, ArticleResult, Articles, Counts, Fields, Status, Wanted,
};
use fetchwell_policy::time::Time;

pub(super) const DAY: Duration = Duration::from_secs(86_400);
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// An article that was fetched at the end of 2023, where the clocks of the cases start.
pub(super) fn article(uid: &str, categories: &[&str]) -> ArticleResult {
    article_at(uid, categories, 1_700_000_000)
}

pub(super) fn article_at(uid: &str, categories: &[&str], fetched_ts: i64) -> ArticleResult {
    let title = format!("Title of {uid} → “ä”\n");
    article_result(uid, categories, fetched_ts, &[("status", "success"), ("title", &title)], None)
}

/// A link that failed because of its URL.
pub(super) fn failure(uid: &str, code: &'static str) -> ArticleResult {
    failed(uid, ArticleFailure { code, is_of_site: false })
}

/// A link that failed because of its site.
pub(super) fn site_failure(uid: &str) -> ArticleResult {
    failed(uid, ArticleFailure { code: "FAIL_TIMEOUT", is_of_site: true })
}

fn failed(uid: &str, failure: ArticleFailure) -> ArticleResult {
    let fields = [("status", "failure"), ("reason", failure.code)];
    article_result(uid, &["news"], 1_700_000_000, &fields, Some(failure))
}

fn article_result(
    uid: &str,
    categories: &[&str],
    fetched_ts: i64,
    fields: &[(&str, &str)],
    failure: Option<ArticleFailure>,
) -> ArticleResult {
    let fetched = fetched_ts.to_string();
    let own = [("uid", uid), ("category", categories[0]), ("fetched_ts", &fetched)];
    let fields = own.iter().chain(fields);
    ArticleResult {
        uid: uid.to_owned(),
        categories: categories.iter().map(|category| (*category).to_owned()).collect(),
        fetched_ts,
        fields: fields.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        failure,
    }
}

/// One run on a store.
pub(super) struct Run {
    articles: Arc<dyn Articles>,
    began: Time,
}

impl Run {
    pub(super) async fn begin(articles: &Arc<dyn Articles>) -> Run {
        let began = articles.now().await.expect("the store has a clock");
        Run { articles: articles.clone(), began }
    }

    pub(super) async fn keep(&self, article_result: &ArticleResult) {
        self.articles.keep(&[article_result], self.began).await.expect("it is kept");
    }

    pub(super) async fn is_pending(&self, uid: &str) -> bool {
        self.pending(&[uid]).await == [uid]
    }

    /// The uids that are still to be fetched.
    pub(super) async fn pending<'a>(&self, uids: &[&'a str]) -> Vec<&'a str> {
        let asked: Vec<String> = uids.iter().map(|uid| (*uid).to_owned()).collect();
        let pending = self.articles.pending(&asked, self.began).await.expect("it is known");
        assert_eq!(pending.len(), uids.len());
        uids.iter().zip(pending).filter(|(_, pending)| *pending).map(|(uid, _)| *uid).collect()
    }
}

pub(super) async fn find(articles: &Arc<dyn Articles>, uid: &str) -> Option<Fields> {
    articles.find(uid).await.expect("it can be read")
}

/// The listed uids, in order.
pub(super) async fn listed(
    articles: &Arc<dyn Articles>,
    category: Option<&str>,
    status: Option<Status>,
) -> Vec<String> {
    let wanted = Wanted { category: category.map(str::to_owned), status, most: 1_000, text: None };
    let found = articles.list(&wanted).await.expect("they can be listed");
    found.into_iter().map(|fields| fields["uid"].clone()).collect()
}

pub(super) async fn count(articles: &Arc<dyn Articles>) -> Counts {
    articles.count().await.expect("they can be counted")
}
