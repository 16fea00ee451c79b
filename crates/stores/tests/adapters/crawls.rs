//! Crawls through the API: each page ends with one result, what a crawl may use up is bounded, and nothing stays behind.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::budget::Share;
use fetchwell_engine::ports::crawls::{
    CrawlEnd, CrawlSpec, CrawlStarted, Crawls, MAX_SITEMAPS_PER_CRAWL, MessageCrawl, NewCrawl,
    STOPPED_AT_ONCE, crawl_of,
};
use fetchwell_engine::ports::finish::{Finished, Settled, Settlement};
use fetchwell_engine::ports::frontier::{
    CrawlRecord, Discoveries, FoundPage, PagePlace, ParentPage, SITEMAPS_PARTY,
};
use fetchwell_engine::ports::inbox::details::{CrawlPlace, FetchDetails};
use fetchwell_engine::ports::inbox::options::{Options, kind};
use fetchwell_engine::ports::inbox::{
    AuditEntry, CrawlId, FetchResult, MessageId, NewMessage, OutboxMost, OutboxPage, Submission,
};
use fetchwell_engine::ports::job::{Job, Lane, Lease, NewJob, job_key};
use fetchwell_engine::ports::retriever_store::{CrawlStore, RetrieverStore};
use fetchwell_engine::ports::source::{Demand, Taken};
use fetchwell_engine::web::Phases;
use fetchwell_policy::crawl::{Bound, CutReason, PageKey, ScopeKind, Sitemaps, page_key};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
use fetchwell_stores::sqlite::open_retriever;
use fetchwell_testkit::conformance::HandClock;
use rusqlite::Connection;
use tempfile::TempDir;

const DAY: Duration = Duration::from_secs(86_400);
const MOST: OutboxMost = OutboxMost { results: 1_000, bytes: 1 << 20 };

/// A store with crawls, and this process as the only instance.
struct Rig {
    folder: TempDir,
    clock: HandClock,
    store: RetrieverStore,
    crawls: CrawlStore,
}

impl Rig {
    async fn new() -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let clock = HandClock::new();
        let file = folder.path().join("store.db");
        let store = open_retriever(&file, clock.clock(), 365 * DAY, DAY).await.unwrap();
        let crawls = store.crawls.clone().unwrap();
        crawls.pages.source.renew().await.unwrap();
        Rig { folder, clock, store, crawls }
    }

    fn port(&self) -> &dyn Crawls {
        &*self.crawls.crawls
    }

    async fn try_to_start(&self, new: NewCrawl) -> CrawlStarted {
        self.port().start(new).await.unwrap()
    }

    /// Starts a crawl of this page.
    async fn start(&self, number: u8, url: &str, limit: u64) -> CrawlId {
        let new = new(number, spec(url, limit));
        let id = new.id;
        assert_eq!(self.try_to_start(new).await, CrawlStarted::Started(id));
        id
    }

    async fn take(&self, most: usize) -> Vec<Lease> {
        let demand = Demand { most, most_per_site: 1_000, ..Demand::default() };
        match self.crawls.pages.source.take(&demand).await.unwrap() {
            Taken::Jobs(leases) => leases,
            _ => Vec::new(),
        }
    }

    async fn finish(
        &self,
        lease: Lease,
        settlement: Settlement,
        records: Vec<CrawlRecord<FetchResult>>,
    ) -> Settled {
        let phases = Phases::default();
        let finished = Finished { lease, records, settlement, phases, share: Share::none() };
        self.crawls.pages.finish.finish(&[finished]).await.unwrap()[0]
    }

    /// Ends a page with this result, on which these were found.
    async fn end(&self, lease: Lease, status: &str, found: Discoveries) {
        let settlement = match status {
            FetchResult::REFUSED_BY_ROBOTS => Settlement::Skipped,
            _ => Settlement::Done,
        };
        let mut record = CrawlRecord::of_row(result(status));
        record.found = Arc::new(found);
        assert_eq!(self.finish(lease, settlement, vec![record]).await, Settled::Confirmed);
    }

    async fn crawl(&self, id: CrawlId) -> MessageCrawl {
        self.port().crawl(id, None).await.unwrap().unwrap()
    }

    /// The statuses of its results by URL, in the order in which they were stored.
    async fn results(&self, id: CrawlId) -> Vec<(String, String)> {
        match self.port().results(id, Some("anna"), None, MOST).await.unwrap().unwrap() {
            OutboxPage::Results { results, .. } => {
                results.into_iter().map(|one| (one.url, one.result.status)).collect()
            }
            gone => panic!("{gone:?}"),
        }
    }

    fn file(&self) -> Connection {
        Connection::open(self.folder.path().join("store.db")).unwrap()
    }

    fn count(&self, table: &str) -> u64 {
        let select = format!("SELECT count(*) FROM {table}");
        self.file().query_row(&select, [], |row| row.get(0)).unwrap()
    }

    /// Whether counters and rows of the queue agree.
    fn balance(&self) {
        let select = "SELECT accepted - done - skipped - queued - in_flight - delayed - dead,
                 queued + delayed + in_flight - (SELECT count(*) FROM job WHERE job.queue = queue.id)
             FROM queue WHERE name = 'crawls'";
        let differences: (i64, i64) =
            self.file().query_row(select, [], |row| row.try_into()).unwrap();
        assert_eq!(differences, (0, 0));
    }
}

