//! The plan of a page.

use std::sync::Arc;

use fetchwell_engine::pipeline::GiveUp;
use fetchwell_engine::plan::one_page::Weighed;
use fetchwell_engine::plan::redirect_chain::{FetchEnd, Stage};
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::frontier::{CrawlRecord, Discoveries, PagePlace, ParentPage};
use fetchwell_engine::ports::inbox::AttemptRecord;
use fetchwell_engine::ports::job::{Lease, NewJob};
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::web::{Answer, Outcome, Phases, Request, Why};
use fetchwell_extract::{crawl_links_within, decode, is_html, max_crawl_link_bytes};
use fetchwell_policy::crawl::{Directives, PageKey, content_bound, page_key, plain_url};
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::retry::History;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
use url::Url;

use super::links::LinkContext;
use super::page_kind::{PageKind, PageToRecord};
use super::run::CrawlContext;
use super::sitemap_plan::redirected_robots_job;
use crate::fetch::{Archived, CrawlFields, PageFetch, settlement};

/// How many times the URLs of the links are in memory: twice while they are read, and once parsed.
const COPIES_OF_LINKS: usize = 3;

/// Fetches a page, and reads its links.
pub(super) struct PagePlan<K: PageKind> {
    page: PageFetch,
    place: PagePlace,
    crawl: Arc<CrawlContext<K>>,
    /// The key of the page, unless its URL is invalid.
    key: Option<PageKey>,
    /// The failures before this attempt.
    history: History,
    /// The last request.
    attempt: Option<AttemptRecord>,
    /// The size of the finished record.
    held_bytes: Option<usize>,
}

/// What a page says to crawlers.
#[derive(Default)]
struct Read {
    links: Vec<WebUrl>,
    /// How many links it has, followed or not.
    links_found: usize,
    /// Whether there are more links, which were not read.
    is_cut: bool,
    directives: Directives,
}

impl<K: PageKind> PagePlan<K> {
    pub(super) fn new(lease: &Lease, place: PagePlace, crawl: Arc<CrawlContext<K>>) -> PagePlan<K> {
        let page = PageFetch::new(lease, &crawl.rules.fetch).with_headers(crawl.kind.headers());
        let key = WebUrl::parse(&lease.job.url).ok().map(|url| key_of(&url));
        // However it ends, it gets a row.
        key.into_iter().for_each(|key| crawl.known_rows.add(key));
        let history = lease.history;
        PagePlan { page, place, crawl, key, history, attempt: None, held_bytes: None }
    }

