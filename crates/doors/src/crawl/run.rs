//! Builds the door of `crawl`, and the start of a crawl.

use std::collections::BTreeSet;
use std::sync::Arc;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::pipeline::Door;
use fetchwell_engine::plan::immediate::{dead, decode_payload};
use fetchwell_engine::ports::finish::Finish;
use fetchwell_engine::ports::frontier::{Discoveries, FoundPage, Frontier, PagePlace};
use fetchwell_engine::ports::job::{Lease, job_key};
use fetchwell_engine::ports::plan::Plan;
use fetchwell_engine::ports::source::Source;
use fetchwell_policy::crawl::{page_key, plain_url};
use fetchwell_policy::url::{Origin, WebUrl};

use super::page_plan::{PagePlan, given_up, place_of};
use super::record::CrawlRecord;
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

/// The door that turns each page into a row, and queues the pages that it links to.
pub fn door(
    source: Arc<dyn Source>,
    finish: Arc<dyn Finish<CrawlRecord>>,
    frontier: Arc<dyn Frontier>,
    rules: CrawlRules,
    clock: Clock,
) -> Door<CrawlRecord> {
    let rules = Arc::new(rules);
    let planned_by = rules.clone();
    let known_rows: Arc<KnownRows> = Arc::default();
    let finish = OneRowPerPage { frontier, rows: known_rows.clone(), inner: finish };
    Door {
        source,
        planner: Arc::new(move |lease| plan(lease, &planned_by, &known_rows)),
        finish: Arc::new(finish),
        give_up_record: Arc::new(move |lease, cause, reason| {
            let is_page = PagePlace::is_of(&lease.job);
            let record = is_page.then(|| given_up(lease, cause, reason, &rules, clock.wall()));
            record.into_iter().collect()
        }),
    }
}

fn plan(
    lease: &Lease,
    rules: &Arc<CrawlRules>,
    known_rows: &Arc<KnownRows>,
) -> Box<dyn Plan<CrawlRecord>> {
    if PagePlace::is_of(&lease.job) {
        let place = place_of(lease);
        return Box::new(PagePlan::new(lease, place, rules.clone(), known_rows.clone()));
    }
    match WebUrl::parse(&lease.job.url) {
        Ok(url) => decode_payload(lease, |job| sitemap_plan::plan(lease, url, job, rules.clone())),
        Err(fault) => dead(fault.to_string()),
    }
}