fn spec(url: &str, limit: u64) -> CrawlSpec {
    CrawlSpec {
        urls: vec![url.to_owned()],
        scope: ScopeKind::Any,
        include: Vec::new(),
        exclude: Vec::new(),
        depth: None,
        limit,
        limit_per_site: None,
        max_time: DAY,
        sitemaps: Sitemaps::Off,
        sitemap_depth: 1,
        downloads: false,
        retailer: "shop".to_owned(),
        correlation_id: None,
        options: Options::default(),
    }
}

fn new(number: u8, spec: CrawlSpec) -> NewCrawl {
    let pages = spec.urls.iter().map(|url| page(url, 0)).collect();
    NewCrawl {
        id: CrawlId([number; 16]),
        caller: "anna".to_owned(),
        starts: Discoveries { pages, ..Discoveries::default() },
        spec,
        callback_url: None,
        idempotency: None,
        max_open: 3,
        audit: AuditEntry {
            at: Time::EPOCH,
            caller: Some("anna".to_owned()),
            action: "start_crawl".to_owned(),
            detail: String::new(),
            from: "here".to_owned(),
        },
    }
}

fn key(url: &str) -> PageKey {
    page_key(&WebUrl::parse(url).unwrap())
}

fn page(url: &str, depth: u32) -> FoundPage {
    FoundPage { url: url.to_owned(), key: key(url), depth, bounds: Vec::new(), site_bound: None }
}

fn sitemap(url: &str) -> NewJob {
    let lane = Lane { group: None, party: Some(SITEMAPS_PARTY.to_owned()) };
    let job = Job { lane, ..Job::new(url.to_owned(), Vec::new()) };
    NewJob { key: Some(job_key(job.site.as_ref(), url)), ..NewJob::now(job) }
}

fn result(status: &str) -> FetchResult {
    FetchResult { status: status.to_owned(), attempts: 1, ..FetchResult::default() }
}

fn found_on(lease: &Lease, pages: impl IntoIterator<Item = String>) -> Discoveries {
    Discoveries {
        parent: Some(ParentPage { url: lease.job.url.clone(), root: None }),
        pages: pages.into_iter().map(|url| page(&url, 1)).collect(),
        ..Discoveries::default()
    }
}

fn many(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("http://a.test/{number}"))
}

