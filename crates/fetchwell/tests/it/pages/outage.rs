//! A site goes down and comes back: nothing is lost, nobody helps, others don't notice.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_doors::pages::{self, CacheThenEvent, PageRecord, PageRules};
use fetchwell_engine::finish::SinkThenSettle;
use fetchwell_engine::pipeline::Door as EngineDoor;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::Sink;
use fetchwell_policy::robots::WhenUnreachable;
use fetchwell_simweb::{Hit, HitKind, OutageKind, SiteScript};
use fetchwell_testkit::dns::{DnsServer, Script};
use fetchwell_testkit::eventually::eventually_ok;
use fetchwell_testkit::memory::{MemoryEvents, MemoryPages};
use fetchwell_testkit::replay::is_soak;
use fetchwell_testkit::rig::Rig;
use fetchwell_testkit::scene::StoreKind;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::door::Door;

const HOUR: Duration = Duration::from_secs(3_600);

fn urls(site: &str, pages: usize) -> Vec<String> {
    (0..pages).map(|page| format!("http://{site}/{page}")).collect()
}

fn pages_of<'a>(hits: &'a [Hit], site: &str) -> Vec<&'a Hit> {
    let is_page = |hit: &&Hit| hit.kind == HitKind::Page && &*hit.site == site;
    hits.iter().filter(is_page).collect()
}

/// How long the site is down, and how many pages another one has meanwhile, at 10 a second. In the long form
/// the other is to be at its full pace nearly as long as the outage lasts.
fn outage_and_pages() -> (Duration, usize) {
    if is_soak() { (Duration::from_secs(60), 520) } else { (Duration::from_secs(30), 30) }
}

fn sites() -> [SiteScript; 2] {
    let outage = Duration::ZERO..outage_and_pages().0;
    [SiteScript::new("down.test").outage(outage, OutageKind::Refuse), SiteScript::new("up.test")]
}

