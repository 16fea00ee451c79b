//! Each door on the one flow: a URL, a feed, a block or a batch goes in, and what the contract says
//! comes out.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_archive::cdxj::{IndexFilter, Language};
use fetchwell_archive::cluster_idx::Lines;
use fetchwell_commoncrawl::ReadTime;
use fetchwell_commoncrawl::archive::JoinRule;
use fetchwell_commoncrawl::batch::block::{self, Batching, BlockEnd, BlockYield, Pages};
use fetchwell_commoncrawl::work::{
    self, BaseCheck, BatchPlanRules, DocumentFilter, InHand, WorkRecord,
};
use fetchwell_doors::articles::{self, ArticleRecord, LinkRules};
use fetchwell_doors::pages::{self, PageRecord, PageRules};
use fetchwell_doors::read_limits::ReadLimits;
use fetchwell_doors::retriever;
use fetchwell_doors::webhooks::{self, Sign};
use fetchwell_engine::budget::Share;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::finish::SinkThenSettle;
use fetchwell_engine::gate::{Gate, GateRules, GroupPace, PaceRules, RobotsRules};
use fetchwell_engine::memory::{MemoryPoliteness, MemoryQueue};
use fetchwell_engine::pipeline::{self, Door, Planner, RunLimits, Runtime};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::Sink;
use fetchwell_engine::ports::inbox::{DeliveryRecord, DeliveryStatus};
use fetchwell_engine::ports::job::{Job, Lane, Lease, NewJob};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_engine::web::{Answer, Exchange, Phases, Request, SendPermit, Timeouts, Web};
use fetchwell_policy::breaker::BreakerRule;
use fetchwell_policy::robots::WhenUnreachable;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Site, WebUrl};
use fetchwell_simweb::{SiteScript, World};
use fetchwell_testkit::simulated_web::SimulatedWeb;
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

const START: Time = Time::from_secs(1_700_000_000);

/// A sink that keeps what it is given.
struct Kept<R>(Arc<Mutex<Vec<R>>>);

#[async_trait]
impl<R: Clone + Send + Sync> Sink<R> for Kept<R> {
    async fn write(&self, records: &[&R]) -> Result<(), StoreError> {
        self.0.lock().extend(records.iter().copied().cloned());
        Ok(())
    }
}

/// Runs a door on these jobs until nothing is left.
async fn run<R: Clone + Send + Sync + 'static>(
    planner: Planner<R>,
    jobs: Vec<Job>,
    web: Arc<dyn Web>,
) -> (Vec<R>, Ledger) {
    let clock = Clock::simulated(START);
    let queue = MemoryQueue::new(clock.clone(), Duration::from_secs(20), true);
    queue.enqueue(jobs.into_iter().map(NewJob::now).collect());
    let records = Arc::new(Mutex::new(Vec::new()));
    let instance = Arc::new(queue.instance());
    let door = Door {
        source: instance.clone(),
        planner,
        finish: Arc::new(SinkThenSettle { sink: Kept(records.clone()), source: instance }),
        give_up_record: Arc::new(|_, _, _| Vec::new()),
    };
    let stop = CancellationToken::new();
    pipeline::run(door, runtime(web, clock), stop).await.unwrap();
    let records = std::mem::take(&mut *records.lock());
    let ledger = queue.ledger();
    assert!(ledger.balances(), "{ledger:?}");
    (records, ledger)
}

fn runtime(web: Arc<dyn Web>, clock: Clock) -> Runtime {
    let politeness = Arc::new(MemoryPoliteness::new(clock.clone(), BreakerRule::default(), 1));
    let rules = GateRules {
        pace: PaceRules {
            default_interval: Duration::from_secs(1),
            sites: HashMap::new(),
            concurrency: HashMap::from([(Site::parse("archive.test").unwrap(), 8)]),
            groups: GroupPace::default(),
        },
        robots: RobotsRules {
            product_token: "fetchwell".to_owned(),
            when_unreachable: WhenUnreachable::Defer,
            fresh_for: Duration::from_secs(86_400),
            stale_for: Duration::from_secs(30 * 86_400),
            max_crawl_delay: None,
            pages_fail_with_it: false,
        },
        give_up_after: None,
        site_attempts: None,
        missing_hosts_fail: false,
    };
    let gate = Gate::new(politeness, rules, clock.clone());
    let limits = RunLimits::default();
    let event_sink = Arc::new(|_| ());
    Runtime { gate, web, limits, clock, seed: 1, event_sink }
}

fn job(url: &str, payload: &impl ToString) -> Job {
    let site = WebUrl::parse(url).ok().map(|url| url.site());
    Job {
        url: url.to_owned(),
        site,
        lane: Lane::default(),
        payload: payload.to_string().into_bytes(),
        deadline: None,
    }
}