#[tokio::test]
async fn each_page_ends_with_one_message_and_one_result() {
    let rig = Rig::new().await;
    let id = rig.start(1, "http://a.test/", 10).await;
    let mut leases = rig.take(9).await;
    let lease = leases.remove(0);
    assert_eq!((leases.len(), crawl_of(&lease.job.lane)), (0, Some(id)));
    let found = found_on(&lease, ["http://a.test/1".into(), "http://a.test/2".into()]);
    rig.end(lease, FetchResult::SUCCESS, found).await;
    let state = rig.crawl(id).await;
    assert_eq!((state.counts.queued, state.counts.completed, state.ended_at), (2, 1, None));
    let mut leases = rig.take(9).await;
    assert_eq!(leases.len(), 2);
    rig.end(leases.remove(0), FetchResult::REFUSED_BY_ROBOTS, Discoveries::default()).await;
    // Given up: even then it has a result.
    let reason = "it made the program panic".to_owned();
    let settled = rig.finish(leases.remove(0), Settlement::Dead { reason }, Vec::new()).await;
    assert_eq!(settled, Settled::Confirmed);
    let expected = [
        ("http://a.test/", "success"),
        ("http://a.test/1", "refused_by_robots"),
        ("http://a.test/2", "internal_error"),
    ];
    let expected = expected.map(|(url, status)| (url.to_owned(), status.to_owned()));
    assert_eq!(rig.results(id).await, expected);
    let state = rig.crawl(id).await;
    let counts = state.counts;
    assert_eq!((counts.known, counts.completed, counts.failed, counts.robots), (3, 1, 2, 1));
    assert_eq!((state.end, state.completion.unwrap().cursor), (Some(CrawlEnd::Completed), 3));
    let ledger = rig.store.inbox.ledger().await.unwrap();
    assert_eq!((ledger.accepted, ledger.done, ledger.skipped), (3, 2, 1));
    rig.balance();
}

#[tokio::test]
async fn a_stale_settlement_adds_nothing() {
    let rig = Rig::new().await;
    let id = rig.start(1, "http://a.test/", 10).await;
    let lease = rig.take(9).await.remove(0);
    rig.crawls.pages.source.leave().await.unwrap();
    let mut record = CrawlRecord::of_row(result(FetchResult::SUCCESS));
    record.found = Arc::new(found_on(&lease, many(3)));
    assert_eq!(rig.finish(lease, Settlement::Done, vec![record]).await, Settled::Stale);
    assert_eq!((rig.crawl(id).await.counts.known, rig.results(id).await.len()), (1, 0));
    rig.balance();
}

#[tokio::test]
async fn of_a_page_and_a_redirect_to_it_only_one_has_the_content() {
    let rig = Rig::new().await;
    let mut spec = spec("http://a.test/old", 10);
    spec.urls.push("http://a.test/new".to_owned());
    let started = new(1, spec);
    let id = started.id;
    rig.try_to_start(started).await;
    for lease in rig.take(9).await {
        let mut record = CrawlRecord::of_row(result(FetchResult::SUCCESS));
        if lease.job.url.ends_with("/old") {
            record.redirected = Some(result(FetchResult::REDIRECTED));
            let takes = Some(key("http://a.test/new"));
            record.found = Arc::new(Discoveries { takes, ..Discoveries::default() });
        }
        rig.finish(lease, Settlement::Done, vec![record]).await;
    }
    let statuses: Vec<String> = rig.results(id).await.into_iter().map(|(_, one)| one).collect();
    assert_eq!(statuses, ["redirected", "success"]);
    assert_eq!(rig.crawl(id).await.counts.redirected, 1);
}

/// A cancelled crawl adds nothing, but what is in flight still ends with one result per page.
#[tokio::test]
async fn of_two_redirects_that_end_after_the_crawl_was_cancelled_only_one_has_the_content() {
    let rig = Rig::new().await;
    let mut spec = spec("http://a.test/old", 10);
    spec.urls.push("http://a.test/older".to_owned());
    let started = new(1, spec);
    let id = started.id;
    rig.try_to_start(started).await;
    let leases = rig.take(9).await;
    assert_eq!(leases.len(), 2);
    rig.port().cancel(id, None).await.unwrap();
    for lease in leases {
        let mut record = CrawlRecord::of_row(result(FetchResult::SUCCESS));
        record.redirected = Some(result(FetchResult::REDIRECTED));
        let target = key("http://a.test/new");
        record.found = Arc::new(Discoveries {
            also_known: vec![target],
            takes: Some(target),
            ..found_on(&lease, many(3))
        });
        rig.finish(lease, Settlement::Done, vec![record]).await;
    }
    let statuses: Vec<String> = rig.results(id).await.into_iter().map(|(_, one)| one).collect();
    assert_eq!(statuses, ["success", "redirected"]);
    let state = rig.crawl(id).await;
    assert_eq!((state.counts.known, state.end), (2, Some(CrawlEnd::Cancelled)));
}

