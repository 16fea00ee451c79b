//! The order of things, and what a failure of each leaves.

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::web::Phases;
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_testkit::memory::{MemoryEvents, MemoryPages};
use fetchwell_testkit::samples::{NOW, end_of, lease};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::*;
use crate::pages::{PageRules, plan};

const HOUR: Duration = Duration::from_secs(3_600);
const PAGES: usize = 40;

/// What was asked of whom, in order.
type Diary = Mutex<Vec<&'static str>>;

/// A cache, a log and a queue that note what they are asked, and do as they are told.
struct Stage {
    diary: Diary,
    pages: MemoryPages,
    events: MemoryEvents,
    /// Whose faults come next: `cache`, `log` or `queue`.
    fails: Mutex<Vec<&'static str>>,
    /// What is too large, and for whom.
    too_large: &'static str,
    settled: Mutex<Vec<(String, Settlement, Vec<PageRecord>)>>,
}

impl Stage {
    fn new(fails: &[&'static str], too_large: &'static str) -> Arc<Stage> {
        Arc::new(Stage {
            diary: Diary::default(),
            pages: MemoryPages::new(Clock::new(|| NOW)),
            events: MemoryEvents::default(),
            fails: Mutex::new(fails.to_vec()),
            too_large,
            settled: Mutex::default(),
        })
    }

    fn asks(&self, whom: &'static str) -> Result<(), StoreError> {
        self.diary.lock().push(whom);
        let mut fails = self.fails.lock();
        match fails.first() {
            Some(first) if *first == whom => {
                fails.remove(0);
                Err(StoreError::transient(format!("{whom} is away")))
            }
            _ => Ok(()),
        }
    }

    fn finish(self: &Arc<Stage>) -> CacheThenEvent<Player> {
        let then = Player(self.clone());
        CacheThenEvent {
            cache: Arc::new(Player(self.clone())),
            ttl: HOUR,
            log: Arc::new(Player(self.clone())),
            then,
        }
    }

    /// Who was asked how often, in the order of first times.
    fn diary(&self) -> Vec<(&'static str, usize)> {
        let diary = self.diary.lock();
        diary.chunk_by(PartialEq::eq).map(|run| (run[0], run.len())).collect()
    }
}

/// Whoever is on the stage: cache, log or queue.
struct Player(Arc<Stage>);

#[async_trait]
impl PageCache for Player {
    async fn put(&self, key: &str, body: Bytes, ttl: Duration) -> Result<(), StoreError> {
        self.0.asks("cache")?;
        if self.0.too_large == "page" && self.0.diary.lock().len() == 3 {
            return Err(StoreError::too_large("a page too large"));
        }
        self.0.pages.put(key, body, ttl).await
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        self.0.pages.get(key).await
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        self.0.pages.sweep().await
    }
}

#[async_trait]
impl EventLog for Player {
    async fn publish(&self, events: &[LogEvent]) -> Result<Vec<Published>, StoreError> {
        self.0.asks("log")?;
        let mut published = self.0.events.publish(events).await?;
        if self.0.too_large == "event" {
            published[2] = Published::Refused { reason: "an event too large".to_owned() };
        }
        Ok(published)
    }
}

#[async_trait]
impl Finish<PageRecord> for Player {
    async fn finish(&self, batch: &[Finished<PageRecord>]) -> Result<Vec<Settled>, StoreError> {
        self.0.asks("queue")?;
        let ends = batch
            .iter()
            .map(|f| (f.lease.job.url.clone(), f.settlement.clone(), f.records.clone()));
        self.0.settled.lock().extend(ends);
        Ok(vec![Settled::Confirmed; batch.len()])
    }
}

/// What the plan makes of a URL.
fn finished(lease: Lease, happened: FetchOutcome) -> Finished<PageRecord> {
    let (records, settlement) = end_of(plan(&lease, PageRules::default()), happened);
    Finished { lease, records, settlement, phases: Phases::default(), share: Share::none() }
}

/// Pages, with a dead letter, a skipped URL and one to be tried again among them.
fn batch() -> Vec<Finished<PageRecord>> {
    let page = |n| finished(lease(&format!("http://a.test/{n}"), ""), FetchOutcome::Answered(200));
    let mut batch: Vec<_> = (0..PAGES).map(page).collect();
    for (at, happened) in [
        (1, FetchOutcome::Answered(404)),
        (4, FetchOutcome::RobotsDisallow),
        (9, FetchOutcome::Answered(503)),
    ] {
        batch.insert(at, finished(lease("http://a.test/other", ""), happened));
    }
    batch
}

async fn every_event_has_its_page(stage: &Stage) {
    for event in stage.events.published() {
        let event: serde_json::Value = serde_json::from_str(&event.value).unwrap();
        let page = stage.pages.get(event["cache_key"].as_str().unwrap()).await.unwrap().unwrap();
        assert_eq!(event["content_length"], page.len());
    }
}

#[tokio::test]
async fn all_pages_go_to_the_cache_then_all_events_to_the_log_then_the_leases_end() {
    let stage = Stage::new(&[], "");
    let batch = batch();
    let settled = stage.finish().finish(&batch).await.unwrap();
    assert_eq!(settled, vec![Settled::Confirmed; PAGES + 3]);
    assert_eq!(stage.diary(), [("cache", PAGES), ("log", 1), ("queue", 1)]);
    assert_eq!(stage.events.published().len(), PAGES);
    every_event_has_its_page(&stage).await;
    let settled = stage.settled.lock().clone();
    let as_planned = batch.into_iter().map(|f| (f.lease.job.url, f.settlement, f.records));
    assert_eq!(settled, as_planned.collect::<Vec<_>>());
}

#[tokio::test]
async fn a_batch_without_pages_asks_neither_cache_nor_log() {
    let stage = Stage::new(&[], "");
    let dead = finished(lease("http://a.test/", ""), FetchOutcome::Answered(404));
    stage.finish().finish(&[dead]).await.unwrap();
    assert_eq!(stage.diary(), [("queue", 1)]);
}

#[tokio::test]
async fn a_failure_of_any_is_a_failure_of_the_batch_and_nothing_after_it_is_asked() {
    for fails in ["cache", "log", "queue"] {
        let stage = Stage::new(&[fails], "");
        let batch = batch();
        let fault = stage.finish().finish(&batch).await.unwrap_err();
        assert_eq!(fault.to_string(), format!("the store is not available: {fails} is away"));
        assert_eq!(stage.diary().last().unwrap().0, fails);
        assert!(stage.settled.lock().is_empty());
        every_event_has_its_page(&stage).await;
        stage.finish().finish(&batch).await.unwrap();
        every_event_has_its_page(&stage).await;
        let ids: Vec<String> = stage.events.published().into_iter().map(|e| e.id).collect();
        let unique: std::collections::BTreeSet<&String> = ids.iter().collect();
        assert_eq!(unique.len(), PAGES, "the same event has the same id when it comes again");
    }
}

#[tokio::test]
async fn what_cache_or_log_never_take_is_a_dead_letter_and_the_others_go_on() {
    for (what, events) in [("page", PAGES - 1), ("event", PAGES)] {
        let stage = Stage::new(&[], what);
        let mut batch = batch();
        // The third page: it stands after a dead letter.
        batch[3].lease.history.url_failures = 1;
        stage.finish().finish(&batch).await.unwrap();
        assert_eq!(stage.events.published().len(), events);
        let settled = stage.settled.lock();
        for (at, ((url, settlement, records), planned)) in settled.iter().zip(&batch).enumerate() {
            assert_eq!(*url, planned.lease.job.url);
            if at != 3 {
                assert_eq!((settlement, records), (&planned.settlement, &planned.records));
                continue;
            }
            let reason = format!("a{} {what} too large", if what == "event" { "n" } else { "" });
            assert_eq!(*settlement, Settlement::Dead { reason: reason.clone() });
            let now = rfc3339(NOW);
            let first_at = now.clone();
            let last_at = now;
            let details = DeadLetterDetails {
                failure: LetterFailure::UrlSpecific,
                error: None,
                reason,
                status_code: Some(200),
                attempts: 2,
                first_at,
                last_at,
            };
            assert_eq!(*records, [PageRecord::DeadLetter { url: url.clone(), details }]);
        }
    }
}

#[tokio::test]
async fn an_event_is_as_the_contract_has_it() {
    let stage = Stage::new(&[], "");
    let url = "HTTP://A.test:80/ä?b=1#c";
    stage.finish().finish(&[finished(lease(url, ""), FetchOutcome::Answered(203))]).await.unwrap();
    let [event] = &stage.events.published()[..] else { panic!("one event") };
    let hash: [u8; 32] = Sha256::digest(url).into();
    assert_eq!(event.key, hash);
    assert_eq!(event.id.len(), 32);
    let page = "<html><p>Some words.</p></html>";
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let expected = serde_json::json!({
        "type": "webpage_fetched", "url": url, "cache_key": format!("webpage:{}", hex(&hash)),
        "status_code": 203, "content_type": null, "content_length": page.len(),
        "content_hash": hex(&Sha256::digest(page)), "fetched_at": rfc3339(NOW),
    });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&event.value).unwrap(), expected);
}
