//! The port for crawls. A frontier holds the known pages that are not queued yet, and decides which are queued next.
//!
//! What is found on a page is stored in the transaction that settles its lease and records its row, and so are the
//! budgets. So no kill makes a crawl lose a link, follow one twice, or count a page twice.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_policy::crawl::{Bound, PageKey};
use serde::{Deserialize, Serialize};

use crate::ports::error::StoreError;
use crate::ports::job::{Job, Lane, NewJob};

/// The maximum number of start pages that are added in one transaction.
pub const STARTS_PER_BATCH: usize = 10_000;

/// A page that a link or a sitemap names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPage {
    /// The URL to request.
    pub url: String,
    /// Pages with the same key are one page.
    pub key: PageKey,
    /// The number of links that lead there from a start page.
    pub depth: u32,
    /// It is known from now on, unless one of these is exceeded.
    pub bounds: Vec<Bound>,
    /// The same, if it is the first page of its site.
    pub site_bound: Option<Bound>,
}

/// What was found on a page, or the start of a crawl.
#[derive(Clone, Debug, Default)]
pub struct Discoveries {
    /// Where it was found; `None` for start pages.
    pub parent: Option<ParentPage>,
    /// The pages that it names.
    pub pages: Vec<FoundPage>,
    /// Further pages that need not be fetched, because this one redirects to them.
    pub also_known: Vec<PageKey>,
    /// If this is exceeded, none of the pages that it names is followed.
    pub content: Option<Bound>,
    /// Jobs that are no pages, such as sitemaps. They are queued unless the crawl has had one with the same key.
    pub jobs: Vec<NewJob>,
}

/// The page that names others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentPage {
    /// Its URL.
    pub url: String,
    /// The URL that also defines the scope of the crawl for its links, if a start page redirects out of it.
    pub root: Option<String>,
}

/// The place of a page in a crawl. As JSON it is the payload of the page's job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagePlace {
    /// The number of links that lead there from a start page.
    pub depth: u32,
    /// The first page that was found to name it.
    pub parent: Option<String>,
    /// As [`ParentPage::root`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

impl PagePlace {
    /// Whether a job is a page, which counts against the budgets. Pages have no lane; all other jobs have one.
    pub fn is_of(job: &Job) -> bool {
        job.lane == Lane::default()
    }
}

/// Records that say what was found.
pub trait Discovers {
    /// What was found on the page of this record.
    fn discoveries(&self) -> &Arc<Discoveries>;
}

/// How many pages a crawl may fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrawlBudget {
    /// In all.
    pub pages: u64,
    /// Per site; `None` for no limit.
    pub pages_per_site: Option<u64>,
}

/// The size of a crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrawlCounts {
    /// The known pages.
    pub known: u64,
    /// The pages that were queued so far, without those that must not be fetched. This counts against the budget.
    pub admitted: u64,
    /// The known pages that are not queued.
    pub waiting: u64,
    /// The number of sites.
    pub sites: u64,
    /// The number of pages that the site with the most unfinished pages has, as far as that is known.
    pub longest: u64,
}

/// Links that were not followed, for one reason and on one site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutOff {
    /// A name of [`CutReason`](fetchwell_policy::crawl::CutReason).
    pub reason: String,
    /// The site that they lead to.
    pub site: String,
    /// How often one was found; the same link counts each time.
    pub links: u64,
    /// The first of them.
    pub example: String,
}

/// The frontier of one crawl.
#[async_trait]
pub trait Frontier: Send + Sync {
    /// Adds what is not known yet, and queues pages as far as the budget allows.
    async fn add(&self, found: Discoveries) -> Result<(), StoreError>;

    /// How far the crawl is.
    async fn counts(&self) -> Result<CrawlCounts, StoreError>;

    /// The links that were cut off, those with the most links first.
    async fn cut_off(&self, most: usize) -> Result<Vec<CutOff>, StoreError>;
}
