//! The plan of a robots.txt or a sitemap: reads the pages and the sitemaps that it names.

use std::sync::Arc;

use fetchwell_engine::plan::one_page::OnePage;
use fetchwell_engine::plan::redirect_chain::FetchEnd;
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::frontier::{Discoveries, ParentPage};
use fetchwell_engine::ports::job::{Job, Lane, Lease, NewJob, job_key};
use fetchwell_engine::ports::plan::Plan;
use fetchwell_engine::web::Answer;
use fetchwell_extract::decode;
use fetchwell_feed::sitemap::{Sitemap, read_any_site};
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::retry::RetryRule;
use fetchwell_policy::robots::Robots;
use fetchwell_policy::url::{Origin, WebUrl};
use serde::{Deserialize, Serialize};

use super::links::LinkContext;
use super::record::CrawlRecord;
use super::rules::CrawlRules;
use crate::sitemap_file::{SitemapError, inflated, working_bytes};

/// How deeply sitemap indexes may be nested.
const MAX_NESTING: u32 = 2;
/// Sitemaps in one index or one robots.txt.
const MAX_SITEMAPS: usize = 1_000;
/// Pages in one sitemap: the protocol allows no more.
const MAX_PAGES: usize = 50_000;
/// The number of links from a start page to the pages of a sitemap.
const DEPTH: u32 = 1;

/// The payload of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SitemapJob {
    /// A robots.txt, which may name sitemaps.
    Robots,
    /// The sitemap at the default path, which may not exist.
    Usual,
    /// A sitemap that robots.txt or an index names, nested in this many indexes.
    Named { nesting: u32 },
}

impl SitemapJob {
    /// A job in a lane of its own, so that it does not count as a page.
    pub(super) fn at(self, url: &WebUrl) -> NewJob {
        let payload = serde_json::to_vec(&self).unwrap_or_default();
        let lane = Lane { group: None, party: Some("sitemaps".to_owned()) };
        let job = Job { lane, ..Job::new(url.as_str().to_owned(), payload) };
        // A page at the same URL has another key.
        let key = job_key(job.site.as_ref(), &format!("sitemap {url}"));
        NewJob { key: Some(key), ..NewJob::now(job) }
    }
}

pub(super) fn plan(
    lease: &Lease,
    url: WebUrl,
    sitemap_job: SitemapJob,
    rules: Arc<CrawlRules>,
) -> Box<dyn Plan<CrawlRecord>> {
    let queued = url.clone();
    let patience = rules.fetch.patience;
    let max_redirects = rules.fetch.max_redirects;
    let page = OnePage::new(lease, url, RetryRule::FETCH, move |fetch_end, _| {
        let record = record(&queued, sitemap_job, &fetch_end, &rules);
        (vec![record], Settlement::Done)
    });
    let page = page.with_patience(patience).with_max_redirects(max_redirects);
    Box::new(page.with_working_bytes(working_bytes))
}

fn record(
    url: &WebUrl,
    sitemap_job: SitemapJob,
    fetch_end: &FetchEnd,
    rules: &CrawlRules,
) -> CrawlRecord {
    let answer = fetch_end.answer.as_ref();
    let answer = answer.filter(|_| matches!(fetch_end.happened, FetchOutcome::Answered(200..=299)));
    let found = match (sitemap_job, answer) {
        (SitemapJob::Robots, answer) => Ok(in_robots(url, answer)),
        (SitemapJob::Usual, None) => Ok(Discoveries::default()),
        (SitemapJob::Named { .. }, None) => {
            Err(SitemapError::NotFetched(fetch_end.happened.clone()))
        }
        (_, Some(answer)) => {
            listed(answer).map(|sitemap| in_sitemap(url, sitemap_job, &sitemap, rules))
        }
    };
    let is_guess = sitemap_job == SitemapJob::Usual;
    let failure = found.as_ref().err().filter(|_| !is_guess);
    let failure = failure.map(|error| format!("could not read the sitemap {url}: {error}"));
    CrawlRecord { row: None, found: Arc::new(found.unwrap_or_default()), failure }
}

/// The sitemaps that a robots.txt names, or else the one at the default path.
fn in_robots(url: &WebUrl, answer: Option<&Answer>) -> Discoveries {
    let robots = answer.map(|answer| Robots::parse(&answer.body, ""));
    let named = robots.as_ref().map(Robots::sitemaps).unwrap_or_default();
    let named = named.iter().filter_map(|sitemap| url.join(sitemap).ok());
    let sitemap_job = SitemapJob::Named { nesting: 0 };
    let mut jobs: Vec<NewJob> =
        named.take(MAX_SITEMAPS).map(|sitemap| sitemap_job.at(&sitemap)).collect();
    if jobs.is_empty() {
        jobs.extend(url.join("/sitemap.xml").ok().map(|usual| SitemapJob::Usual.at(&usual)));
    }
    Discoveries { jobs, ..Discoveries::default() }
}

fn listed(answer: &Answer) -> Result<Sitemap, SitemapError> {
    let body = inflated(&answer.body)?;
    Ok(read_any_site(&decode(&body, answer.header("content-type")).text, MAX_PAGES)?)
}

fn in_sitemap(
    url: &WebUrl,
    sitemap_job: SitemapJob,
    sitemap: &Sitemap,
    rules: &CrawlRules,
) -> Discoveries {
    let named = sitemap.urls.iter().filter_map(|named| WebUrl::parse(named).ok());
    if sitemap.is_index {
        let nesting = match sitemap_job {
            SitemapJob::Named { nesting } => nesting + 1,
            SitemapJob::Robots | SitemapJob::Usual => 1,
        };
        let named = named.take(if nesting > MAX_NESTING { 0 } else { MAX_SITEMAPS });
        let jobs = named.map(|sitemap| SitemapJob::Named { nesting }.at(&sitemap)).collect();
        return Discoveries { jobs, ..Discoveries::default() };
    }
    let context = LinkContext::new(rules, None, DEPTH);
    Discoveries {
        parent: Some(ParentPage { url: url.as_str().to_owned(), root: None }),
        pages: named.filter_map(|page| context.page(&page)).collect(),
        ..Discoveries::default()
    }
}

/// The job that reads the robots.txt of an origin.
pub(super) fn robots_job(origin: &Origin) -> NewJob {
    SitemapJob::Robots.at(&origin.robots_url())
}