/// The place in a crawl is that of one message. A message that gets a copy of the page has none.
#[tokio::test]
async fn a_copy_of_a_page_is_in_no_crawl() {
    let rig = Rig::new().await;
    let url = "http://a.test/";
    let id = rig.start(1, url, 10).await;
    let place = CrawlPlace { id: id.to_string(), depth: 0, parent: None, links_found: 0 };
    let details =
        FetchDetails { final_url: url.to_owned(), crawl: Some(place), ..FetchDetails::default() };
    let page = FetchResult { details: details.to_json(), ..result(FetchResult::SUCCESS) };
    let lease = rig.take(9).await.remove(0);
    rig.finish(lease, Settlement::Done, vec![CrawlRecord::of_row(page)]).await;
    let plain = FetchDetails { crawl: None, ..details.clone() };

    let options = Options::default().to_payload();
    let kind = kind("anna", url, &options);
    let newest = rig.store.inbox.newest_page(kind).await.unwrap().unwrap();
    assert_eq!(newest.outbox.result.details, plain.to_json());
    let site = WebUrl::parse(url).unwrap().site();
    let message = NewMessage {
        kind,
        options: options.into(),
        max_age: Some(DAY),
        ..NewMessage::new(MessageId([9; 16]), url.to_owned(), site, DAY)
    };
    let submission = Submission {
        caller: "anna".to_owned(),
        from: "here".to_owned(),
        idempotency: None,
        messages: vec![message],
        batch: None,
    };
    rig.store.inbox.submit(submission).await.unwrap();
    let copy = rig.store.inbox.message(MessageId([9; 16]), None).await.unwrap().unwrap();
    assert_eq!(copy.outbox.unwrap().result.details, plain.to_json());
    let OutboxPage::Results { results, .. } =
        rig.port().results(id, None, None, MOST).await.unwrap().unwrap()
    else {
        panic!("the results are gone");
    };
    assert_eq!(results[0].result.details, details.to_json());
}

/// An index lists up to 50,000 sitemaps.
#[tokio::test]
async fn a_crawl_reads_only_so_many_sitemaps_and_says_so() {
    let rig = Rig::new().await;
    let mut started = new(1, spec("http://a.test/start", 10_000));
    let id = started.id;
    started.starts.jobs = vec![sitemap("http://a.test/index.xml")];
    rig.try_to_start(started).await;
    let leases = rig.take(9).await;
    let index = leases.into_iter().find(|lease| !PagePlace::is_of(&lease.job)).unwrap();
    let listed = 25_000_u64;
    let jobs = (0..listed).map(|number| sitemap(&format!("http://a.test/{number}.xml"))).collect();
    let found = Discoveries { jobs, ..Discoveries::default() };
    let record = CrawlRecord::without_row(found, None);
    assert_eq!(rig.finish(index, Settlement::Done, vec![record]).await, Settled::Confirmed);
    // The index is one of them.
    let read = MAX_SITEMAPS_PER_CRAWL - 1;
    assert_eq!(rig.crawl(id).await.counts.sitemaps_left, read);
    let cut = rig.port().cut_off(id, 9).await.unwrap();
    assert_eq!((cut[0].reason.as_str(), cut[0].links), ("sitemaps", listed - read));
    rig.balance();
}

