//! The frontier of a crawl: what is found is queued once, within the budget, in the transaction that settles a lease.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::budget::Share;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::finish::{Finish, Finished, Settled, Settlement};
use fetchwell_engine::ports::frontier::{
    CrawlBudget, CrawlCounts, Discoveries, Discovers, FoundPage, Frontier, PagePlace, ParentPage,
    WaitingSite,
};
use fetchwell_engine::ports::job::{Job, Lane, Lease, NewJob};
use fetchwell_engine::ports::queue::Queue;
use fetchwell_engine::ports::source::{Demand, Source, Taken};
use fetchwell_engine::web::Phases;
use fetchwell_policy::chance::Chance;
use fetchwell_policy::crawl::{Bound, CutReason, page_key};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
use fetchwell_sqlite::db::Durability;
use fetchwell_stores::sqlite::{
    self, CrawlFinish, OutputFile, SqliteFrontier, SqliteInstance, SqliteQueue,
};
use fetchwell_testkit::replay::seed;
use tempfile::TempDir;

const TTL: Duration = Duration::from_secs(60);
const NO_LIMIT: CrawlBudget =
    CrawlBudget { pages: 1_000_000, pages_per_site: None, known: None, sitemaps: None };

/// A record that is only what was found.
struct Found(Arc<Discoveries>);

impl Discovers for Found {
    fn discoveries(&self) -> &Arc<Discoveries> {
        &self.0
    }
}

/// A crawl on a file of its own.
struct Crawl {
    folder: TempDir,
    queue: SqliteQueue,
    frontier: SqliteFrontier,
    instance: Arc<SqliteInstance>,
    finish: CrawlFinish<Found>,
}

impl Crawl {
    async fn new(budget: CrawlBudget) -> Crawl {
        let folder = tempfile::tempdir().unwrap();
        let db = sqlite::open(&folder.path().join("store.db"), Durability::Process).unwrap();
        let clock = Clock::simulated(Time::from_secs(1_000));
        let queue = SqliteQueue::open(db, "crawl", clock, TTL, true).await.unwrap();
        let frontier = SqliteFrontier::new(queue.clone(), budget);
        let (instance, finish) = joined(&queue, &frontier, &folder).await;
        Crawl { folder, queue, frontier, instance, finish }
    }

    /// Another process that works on the same crawl.
    async fn second(&self) -> (Arc<SqliteInstance>, CrawlFinish<Found>) {
        joined(&self.queue, &self.frontier, &self.folder).await
    }

    async fn start(&self, urls: &[&str]) {
        let pages = urls.iter().map(|url| page(url, 0)).collect();
        self.frontier.add(Discoveries { pages, ..Discoveries::default() }).await.unwrap();
    }

    /// The leases that are due; `None` if the crawl is at its end.
    async fn take(&self, most: usize) -> Option<Vec<Lease>> {
        let demand = Demand { most, most_per_site: 64, ..Demand::default() };
        match self.instance.take(&demand).await.unwrap() {
            Taken::Jobs(leases) => Some(leases),
            Taken::Idle { .. } => Some(Vec::new()),
            Taken::Exhausted => None,
        }
    }

    async fn end(&self, lease: Lease, settlement: Settlement, found: Discoveries) -> Settled {
        end(&self.finish, lease, settlement, found).await
    }

    /// Ends a page that names these.
    async fn done(&self, lease: Lease, links: &[&str]) {
        let found = linked(&lease, links);
        assert_eq!(self.end(lease, Settlement::Done, found).await, Settled::Confirmed);
    }

    async fn counts(&self) -> CrawlCounts {
        self.frontier.counts().await.unwrap()
    }

    /// The reasons, sites and numbers of links that were cut off.
    async fn cut_off(&self) -> Vec<(String, String, u64)> {
        let cut = self.frontier.cut_off(100).await.unwrap();
        cut.into_iter().map(|cut| (cut.reason, cut.site.unwrap_or_default(), cut.links)).collect()
    }
}

async fn joined(
    queue: &SqliteQueue,
    frontier: &SqliteFrontier,
    folder: &TempDir,
) -> (Arc<SqliteInstance>, CrawlFinish<Found>) {
    let instance = Arc::new(queue.instance());
    instance.renew().await.unwrap();
    let output = OutputFile::open(&folder.path().join("rows")).unwrap();
    let render = |found: &Found| format!("{}\n", found.0.pages.len()).into_bytes();
    (instance.clone(), CrawlFinish::new(frontier.clone(), instance, Some(output), render))
}

