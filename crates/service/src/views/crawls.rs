//! Crawls as callers see them.

use fetchwell_engine::ports::crawls::{CrawlEnd, MessageCrawl};
use fetchwell_engine::ports::frontier::CutOff;
use fetchwell_policy::rfc3339::rfc3339;
use serde::Serialize;
use utoipa::ToSchema;

use super::schemas::CrawlEndReason;

/// A crawl: pages that are found by following links.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = CrawlState)]
pub struct CrawlView {
    /// The id of the crawl.
    #[schema(example = "crawl_018bcfe56800ffffffffffffffffffff", pattern = "^crawl_[0-9a-f]{32}$")]
    pub id: String,
    /// The caller that started it.
    pub caller_id: String,
    /// The start pages.
    pub urls: Vec<String>,
    /// The maximum number of pages.
    pub limit: u64,
    /// The correlation id of its results.
    pub correlation_id: String,
    /// When it was accepted.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Whether it has ended.
    pub done: bool,
    /// Why it ended: `completed`, `limit` (a limit was reached before all pages and sitemaps were read), `max_time` or
    /// `cancelled`; null until then.
    #[schema(required, value_type = Option<CrawlEndReason>)]
    pub end_reason: Option<&'static str>,
    /// Its pages by status.
    pub counts: CrawlCountsView,
    /// When it was cancelled; null if it was not.
    #[schema(required, format = DateTime)]
    pub cancelled_at: Option<String>,
    /// When its last page ended; null until then.
    #[schema(required, format = DateTime)]
    pub ended_at: Option<String>,
    /// The links that were not followed, the most frequent first, at most 100. Only `GET /crawl/{id}` returns them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cut_off: Option<Vec<CutOffView>>,
}

/// The pages of a crawl by status.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = CrawlCounts)]
pub struct CrawlCountsView {
    /// The known pages, including those whose content another result has.
    pub known: u64,
    /// Known pages that are not queued: it is not their turn yet, or a limit excludes them.
    pub waiting: u64,
    /// Pages that are queued or being fetched.
    pub queued: u64,
    /// Robots.txt files and sitemaps that have not been read.
    pub sitemaps_left: u64,
    /// The sites of all known pages.
    pub sites: u64,
    /// Pages whose result has a page.
    pub completed: u64,
    /// Pages that ended without a page, including the following.
    pub failed: u64,
    /// Those of `failed` that robots.txt disallows. They do not count against the limits.
    pub robots: u64,
    /// Those of `failed` that ask not to be indexed (noindex).
    pub noindex: u64,
    /// Those of `failed` that redirect to a page that is in another result of the crawl.
    pub redirected: u64,
}

/// Links to one site that were not followed for one reason.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = CutOffLinks)]
pub struct CutOffView {
    /// The reason, such as `depth`, `download`, `calendar` or `known_pages`.
    pub reason: String,
    /// The site to which they lead; null for all sites that are not counted separately.
    #[schema(required)]
    pub site: Option<String>,
    /// How many were found. A link that is found again counts again.
    pub links: u64,
    /// The first of them.
    pub example: String,
}

impl CrawlView {
    /// The crawl, without the links that were not followed.
    pub fn of(crawl: &MessageCrawl) -> CrawlView {
        let counts = crawl.counts;
        let id = crawl.id.to_string();
        CrawlView {
            caller_id: crawl.caller.clone(),
            urls: crawl.spec.urls.clone(),
            limit: crawl.spec.limit,
            correlation_id: crawl.spec.correlation_id.clone().unwrap_or_else(|| id.clone()),
            created_at: rfc3339(crawl.created_at),
            done: crawl.ended_at.is_some(),
            end_reason: crawl.end.map(CrawlEnd::word),
            counts: CrawlCountsView {
                known: counts.known,
                waiting: counts.waiting,
                queued: counts.queued,
                sitemaps_left: counts.sitemaps_left,
                sites: counts.sites,
                completed: counts.completed,
                failed: counts.failed,
                robots: counts.robots,
                noindex: counts.noindex,
                redirected: counts.redirected,
            },
            cancelled_at: crawl.cancelled_at.map(rfc3339),
            ended_at: crawl.ended_at.map(rfc3339),
            cut_off: None,
            id,
        }
    }

    /// The same with the links that were not followed.
    pub fn with_cut_off(self, cut_off: Vec<CutOff>) -> CrawlView {
        let view = |cut: CutOff| {
            let CutOff { reason, site, links, example } = cut;
            CutOffView { reason, site, links, example }
        };
        CrawlView { cut_off: Some(cut_off.into_iter().map(view).collect()), ..self }
    }
}