/// A newer version may have written a crawl. The others go on, and its pages are kept for that version.
#[tokio::test]
async fn an_unreadable_crawl_does_not_stop_the_others() {
    let rig = Rig::new().await;
    let broken = rig.start(1, "http://a.test/", 10).await;
    let other = rig.start(2, "http://b.test/", 10).await;
    let leases = rig.take(9).await;
    assert_eq!(leases.len(), 2);
    let update = "UPDATE message_crawl SET spec = '{\"scope\": \"galaxy\"}' WHERE id = ?1";
    rig.file().execute(update, [broken.0]).unwrap();
    let finished = |lease: Lease| {
        let is_broken = crawl_of(&lease.job.lane) == Some(broken);
        let at = rig.clock.clock().now();
        let settlement = if is_broken { Settlement::HandBack { at } } else { Settlement::Done };
        let records = match is_broken {
            true => Vec::new(),
            false => vec![CrawlRecord::of_row(result(FetchResult::SUCCESS))],
        };
        Finished { lease, records, settlement, phases: Phases::default(), share: Share::none() }
    };
    let batch: Vec<_> = leases.into_iter().map(finished).collect();
    let settled = rig.crawls.pages.finish.finish(&batch).await.unwrap();
    assert_eq!(settled, [Settled::Confirmed; 2]);
    assert_eq!(rig.crawl(other).await.end, Some(CrawlEnd::Completed));
    let error = rig.port().open_spec(broken).await.unwrap_err().to_string();
    assert!(error.contains(&broken.to_string()) && error.contains("upgrade"), "{error}");
    rig.clock.advance(2 * DAY);
    assert_eq!(rig.port().untidy().await.unwrap(), [broken, other]);
    assert!(!rig.port().tidy(broken).await.unwrap());
    while rig.port().tidy(other).await.unwrap() {}
    assert_eq!(rig.count("job WHERE url = 'http://a.test/'"), 1);
    rig.balance();
}

/// One transaction of a whole sitemap would hold up all other writers.
#[tokio::test]
async fn a_sitemap_with_more_pages_than_one_transaction_adds_is_read_whole() {
    let rig = Rig::new().await;
    let mut started = new(1, spec("http://a.test/start", 10_000));
    let id = started.id;
    started.starts.jobs = vec![sitemap("http://a.test/sitemap.xml")];
    rig.try_to_start(started).await;
    assert_eq!(rig.crawl(id).await.counts.sitemaps_left, 1);
    let leases = rig.take(9).await;
    let sitemap = leases.into_iter().find(|lease| !PagePlace::is_of(&lease.job)).unwrap();
    let found = found_on(&sitemap, many(25_000));
    let record = CrawlRecord::without_row(found, None);
    assert_eq!(rig.finish(sitemap, Settlement::Done, vec![record]).await, Settled::Confirmed);
    let counts = rig.crawl(id).await.counts;
    assert_eq!((counts.known, counts.sitemaps_left), (25_001, 0));
    rig.balance();
}

#[tokio::test]
async fn a_crawl_knows_only_so_many_pages_and_says_why() {
    let rig = Rig::new().await;
    let id = rig.start(1, "http://a.test/", 5).await;
    let lease = rig.take(9).await.remove(0);
    let found = found_on(&lease, many(5_000));
    rig.end(lease, FetchResult::SUCCESS, found).await;
    assert_eq!(rig.crawl(id).await.counts.known, 1_000);
    let cut = rig.port().cut_off(id, 9).await.unwrap();
    assert_eq!((cut[0].reason.as_str(), cut[0].links), ("known_pages", 4_001));
}

/// Pages that robots.txt disallows do not count, but their number is bounded, too.
#[tokio::test]
async fn a_limit_is_exact_and_what_robots_disallow_does_not_count() {
    let rig = Rig::new().await;
    let id = rig.start(1, "http://a.test/", 5).await;
    let lease = rig.take(9).await.remove(0);
    let found = found_on(&lease, many(100));
    rig.end(lease, FetchResult::SUCCESS, found).await;
    let mut ended = 1;
    loop {
        let leases = rig.take(1).await;
        let Some(lease) = leases.into_iter().next() else { break };
        ended += 1;
        let status =
            if ended % 3 == 0 { FetchResult::REFUSED_BY_ROBOTS } else { FetchResult::SUCCESS };
        rig.end(lease, status, Discoveries::default()).await;
    }
    let state = rig.crawl(id).await;
    assert_eq!((state.counts.completed, state.end), (5, Some(CrawlEnd::Limit)));
    assert_eq!(state.counts.known, 101);
    assert_eq!(state.counts.waiting, 101 - state.counts.completed - state.counts.failed);
    rig.balance();
}