async fn end(
    finish: &CrawlFinish<Found>,
    lease: Lease,
    settlement: Settlement,
    found: Discoveries,
) -> Settled {
    let records = match settlement {
        Settlement::Done | Settlement::Skipped | Settlement::Dead { .. } => {
            vec![Found(Arc::new(found))]
        }
        _ => Vec::new(),
    };
    let phases = Phases::default();
    let finished = Finished { lease, records, settlement, phases, share: Share::none() };
    finish.finish(&[finished]).await.unwrap()[0]
}

fn page(url: &str, depth: u32) -> FoundPage {
    let key = page_key(&WebUrl::parse(url).unwrap());
    FoundPage { url: url.to_owned(), key, depth, bounds: Vec::new(), site_bound: None }
}

fn place(lease: &Lease) -> PagePlace {
    serde_json::from_slice(&lease.job.payload).unwrap()
}

fn linked(lease: &Lease, links: &[&str]) -> Discoveries {
    let depth = place(lease).depth + 1;
    Discoveries {
        parent: Some(ParentPage { url: lease.job.url.clone(), root: None }),
        pages: links.iter().map(|url| page(url, depth)).collect(),
        ..Discoveries::default()
    }
}

fn urls(leases: &[Lease]) -> Vec<&str> {
    leases.iter().map(|lease| lease.job.url.as_str()).collect()
}

#[tokio::test]
async fn each_page_is_queued_once_and_knows_its_place() {
    let crawl = Crawl::new(NO_LIMIT).await;
    crawl.start(&["http://a.test/", "http://a.test/"]).await;
    let mut leases = crawl.take(9).await.unwrap();
    assert_eq!(urls(&leases), ["http://a.test/"]);
    assert_eq!(place(&leases[0]), PagePlace::default());
    crawl.done(leases.remove(0), &["http://a.test/1", "http://a.test/", "http://a.test/2"]).await;
    let leases = crawl.take(9).await.unwrap();
    assert_eq!(urls(&leases), ["http://a.test/1", "http://a.test/2"]);
    let expected = PagePlace { depth: 1, parent: Some("http://a.test/".to_owned()), root: None };
    assert_eq!(place(&leases[1]), expected);
    for lease in leases {
        crawl.done(lease, &["http://a.test/1", "http://a.test/2"]).await;
    }
    assert!(crawl.take(9).await.is_none());
    let counts = crawl.counts().await;
    assert_eq!((counts.known, counts.admitted, counts.waiting), (3, 3, 0));
    crawl.queue.audit().await.unwrap().unwrap();
}

/// What a process finds after it has lost its lease belongs to nobody.
#[tokio::test]
async fn a_stale_settlement_adds_neither_links_nor_rows() {
    let crawl = Crawl::new(NO_LIMIT).await;
    crawl.start(&["http://a.test/"]).await;
    let lease = crawl.take(9).await.unwrap().remove(0);
    crawl.instance.leave().await.unwrap();
    let found = linked(&lease, &["http://a.test/1"]);
    let settled = crawl.end(lease, Settlement::Done, found).await;
    assert_eq!(settled, Settled::Stale);
    assert_eq!(crawl.counts().await.known, 1);
    assert_eq!(std::fs::read(crawl.folder.path().join("rows")).unwrap(), b"");
    let (instance, finish) = crawl.second().await;
    let demand = Demand { most: 9, most_per_site: 9, ..Demand::default() };
    let Taken::Jobs(mut leases) = instance.take(&demand).await.unwrap() else { panic!() };
    let lease = leases.remove(0);
    let found = linked(&lease, &["http://a.test/1"]);
    assert_eq!(end(&finish, lease, Settlement::Done, found).await, Settled::Confirmed);
    assert_eq!(crawl.counts().await.known, 2);
    assert_eq!(std::fs::read(crawl.folder.path().join("rows")).unwrap(), b"1\n");
}

