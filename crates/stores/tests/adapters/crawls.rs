//! Crawls by API: each page ends with one result, what a crawl may use up is bounded, and nothing stays behind.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::budget::Share;
use fetchwell_engine::ports::crawls::{
    CrawlEnd, CrawlSpec, CrawlStarted, Crawls, MessageCrawl, NewCrawl, STOPPED_AT_ONCE, crawl_of,
};
use fetchwell_engine::ports::finish::{Finished, Settled, Settlement};
use fetchwell_engine::ports::frontier::{
    CrawlRecord, Discoveries, FoundPage, PagePlace, ParentPage, SITEMAPS_PARTY,
};
use fetchwell_engine::ports::inbox::options::Options;
use fetchwell_engine::ports::inbox::{AuditEntry, CrawlId, FetchResult, OutboxMost, OutboxPage};
use fetchwell_engine::ports::job::{Job, Lane, Lease, NewJob};
use fetchwell_engine::ports::retriever_store::{CrawlStore, RetrieverStore};
use fetchwell_engine::ports::source::{Demand, Taken};
use fetchwell_engine::web::Phases;
use fetchwell_policy::crawl::{PageKey, ScopeKind, Sitemaps, page_key};
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

/// One transaction of a whole sitemap would hold up all other writers.
#[tokio::test]
async fn a_sitemap_with_more_pages_than_one_transaction_adds_is_read_whole() {
    let rig = Rig::new().await;
    let mut started = new(1, spec("http://a.test/start", 10_000));
    let id = started.id;
    let lane = Lane { group: None, party: Some(SITEMAPS_PARTY.to_owned()) };
    let sitemap = Job { lane, ..Job::new("http://a.test/sitemap.xml".to_owned(), Vec::new()) };
    started.starts.jobs = vec![NewJob::now(sitemap)];
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
    let own = rig.port().crawls(Some("anna"), None, 9).await.unwrap();
    let own: Vec<u8> = own.iter().map(|crawl| crawl.id.0[0]).collect();
    assert_eq!(own, [9, 3, 2, 1]);
    let later = rig.port().crawls(None, Some(CrawlId([8; 16])), 2).await.unwrap();
    let later: Vec<u8> = later.iter().map(|crawl| crawl.id.0[0]).collect();
    assert_eq!(later, [3, 2]);
}