#[tokio::test]
async fn a_cancelled_crawl_is_stopped_in_bounded_steps_and_others_go_on() {
    let rig = Rig::new().await;
    let other = rig.start(2, "http://other.test/", 5).await;
    let id = rig.start(1, "http://a.test/", 10_000).await;
    let leases = rig.take(9).await;
    let (own, others): (Vec<Lease>, Vec<Lease>) =
        leases.into_iter().partition(|lease| crawl_of(&lease.job.lane) == Some(id));
    let sites = (0..50).flat_map(|site| (0..16).map(move |n| format!("http://s{site}.test/{n}")));
    let lease = own.into_iter().next().unwrap();
    let found = found_on(&lease, sites);
    rig.end(lease, FetchResult::SUCCESS, found).await;
    assert_eq!(rig.crawl(id).await.counts.queued, 800);
    let in_flight = rig.take(2).await;

    assert!(!rig.port().cancel(id, Some("berta")).await.unwrap());
    assert!(rig.port().cancel(id, Some("anna")).await.unwrap());
    assert_eq!(rig.port().stop_some(id).await.unwrap(), STOPPED_AT_ONCE);
    assert_eq!(rig.port().stop_some(id).await.unwrap(), 798 - STOPPED_AT_ONCE);
    assert_eq!(rig.port().stop_some(id).await.unwrap(), 0);
    let state = rig.crawl(id).await;
    assert_eq!((state.counts.queued, state.counts.waiting, state.ended_at), (2, 798, None));
    // What is in flight still gets its result, but its links are not followed.
    for lease in in_flight {
        let found = found_on(&lease, many(10));
        rig.end(lease, FetchResult::SUCCESS, found).await;
    }
    let state = rig.crawl(id).await;
    assert_eq!((state.end, state.counts.completed), (Some(CrawlEnd::Cancelled), 3));
    assert_eq!((state.counts.known, state.counts.waiting), (801, 798));
    for lease in others {
        let found = found_on(&lease, many(1));
        rig.end(lease, FetchResult::SUCCESS, found).await;
    }
    assert_eq!(rig.crawl(other).await.counts.queued, 1);
    rig.balance();
}

#[tokio::test]
async fn a_crawl_ends_at_its_maximum_time() {
    let rig = Rig::new().await;
    let id = rig.start(1, "http://a.test/", 100).await;
    let lease = rig.take(9).await.remove(0);
    let found = found_on(&lease, many(20));
    rig.end(lease, FetchResult::SUCCESS, found).await;
    assert_eq!(rig.port().untidy().await.unwrap(), []);
    rig.clock.advance(DAY);
    assert_eq!(rig.port().untidy().await.unwrap(), [id]);
    while rig.port().tidy(id).await.unwrap() {}
    let state = rig.crawl(id).await;
    assert_eq!((state.end, state.counts.waiting), (Some(CrawlEnd::MaxTime), 20));
}

