//! The port for crawls through the API: their pages become messages with results in the outbox of a caller.
//!
//! The pages of a crawl are jobs of a queue of their own, in the lane of the crawl. When a page ends, its message, its
//! result, the links that were found on it and the counters of the crawl are stored in the transaction that settles its
//! lease. So after a crash, each page has exactly one result, and the limits hold exactly.

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_policy::crawl::{ScopeKind, Sitemaps};
use fetchwell_policy::time::Time;
use serde::{Deserialize, Serialize};

use crate::ports::error::StoreError;
use crate::ports::frontier::{CutOff, Discoveries, SITEMAPS_PARTY};
use crate::ports::inbox::options::Options;
use crate::ports::inbox::{AuditEntry, CrawlId, Idempotency, OutboxMost, OutboxPage};
use crate::ports::job::Lane;
use crate::ports::message_batches::{Completion, ReadUpTo};

/// The maximum number of crawls per page.
pub const CRAWLS_PER_PAGE: u32 = 200;

/// The maximum number of waiting jobs that one call of [`Crawls::stop_some`] removes.
pub const STOPPED_AT_ONCE: u32 = 500;

/// The maximum number of unfinished crawls of all callers. Each process keeps the rules of all of them in memory.
pub const MAX_OPEN_CRAWLS: u32 = 256;

/// The maximum number of robots.txt files and sitemaps per crawl.
pub const MAX_SITEMAPS_PER_CRAWL: u64 = 10_000;

/// How many pages a crawl may know for each page that it may fetch. More would only use up the disk.
const KNOWN_PER_PAGE: u64 = 10;
/// Small crawls may know at least this many pages.
const MIN_KNOWN: u64 = 1_000;

/// What to crawl, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlSpec {
    /// The start pages.
    pub urls: Vec<String>,
    /// How far to go from them.
    pub scope: ScopeKind,
    /// If there are any, only links that match one of these patterns are followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Links that match one of these patterns are not followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// The maximum number of links from a start page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// The maximum number of pages.
    pub limit: u64,
    /// The maximum number of pages per site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_per_site: Option<u64>,
    /// No page is queued after this time.
    pub max_time: Duration,
    /// Whether to read sitemaps.
    pub sitemaps: Sitemaps,
    /// The depth of the pages that sitemaps list.
    pub sitemap_depth: u32,
    /// Whether to also fetch files that are not pages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub downloads: bool,
    /// The retailer on whose behalf it is fetched.
    pub retailer: String,
    /// The caller's ID for it and for its messages; that of the crawl if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// What to read from each page.
    #[serde(default)]
    pub options: Options,
}

impl CrawlSpec {
    /// The maximum number of known pages.
    pub fn max_known(&self) -> u64 {
        self.limit.saturating_mul(KNOWN_PER_PAGE).max(MIN_KNOWN)
    }
}

/// The lane of a crawl's pages.
pub fn lane_of_pages(crawl: CrawlId, retailer: &str) -> Lane {
    Lane { group: Some(retailer.to_owned()), party: Some(crawl.to_string()) }
}

/// The lane of a crawl's sitemaps.
pub fn lane_of_sitemaps(crawl: CrawlId, retailer: &str) -> Lane {
    let party = format!("{crawl}/{SITEMAPS_PARTY}");
    Lane { group: Some(retailer.to_owned()), party: Some(party) }
}

/// The crawl of a job in such a lane.
pub fn crawl_of(lane: &Lane) -> Option<CrawlId> {
    lane.party.as_deref()?.split('/').next()?.parse().ok()
}

/// A crawl to start.
#[derive(Clone, Debug)]
pub struct NewCrawl {
    /// Its ID, created by the process that accepts it.
    pub id: CrawlId,
    /// The caller that starts it.
    pub caller: String,
    /// What to crawl.
    pub spec: CrawlSpec,
    /// The start pages, and the robots.txt files that name sitemaps.
    pub starts: Discoveries,
    /// The webhook for its end.
    pub callback_url: Option<String>,
    /// The idempotency key, if the caller sent one. A crawl is not started twice.
    pub idempotency: Option<Idempotency>,
    /// The maximum number of unfinished crawls of this caller.
    pub max_open: u32,
    /// The entry for the audit log.
    pub audit: AuditEntry,
}

/// The result of starting a crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrawlStarted {
    /// It is stored, or was when it was sent before.
    Started(CrawlId),
    /// Its idempotency key was used before with a different body.
    KeyUsedOtherwise,
    /// The caller has too many unfinished crawls.
    TooManyOpen,
    /// All callers together have too many unfinished crawls.
    StoreFull,
}

/// Why a crawl ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrawlEnd {
    /// Every page that it may fetch has ended.
    Completed,
    /// A limit was reached before all pages and sitemaps were read.
    Limit,
    /// It reached its maximum time.
    MaxTime,
    /// It was cancelled.
    Cancelled,
}

impl CrawlEnd {
    /// All reasons.
    pub const ALL: [CrawlEnd; 4] =
        [CrawlEnd::Completed, CrawlEnd::Limit, CrawlEnd::MaxTime, CrawlEnd::Cancelled];

    /// The name of the reason.
    pub fn word(self) -> &'static str {
        match self {
            CrawlEnd::Completed => "completed",
            CrawlEnd::Limit => "limit",
            CrawlEnd::MaxTime => "max_time",
            CrawlEnd::Cancelled => "cancelled",
        }
    }

    /// The reason with this name.
    pub fn named(word: &str) -> Option<CrawlEnd> {
        CrawlEnd::ALL.into_iter().find(|end| end.word() == word)
    }
}

