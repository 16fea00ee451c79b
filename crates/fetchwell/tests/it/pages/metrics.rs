//! What Prometheus reads: names as in the contract, and their values after a run.

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::eventually::eventually;
use fetchwell_testkit::scene::StoreKind;
use redis::AsyncCommands;

use super::door::Door;
use crate::client;

/// Every name of the contract, with its kind.
const NAMES: [(&str, &str); 16] = [
    ("pages_fetched_total", "counter"),
    ("pages_failed_total", "counter"),
    ("pages_skipped_robots_total", "counter"),
    ("pages_requeued_total", "counter"),
    ("retries_total", "counter"),
    ("dlq_enqueued_total", "counter"),
    ("circuit_breaker_opened_total", "counter"),
    ("circuit_breaker_closed_total", "counter"),
    ("circuit_breaker_probes_total", "counter"),
    ("input_queue_size", "gauge"),
    ("dlq_size", "gauge"),
    ("circuit_breaker_state", "gauge"),
    ("circuit_breaker_consecutive_failures", "gauge"),
    ("circuit_breaker_current_backoff_seconds", "gauge"),
    ("fetch_duration_seconds", "histogram"),
    ("content_size_bytes", "histogram"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_has_its_name_and_its_value() {
    let sites = [
        SiteScript::new("a.test")
            .robots("User-agent: *\nDisallow: /private")
            .fails_first("/shaky", 1, 500)
            .status("/gone", 404)
            .page_bytes(2_000),
        SiteScript::new("flaky.test").fails_first("/1", 5, 503),
    ];
    let door = Door::embedded(sites)
        .variable("PAGE_FETCHER_RETRY_BACKOFF_BASE_SECONDS", "0.01")
        .variable("PAGE_FETCHER_CIRCUIT_BREAKER_INITIAL_BACKOFF_SECONDS", "0.2");
    let paths = ["/1", "/2", "/shaky", "/gone", "/private"];
    let urls = paths.map(|path| format!("http://a.test{path}"));
    let urls: Vec<&str> = urls.iter().map(String::as_str).chain(["http://flaky.test/1"]).collect();
    door.add(&urls).await;
    let running = door.start().await;
    running.until("pages_fetched_total", |fetched| fetched == 4.0).await;
    running.until("pages_skipped_robots_total", |skipped| skipped == 1.0).await;
    running.until("dlq_size", |dead| dead == 1.0).await;
    // The queue is counted at most once a second.
    running.until("input_queue_size", |waiting| waiting == 0.0).await;
    for (name, value) in [
        ("pages_failed_total", 1.0),
        ("pages_requeued_total", 5.0),
        ("retries_total", 1.0),
        ("dlq_enqueued_total", 1.0),
        ("circuit_breaker_opened_total", 1.0),
        ("circuit_breaker_closed_total", 1.0),
        ("circuit_breaker_probes_total{result=\"success\"}", 1.0),
        ("circuit_breaker_probes_total{result=\"failure\"}", 0.0),
        ("circuit_breaker_state", 0.0),
        ("circuit_breaker_consecutive_failures", 0.0),
        ("circuit_breaker_current_backoff_seconds", 0.0),
        ("content_size_bytes_count", 4.0),
        ("content_size_bytes_sum", 3.0 * 2_000.0 + 10_240.0),
        // Every request of a page: 4 that came, 1 gone, 1 that failed by itself, 5 by the site.
        ("fetch_duration_seconds_count", 11.0),
    ] {
        assert_eq!(running.metric(name).await, value, "{name}");
    }
    let text = running.ask("/metrics").await;
    let kinds: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE page_fetcher_")).collect();
    let mut expected = NAMES.map(|(name, kind)| format!("{name} {kind}"));
    expected.sort();
    let mut found = kinds.clone();
    found.sort_unstable();
    assert_eq!(found, expected, "these and no others");
    assert!(!text.contains("a.test"), "no site is a label");
    assert_eq!(
        (running.ask("/livez").await, running.ask("/readyz").await),
        ("ok\n".into(), "ok\n".into())
    );
    running.stop().await;
}

/// Others read the list of dead letters, and may change it.
#[tokio::test(flavor = "multi_thread")]
async fn on_redis_the_dead_letters_are_those_on_the_list() {
    let Some(door) = Door::on(StoreKind::Redis, []).await else { return };
    door.add_unchecked("nonsense").await;
    let running = door.start().await;
    running.until("dlq_size", |dead| dead == 1.0).await;
    let mut connection = door.scene.redis().await;
    let _: () = connection.rpush("page_fetcher_dlq", &["theirs", "too"][..]).await.unwrap();
    running.until("dlq_size", |dead| dead == 3.0).await;
    let _: () = connection.del("page_fetcher_dlq").await.unwrap();
    running.until("dlq_size", |dead| dead == 0.0).await;
    running.stop().await;
}

/// Its listener has the limits that all listeners have.
#[tokio::test(flavor = "multi_thread")]
async fn strangers_who_say_nothing_keep_no_monitoring_out() {
    let door = Door::embedded([]);
    let running = door.start().await;
    let mut strangers = Vec::new();
    for _ in 0..200 {
        strangers.push(client::connect(running.metrics).await);
    }
    assert_eq!(running.ask("/livez").await, "ok\n");
    assert_eq!(running.ask("/readyz").await, "ok\n");
    let request = client::request("GET", "/metrics", &[], "");
    eventually("a place", async || client::raw(running.metrics, &request).await.status == 200)
        .await;
    drop(strangers);
    running.stop().await;
}
