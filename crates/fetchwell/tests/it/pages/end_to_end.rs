//! URLs in, pages and events out: embedded, and on Redis and Kafka with programs that are not ours.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::conformance::kafka::{read_topic, unused_topic};
use fetchwell_testkit::conformance::servers::{redis_connection, server_url, unused_redis};
use fetchwell_testkit::eventually::eventually;
use fetchwell_testkit::python::python;
use fetchwell_testkit::scene::StoreKind;
use redis::AsyncCommands;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::process::Command;
use tokio::time::timeout;

use super::door::Door;

const PAGES: [&str; 3] = ["http://shop.test/1", "http://shop.test/2?q=a b", "http://SHOP.test/3"];

fn shop() -> [SiteScript; 1] {
    [SiteScript::new("shop.test").robots("User-agent: *\nDisallow: /private")]
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_any_server_urls_become_events_and_pages() {
    let door = Door::embedded(shop());
    door.add(&PAGES).await;
    door.add(&["http://shop.test/private/4"]).await;
    door.add_unchecked("nonsense").await;
    let running = door.start().await;
    running.until("pages_fetched_total", |fetched| fetched == 3.0).await;
    running.until("pages_skipped_robots_total", |skipped| skipped == 1.0).await;
    running.until("dlq_size", |dead| dead == 1.0).await;
    running.stop().await;

    let events = door.events().await;
    let mut urls: Vec<&str> =
        events.iter().map(|line| line["event"]["url"].as_str().unwrap()).collect();
    urls.sort_unstable();
    let mut expected = PAGES;
    expected.sort_unstable();
    assert_eq!(urls, expected);
    for line in &events {
        let url = line["event"]["url"].as_str().unwrap();
        let page = door.scene.program.run(&["pages", "show", url]).await.expect_code(0).stdout;
        assert_eq!(line["event"]["content_hash"], hash(page.as_bytes()), "{url}");
    }
    let cursor = events[0]["cursor"].to_string();
    let rest = ["pages", "events", "--after", &cursor, "--limit", "1"];
    let rest = door.scene.program.run(&rest).await.expect_code(0).stdout;
    assert_eq!(serde_json::from_str::<Value>(&rest).unwrap(), events[1]);
    door.scene.program.run(&["pages", "show", "http://shop.test/9"]).await.expect_code(4);
    assert!(door.scene.origin.hits().iter().all(|hit| &*hit.user_agent == "OttoBot/1.0"));
    assert!(door.ledger().await.balances());
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_py_pushes_and_a_python_consumer_reads_pages_by_their_events() {
    let kafka = server_url("FETCHWELL_TEST_KAFKA_BOOTSTRAP");
    let door = Door::on(StoreKind::Redis, shop()).await;
    let (Some(python), Some(kafka), Some(door)) = (python(), kafka, door) else { return };
    let topic = unused_topic();
    let door = door
        .variable("PAGE_FETCHER_KAFKA_BOOTSTRAP_SERVERS", &kafka)
        .variable("PAGE_FETCHER_WEBPAGE_LOG_TOPIC", &topic);
    let url = door.scene.redis_url().unwrap();
    let running = door.start().await;

    let push = "import redis, sys; redis.Redis.from_url(sys.argv[1]).rpush('crawler_queue', *sys.argv[2:])";
    run(Command::new(&python).args(["-c", push, url]).args(PAGES)).await;
    running.until("pages_fetched_total", |fetched| fetched == 3.0).await;

    let example = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../clients/python/examples/consume_pages.py");
    let mut consumer = Command::new(&python);
    consumer.arg(example).args([&topic, "3"]);
    consumer.env("PAGE_FETCHER_REDIS_URL", url).env("PAGE_FETCHER_WEBPAGE_LOG_TOPIC", &topic);
    consumer.env("PAGE_FETCHER_KAFKA_BOOTSTRAP_SERVERS", &kafka);
    let said = run(&mut consumer).await;
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    let mut expected = PAGES.map(|url| format!("200 10240 bytes {url}"));
    expected.sort_unstable();
    assert_eq!(lines, expected);

    let events = read_topic(&kafka, &topic).await;
    assert_eq!(events.len(), 3);
    let mut connection = door.scene.redis().await;
    for event in events {
        let value: Value = serde_json::from_str(&event.value).unwrap();
        let url = value["url"].as_str().unwrap();
        assert_eq!(event.key.as_slice(), Sha256::digest(url).as_slice());
        let key = format!("webpage:{}", hash(url.as_bytes()));
        assert_eq!(value["cache_key"], key);
        let page: Vec<u8> = connection.get(&key).await.unwrap();
        assert_eq!(value["content_hash"], hash(&page));
        assert_eq!(value["content_length"], page.len());
        let ttl_s: u64 = connection.ttl(&key).await.unwrap();
        assert!((3_000..=3_600).contains(&ttl_s), "{ttl_s}");
    }
    running.stop().await;
    let left: u64 = connection.llen("crawler_queue").await.unwrap();
    assert_eq!((left, door.ledger().await.done), (0, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_server_alone_is_enough_and_the_rest_is_embedded_with_a_warning() {
    if let Some(door) = Door::on(StoreKind::Redis, shop()).await {
        fetch_one(&door, "no Kafka server is set").await;
        assert_eq!(door.events().await[0]["event"]["url"], PAGES[0]);
    }
    let kafka = server_url("FETCHWELL_TEST_KAFKA_BOOTSTRAP");
    if let (Some(kafka), Some(url)) = (kafka, unused_redis().await) {
        let topic = unused_topic();
        let door = Door::embedded(shop())
            .variable("PAGE_FETCHER_KAFKA_BOOTSTRAP_SERVERS", &kafka)
            .variable("PAGE_FETCHER_WEBPAGE_LOG_TOPIC", &topic)
            .variable("FETCHWELL_PAGES__CACHE", &url);
        fetch_one(&door, "no Redis server is set").await;
        let events = read_topic(&kafka, &topic).await;
        assert!(events.len() == 1 && events[0].value.contains(PAGES[0]), "{events:?}");
        let key = format!("webpage:{}", hash(PAGES[0].as_bytes()));
        let cached: bool = redis_connection(&url).await.exists(key).await.unwrap();
        assert!(cached, "pages.cache names the server that keeps it");
    }
}

/// Fetches a page and finds it in the cache; the log has this warning.
async fn fetch_one(door: &Door, warning: &str) {
    door.add(&PAGES[..1]).await;
    let running = door.start().await;
    running.until("pages_fetched_total", |fetched| fetched == 1.0).await;
    running.stop().await;
    assert!(door.log().contains(warning), "{}", door.log());
    let page = door.scene.program.run(&["pages", "show", PAGES[0]]).await.expect_code(0).stdout;
    assert!(page.contains("The page shop.test/1"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_to_leave_puts_what_waits_back_on_the_list_and_so_does_unpark() {
    let slow = SiteScript::new("slow.test").slow(Duration::from_secs(3));
    let Some(door) = Door::on(StoreKind::Redis, [slow]).await else { return };
    let urls: Vec<String> = (0..20).map(|page| format!("http://slow.test/{page}")).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    door.add(&urls).await;
    let door = door.variable("FETCHWELL_RATE", "0.1");
    let running = door.start().await;
    eventually("a hit", async || !door.scene.origin.hits().is_empty()).await;
    running.stop().await;
    let left: u64 = door.scene.redis().await.llen("crawler_queue").await.unwrap();
    let ledger = door.ledger().await;
    assert_eq!(left + u64::try_from(ledger.done).unwrap(), 20, "{ledger:?}");
    assert_eq!(ledger.unfinished(), 0, "{ledger:?}");
    let said = door.scene.program.run(&["pages", "unpark"]).await.expect_code(0).stdout;
    assert_eq!(said, "put 0 back on crawler_queue\n");
}

async fn run(command: &mut Command) -> String {
    command.stderr(Stdio::inherit()).kill_on_drop(true);
    let output = timeout(DEADLINE, command.output()).await.expect("it ends").unwrap();
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).unwrap()
}