#[tokio::test]
async fn what_a_redirect_leads_to_is_known() {
    let crawl = Crawl::new(NO_LIMIT).await;
    crawl.start(&["http://a.test/old"]).await;
    let lease = crawl.take(9).await.unwrap().remove(0);
    let also_known = vec![page("http://a.test/new", 0).key];
    let found = Discoveries { also_known, ..linked(&lease, &["http://a.test/new"]) };
    crawl.end(lease, Settlement::Done, found).await;
    assert!(crawl.take(9).await.is_none());
}

/// A page that waits is not queued after the row of a redirect has got its content.
#[tokio::test]
async fn a_page_that_a_redirect_has_taken_is_not_queued() {
    let crawl = Crawl::new(NO_LIMIT).await;
    let far: Vec<String> = (0..30).map(|n| format!("http://a.test/far{n}")).collect();
    let links: Vec<&str> = ["http://a.test/old", "http://a.test/other"]
        .into_iter()
        .chain(far.iter().map(|url| &**url))
        .collect();
    crawl.start(&links).await;
    let key = |url| page(url, 0).key;
    let pages = vec![key("http://a.test/old"), key("http://a.test/far29"), key("http://a.test/no")];
    let taken = || crawl.frontier.are_taken(pages.clone());
    assert_eq!(taken().await.unwrap(), [true, false, false]);
    let lease = crawl.take(1).await.unwrap().remove(0);
    assert_eq!(lease.job.url, "http://a.test/old");
    let takes = Some(key("http://a.test/far29"));
    let found =
        Discoveries { also_known: takes.into_iter().collect(), takes, ..Discoveries::default() };
    crawl.end(lease, Settlement::Done, found).await;
    assert_eq!(taken().await.unwrap(), [true, true, false]);
    let mut fetched = 1;
    while let Some(leases) = crawl.take(99).await {
        for lease in leases {
            assert_ne!(lease.job.url, "http://a.test/far29");
            fetched += 1;
            crawl.done(lease, &[]).await;
        }
    }
    assert_eq!(fetched, 31);
    let counts = crawl.counts().await;
    assert_eq!((counts.known, counts.admitted, counts.waiting), (32, 31, 0));
    crawl.queue.audit().await.unwrap().unwrap();
}

