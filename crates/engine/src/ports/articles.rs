//! The port for articles: the result of each link, and which links were already attempted.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::time::Time;

use crate::ports::error::StoreError;

/// How long an article, or the record that a link has none, is kept.
pub const ARTICLE_TTL: Duration = Duration::from_secs(7 * 86_400);

/// How long an attempted link is not fetched again.
pub const ATTEMPTED_FOR: Duration = Duration::from_secs(30 * 86_400);

/// A link whose site fails counts as attempted after this many runs.
pub const RUNS_UNTIL_ATTEMPTED: u32 = 3;

/// How long the number of runs in which a link's site failed is kept. Links do not live longer than this.
pub const SITE_FAILURES_TTL: Duration = ARTICLE_TTL;

/// The fields of an article, by their names in the contract: `uid`, `url`, `status` and so on.
pub type Fields = BTreeMap<String, String>;

/// Whether a link yielded an article.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// There is an article.
    Success,
    /// There is no article.
    Failure,
}

impl Status {
    /// The value of the field `status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Success => "success",
            Status::Failure => "failure",
        }
    }
}

/// The result of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArticleResult {
    /// The ID of the link.
    pub uid: String,
    /// All categories that the link is in.
    pub categories: Vec<String>,
    /// When it was fetched, by the wall clock, in Unix seconds.
    pub fetched_ts: i64,
    /// The fields to store.
    pub fields: Fields,
    /// Why there is no article.
    pub failure: Option<ArticleFailure>,
}

/// Why a link yielded no article.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArticleFailure {
    /// An error code from the contract.
    pub code: &'static str,
    /// The site failed, not the link: the link counts as attempted only after [`RUNS_UNTIL_ATTEMPTED`] runs.
    pub is_of_site: bool,
}

/// The maximum number of articles that a search for a text examines, newest first. It bounds the cost of a text that
/// few articles have.
pub const ARTICLES_EXAMINED: usize = 2_000;

/// Selects articles.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only this category. Failures are listed under their first category only.
    pub category: Option<String>,
    /// Only this status.
    pub status: Option<Status>,
    /// Only articles whose title or URL contains this text, in any case, of the newest [`ARTICLES_EXAMINED`] that match
    /// otherwise.
    pub text: Option<String>,
    /// The maximum number of articles.
    pub most: usize,
}

impl Wanted {
    /// Whether the title or the URL of an article contains the text.
    pub fn wants_text(&self, title: &str, url: &str) -> bool {
        let Some(text) = &self.text else { return true };
        let text = text.to_lowercase();
        [title, url].iter().any(|field| field.to_lowercase().contains(&text))
    }
}

/// The size of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Stored articles.
    pub articles: u64,
    /// Links that are not fetched again for now.
    pub attempted: u64,
    /// Articles per category.
    pub by_category: BTreeMap<String, u64>,
    /// Links that have ever failed, by the error code.
    pub failures: BTreeMap<String, u64>,
}

/// Articles, and the bookkeeping of runs. A run is identified by its start time.
#[async_trait]
pub trait Articles: Send + Sync {
    /// The time of the store's clock. It identifies a run that starts now.
    async fn now(&self) -> Result<Time, StoreError>;

    /// Whether each of these links still has to be fetched in `run`: it was not attempted within [`ATTEMPTED_FOR`], it
    /// has no article, and its site has not failed since the run began. A link that has an article but is not recorded
    /// as attempted is recorded now.
    async fn pending(&self, uids: &[String], run: Time) -> Result<Vec<bool>, StoreError>;

    /// Stores the results of links in `run`. Each result is stored atomically: the article, its index entries, and that
    /// the link was attempted. The call is idempotent. A failure never replaces an existing article, because it may
    /// come from a process that was stopped for a long time.
    async fn keep(&self, article_results: &[&ArticleResult], run: Time) -> Result<(), StoreError>;

    /// Removes expired entries from the indexes.
    async fn trim(&self) -> Result<(), StoreError>;

    /// The fields of one article.
    async fn find(&self, uid: &str) -> Result<Option<Fields>, StoreError>;

    /// The newest articles that match.
    async fn list(&self, wanted: &Wanted) -> Result<Vec<Fields>, StoreError>;

    /// Counts the articles. Expired ones may be included until [`Articles::trim`] removes them.
    async fn count(&self) -> Result<Counts, StoreError>;
}