fn simulated(sites: impl IntoIterator<Item = SiteScript>) -> (Arc<World>, Arc<SimulatedWeb>) {
    let world = Arc::new(World::new(sites));
    (world.clone(), Arc::new(SimulatedWeb::new(world, "fetchwell")))
}

#[tokio::test(start_paused = true)]
async fn pages_are_cached_skipped_or_dead() {
    let shop = SiteScript::new("shop.test")
        .robots("User-agent: *\nDisallow: /private")
        .text("/latin", "text/html; charset=iso-8859-1", "ASCII")
        .redirect("/moved", "/latin")
        .status("/gone", 410);
    let urls = ["latin", "moved", "private", "gone"].map(|path| format!("http://shop.test/{path}"));
    let jobs = urls.iter().map(|url| job(url, &"")).chain([job("no url", &"")]).collect();
    let planner: Planner<PageRecord> = Arc::new(|lease| pages::plan(lease, PageRules::default()));
    let (records, ledger) = run(planner, jobs, simulated([shop]).1).await;
    assert_eq!((ledger.done, ledger.skipped, ledger.dead), (2, 1, 2));
    assert_eq!(records.len(), 4, "{records:?}");
    let fetched = records.iter().find_map(|record| match record {
        PageRecord::Fetched { content, event } if event.url == urls[1] => Some((content, event)),
        _ => None,
    });
    let (content, event) = fetched.unwrap();
    assert_eq!(content.as_ref(), b"ASCII");
    let mut event = serde_json::to_value(event).unwrap();
    let key = event["cache_key"].take();
    assert!(key.as_str().is_some_and(|key| key.starts_with("webpage:") && key.len() == 72));
    let fetched_at = event["fetched_at"].take();
    assert!(fetched_at.as_str().is_some_and(|at| at.starts_with("2023-11-14T22:13:2")));
    let expected = json!({
        "type": "webpage_fetched", "url": urls[1], "cache_key": null, "status_code": 200,
        "content_type": "text/html; charset=iso-8859-1", "content_length": 5,
        "content_hash": "481868aabe586b2a08c07657e7c2deb37bfa054baedf4e5d81e5f2a7c87124ac",
        "fetched_at": null,
    });
    assert_eq!(event, expected);
}

#[tokio::test(start_paused = true)]
async fn an_inbox_message_becomes_an_outbox_row() {
    let shop = SiteScript::new("shop.test").fails_first("/flaky", 2, 500).status("/down", 500);
    let jobs =
        vec![job("http://shop.test/flaky", &json!({})), job("http://shop.test/down", &json!({}))];
    let plan = |lease: &Lease| {
        let rule = retriever::retry_rule(3);
        let keep = Duration::from_secs(60);
        let bodies = retriever::BodyRules { max_bytes: 0, keep, quota_bytes: 0 };
        retriever::plan(lease, rule, Timeouts::default(), 5, ReadLimits::default(), bodies)
    };
    let (mut rows, ledger) = run(Arc::new(plan), jobs, simulated([shop]).1).await;
    // Beside a retry a record tells of the attempt alone: no outbox has it.
    let told = rows.extract_if(.., |row| row.attempts == 0).count();
    rows.sort_by_key(|row| row.http_status);
    assert_eq!((rows.len(), told, ledger.done), (2, 4, 2));
    assert_eq!((&*rows[0].status, rows[0].http_status), ("success", Some(200)));
    assert!(rows[0].content.as_ref().is_some_and(|page| page.contains("shop.test/flaky")));
    assert_eq!((&*rows[1].status, rows[1].http_status), ("http_error", Some(500)));
    assert_eq!((rows[1].content.as_ref(), rows[1].error.is_some()), (None, true));
}

