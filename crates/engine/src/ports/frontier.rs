//! The port for crawls. A frontier holds the known pages that are not queued yet, and decides which are queued next.
//!
//! The links of a page and the budgets are stored in the transaction that settles its lease and records its row. So a
//! crawl that is killed does not lose a link, follow one twice, or count a page twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use fetchwell_policy::crawl::{Bound, PageKey};
use serde::{Deserialize, Serialize};

use crate::plan::one_page::Weighed;
use crate::ports::error::StoreError;
use crate::ports::job::{Job, NewJob};

/// The maximum number of start pages that are added in one transaction.
pub const STARTS_PER_BATCH: usize = 10_000;

/// The party of the lane of jobs that are not pages, or the end of it.
pub const SITEMAPS_PARTY: &str = "sitemaps";

/// A page that a link or a sitemap names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPage {
    /// The URL to request.
    pub url: String,
    /// URLs with the same key are one page.
    pub key: PageKey,
    /// The number of links that lead there from a start page.
    pub depth: u32,
    /// The page becomes known unless one of these is exceeded.
    pub bounds: Vec<Bound>,
    /// Also applies if it is the first page of its site.
    pub site_bound: Option<Bound>,
}

/// What was found on a page, or the start of a crawl.
#[derive(Clone, Debug, Default)]
pub struct Discoveries {
    /// The page or sitemap on which it was found; `None` for start pages.
    pub parent: Option<ParentPage>,
    /// The pages that it names.
    pub pages: Vec<FoundPage>,
    /// Pages that need not be fetched, because this one redirects to them.
    pub also_known: Vec<PageKey>,
    /// The last of them, if the row of this page has its content. It is *taken*: it is not queued, even if it is known
    /// already.
    pub takes: Option<PageKey>,
    /// If this is exceeded, none of its links is followed.
    pub content: Option<Bound>,
    /// Jobs that are not pages, such as sitemaps. They are queued unless the crawl has had one with the same key, or
    /// `job_bound` is exceeded.
    pub jobs: Vec<NewJob>,
    /// The limit on such jobs.
    pub job_bound: Option<Bound>,
}

/// The page or sitemap that names others.
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
    /// The page or sitemap on which it was first found.
    pub parent: Option<String>,
    /// See [`ParentPage::root`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

impl PagePlace {
    /// Whether a job is a page, which counts against the budgets. All other jobs have a lane that says so.
    pub fn is_of(job: &Job) -> bool {
        !job.lane.party.as_deref().is_some_and(|party| party.ends_with(SITEMAPS_PARTY))
    }
}

/// Records that say what was found.
pub trait Discovers {
    /// What was found on the page of this record.
    fn discoveries(&self) -> &Arc<Discoveries>;
}

/// The result of a page, of a sitemap or of a robots.txt. `R` is what becomes of a page.
#[derive(Debug)]
pub struct CrawlRecord<R> {
    /// The row of a page; `None` for everything else.
    pub row: Option<R>,
    /// The row if the page was reached by a redirect, and another row has its content.
    pub redirected: Option<R>,
    /// What was found.
    pub found: Arc<Discoveries>,
    /// Why a sitemap was not read.
    pub failure: Option<String>,
    is_elsewhere: AtomicBool,
}

impl<R> CrawlRecord<R> {
    /// The record of something that is not a page.
    pub fn without_row(found: Discoveries, failure: Option<String>) -> CrawlRecord<R> {
        CrawlRecord {
            row: None,
            redirected: None,
            found: Arc::new(found),
            failure,
            is_elsewhere: AtomicBool::new(false),
        }
    }

    /// The record of a page.
    pub fn of_row(row: R) -> CrawlRecord<R> {
        CrawlRecord { row: Some(row), ..CrawlRecord::without_row(Discoveries::default(), None) }
    }

    /// The row of a page. `is_elsewhere`: another row has the content of the page to which this one redirects.
    pub fn row_if(&self, is_elsewhere: bool) -> Option<&R> {
        self.redirected.as_ref().filter(|_| is_elsewhere).or(self.row.as_ref())
    }

    /// The row of a page, after [`set_elsewhere`](CrawlRecord::set_elsewhere).
    pub fn row(&self) -> Option<&R> {
        self.row_if(self.is_elsewhere.load(Ordering::Relaxed))
    }

    /// Sets whether another row has the content of the page to which this one redirects.
    pub fn set_elsewhere(&self, is_elsewhere: bool) {
        self.is_elsewhere.store(is_elsewhere, Ordering::Relaxed);
    }
}

impl<R> Discovers for CrawlRecord<R> {
    fn discoveries(&self) -> &Arc<Discoveries> {
        &self.found
    }
}

impl<R: Weighed> Weighed for CrawlRecord<R> {
    fn weight(&self) -> usize {
        let pages = self.found.pages.iter().map(|page| page.url.len() + size_of_val(page));
        let jobs = self.found.jobs.iter().map(|new| new.job.url.len() + size_of_val(new));
        let rows = self.row.iter().chain(&self.redirected).map(Weighed::weight);
        pages.chain(jobs).chain(rows).sum()
    }
}

/// How many pages a crawl may fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrawlBudget {
    /// In total.
    pub pages: u64,
    /// Per site; `None` for no limit.
    pub pages_per_site: Option<u64>,
    /// The maximum number of known pages; `None` for no limit.
    pub known: Option<u64>,
    /// The maximum number of jobs that are not pages, such as sitemaps; `None` for no limit.
    pub sitemaps: Option<u64>,
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
    /// The number of unfinished pages of the site that has the most; an estimate if there are very many sites.
    pub longest: u64,
}

/// A site with pages that are not queued yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingSite {
    /// Its name; empty for invalid URLs.
    pub site: String,
    /// How many.
    pub pages: u64,
}

/// Links to one site, or to several, that were not followed for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutOff {
    /// A name of [`CutReason`](fetchwell_policy::crawl::CutReason).
    pub reason: String,
    /// The site that they lead to; `None` for all sites that are not counted separately, because there are too many.
    pub site: Option<String>,
    /// How many were found; a link that is found again counts again.
    pub links: u64,
    /// The first of them.
    pub example: String,
}

/// The frontier of one crawl.
#[async_trait]
pub trait Frontier: Send + Sync {
    /// Adds what is new, and queues pages as far as the budget allows.
    async fn add(&self, found: Discoveries) -> Result<(), StoreError>;

    /// How far the crawl has come.
    async fn counts(&self) -> Result<CrawlCounts, StoreError>;

    /// Whether the budget is used up and every queued page has ended, so that no page can follow.
    async fn is_budget_finished(&self) -> Result<bool, StoreError>;

    /// The sites with the most pages that are not queued yet; those with the most first.
    async fn waiting_sites(&self, most: usize) -> Result<Vec<WaitingSite>, StoreError>;

    /// Whether each of these pages is *taken*: it has been queued, so it has or gets a row of its own, or the row of a
    /// page that redirects to it has its content.
    async fn are_taken(&self, pages: Vec<PageKey>) -> Result<Vec<bool>, StoreError>;

    /// The links that were cut off, most frequent first.
    async fn cut_off(&self, most: usize) -> Result<Vec<CutOff>, StoreError>;
}