    fn context(&self) -> LinkContext<'_> {
        LinkContext::new(&self.crawl.rules, self.place.root.as_deref(), self.place.depth + 1)
    }

    /// A start page may redirect anywhere, as from `example.com` to `www.example.com`. All other redirects stay in
    /// scope.
    fn leads_out(&self, next: &Request) -> bool {
        self.place.depth > 0 && !self.context().is_in_scope(&next.url)
    }

    /// Whether a redirect leads to another page that has or gets a row. What a start page redirects to is fetched even
    /// then, because it may add to the scope.
    fn leads_to_known(&self, next: &Request) -> bool {
        let key = key_of(&next.url);
        self.place.depth > 0 && self.key != Some(key) && self.crawl.known_rows.has(&key)
    }

    /// This page, for its row.
    fn to_record(&self, links_found: usize, archived: Archived, now: Time) -> PageToRecord<'_> {
        PageToRecord {
            url: self.page.url(),
            place: fields(&self.place, links_found),
            history: &self.history,
            attempt: self.attempt.clone(),
            archived,
            now,
        }
    }

    /// The end of a page whose redirect is not followed, because another row has its target.
    fn redirected(
        &mut self,
        redirect: Redirected,
        target: &WebUrl,
        moment: Moment,
    ) -> Step<CrawlRecord<K::Row>> {
        let Redirected { status, why, phases } = redirect;
        let fetch_end = FetchEnd {
            final_url: target.clone(),
            redirects: Vec::new(),
            happened: FetchOutcome::Answered(status),
            answer: None,
            was_sent: true,
            attempts: self.history.failures().saturating_add(1),
            why,
            phases,
        };
        let archived = self.page.archived();
        let page = self.to_record(0, archived, moment.wall);
        let record = CrawlRecord::of_row(self.crawl.kind.redirected(page, &fetch_end, status));
        self.held_bytes = Some(record.weight());
        Step::Finish(vec![record], Settlement::Done)
    }

    /// The end of a page that was not fetched.
    fn refused(&self, reason: &str, moment: Moment) -> Step<CrawlRecord<K::Row>> {
        let page = self.to_record(0, Archived::default(), moment.wall);
        let row = self.crawl.kind.refused(page, reason);
        Step::Finish(vec![CrawlRecord::of_row(row)], Settlement::Done)
    }

    fn over(&mut self, fetch_end: FetchEnd, moment: Moment) -> Step<CrawlRecord<K::Row>> {
        let read = match (&fetch_end.happened, &fetch_end.answer) {
            (FetchOutcome::Answered(200..=299), Some(answer)) => {
                self.read(answer, &fetch_end.final_url)
            }
            _ => Ok(Read::default()),
        };
        let unread = match &read {
            Err(error) => Some(format!("its links were not read: {error}")),
            Ok(Read { is_cut: true, links, .. }) => {
                Some(format!("links after the first {} were not read", links.len()))
            }
            Ok(_) => None,
        };
        let read = read.unwrap_or_default();
        let settlement = settlement(&fetch_end);
        let target = key_of(&fetch_end.final_url);
        let redirected = self.row_if_redirected(&fetch_end, moment.wall);
        let mut found = self.found(&fetch_end, &read);
        let archived = self.page.archived();
        let page = self.to_record(read.links_found, archived, moment.wall);
        let is_noindex = read.directives.noindex;
        let row = self.crawl.kind.arrived(page, fetch_end, is_noindex, unread);
        let redirected = redirected.filter(|_| self.crawl.kind.has_page(&row));
        found.takes = redirected.is_some().then_some(target);
        let mut record = CrawlRecord::of_row(row);
        record.redirected = redirected;
        record.found = Arc::new(found);
        self.held_bytes = Some(record.weight());
        Step::Finish(vec![record], settlement)
    }

    fn read(&self, answer: &Answer, final_url: &WebUrl) -> Result<Read, FetchOutcome> {
        let bot = &self.crawl.rules.bot;
        let mut read = Read::default();
        for value in answer.headers.get_all("x-robots-tag") {
            read.directives.add_header(value.to_str().unwrap_or_default(), bot);
        }
        let content_type = answer.header("content-type");
        let Ok(found_at) = Url::parse(final_url.as_str()) else { return Ok(read) };
        if !is_html(content_type, &answer.body) {
            return Ok(read);
        }
        let html = decode(&answer.body, content_type).text;
        let reading = &self.crawl.rules.fetch.reading;
        let page = reading.read(|limits| crawl_links_within(&html, &found_at, bot, limits))?;
        page.robots.iter().for_each(|content| read.directives.add(content));
        read.links_found = page.links.len() + page.nofollow;
        read.is_cut = page.is_cut;
        read.links =
            page.links.iter().filter_map(|link| WebUrl::parse(link.as_str()).ok()).collect();
        Ok(read)
    }

    /// The row of a page that was reached by a redirect, if another row has it; `None` if there was no redirect to
    /// another page.
    fn row_if_redirected(&self, fetch_end: &FetchEnd, now: Time) -> Option<K::Row> {
        let status = fetch_end.redirects.last()?.status;
        if self.key == Some(key_of(&fetch_end.final_url)) {
            return None;
        }
        let page = self.to_record(0, self.page.archived_redirects(), now);
        Some(self.crawl.kind.redirected(page, fetch_end, status))
    }

    fn found(&self, fetch_end: &FetchEnd, read: &Read) -> Discoveries {
        let rules = &self.crawl.rules;
        let FetchEnd { final_url, redirects, answer, .. } = fetch_end;
        let hops = redirects.iter().filter_map(|hop| WebUrl::parse(&hop.url).ok());
        let also_known: Vec<PageKey> = match redirects.as_slice() {
            [] => Vec::new(),
            _ => hops.chain([final_url.clone()]).map(|url| key_of(&url)).collect(),
        };
        let leaves = self.place.depth == 0 && !rules.scope.contains(final_url);
        let root =
            if leaves { Some(final_url.as_str().to_owned()) } else { self.place.root.clone() };
        let reads_sitemaps = leaves && rules.reads_sitemaps();
        let jobs: Vec<NewJob> = match &root {
            Some(root) if reads_sitemaps => {
                vec![redirected_robots_job(&final_url.origin(), root, rules.scope.kind())]
            }
            _ => Vec::new(),
        };
        let follows = !read.directives.nofollow && rules.follows_links();
        if !follows || read.links.is_empty() {
            return Discoveries { also_known, jobs, ..Discoveries::default() };
        }
        let context = LinkContext::new(rules, root.as_deref(), self.place.depth + 1);
        Discoveries {
            pages: read.links.iter().filter_map(|link| context.page(link)).collect(),
            content: answer.as_ref().map(|answer| content_bound(&final_url.site(), &answer.body)),
            parent: Some(ParentPage { url: self.page.url().to_owned(), root }),
            also_known,
            takes: None,
            jobs,
            job_bound: None,
        }
    }
}