#[tokio::test(start_paused = true)]
async fn links_become_articles_or_failures() {
    let news = SiteScript::new("news.test").binary("/photo", "image/jpeg", 999);
    let link = json!({"categories": ["asia", "world"]});
    let jobs = vec![job("http://news.test/story", &link), job("http://news.test/photo", &link)];
    let reading = ReadLimits::default();
    let rules = LinkRules { timeouts: Timeouts::default(), max_redirects: 5, reading };
    let planner: Planner<ArticleRecord> = Arc::new(move |lease| articles::plan(lease, rules));
    let (records, ledger) = run(planner, jobs, simulated([news]).1).await;
    assert_eq!((records.len(), ledger.done), (2, 2));
    for record in records {
        match record {
            ArticleRecord::Stored { article, categories } => {
                assert_eq!((&*article.category, categories.len()), ("asia", 2));
                assert_eq!(article.uid, articles::uid("http://news.test/story"));
                assert!(article.clean_text.contains("Paragraph 1") && article.text_len > 200);
                assert_eq!(serde_json::to_value(&article).unwrap()["status"], "success");
            }
            ArticleRecord::Failed { failure, is_of_site, .. } => {
                let hash = serde_json::to_value(&failure).unwrap();
                assert_eq!(
                    (&hash["status"], &hash["reason"]),
                    (&json!("failure"), &json!("FAIL_BAD_HTML"))
                );
                assert!(!is_of_site);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_delivery_is_posted_until_it_is_taken() {
    let caller = SiteScript::new("caller.test").fails_first("/hook", 2, 404).status("/gone", 410);
    let (world, web) = simulated([caller]);
    let delivery = json!({"post": {"id": "m1", "caller": "me", "body": "{}"}});
    let jobs =
        vec![job("http://caller.test/hook", &delivery), job("http://caller.test/gone", &delivery)];
    let sign: Sign = Arc::new(|_, content| Some(format!("v1,{}", content.len())));
    let planner: Planner<DeliveryRecord> = Arc::new(move |lease| webhooks::plan(&sign, lease));
    let (records, ledger) = run(planner, jobs, web).await;
    let of = |status| records.iter().filter(|one| one.status == status).count();
    let all = [DeliveryStatus::Pending, DeliveryStatus::Delivered, DeliveryStatus::Failed].map(of);
    assert_eq!(all, [2, 1, 1], "{records:?}");
    assert_eq!((ledger.done, ledger.dead), (1, 1));
    assert_eq!(world.count(|hit| hit.method.as_str() == "POST"), 4);
    assert_eq!(world.count(|hit| &*hit.path == "/robots.txt"), 0);
}

/// An archive: serves exact ranges of its files, and counts them.
struct Archive {
    files: HashMap<&'static str, Vec<u8>>,
    served: Mutex<usize>,
}

#[async_trait]
impl Web for Archive {
    async fn exchange(
        &self,
        request: &Request,
        leave: &mut dyn SendPermit,
        _: &mut Phases,
    ) -> Exchange {
        assert!(leave.to_write().await);
        *self.served.lock() += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
        let file = &self.files[request.url.path_and_query()];
        let range = request.headers.iter().find(|(name, _)| *name == "range").unwrap();
        let (first, last) = range.1.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        let first: usize = first.parse().unwrap();
        let last: usize = last.parse().unwrap();
        let mut answer = Answer {
            status: 206,
            headers: Default::default(),
            body: Bytes::copy_from_slice(&file[first..=last]),
            share: Share::none(),
            wire: Box::default(),
        };
        let stated = format!("bytes {first}-{last}/{}", file.len());
        answer.headers.insert("content-range", stated.parse().unwrap());
        Exchange::Answered(answer)
    }
}

fn archive(path: &'static str, file: Vec<u8>) -> Arc<Archive> {
    Arc::new(Archive { files: HashMap::from([(path, file)]), served: Mutex::new(0) })
}

/// A gzip member whose only block is stored, not deflated.
fn gzip(content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap();
    let crc = content.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 * (crc & 1)))
    });
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    let mut member = head.to_vec();
    member.extend(length.to_le_bytes());
    member.extend((!length).to_le_bytes());
    member.extend(content);
    member.extend((!crc).to_le_bytes());
    member.extend(u32::from(length).to_le_bytes());
    member
}

#[tokio::test(start_paused = true)]
async fn a_block_of_the_index_becomes_the_pages_that_are_wanted() {
    let line = |page: usize| {
        let languages = if page.is_multiple_of(2) { "eng" } else { "deu,engx" };
        let metadata = json!({"status": "200", "languages": languages});
        format!("com,example)/{page} 20240712000102 {metadata}\n")
    };
    let mut lines: String = (0..240).map(line).collect();
    lines.push_str("com,example)/x not-a-line\n");
    let before = gzip(b"another block");
    let block = gzip(lines.as_bytes());
    let place = format!("cdx-00000.gz\t{}\t{}\t1", before.len(), block.len());
    let cluster_line = format!("com,example)/0 20240712000102\t{place}");
    let indexes =
        WebUrl::parse("http://archive.test/cc-index/collections/CC-MAIN-2024-30/indexes/").unwrap();
    let path = "/cc-index/collections/CC-MAIN-2024-30/indexes/cdx-00000.gz";
    let web = archive(path, [before, block].concat());
    let filter = IndexFilter {
        status: Some(200),
        language: Some(Language::any("eng")),
        ..IndexFilter::default()
    };
    let batching = Batching { filter, by_file: false };
    let planner: Planner<BlockEnd> = Arc::new(move |lease| block::plan(&batching, lease));
    let line = Lines::new(cluster_line.as_bytes()).next().unwrap().unwrap();
    let jobs = || vec![block::job(&indexes, 0, &line).unwrap()];
    let (records, ledger) = run(planner.clone(), jobs(), web.clone()).await;
    assert_eq!((ledger.done, *web.served.lock()), (1, 1));
    let BlockYield::Read { pages: Pages::InOrder(pages), sifted, .. } = &records[0].what else {
        panic!("{records:?}");
    };
    let surt = |page: &[u8]| {
        let page: serde_json::Value = serde_json::from_slice(page).unwrap();
        page["surt_url"].as_str().unwrap().to_owned()
    };
    let surts: Vec<String> = pages.iter().map(surt).collect();
    assert_eq!(
        (surts.len(), surts[0].as_str(), surts[119].as_str()),
        (120, "com,example)/0", "com,example)/238")
    );
    assert_eq!((sifted.wanted, sifted.malformed), (120, 1));
    let (again, _) = run(planner, jobs(), web).await;
    assert_eq!(again, records, "the same block gives the same pages");
}