/// Even if all that is left of many sites is taken, the others get their turn.
#[tokio::test]
async fn a_site_whose_pages_are_all_taken_holds_up_no_other() {
    const SITES: usize = 50;
    let crawl =
        Crawl::new(CrawlBudget { pages: 1, pages_per_site: None, known: None, sitemaps: None })
            .await;
    crawl.start(&["http://start.test/"]).await;
    let url = |n: usize| format!("http://s{n}.test/");
    let urls: Vec<String> = (0..SITES).map(url).collect();
    crawl.start(&urls.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let lease = crawl.take(1).await.unwrap().remove(0);
    let found = |n: usize| {
        let takes = Some(page(&url(n), 0).key);
        Discoveries { also_known: takes.into_iter().collect(), takes, ..Discoveries::default() }
    };
    for n in 0..SITES - 1 {
        crawl.frontier.add(found(n)).await.unwrap();
    }
    crawl.end(lease, Settlement::Done, found(0)).await;
    let budget = CrawlBudget { pages: 2, pages_per_site: None, known: None, sitemaps: None };
    let frontier = SqliteFrontier::new(crawl.queue.clone(), budget);
    frontier.add(Discoveries::default()).await.unwrap();
    assert_eq!(self::urls(&crawl.take(9).await.unwrap()), [url(SITES - 1)]);
}

#[tokio::test]
async fn a_site_has_few_jobs_at_a_time_and_its_nearest_pages_come_first() {
    let crawl = Crawl::new(NO_LIMIT).await;
    let far: Vec<FoundPage> = (0..40).map(|n| page(&format!("http://a.test/far{n}"), 2)).collect();
    let near: Vec<FoundPage> = (0..3).map(|n| page(&format!("http://a.test/near{n}"), 1)).collect();
    crawl.frontier.add(Discoveries { pages: far, ..Discoveries::default() }).await.unwrap();
    crawl.frontier.add(Discoveries { pages: near, ..Discoveries::default() }).await.unwrap();
    let leases = crawl.take(99).await.unwrap();
    assert_eq!(leases.len(), 16);
    for lease in leases.into_iter().take(3) {
        crawl.done(lease, &[]).await;
    }
    let leases = crawl.take(99).await.unwrap();
    assert_eq!(
        urls(&leases),
        ["http://a.test/near0", "http://a.test/near1", "http://a.test/near2"]
    );
}

#[tokio::test]
async fn links_beyond_a_bound_are_counted_with_their_reason() {
    let crawl = Crawl::new(NO_LIMIT).await;
    let bound = |most, reason| Bound { bucket: 7, most, reason };
    let bounded = |n: usize| {
        let bounds = vec![bound(2, CutReason::Calendar)];
        FoundPage { bounds, ..page(&format!("http://a.test/{n}"), 1) }
    };
    let download = FoundPage {
        bounds: vec![Bound::never(CutReason::Download)],
        ..page("http://b.test/x.zip", 1)
    };
    let pages = (0..5).map(bounded).chain([download, bounded(1)]).collect();
    crawl.frontier.add(Discoveries { pages, ..Discoveries::default() }).await.unwrap();
    assert_eq!(crawl.counts().await.known, 2);
    let expected = [("calendar", "a.test", 3), ("download", "b.test", 1)];
    let expected =
        expected.map(|(reason, site, links)| (reason.to_owned(), site.to_owned(), links));
    assert_eq!(crawl.cut_off().await, expected);
}

#[tokio::test]
async fn the_links_of_the_same_content_are_followed_only_so_often() {
    let crawl = Crawl::new(NO_LIMIT).await;
    let content = Some(Bound { bucket: 1, most: 2, reason: CutReason::SameContent });
    for n in 0..4 {
        let pages = vec![page(&format!("http://a.test/{n}"), 1)];
        crawl.frontier.add(Discoveries { pages, content, ..Discoveries::default() }).await.unwrap();
    }
    assert_eq!(crawl.counts().await.known, 2);
    assert_eq!(crawl.cut_off().await, [("same_content".to_owned(), "a.test".to_owned(), 2)]);
}

#[tokio::test]
async fn the_hosts_of_a_farm_are_bounded_and_not_their_pages() {
    let crawl = Crawl::new(NO_LIMIT).await;
    let site_bound = Some(Bound { bucket: 1, most: 2, reason: CutReason::Hosts });
    let pages = ["http://a.x.test/", "http://b.x.test/", "http://c.x.test/", "http://a.x.test/1"];
    let pages = pages.map(|url| FoundPage { site_bound, ..page(url, 1) }).to_vec();
    crawl.frontier.add(Discoveries { pages, ..Discoveries::default() }).await.unwrap();
    assert_eq!(crawl.counts().await.known, 3);
    assert_eq!(crawl.cut_off().await, [("hosts".to_owned(), "c.x.test".to_owned(), 1)]);
}

/// Each host of a farm is a site of its own, and there is no end of them.
#[tokio::test]
async fn links_to_endless_sites_are_counted_in_few_rows() {
    const SITES: u64 = 2_500;
    let crawl = Crawl::new(NO_LIMIT).await;
    let never = |reason, url: &str| {
        let bounds = vec![Bound::never(reason)];
        FoundPage { bounds, ..page(url, 1) }
    };
    let farm = |round: u64| {
        let url = move |n| format!("http://x{n}.farm.test/{round}");
        let pages = (0..SITES).map(|n| never(CutReason::Depth, &url(n))).collect();
        Discoveries { pages, ..Discoveries::default() }
    };
    // In several transactions, because a crawl is resumed, too.
    for round in 0..2 {
        crawl.frontier.add(farm(round)).await.unwrap();
    }
    let pages = vec![never(CutReason::Download, "http://a.test/x.zip")];
    crawl.frontier.add(Discoveries { pages, ..Discoveries::default() }).await.unwrap();
    let cut = crawl.frontier.cut_off(10_000).await.unwrap();
    assert_eq!(cut.len(), 1_000 + 1 + 1);
    assert_eq!(cut.iter().map(|cut| cut.links).sum::<u64>(), 2 * SITES + 1);
    let others = &cut[0];
    assert_eq!((others.site.as_deref(), others.links), (None, 2 * (SITES - 1_000)));
    assert_eq!(others.example, "http://x1000.farm.test/0");
    // The farm does not hide what other rules cut off.
    let download = cut.iter().find(|cut| cut.reason == "download").unwrap();
    assert_eq!(download.site.as_deref(), Some("a.test"));
}

#[tokio::test]
async fn a_sitemap_is_queued_once_and_is_no_page() {
    let budget = CrawlBudget { pages: 1, pages_per_site: None, known: None, sitemaps: None };
    let crawl = Crawl::new(budget).await;
    let lane = Lane { group: None, party: Some("sitemaps".to_owned()) };
    let job = Job { lane, ..Job::new("http://a.test/sitemap.xml".to_owned(), Vec::new()) };
    let jobs = vec![NewJob::keyed(job)];
    let found = || Discoveries { jobs: jobs.clone(), ..Discoveries::default() };
    crawl.frontier.add(found()).await.unwrap();
    let lease = crawl.take(9).await.unwrap().remove(0);
    assert!(!PagePlace::is_of(&lease.job));
    crawl.end(lease, Settlement::Done, found()).await;
    crawl.start(&["http://a.test/", "http://a.test/1"]).await;
    assert_eq!(urls(&crawl.take(9).await.unwrap()), ["http://a.test/"]);
}

#[tokio::test]
async fn the_sitemaps_of_a_site_are_bounded() {
    let crawl = Crawl::new(NO_LIMIT).await;
    let lane = Lane { group: None, party: Some("sitemaps".to_owned()) };
    let sitemap = |n: u32| {
        let url = format!("http://a.test/sitemap{n}.xml");
        NewJob::keyed(Job { lane: lane.clone(), ..Job::new(url, Vec::new()) })
    };
    let job_bound = Some(Bound { bucket: 1, most: 3, reason: CutReason::Sitemaps });
    // One that is known is not counted again.
    for jobs in [vec![sitemap(0)], vec![sitemap(0), sitemap(1)], (0..5).map(sitemap).collect()] {
        let found = Discoveries { jobs, job_bound, ..Discoveries::default() };
        crawl.frontier.add(found).await.unwrap();
    }
    assert_eq!(crawl.take(9).await.unwrap().len(), 3);
    assert_eq!(crawl.cut_off().await, [("sitemaps".to_owned(), "a.test".to_owned(), 2)]);
}

#[tokio::test]
async fn a_budget_is_spent_when_its_last_page_has_ended() {
    let crawl =
        Crawl::new(CrawlBudget { pages: 2, pages_per_site: None, known: None, sitemaps: None })
            .await;
    assert!(!crawl.frontier.is_budget_finished().await.unwrap());
    crawl.start(&["http://a.test/", "http://a.test/1", "http://b.test/", "http://a.test/2"]).await;
    let sites = crawl.frontier.waiting_sites(1).await.unwrap();
    assert_eq!(sites, [WaitingSite { site: "a.test".to_owned(), pages: 2 }]);
    for lease in crawl.take(9).await.unwrap() {
        assert!(!crawl.frontier.is_budget_finished().await.unwrap());
        crawl.done(lease, &[]).await;
    }
    assert!(crawl.frontier.is_budget_finished().await.unwrap());
}

/// A crawl asks this every second, for its limit and its progress.
#[tokio::test]
async fn a_look_at_a_crawl_does_not_wait_for_a_writer() {
    let crawl =
        Crawl::new(CrawlBudget { pages: 1, pages_per_site: None, known: None, sitemaps: None })
            .await;
    crawl.start(&["http://a.test/", "http://a.test/1"]).await;
    let other = rusqlite::Connection::open(crawl.folder.path().join("store.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // A writer that waits for the lock gives up after 20 s.
    assert!(!crawl.frontier.is_budget_finished().await.unwrap());
    assert_eq!(crawl.counts().await.known, 2);
    assert_eq!(crawl.frontier.waiting_sites(9).await.unwrap().len(), 1);
    assert!(crawl.cut_off().await.is_empty());
    other.execute_batch("COMMIT").unwrap();
}

/// A random graph, random ends and random budgets: the pages that a walk on paper gets, each once.
#[tokio::test]
async fn a_random_crawl_fetches_what_can_be_reached_and_meets_its_budget() {
    let mut chance = Chance::seeded(seed());
    for round in 0..12 {
        let sites = 1 + chance.next_u64() % 5;
        let pages = 20 + chance.next_u64() % 60;
        let url = |n: u64| format!("http://s{}.test/{n}", n % sites);
        let graph: BTreeMap<String, Vec<String>> = (0..pages)
            .map(|n| {
                let links = (0..chance.next_u64() % 4).map(|_| url(chance.next_u64() % pages));
                (url(n), links.collect())
            })
            .collect();
        let forbidden: BTreeSet<String> =
            (1..pages).filter(|_| chance.next_u64().is_multiple_of(5)).map(url).collect();
        let mut reachable = BTreeSet::from([url(0)]);
        let mut open = vec![url(0)];
        while let Some(from) = open.pop() {
            if !forbidden.contains(&from) {
                open.extend(
                    graph[&from].iter().filter(|to| reachable.insert((*to).clone())).cloned(),
                );
            }
        }
        let allowed = reachable.difference(&forbidden).count() as u64;
        let limit = if round % 2 == 0 { 1_000 } else { 1 + chance.next_u64() % allowed };
        let crawl = Crawl::new(CrawlBudget {
            pages: limit,
            pages_per_site: None,
            known: None,
            sitemaps: None,
        })
        .await;
        crawl.start(&[&url(0)]).await;
        let mut fetched = BTreeSet::new();
        while let Some(leases) = crawl.take(1 + (chance.next_u64() % 9) as usize).await {
            for lease in leases {
                let from = lease.job.url.clone();
                if chance.next_u64().is_multiple_of(4) {
                    let at = Time::from_secs(1_000);
                    let put_off = Settlement::HandBack { at };
                    crawl.end(lease, put_off, Discoveries::default()).await;
                } else if forbidden.contains(&from) {
                    crawl.end(lease, Settlement::Skipped, Discoveries::default()).await;
                } else {
                    assert!(fetched.insert(from.clone()), "{from} twice");
                    let links: Vec<&str> = graph[&from].iter().map(String::as_str).collect();
                    crawl.done(lease, &links).await;
                }
            }
        }
        assert_eq!(fetched.len() as u64, limit.min(allowed), "round {round}");
        assert!(fetched.is_subset(&reachable));
        crawl.queue.audit().await.unwrap().unwrap();
    }
}

/// The budget of a site is its own.
#[tokio::test]
async fn a_site_gets_no_more_than_its_part() {
    let crawl = Crawl::new(CrawlBudget {
        pages: 100,
        pages_per_site: Some(3),
        known: None,
        sitemaps: None,
    })
    .await;
    let starts: Vec<String> =
        (0..10).flat_map(|n| ["a", "b"].map(|site| format!("http://{site}.test/{n}"))).collect();
    crawl.start(&starts.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let mut fetched = Vec::new();
    while let Some(leases) = crawl.take(2).await {
        for lease in leases {
            fetched.push(lease.job.site.clone().unwrap().to_string());
            crawl.done(lease, &[]).await;
        }
    }
    fetched.sort();
    assert_eq!(fetched, ["a.test", "a.test", "a.test", "b.test", "b.test", "b.test"]);
    assert_eq!(crawl.counts().await.waiting, 14);
}

/// A known page takes at most 64 bytes on disk besides its URL.
#[tokio::test]
async fn known_pages_are_small() {
    const PAGES: usize = 40_000;
    let crawl =
        Crawl::new(CrawlBudget { pages: 1, pages_per_site: None, known: None, sitemaps: None })
            .await;
    let size = || std::fs::metadata(crawl.folder.path().join("store.db")).unwrap().len();
    let url = |n: usize| format!("http://site-{}.test/articles/2024/a-page-{n}", n % 40);
    let mut url_bytes = 0;
    for from in (0..PAGES).step_by(4_000) {
        let pages: Vec<FoundPage> = (from..from + 4_000).map(|n| page(&url(n), 1)).collect();
        url_bytes += pages.iter().map(|page| page.url.len() as u64).sum::<u64>();
        let parent =
            Some(ParentPage { url: format!("http://site-0.test/list-{from}"), root: None });
        crawl.frontier.add(Discoveries { parent, pages, ..Discoveries::default() }).await.unwrap();
    }
    crawl.instance.leave().await.unwrap();
    let db = rusqlite::Connection::open(crawl.folder.path().join("store.db")).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let each = (size() - url_bytes) / PAGES as u64;
    println!("{each} bytes per known page besides its URL");
    assert!(each <= 64, "{each} bytes");
}
