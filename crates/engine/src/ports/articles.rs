//! The port of articles: what links gave, and which links were tried.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::time::Time;

use crate::ports::error::StoreError;

/// How long an article, or the lack of one, is kept.
pub const ARTICLE_TTL: Duration = Duration::from_secs(7 * 86_400);

/// How long a link that was attempted is left alone.
pub const ATTEMPTED_FOR: Duration = Duration::from_secs(30 * 86_400);

/// A link whose site fails is attempted when that happened in so many runs.
pub const RUNS_UNTIL_ATTEMPTED: u32 = 3;

/// How long it is remembered in how many runs a link's site failed: links don't live longer than this.
pub const SITE_FAILURES_TTL: Duration = ARTICLE_TTL;

/// What is known of an article, by the contract's names: `uid`, `url`, `status` and so on.
pub type Fields = BTreeMap<String, String>;

/// Whether a link gave an article.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// It did.
    Success,
    /// It did not.
    Failure,
}

impl Status {
    /// As the field `status` has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Success => "success",
            Status::Failure => "failure",
        }
    }
}

/// What a link gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gleaned {
    /// Names the link.
    pub uid: String,
    /// Every category that it stands in.
    pub categories: Vec<String>,
    /// When, by the wall clock, in Unix seconds.
    pub fetched_ts: i64,
    /// All that is kept.
    pub fields: Fields,
    /// Why it gave no article.
    pub failure: Option<Failure>,
}

/// Why a link gave no article.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// One of the contract's codes.
    pub code: &'static str,
    /// The link is innocent: it counts as attempted after [`RUNS_UNTIL_ATTEMPTED`] runs only.
    pub is_of_site: bool,
}

/// Which articles are meant.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Those of this category. Failures are known by their first category only.
    pub category: Option<String>,
    /// Those of this status.
    pub status: Option<Status>,
    /// At most so many.
    pub most: usize,
}

/// How much of what there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Articles that are kept.
    pub articles: u64,
    /// Links that are left alone.
    pub attempted: u64,
    /// Articles of each category.
    pub by_category: BTreeMap<String, u64>,
    /// Links that ever failed, by code.
    pub failures: BTreeMap<String, u64>,
}

/// Articles, and the bookkeeping of runs. A run is named by when it began.
#[async_trait]
pub trait Articles: Send + Sync {
    /// What time it is, by the store's clock: a run that begins has it for a name.
    async fn now(&self) -> Result<Time, StoreError>;

    /// Whether each of these links is still to be fetched in a run that began then: it was not attempted
    /// within [`ATTEMPTED_FOR`], there is no article of it, and its site has not failed it since the run began. A
    /// link that has an article counts as attempted from now on, if nobody had noted that.
    async fn pending(&self, uids: &[String], run: Time) -> Result<Vec<bool>, StoreError>;

    /// Keeps what links gave in a run that began then, each as one move: the article, its places in every
    /// index, and that it was attempted. May be done again. An article that is there is never replaced by
    /// a failure: whoever was stopped for long may come late.
    async fn keep(&self, gleaned: &[&Gleaned], run: Time) -> Result<(), StoreError>;

    /// Takes out of the indexes what is over.
    async fn trim(&self) -> Result<(), StoreError>;

    /// What is known of one.
    async fn find(&self, uid: &str) -> Result<Option<Fields>, StoreError>;

    /// The newest ones.
    async fn list(&self, wanted: &Wanted) -> Result<Vec<Fields>, StoreError>;

    /// How many there are. What is over may still be counted until it is taken out.
    async fn count(&self) -> Result<Counts, StoreError>;
}
