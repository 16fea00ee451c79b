//! The plan of a robots.txt or a sitemap: reads the pages and the sitemaps that it names.

use std::sync::Arc;

use fetchwell_engine::plan::one_page::OnePage;
use fetchwell_engine::plan::one_page::Weighed;
use fetchwell_engine::plan::redirect_chain::FetchEnd;
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::frontier::{
    CrawlRecord, Discoveries, FoundPage, ParentPage, SITEMAPS_PARTY,
};
use fetchwell_engine::ports::job::{Job, Lane, Lease, NewJob, job_key};
use fetchwell_engine::ports::plan::Plan;
use fetchwell_engine::web::Answer;
use fetchwell_extract::decode;
use fetchwell_feed::sitemap::{Sitemap, read_any_site};
use fetchwell_policy::crawl::{Bound, CutReason, ScopeKind, sitemap_bound};
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::retry::RetryRule;
use fetchwell_policy::robots::Robots;
use fetchwell_policy::url::{Origin, Site, WebUrl};
use serde::{Deserialize, Serialize};

use super::links::LinkContext;
use super::page_kind::PageKind;
use super::rules::CrawlRules;
use super::run::CrawlContext;
use crate::sitemap_file::{SitemapError, inflated, working_bytes};

/// How deeply sitemap indexes may be nested.
const MAX_NESTING: u32 = 2;
/// Sitemaps in one index: the protocol allows no more.
const MAX_SITEMAPS: usize = 50_000;
/// Pages in one sitemap: the protocol allows no more.
const MAX_PAGES: usize = 50_000;

/// The payload of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SitemapJob {
    kind: SitemapKind,
    /// The site whose robots.txt led to it, directly or through indexes.
    listed_by: Site,
    /// See [`ParentPage::root`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SitemapKind {
    /// A robots.txt, which may name sitemaps.
    Robots,
    /// The sitemap at the default path, which may not exist.
    DefaultPath,
    /// A sitemap that robots.txt or an index names, nested in this many indexes.
    Named { nesting: u32 },
}

impl SitemapJob {
    /// A job in a lane of its own, so that it does not count as a page.
    fn at(&self, url: &WebUrl, scope: ScopeKind) -> NewJob {
        let payload = serde_json::to_vec(self).unwrap_or_default();
        let lane = Lane { group: None, party: Some(SITEMAPS_PARTY.to_owned()) };
        let job = Job { lane, ..Job::new(url.as_str().to_owned(), payload) };
        let root = self.root.as_deref().and_then(|root| WebUrl::parse(root).ok());
        // A page at the same URL has another key.
        // A sitemap that was read for one scope is read again for another: that of each start page that redirects.
        let name = match root.and_then(|root| scope.part(&root)) {
            Some(part) => format!("sitemap for {part} {url}"),
            None => format!("sitemap {url}"),
        };
        let key = job_key(job.site.as_ref(), &name);
        NewJob { key: Some(key), ..NewJob::now(job) }
    }

    /// Another job for the same site.
    fn of_kind(&self, kind: SitemapKind) -> SitemapJob {
        SitemapJob { kind, ..self.clone() }
    }
}

pub(super) fn plan<K: PageKind>(
    lease: &Lease,
    url: WebUrl,
    sitemap_job: SitemapJob,
    crawl: Arc<CrawlContext<K>>,
) -> Box<dyn Plan<CrawlRecord<K::Row>>> {
    let queued = url.clone();
    let patience = crawl.rules.fetch.patience;
    let max_redirects = crawl.rules.fetch.max_redirects;
    let page = OnePage::new(lease, url, RetryRule::FETCH, move |fetch_end, _| {
        let record = record(&queued, &sitemap_job, &fetch_end, &crawl.rules);
        (vec![record], Settlement::Done)
    });
    let page = page.with_patience(patience).with_max_redirects(max_redirects);
    Box::new(page.with_working_bytes(working_bytes))
}

