//! Builds the door of `crawl`, and the start of a crawl.

use std::collections::BTreeSet;
use std::sync::Arc;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::pipeline::{Door, GiveUp};
use fetchwell_engine::plan::immediate::{dead, decode_payload};
use fetchwell_engine::ports::finish::Finish;
use fetchwell_engine::ports::frontier::{
    CrawlRecord as EngineRecord, Discoveries, FoundPage, Frontier, PagePlace,
};
use fetchwell_engine::ports::job::{Lease, job_key};
use fetchwell_engine::ports::plan::Plan;
use fetchwell_engine::ports::source::Source;
use fetchwell_policy::crawl::{page_key, plain_url};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, WebUrl};

use super::CrawlRecord;
use super::fetch_rows::FetchRows;
use super::page_kind::PageKind;
use super::page_plan::{PagePlan, given_up, place_of};
use super::rows::{KnownRows, OneRowPerPage};
use super::rules::CrawlRules;
use super::sitemap_plan::{self, robots_job};

/// The start of a crawl: these pages, with their URLs as given, and, if `reads_robots`, the robots.txt of their
/// origins, which names sitemaps. An invalid URL gets a row that says so.
pub fn starts<'a>(urls: impl IntoIterator<Item = &'a String>, reads_robots: bool) -> Discoveries {
    let mut origins: BTreeSet<Origin> = BTreeSet::new();
    let mut pages = Vec::new();
    for url in urls {
        let parsed = WebUrl::parse(url).ok();
        if let Some(parsed) = parsed.as_ref().filter(|_| reads_robots) {
            origins.insert(parsed.origin());
        }
        let key = parsed.map_or_else(|| job_key(None, url), |url| page_key(&plain_url(&url)));
        let url = url.clone();
        pages.push(FoundPage { url, key, depth: 0, bounds: Vec::new(), site_bound: None });
    }
    let jobs = origins.iter().map(robots_job).collect();
    Discoveries { pages, jobs, ..Discoveries::default() }
}

/// What the plans of a crawl share.
pub(super) struct CrawlContext<K> {
    pub(super) rules: CrawlRules,
    pub(super) kind: K,
    /// Only saves requests: which row has a page is decided when the row is stored.
    pub(super) known_rows: KnownRows,
}

/// The door that turns each page into a row, and queues the pages that it links to.
pub fn door(
    source: Arc<dyn Source>,
    finish: Arc<dyn Finish<CrawlRecord>>,
    frontier: Arc<dyn Frontier>,
    rules: CrawlRules,
    clock: Clock,
) -> Door<CrawlRecord> {
    let kind = FetchRows(rules.fetch);
    let crawl = Arc::new(CrawlContext { rules, kind, known_rows: KnownRows::default() });
    let planned = crawl.clone();
    let finish = OneRowPerPage { frontier, crawl: crawl.clone(), inner: finish };
    Door {
        source,
        planner: Arc::new(move |lease| plan(lease, &planned)),
        finish: Arc::new(finish),
        give_up_record: Arc::new(move |lease, cause, reason| {
            given_up_page(lease, cause, reason, &crawl.kind, clock.wall())
        }),
    }
}

/// The record of a page that the engine gave up; none for anything else.
pub(super) fn given_up_page<K: PageKind>(
    lease: &Lease,
    cause: GiveUp,
    reason: &str,
    kind: &K,
    now: Time,
) -> Vec<EngineRecord<K::Row>> {
    let is_page = PagePlace::is_of(&lease.job);
    is_page.then(|| given_up(lease, cause, reason, kind, now)).into_iter().collect()
}

/// The plan of a page, a robots.txt or a sitemap.
pub(super) fn plan<K: PageKind>(
    lease: &Lease,
    crawl: &Arc<CrawlContext<K>>,
) -> Box<dyn Plan<EngineRecord<K::Row>>> {
    if PagePlace::is_of(&lease.job) {
        return Box::new(PagePlan::new(lease, place_of(lease), crawl.clone()));
    }
    match WebUrl::parse(&lease.job.url) {
        Ok(url) => decode_payload(lease, |job| sitemap_plan::plan(lease, url, job, crawl.clone())),
        Err(fault) => dead(fault.to_string()),
    }
}