/// A real process through a real outage, with short back-offs.
#[expect(clippy::print_stdout, reason = "figures are for whoever runs the test")]
async fn an_outage(door: Door) {
    let (outage, up_pages) = outage_and_pages();
    let door = door
        .variable("PAGE_FETCHER_RATE_LIMIT_PER_SECOND", "10")
        .variable("PAGE_FETCHER_RETRY_BACKOFF_BASE_SECONDS", "0.1")
        .variable("PAGE_FETCHER_CIRCUIT_BREAKER_INITIAL_BACKOFF_SECONDS", "0.5")
        .variable("PAGE_FETCHER_CIRCUIT_BREAKER_MAX_BACKOFF_SECONDS", "1");
    let all = [urls("down.test", 30), urls("up.test", up_pages)].concat();
    door.add(&all.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let running = door.start().await;
    running.until("pages_fetched_total", |fetched| fetched == all.len() as f64).await;
    assert_eq!(running.metric("dlq_size").await, 0.0);
    assert_eq!(running.metric("circuit_breaker_state").await, 0.0);
    let opened = running.metric("circuit_breaker_opened_total").await;
    running.stop().await;
    assert_eq!(door.waiting().await, 0);
    let hits = door.scene.origin.hits();
    let down = pages_of(&hits, "down.test");
    let up = pages_of(&hits, "up.test");
    let back = down.iter().find(|hit| hit.status == Some(200)).unwrap();
    assert!(up.iter().all(|hit| hit.at < back.at), "others waited");
    assert!(opened >= 2.0, "it opened {opened} times");
    let during = down.iter().filter(|hit| hit.at < outage).count();
    assert!(during <= 5, "{during} pages, where only probes should go");
    println!(
        "down for {outage:?}: {during} pages asked for meanwhile, opened {opened} times, back {:?} after; {} \
         pages of the other site in {:?}",
        back.at.saturating_sub(outage),
        up.len(),
        up[up.len() - 1].at - up[0].at,
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_comes_back_is_met_by_itself_and_others_did_not_wait() {
    an_outage(Door::embedded(sites())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_redis_a_site_that_comes_back_is_met_by_itself_and_others_did_not_wait() {
    let Some(door) = Door::on(StoreKind::Redis, sites()).await else { return };
    an_outage(door).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_lists_hosts_that_do_not_exist() {
    let server = DnsServer::start([("nosuch.example", Script::NoSuchName(None))]).await.unwrap();
    for store in [StoreKind::Sqlite, StoreKind::Redis] {
        let Some(door) = Door::on(store, []).await else { continue };
        let door = door.variable("FETCHWELL_DNS__SERVERS", &server.address.to_string());
        let status = async |json: &[&str]| {
            let arguments = [&["pages", "status"], json].concat();
            door.scene.program.run(&arguments).await.expect_code(0).stdout
        };
        let before = status(&["--json"]).await;
        assert!(before.contains(r#""missing_hosts":[]"#), "{before}");
        door.add(&["http://nosuch.example/1"]).await;
        let _running = door.start().await;
        eventually_ok("the host in the status", async || {
            let said = status(&["--json"]).await;
            said.contains(r#""missing_hosts":["nosuch.example"]"#).then_some(()).ok_or(said)
        })
        .await;
        let text = status(&[]).await;
        assert!(text.contains("do not exist") && text.contains("\n  nosuch.example\n"), "{text}");
    }
}

/// Keeps the dead letters.
#[derive(Clone, Default)]
struct Letters(Arc<Mutex<Vec<PageRecord>>>);

#[async_trait]
impl Sink<PageRecord> for Letters {
    async fn write(&self, records: &[&PageRecord]) -> Result<(), StoreError> {
        let dead = |record: &&&PageRecord| matches!(record, PageRecord::DeadLetter { .. });
        self.0.lock().extend(records.iter().filter(dead).map(|&record| record.clone()));
        Ok(())
    }
}

/// Runs the door on a simulated clock until nothing is left; returns the dead letters.
async fn run_simulated(rig: &mut Rig) -> Vec<PageRecord> {
    rig.rules.robots.when_unreachable = WhenUnreachable::Allow;
    let instance = Arc::new(rig.queue.instance());
    let letters = Letters::default();
    let door = EngineDoor {
        source: instance.clone(),
        planner: Arc::new(|lease| pages::plan(lease, PageRules::default())),
        finish: Arc::new(CacheThenEvent {
            cache: Arc::new(MemoryPages::new(rig.clock.clone())),
            ttl: HOUR,
            log: Arc::new(MemoryEvents::default()),
            then: SinkThenSettle { sink: letters.clone(), source: instance },
        }),
        give_up_record: Arc::new(|_, _, _| Vec::new()),
    };
    rig.run_door(door, CancellationToken::new()).await.unwrap();
    letters.0.lock().clone()
}

#[tokio::test(start_paused = true)]
async fn two_hours_down_cost_no_url_and_few_probes() {
    let mut rig = Rig::new([
        SiteScript::new("down.test").outage(Duration::ZERO..2 * HOUR, OutageKind::Refuse),
        SiteScript::new("up.test"),
    ]);
    rig.enqueue(urls("down.test", 500));
    rig.enqueue(urls("up.test", 500));
    assert_eq!(run_simulated(&mut rig).await, []);
    let ledger = rig.queue.ledger();
    assert_eq!((ledger.done, ledger.dead), (1_000, 0), "{ledger:?}");
    let hits = rig.world.hits();
    let up = pages_of(&hits, "up.test");
    assert!(up.iter().all(|hit| hit.at < Duration::from_secs(510)), "others waited");
    let down: Vec<&Hit> = hits.iter().filter(|hit| &*hit.site == "down.test").collect();
    let during = down.iter().filter(|hit| hit.at < 2 * HOUR).count();
    assert!((20..60).contains(&during), "{during} requests to a site that is down");
    let last = down.last().unwrap().at;
    assert!(last < 2 * HOUR + Duration::from_secs(300 + 520), "{last:?}");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_alone_answers_502_is_given_up_after_20_times() {
    let mut rig = Rig::new([SiteScript::new("a.test").status("/bad", 502)]);
    rig.enqueue(["http://a.test/bad"]);
    rig.enqueue(urls("a.test", 100));
    let letters = run_simulated(&mut rig).await;
    let [PageRecord::DeadLetter { url, details }] = letters.as_slice() else {
        panic!("{letters:?}")
    };
    assert_eq!((url.as_str(), details.status_code), ("http://a.test/bad", Some(502)));
    assert_eq!(details.attempts, 20);
    let hits = rig.world.hits();
    assert_eq!(hits.iter().filter(|hit| &*hit.path == "/bad").count(), 20);
    assert_eq!(rig.queue.ledger().done, 100);
}