fn record<R: Weighed>(
    url: &WebUrl,
    sitemap_job: &SitemapJob,
    fetch_end: &FetchEnd,
    rules: &CrawlRules,
) -> CrawlRecord<R> {
    let answer = fetch_end.answer.as_ref();
    let answer = answer.filter(|_| matches!(fetch_end.happened, FetchOutcome::Answered(200..=299)));
    let found = match (sitemap_job.kind, answer) {
        _ if !rules.reads_sitemaps() => Ok(Discoveries::default()),
        (SitemapKind::Robots, answer) => Ok(in_robots(url, sitemap_job, answer, rules)),
        (SitemapKind::DefaultPath, None) => Ok(Discoveries::default()),
        (SitemapKind::Named { .. }, None) => {
            Err(SitemapError::NotFetched(fetch_end.happened.clone()))
        }
        (_, Some(answer)) => {
            listed(answer, rules).map(|sitemap| in_sitemap(url, sitemap_job, &sitemap, rules))
        }
    };
    let is_guess = sitemap_job.kind == SitemapKind::DefaultPath;
    let failure = found.as_ref().err().filter(|_| !is_guess);
    let failure = failure.map(|error| format!("could not read the sitemap {url}: {error}"));
    CrawlRecord::without_row(found.unwrap_or_default(), failure)
}

/// The sitemaps that a robots.txt names, or else the one at the default path.
fn in_robots(
    url: &WebUrl,
    sitemap_job: &SitemapJob,
    answer: Option<&Answer>,
    rules: &CrawlRules,
) -> Discoveries {
    let scope = rules.scope.kind();
    let robots = answer.map(|answer| Robots::parse(&answer.body, ""));
    let named = robots.as_ref().map(Robots::sitemaps).unwrap_or_default();
    let named = named.iter().filter_map(|sitemap| url.join(sitemap).ok());
    let named_job = sitemap_job.of_kind(SitemapKind::Named { nesting: 0 });
    let mut jobs: Vec<NewJob> =
        named.take(MAX_SITEMAPS).map(|sitemap| named_job.at(&sitemap, scope)).collect();
    if jobs.is_empty() {
        let default_path = sitemap_job.of_kind(SitemapKind::DefaultPath);
        jobs.extend(url.join("/sitemap.xml").ok().map(|url| default_path.at(&url, scope)));
    }
    sitemaps(jobs, sitemap_job)
}

fn sitemaps(jobs: Vec<NewJob>, named_by: &SitemapJob) -> Discoveries {
    let job_bound = Some(sitemap_bound(&named_by.listed_by));
    Discoveries { jobs, job_bound, ..Discoveries::default() }
}

fn listed(answer: &Answer, rules: &CrawlRules) -> Result<Sitemap, SitemapError> {
    let body = inflated(&answer.body)?;
    let text = decode(&body, answer.header("content-type")).text;
    Ok(read_any_site(&text, MAX_PAGES, rules.since)?)
}

fn in_sitemap(
    url: &WebUrl,
    sitemap_job: &SitemapJob,
    sitemap: &Sitemap,
    rules: &CrawlRules,
) -> Discoveries {
    let named = sitemap.urls.iter().filter_map(|named| WebUrl::parse(named).ok());
    if sitemap.is_index {
        let nesting = match sitemap_job.kind {
            SitemapKind::Named { nesting } => nesting + 1,
            SitemapKind::Robots | SitemapKind::DefaultPath => 1,
        };
        let named = named.take(if nesting > MAX_NESTING { 0 } else { MAX_SITEMAPS });
        let named_job = sitemap_job.of_kind(SitemapKind::Named { nesting });
        let scope = rules.scope.kind();
        return sitemaps(named.map(|sitemap| named_job.at(&sitemap, scope)).collect(), sitemap_job);
    }
    let root = sitemap_job.root.clone();
    let context = LinkContext::new(rules, root.as_deref(), rules.sitemap_depth);
    let unchanged = sitemap.unchanged.iter().filter_map(|page| WebUrl::parse(page).ok());
    let unchanged = unchanged
        .filter_map(|page| context.page(&page))
        .map(|page| FoundPage { bounds: vec![Bound::never(CutReason::Unchanged)], ..page });
    Discoveries {
        parent: Some(ParentPage { url: url.as_str().to_owned(), root }),
        pages: named.filter_map(|page| context.page(&page)).chain(unchanged).collect(),
        ..Discoveries::default()
    }
}