/// A crawl, as its caller sees it. Times are by the wall clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageCrawl {
    /// Its ID.
    pub id: CrawlId,
    /// The caller that started it.
    pub caller: String,
    /// What it crawls.
    pub spec: CrawlSpec,
    /// When it was accepted.
    pub created_at: Time,
    /// When it was cancelled.
    pub cancelled_at: Option<Time>,
    /// When its last page ended.
    pub ended_at: Option<Time>,
    /// Why it ended.
    pub end: Option<CrawlEnd>,
    /// Its pages by status.
    pub counts: CrawlTally,
    /// Where its end comes among the results and the ended crawls and batches of its caller.
    pub completion: Option<Completion>,
}

/// The pages of a crawl by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrawlTally {
    /// The known pages, including those whose content another result has.
    pub known: u64,
    /// The known pages that are not queued, because it is not their turn yet or a limit excludes them.
    pub waiting: u64,
    /// The sites of all known pages.
    pub sites: u64,
    /// The pages that are queued or being fetched.
    pub queued: u64,
    /// Robots.txt files and sitemaps that have not been read.
    pub sitemaps_left: u64,
    /// The outbox has their page.
    pub completed: u64,
    /// The outbox says why there is no page, including the following.
    pub failed: u64,
    /// Those of `failed` that robots.txt disallows. They do not count against the limits.
    pub robots: u64,
    /// Those of `failed` that ask not to be indexed.
    pub noindex: u64,
    /// Those of `failed` that redirect to a page that another result has.
    pub redirected: u64,
}

/// The crawls of a store.
#[async_trait]
pub trait Crawls: Send + Sync {
    /// Starts a crawl. It is committed when this returns.
    async fn start(&self, new: NewCrawl) -> Result<CrawlStarted, StoreError>;

    /// A crawl; with `of`, only if it belongs to this caller.
    async fn crawl(
        &self,
        id: CrawlId,
        of: Option<&str>,
    ) -> Result<Option<MessageCrawl>, StoreError>;

    /// Crawls of this caller, newest first, from the newest or after the given one; at most [`CRAWLS_PER_PAGE`].
    async fn crawls(
        &self,
        of: &str,
        after: Option<CrawlId>,
        most: u32,
    ) -> Result<Vec<MessageCrawl>, StoreError>;

    /// What an unfinished crawl crawls.
    async fn open_spec(&self, id: CrawlId) -> Result<Option<CrawlSpec>, StoreError>;

    /// Results of a crawl in commit order, after the given cursor of its caller's outbox, or from the oldest one if it
    /// is `None`. `None` if there is no such crawl, or if it does not belong to `of`.
    async fn results(
        &self,
        id: CrawlId,
        of: Option<&str>,
        after: Option<i64>,
        most: OutboxMost,
    ) -> Result<Option<OutboxPage>, StoreError>;

    /// The links that were cut off, most frequent first.
    async fn cut_off(&self, id: CrawlId, most: u32) -> Result<Vec<CutOff>, StoreError>;

    /// Crawls of a caller that ended after those that were read, as
    /// [`MessageBatches::ended_batches`](crate::ports::message_batches::MessageBatches::ended_batches). Crawls and
    /// batches are numbered together.
    async fn ended_crawls(
        &self,
        caller: &str,
        read: ReadUpTo,
        until: i64,
        most: u32,
    ) -> Result<Vec<MessageCrawl>, StoreError>;

    /// Marks a crawl as cancelled: it queues no further pages, and its waiting ones are to be removed. Returns `false`
    /// if there is no such crawl, or if it does not belong to `of`. A crawl that has ended is not changed.
    async fn cancel(&self, id: CrawlId, of: Option<&str>) -> Result<bool, StoreError>;

    /// Removes waiting jobs of a crawl that was cancelled, has reached its maximum time or has ended; at most
    /// [`STOPPED_AT_ONCE`]. Returns how many. Their pages have no result.
    async fn stop_some(&self, id: CrawlId) -> Result<u32, StoreError>;

    /// Crawls that need [`tidy`](Crawls::tidy): those that were cancelled or have reached their maximum time, and ended
    /// ones whose frontier is still stored. At most [`MAX_OPEN_CRAWLS`], the oldest first.
    async fn untidy(&self) -> Result<Vec<CrawlId>, StoreError>;

    /// Does a bounded part of what is left to do for a crawl: removes the waiting jobs of one that is to end, and the
    /// frontier of one that has ended. Returns whether more is left.
    async fn tidy(&self, id: CrawlId) -> Result<bool, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::frontier::PagePlace;
    use crate::ports::job::Job;

    #[test]
    fn the_lane_of_a_job_names_its_crawl() {
        let id = CrawlId([7; 16]);
        for (lane, is_page) in
            [(lane_of_pages(id, "shop"), true), (lane_of_sitemaps(id, "shop"), false)]
        {
            assert_eq!(crawl_of(&lane), Some(id));
            let job = Job { lane, ..Job::new("http://a.test/".to_owned(), Vec::new()) };
            assert_eq!(PagePlace::is_of(&job), is_page);
        }
        assert_eq!(crawl_of(&Lane::default()), None);
    }

    #[test]
    fn every_end_is_found_by_its_name() {
        for end in CrawlEnd::ALL {
            assert_eq!(CrawlEnd::named(end.word()), Some(end));
        }
    }
}