/// A WARC record of a page that says its number.
fn capture(page: usize) -> Vec<u8> {
    let html = format!(
        "<html lang=\"en\"><title>Page {page}</title><p>This is what page {page} says.</p></html>"
    );
    let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{html}");
    let head = "WARC/1.0\r\nWARC-Type: response\r\nContent-Length";
    gzip(format!("{head}: {}\r\n\r\n{http}\r\n\r\n", http.len()).as_bytes())
}

/// A WARC file of so many pages, and the batch that names them all.
fn captures(pages: usize) -> (Vec<u8>, serde_json::Value) {
    let mut file = Vec::new();
    let mut batch = Vec::new();
    for page in 0..pages {
        let record = capture(page);
        let offset = file.len();
        batch.push(json!({
            "surt_url": format!("com,example)/{page}"),
            "timestamp": "20240712000102",
            "metadata": {
                "url": format!("https://example.com/{page}"), "languages": "eng",
                "filename": "crawl-data/x.warc.gz", "offset": offset.to_string(),
                "length": record.len().to_string(),
            },
        }));
        file.extend(record);
    }
    (file, batch.into())
}

#[tokio::test(start_paused = true)]
async fn a_batch_becomes_documents_eight_ranges_at_a_time() {
    let (file, mut batch) = captures(50);
    let broken = &mut batch[7]["metadata"];
    broken["offset"] = "1".into();
    let web = archive("/crawl-data/x.warc.gz", file);
    let rules = Arc::new(BatchPlanRules {
        root: WebUrl::parse("http://archive.test/").unwrap(),
        // Each page is a range of its own.
        join: JoinRule { max_gap_bytes: 0, max_range_bytes: 1 },
        max_record_bytes: 1 << 20,
        reading: ReadTime::default(),
        filter: DocumentFilter::default(),
        in_hand: InHand::for_records_of(1 << 20),
        large: Arc::default(),
        base: Arc::new(BaseCheck::of(&"http://archive.test/")),
    });
    let planner: Planner<WorkRecord> = Arc::new(move |lease| work::plan(&rules, lease));
    let message =
        |name: &str| Job { site: Some(Site::parse("archive.test").unwrap()), ..job(name, &batch) };
    let started = tokio::time::Instant::now();
    let (mut records, ledger) =
        run(planner, vec![message("batch-1"), message("batch-2")], web.clone()).await;
    assert_eq!((ledger.done, *web.served.lock()), (2, 100));
    assert!(started.elapsed() >= Duration::from_millis(50 * 20), "a batch has one under way");
    records.truncate(50);
    let (documents, skipped): (Vec<_>, Vec<_>) =
        records.iter().partition(|record| matches!(record, WorkRecord::Document(_)));
    assert_eq!((documents.len(), skipped.len()), (49, 1));
    let document = records.iter().find_map(|record| match record {
        WorkRecord::Document(document) if document.surt == "com,example)/3" => Some(document),
        _ => None,
    });
    let mut document = serde_json::to_value(document.unwrap()).unwrap();
    assert_eq!(document["content_hash"].take().as_str().map(str::len), Some(64));
    assert_eq!(document["warc"].take()["filename"], "crawl-data/x.warc.gz");
    let expected = json!({
        "url": "https://example.com/3", "surt": "com,example)/3", "timestamp": "20240712000102",
        "lang": "eng", "title": "Page 3", "text": "This is what page 3 says.",
        "content_hash": null, "warc": null,
    });
    assert_eq!(document, expected);
}