/// The job that reads the robots.txt of an origin of a start page.
pub(super) fn robots_job(origin: &Origin) -> NewJob {
    // Without a root, the scope does not matter.
    SitemapJob { kind: SitemapKind::Robots, listed_by: origin.site(), root: None }
        .at(&origin.robots_url(), ScopeKind::Any)
}

/// The job that reads the robots.txt of an origin to which a start page redirects. `root` is the URL that puts the
/// origin in scope.
pub(super) fn redirected_robots_job(origin: &Origin, root: &str, scope: ScopeKind) -> NewJob {
    let root = Some(root.to_owned());
    SitemapJob { kind: SitemapKind::Robots, listed_by: origin.site(), root }
        .at(&origin.robots_url(), scope)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fetchwell_engine::plan::redirect_chain::Patience;
    use fetchwell_policy::crawl::{Scope, Sitemaps};
    use fetchwell_policy::time::Time;

    use super::*;
    use crate::fetch::{FetchRules, OutputFormat};
    use crate::read_limits::READING;

    fn rules() -> CrawlRules {
        let patience = Patience { since: Time::EPOCH, lasts: Duration::ZERO };
        let fetch = FetchRules {
            format: OutputFormat::Json,
            links: false,
            reading: READING,
            max_redirects: 5,
            patience,
        };
        CrawlRules {
            fetch,
            scope: Scope::new(ScopeKind::Any, []),
            include: Vec::new(),
            exclude: Vec::new(),
            max_depth: None,
            sitemaps: Sitemaps::Auto,
            sitemap_depth: 1,
            since: None,
            with_downloads: false,
            bot: "Fetchwell".to_owned(),
        }
    }

    /// Sitemap indexes may name further indexes without end.
    #[test]
    fn sitemaps_count_against_the_site_that_lists_them_and_are_nested_only_so_deep() {
        let url = WebUrl::parse("http://a.test/index.xml").unwrap();
        let bound = Some(sitemap_bound(&url.site()));
        let index =
            "<sitemapindex><sitemap><loc>http://b.test/map.xml</loc></sitemap></sitemapindex>";
        let index = read_any_site(index, MAX_PAGES, None).unwrap();
        for (nesting, count) in [(0, 1), (1, 1), (2, 0)] {
            let kind = SitemapKind::Named { nesting };
            let job = SitemapJob { kind, listed_by: url.site(), root: None };
            let found = in_sitemap(&url, &job, &index, &rules());
            assert_eq!((found.jobs.len(), found.job_bound), (count, bound), "{nesting}");
        }
        let kind = SitemapKind::Robots;
        let job = SitemapJob { kind, listed_by: url.site(), root: None };
        let found = in_robots(&url, &job, None, &rules());
        assert_eq!((found.jobs.len(), found.job_bound), (1, bound));
    }

    #[test]
    fn a_sitemap_is_read_once_per_scope() {
        let key = |root: Option<&str>, scope| {
            let origin = WebUrl::parse("http://a.test/").unwrap().origin();
            let job = match root {
                Some(root) => redirected_robots_job(&origin, root, scope),
                None => robots_job(&origin),
            };
            job.key.unwrap()
        };
        let one = Some("http://a.test/one/start");
        let beside = Some("http://a.test/one/other");
        let two = Some("http://a.test/two/start");
        for (scope, other, is_same) in [
            (ScopeKind::Path, beside, true),
            (ScopeKind::Path, two, false),
            (ScopeKind::Host, two, true),
            (ScopeKind::Domain, two, true),
            (ScopeKind::Path, None, false),
            (ScopeKind::Host, None, false),
        ] {
            assert_eq!(key(one, scope) == key(other, scope), is_same, "{scope:?} {other:?}");
        }
    }
}