#[tokio::test]
async fn nothing_of_a_crawl_stays_behind() {
    let rig = Rig::new().await;
    let id = rig.start(1, "http://a.test/", 3).await;
    let lease = rig.take(9).await.remove(0);
    let found = found_on(&lease, many(900));
    rig.end(lease, FetchResult::SUCCESS, found).await;
    for lease in rig.take(9).await {
        rig.end(lease, FetchResult::SUCCESS, Discoveries::default()).await;
    }
    assert_eq!(rig.crawl(id).await.end, Some(CrawlEnd::Limit));
    while rig.port().tidy(id).await.unwrap() {}
    assert_eq!(rig.port().untidy().await.unwrap(), []);
    for table in ["crawl_seen", "crawl_link", "crawl_parent", "crawl_site", "crawl_bucket"] {
        assert_eq!(rig.count(table), 0, "{table}");
    }
    let counts = rig.crawl(id).await.counts;
    assert_eq!((counts.known, counts.waiting, counts.completed), (901, 898, 3));
    // Not before its results.
    rig.store.inbox.prune(DAY, 100).await.unwrap();
    rig.crawl(id).await;
    rig.clock.advance(2 * DAY);
    while rig.store.inbox.prune(DAY, 2).await.unwrap() > 0 {}
    rig.store.inbox.prune(DAY, 2).await.unwrap();
    assert_eq!(rig.port().crawl(id, None).await.unwrap(), None);
    for table in ["message_crawl", "message_crawl_result", "crawl", "crawl_cut", "job", "outbox"] {
        assert_eq!(rig.count(table), 0, "{table}");
    }
    assert_eq!(rig.count("lane WHERE party LIKE 'crawl%'"), 0);
}

/// Up to a thousand sites per reason are counted separately, and ten crawls may be deleted at once.
#[tokio::test]
async fn a_crawl_with_many_links_that_were_not_followed_is_deleted_in_steps() {
    let rig = Rig::new().await;
    let id = rig.start(1, "http://a.test/", 3).await;
    rig.end(rig.take(9).await.remove(0), FetchResult::SUCCESS, Discoveries::default()).await;
    while rig.port().tidy(id).await.unwrap() {}
    rig.file()
        .execute_batch(
            "WITH RECURSIVE site (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM site WHERE n < 6000)
             INSERT INTO crawl_cut SELECT -key, 'depth', 's' || n, 1, 'x' FROM message_crawl, site",
        )
        .unwrap();
    rig.clock.advance(2 * DAY);
    rig.store.inbox.prune(DAY, 100).await.unwrap();
    assert_eq!((rig.count("crawl_cut"), rig.count("message_crawl")), (1_000, 1));
    rig.store.inbox.prune(DAY, 100).await.unwrap();
    assert_eq!((rig.count("crawl_cut"), rig.count("message_crawl")), (0, 0));
}

#[tokio::test]
async fn the_example_of_a_link_that_was_not_followed_has_a_maximum_length() {
    let rig = Rig::new().await;
    let id = rig.start(1, "http://a.test/", 5).await;
    let lease = rig.take(9).await.remove(0);
    let long = format!("http://a.test/{}", "x".repeat(5_000));
    let mut found = found_on(&lease, [long.clone()]);
    found.pages[0].bounds = vec![Bound::never(CutReason::LongUrl)];
    rig.end(lease, FetchResult::SUCCESS, found).await;
    assert_eq!(rig.port().cut_off(id, 9).await.unwrap()[0].example, long[..2_000]);
}

#[tokio::test]
async fn a_caller_has_only_so_many_unfinished_crawls() {
    let rig = Rig::new().await;
    for number in 1..=3 {
        rig.start(number, "http://a.test/", 5).await;
    }
    let more = || new(9, spec("http://a.test/", 5));
    assert_eq!(rig.try_to_start(more()).await, CrawlStarted::TooManyOpen);
    let others = NewCrawl { caller: "berta".to_owned(), id: CrawlId([8; 16]), ..more() };
    assert_eq!(rig.try_to_start(others).await, CrawlStarted::Started(CrawlId([8; 16])));
    rig.port().cancel(CrawlId([1; 16]), None).await.unwrap();
    rig.port().stop_some(CrawlId([1; 16])).await.unwrap();
    assert_eq!(rig.try_to_start(more()).await, CrawlStarted::Started(CrawlId([9; 16])));
    let own = rig.port().crawls("anna", None, 9).await.unwrap();
    let own: Vec<u8> = own.iter().map(|crawl| crawl.id.0[0]).collect();
    assert_eq!(own, [9, 3, 2, 1]);
    let later = rig.port().crawls("anna", Some(CrawlId([8; 16])), 2).await.unwrap();
    let later: Vec<u8> = later.iter().map(|crawl| crawl.id.0[0]).collect();
    assert_eq!(later, [3, 2]);
}
