//! The events of `pages`, as others read them: in Python, by their description and by the example.
//!
//! It needs `FETCHWELL_TEST_PYTHON`, and the example Redis and Kafka; without them these tests say that
//! they skip.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_doors::pages::{self, CacheThenEvent, PageRules, Written};
use fetchwell_engine::finish::SinkThenSettle;
use fetchwell_engine::pipeline::Door;
use fetchwell_engine::ports::event_log::{EventLog, LogEvent};
use fetchwell_engine::ports::page_cache::PageCache;
use fetchwell_simweb::SiteScript;
use fetchwell_stores::kafka::KafkaLog;
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::conformance::kafka::unused_topic;
use fetchwell_testkit::conformance::servers::{
    redis_connection, server_url, unused_redis_database,
};
use fetchwell_testkit::memory::{MemoryEvents, MemoryPages};
use fetchwell_testkit::python::python;
use fetchwell_testkit::rig::Rig;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const HOUR: Duration = Duration::from_secs(3_600);

/// What a run of the door on a simulated web leaves: pages and events.
async fn run_the_door() -> (Arc<MemoryPages>, Vec<LogEvent>) {
    let site = SiteScript::new("a.test")
        .text("/one", "text/html; charset=iso-8859-1", "Grüße")
        .text("/empty", "text/plain", "")
        .redirect("/moved", "/one")
        .status("/gone", 404);
    let rig = Rig::new([site]);
    rig.enqueue(
        ["one", "empty", "moved", "gone", "one?again"].map(|path| format!("http://a.test/{path}")),
    );
    let instance = Arc::new(rig.queue.instance());
    let cache = Arc::new(MemoryPages::new(rig.clock.clone()));
    let log = Arc::new(MemoryEvents::default());
    let then = SinkThenSettle { sink: Written, source: instance.clone() };
    let door = Door {
        source: instance,
        planner: Arc::new(|lease| pages::plan(lease, PageRules::default())),
        finish: Arc::new(CacheThenEvent {
            cache: cache.clone(),
            ttl: HOUR,
            log: log.clone(),
            then,
        }),
        give_up_record: Arc::new(|_, _, _| Vec::new()),
    };
    rig.run_door(door, CancellationToken::new()).await.unwrap();
    let ledger = rig.queue.ledger();
    assert_eq!((ledger.done, ledger.dead), (4, 1));
    (cache, log.published())
}

/// Runs a program of clients/python to its good end, and returns what it wrote.
async fn run(
    python: &Path,
    program: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
    input: &str,
) -> String {
    let mut command = Command::new(python);
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python").join(program))
        .args(arguments)
        .envs(variables.iter().copied())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    let output = timeout(DEADLINE, child.wait_with_output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{program} failed; its own words are above");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(start_paused = true)]
async fn events_are_as_their_description_has_them() {
    let Some(python) = python() else { return };
    let (_, events) = run_the_door().await;
    tokio::time::resume();
    let lines: String = events.iter().map(|event| format!("{}\n", event.value)).collect();
    let said = run(&python, "tests/webpage_log.py", &[], &[], &lines).await;
    assert_eq!(said, "4 events are as described\n");
}

#[tokio::test(start_paused = true)]
async fn the_example_finds_the_page_of_every_event_once() {
    let redis = "FETCHWELL_TEST_REDIS_URL";
    let kafka = "FETCHWELL_TEST_KAFKA_BOOTSTRAP";
    let (Some(python), Some(redis), Some(kafka)) = (python(), server_url(redis), server_url(kafka))
    else {
        return;
    };
    let (cache, events) = run_the_door().await;
    tokio::time::resume();
    let redis = unused_redis_database(redis).await;
    let mut connection = redis_connection(&redis).await;
    let mut expected = Vec::new();
    for event in &events {
        let value: Value = serde_json::from_str(&event.value).unwrap();
        let key = value["cache_key"].as_str().unwrap();
        let url = value["url"].as_str().unwrap();
        let page = cache.get(key).await.unwrap().unwrap();
        expected.push(format!("200 {} bytes {url}", page.len()));
        let mut set = redis::cmd("SET");
        set.arg(key).arg(&page[..]).query_async::<()>(&mut connection).await.unwrap();
    }
    let topic = unused_topic();
    let log = KafkaLog::open(&kafka, &topic).await.unwrap();
    for _ in 0..2 {
        log.publish(&events).await.unwrap();
    }
    let servers = [
        ("PAGE_FETCHER_REDIS_URL", redis.as_str()),
        ("PAGE_FETCHER_KAFKA_BOOTSTRAP_SERVERS", &kafka),
        ("PAGE_FETCHER_WEBPAGE_LOG_TOPIC", &topic),
    ];
    let said = run(&python, "examples/consume_pages.py", &[&topic, "4"], &servers, "").await;
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}