/// An answer that redirects.
struct Redirected {
    status: u16,
    why: Why,
    phases: Phases,
}

impl Redirected {
    /// `None` if it does not redirect.
    fn by(outcome: &Outcome) -> Option<Redirected> {
        let answer = outcome.answer.as_ref().filter(|answer| answer.redirect().is_some())?;
        let Outcome { why, phases, .. } = outcome;
        Some(Redirected { status: answer.status, why: why.clone(), phases: *phases })
    }
}

impl<K: PageKind> Plan<CrawlRecord<K::Row>> for PagePlan<K> {
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<CrawlRecord<K::Row>> {
        let redirect = last.as_ref().and_then(Redirected::by);
        if K::KEEPS_ATTEMPTS {
            self.attempt = last.as_ref().map(|outcome| AttemptRecord::of(outcome, moment.wall));
        }
        let stage = match self.page.step(last, moment) {
            Ok(stage) => stage,
            Err(fault) => {
                let reason = fault.to_string();
                return self.refused(&reason, moment);
            }
        };
        match stage {
            Stage::Fetch(request) if self.leads_out(&request) => {
                let reason = format!("a redirect leads out of the crawl, to {}", request.url);
                self.refused(&reason, moment)
            }
            Stage::Fetch(request) => match redirect {
                Some(redirect) if self.leads_to_known(&request) => {
                    self.redirected(redirect, &request.url, moment)
                }
                _ => Step::Fetch(vec![request]),
            },
            Stage::Retry { at, history } => {
                Step::Finish(Vec::new(), Settlement::retry(at, history))
            }
            Stage::Over(fetch_end) => self.over(*fetch_end, moment),
        }
    }

    fn working_bytes(&self, body: &[u8]) -> usize {
        let reading = &self.crawl.rules.fetch.reading;
        let links = max_crawl_link_bytes(body.len(), reading.max_text_bytes);
        let links = links.saturating_mul(COPIES_OF_LINKS);
        self.crawl.kind.working_bytes(body).saturating_add(links)
    }

    fn held_bytes(&self) -> Option<usize> {
        self.held_bytes
    }
}

/// The record of a page that the engine gave up on.
pub(super) fn given_up<K: PageKind>(
    lease: &Lease,
    cause: GiveUp,
    error: &str,
    kind: &K,
    now: Time,
) -> CrawlRecord<K::Row> {
    let place = fields(&place_of(lease), 0);
    CrawlRecord::of_row(kind.given_up(lease, cause, error, place, now))
}

fn key_of(url: &WebUrl) -> PageKey {
    page_key(&plain_url(url))
}

/// The place of a page in the crawl.
pub(super) fn place_of(lease: &Lease) -> PagePlace {
    serde_json::from_slice(&lease.job.payload).unwrap_or_default()
}

fn fields(place: &PagePlace, links_found: usize) -> CrawlFields {
    CrawlFields { depth: place.depth, parent: place.parent.clone(), links_found }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fetchwell_engine::plan::redirect_chain::Patience;
    use fetchwell_policy::crawl::{Scope, ScopeKind, Sitemaps, bounds, site_bound};
    use fetchwell_testkit::samples::{MOMENT, end_with, lease, outcome};
    use serde_json::Value;

    use super::*;
    use crate::crawl::fetch_rows::FetchRows;
    use crate::crawl::rows::KnownRows;
    use crate::crawl::rules::CrawlRules;
    use crate::fetch::{FetchRow, FetchRules, OutputFormat, RowOutcome, renderer};
    use crate::read_limits::READING;

    const LINKS: &str = "<title>T</title><p>Words.<a href=/1>1</a><a href=//b.test/>2</a>\
        <a rel=nofollow href=/3>3</a>";

    fn rules(format: OutputFormat) -> CrawlRules {
        let patience = Patience { since: Time::EPOCH, lasts: Duration::ZERO };
        CrawlRules {
            fetch: FetchRules {
                format,
                links: false,
                reading: READING,
                max_redirects: 5,
                patience,
            },
            scope: Scope::new(ScopeKind::Host, [&WebUrl::parse("http://a.test/").unwrap()]),
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

    fn plan(rules: CrawlRules, depth: u32) -> Box<dyn Plan<CrawlRecord<FetchRow>>> {
        plan_beside(rules, depth, &[])
    }

    /// The plan of a page of a crawl that has or gets rows of these pages, too.
    fn plan_beside(
        rules: CrawlRules,
        depth: u32,
        others: &[&str],
    ) -> Box<dyn Plan<CrawlRecord<FetchRow>>> {
        let known_rows = KnownRows::default();
        others.iter().for_each(|url| known_rows.add(key_of(&WebUrl::parse(url).unwrap())));
        let parent = (depth > 0).then(|| "http://a.test/".to_owned());
        let place = PagePlace { depth, parent, root: None };
        let lease = lease("http://a.test/x", "");
        let kind = FetchRows(rules.fetch);
        Box::new(PagePlan::new(&lease, place, Arc::new(CrawlContext { rules, kind, known_rows })))
    }

    /// The row and the pages that are found on this page, if it is answered with this header.
    fn read(
        rules: CrawlRules,
        body: &str,
        header: Option<(&'static str, &str)>,
    ) -> (Value, Vec<String>) {
        let mut outcome = outcome(FetchOutcome::Answered(200), body);
        let answer = outcome.answer.as_mut().unwrap();
        answer.headers.insert("content-type", "text/html".parse().unwrap());
        if let Some((name, value)) = header {
            answer.headers.insert(name, value.parse().unwrap());
        }
        let format = rules.fetch.format;
        let (mut records, settlement) = end_with(plan(rules, 1), outcome);
        assert_eq!(settlement, Settlement::Done);
        let record = records.remove(0);
        let row = record.row.unwrap();
        assert!(format != OutputFormat::Warc || row.crawl.is_some());
        let row = serde_json::from_slice(&renderer(OutputFormat::Json, true)(&row)).unwrap();
        (row, record.found.pages.iter().map(|page| page.url.clone()).collect())
    }

    #[test]
    fn a_row_has_the_place_of_its_page_and_its_links_are_found() {
        for format in [OutputFormat::Json, OutputFormat::Html, OutputFormat::Warc] {
            let (row, found) = read(rules(format), LINKS, None);
            assert_eq!(found, ["http://a.test/1"]);
            assert_eq!(row["depth"], 1);
            assert_eq!(row["parent"], "http://a.test/");
            assert_eq!(row["links_found"], 3);
            assert_eq!(row["outcome"], "fetched");
        }
    }

    /// Without these, a crawl would follow traps and host farms forever.
    #[test]
    fn links_have_the_bounds_of_their_kind() {
        let mut any = rules(OutputFormat::Json);
        any.scope = Scope::new(ScopeKind::Any, []);
        let links = "<a href=/calendar/2031-05>1</a><a href=http://x.farm.test/>2</a>";
        let mut page = outcome(FetchOutcome::Answered(200), links);
        let headers = &mut page.answer.as_mut().unwrap().headers;
        headers.insert("content-type", "text/html".parse().unwrap());
        let (records, _) = end_with(plan(any, 1), page);
        let found = &records[0].found;
        let urls = ["http://a.test/calendar/2031-05", "http://x.farm.test/"];
        for (page, url) in found.pages.iter().zip(urls) {
            let url = WebUrl::parse(url).unwrap();
            assert_eq!(page.url, url.as_str());
            assert_eq!((&page.bounds, page.site_bound), (&bounds(&url), site_bound(&url)), "{url}");
        }
        assert_eq!(found.pages.len(), urls.len());
        assert_eq!(
            found.content,
            Some(content_bound(&lease("http://a.test/x", "").job.site.unwrap(), links.as_bytes()))
        );
    }

    #[test]
    fn a_page_that_asks_not_to_be_kept_has_no_content() {
        let said = [
            ("x-robots-tag", "noindex", true, true),
            ("x-robots-tag", "nofollow", false, false),
            ("x-robots-tag", "otherbot: noindex", false, true),
            ("x-robots-tag", "fetchwell: none", true, false),
        ];
        for (name, value, is_noindex, is_followed) in said {
            let (row, found) = read(rules(OutputFormat::Json), LINKS, Some((name, value)));
            assert_eq!(row["outcome"], if is_noindex { "noindex" } else { "fetched" }, "{value}");
            assert_eq!(row["text"].is_null() && row["title"].is_null(), is_noindex, "{value}");
            assert_eq!(!found.is_empty(), is_followed, "{value}");
        }
        let for_us = format!("<meta name=FETCHWELL content=noindex>{LINKS}");
        assert_eq!(read(rules(OutputFormat::Json), &for_us, None).0["outcome"], "noindex");
        let for_others = format!("<meta name=otherbot content=noindex>{LINKS}");
        assert_eq!(read(rules(OutputFormat::Json), &for_others, None).0["outcome"], "fetched");
    }

    #[test]
    fn a_row_says_if_there_are_too_many_links() {
        let links: String = (0..10_001).map(|n| format!("<a href=/page-{n}>{n}</a>")).collect();
        for (format, start) in [("", "links after"), ("noindex", "the page asks not to be indexed")]
        {
            let html = format!("<meta name=robots content={format}>{links}");
            let (row, found) = read(rules(OutputFormat::Json), &html, None);
            let reason = row["reason"].as_str().unwrap();
            assert!(reason.starts_with(start), "{reason}");
            assert!(reason.ends_with("links after the first 10000 were not read"), "{reason}");
            assert_eq!(found.len(), 10_000);
        }
    }

    fn redirected(depth: u32, location: &str) -> Step<CrawlRecord<FetchRow>> {
        redirect(&mut *plan(rules(OutputFormat::Json), depth), location)
    }

    /// The step of a new plan after an answer that redirects.
    fn redirect(
        plan: &mut dyn Plan<CrawlRecord<FetchRow>>,
        location: &str,
    ) -> Step<CrawlRecord<FetchRow>> {
        let mut outcome = outcome(FetchOutcome::Answered(302), "");
        let answer = outcome.answer.as_mut().unwrap();
        answer.headers.insert("location", location.parse().unwrap());
        assert!(matches!(plan.step(None, MOMENT), Step::Fetch(_)));
        plan.step(Some(outcome), MOMENT)
    }

    #[test]
    fn only_a_start_page_may_redirect_out_of_scope() {
        assert!(matches!(redirected(0, "http://www.a.test/"), Step::Fetch(_)));
        assert!(matches!(redirected(1, "/y"), Step::Fetch(_)));
        let Step::Finish(records, Settlement::Done) = redirected(1, "http://www.a.test/") else {
            panic!("it goes on")
        };
        let row = records[0].row.as_ref().unwrap();
        assert_eq!(row.outcome, RowOutcome::Refused);
        assert!(row.reason.as_ref().unwrap().ends_with("to http://www.a.test/"));
    }

    fn as_json(row: &FetchRow) -> Value {
        serde_json::from_slice(&renderer(OutputFormat::Json, true)(row)).unwrap()
    }

    #[test]
    fn a_redirect_to_a_page_that_has_a_row_is_not_followed() {
        let step = |depth, location| {
            let mut plan = plan_beside(rules(OutputFormat::Json), depth, &["http://a.test/y"]);
            redirect(&mut *plan, location)
        };
        let Step::Finish(records, Settlement::Done) = step(1, "/y?utm_source=x") else {
            panic!("it goes on")
        };
        let row = as_json(records[0].row().unwrap());
        assert_eq!(row["outcome"], "redirected");
        assert_eq!((&row["status"], &row["attempts"]), (&302.into(), &1.into()));
        assert_eq!(row["final_url"], "http://a.test/y?utm_source=x");
        assert_eq!(row["depth"], 1);
        for (depth, location) in [(1, "/z"), (0, "/y"), (1, "/x?PHPSESSID=1")] {
            assert!(matches!(step(depth, location), Step::Fetch(_)), "{depth} {location}");
        }
    }

    #[test]
    fn a_row_of_a_redirect_leaves_out_what_another_row_has() {
        let end = |location, status| {
            let mut plan = plan(rules(OutputFormat::Json), 1);
            assert!(matches!(redirect(&mut *plan, location), Step::Fetch(_)));
            let page = outcome(FetchOutcome::Answered(status), LINKS);
            match plan.step(Some(page), MOMENT) {
                Step::Finish(mut records, _) => records.remove(0),
                _ => panic!("it goes on"),
            }
        };
        let record = end("/y", 200);
        assert_eq!(record.found.takes, Some(key_of(&WebUrl::parse("http://a.test/y").unwrap())));
        let whole = as_json(record.row().unwrap());
        record.set_elsewhere(true);
        let row = as_json(record.row().unwrap());
        assert_eq!((&whole["outcome"], &row["outcome"]), (&"fetched".into(), &"redirected".into()));
        assert_eq!((&whole["status"], &row["status"]), (&200.into(), &302.into()));
        assert_eq!(row["final_url"], "http://a.test/y");
        for field in ["text", "title", "content_hash", "content_length", "content_type"] {
            assert!(row[field].is_null(), "{field}");
        }
        assert!(!whole["content_hash"].is_null());
        // A failure, or a page that redirects to itself, has no other row.
        for (location, status) in [("/y", 404), ("/x?PHPSESSID=1", 200)] {
            let record = end(location, status);
            record.set_elsewhere(true);
            assert_eq!(record.found.takes, None, "{location}");
            assert_ne!(as_json(record.row().unwrap())["outcome"], "redirected", "{location}");
        }
    }
}
