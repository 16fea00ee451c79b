//! The contract's table, row by row, on each store: judged at the origin and in the queue.

use std::ops::AsyncFn;
use std::time::Duration;

use fetchwell_simweb::{HitKind, OutageKind, SiteScript};
use fetchwell_testkit::crash::TestWeb;
use fetchwell_testkit::eventually::eventually;
use fetchwell_testkit::scene::StoreKind;

use super::door::{Door, Running};

/// Retries come at once, so that a row takes no time.
const AT_ONCE: (&str, &str) = ("PAGE_FETCHER_RETRY_BACKOFF_BASE_SECONDS", "0.01");

/// What a row is about.
struct Row<'a> {
    sites: Vec<SiteScript>,
    urls: &'a [&'a str],
    variables: &'a [(&'a str, &'a str)],
}

impl Row<'_> {
    /// Runs the row on each store; `check` sees it at work, and says how many URLs are to be left.
    async fn check(self, check: impl AsyncFn(&Door, &TestWeb, &Running<'_>) -> u64) {
        for store in [StoreKind::Sqlite, StoreKind::Redis] {
            let Some(mut door) = Door::on(store, self.sites.clone()).await else { continue };
            for (name, value) in self.variables {
                door = door.variable(name, value);
            }
            let (pages, others): (Vec<&str>, Vec<&str>) =
                self.urls.iter().copied().partition(|url| url.starts_with("http://"));
            door.add(&pages).await;
            for other in others {
                door.add_unchecked(other).await;
            }
            let running = door.start().await;
            let left = check(&door, &door.scene.origin, &running).await;
            running.stop().await;
            assert_eq!(door.waiting().await, left, "what is left");
        }
    }
}

/// How often each of these pages was asked for.
fn asked(origin: &TestWeb, path: &str) -> usize {
    origin.hits().iter().filter(|hit| hit.kind == HitKind::Page && &*hit.path == path).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_the_urls_own_fault_is_a_dead_letter_after_its_attempts() {
    let site = SiteScript::new("a.test")
        .status("/gone", 404)
        .status("/forbidden", 403)
        .status("/broken", 500)
        .redirect("/1", "/2")
        .redirect("/2", "/3")
        .redirect("/3", "/4");
    let expected = [
        ("ftp://a.test/", "ftp", None),
        ("http://10.0.0.1/", "10.0.0.1", None),
        ("http://a.test/1", "redirects", Some(("/1", 1))),
        ("http://a.test/broken", "500", Some(("/broken", 3))),
        ("http://a.test/forbidden", "403", Some(("/forbidden", 3))),
        ("http://a.test/gone", "404", Some(("/gone", 1))),
    ];
    let urls: Vec<&str> =
        expected.iter().map(|(url, ..)| *url).chain(["http://a.test/2"]).collect();
    // Three redirects are too many, two are not.
    let variables = [AT_ONCE, ("PAGE_FETCHER_MAX_REDIRECTS", "2")];
    let row = Row { sites: vec![site], urls: &urls, variables: &variables };
    row.check(async |door, origin, running| {
        running.until("dlq_enqueued_total", |dead| dead == 6.0).await;
        running.until("pages_fetched_total", |fetched| fetched == 1.0).await;
        let mut letters = door.dead_letters().await;
        letters.sort();
        for ((url, reason), (expected_url, word, hits)) in letters.iter().zip(expected) {
            assert_eq!(url, expected_url);
            assert!(reason.contains(word), "{url}: {reason}");
            assert!(door.says("a dead letter", url, word), "{url}:\n{}", door.log());
            if let Some((path, times)) = hits {
                assert_eq!(asked(origin, path), times, "{url}");
            }
        }
        assert_eq!(letters.len(), expected.len());
        assert_eq!(running.metric("retries_total").await, 4.0);
        assert_eq!(running.metric("pages_failed_total").await, 6.0);
        running.until("dlq_size", |dead| dead == 6.0).await;
        0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_the_sites_fault_is_put_back_and_never_dead() {
    let hour = Duration::from_secs(3_600);
    let sites = vec![
        SiteScript::new("busy.test").status("/1", 503),
        SiteScript::new("refused.test").outage(Duration::ZERO..hour, OutageKind::Refuse),
    ];
    let urls = ["http://busy.test/1", "http://refused.test/1"];
    let row = Row { sites, urls: &urls, variables: &[AT_ONCE] };
    row.check(async |_, _, running| {
        // Five failures open a circuit; the first one of the site that refuses was of its robots.txt.
        running.until("pages_requeued_total", |requeued| requeued == 9.0).await;
        running.until("circuit_breaker_opened_total", |opened| opened == 2.0).await;
        assert_eq!(running.metric("circuit_breaker_state").await, 1.0);
        assert_eq!(running.metric("circuit_breaker_consecutive_failures").await, 5.0);
        assert_eq!(running.metric("circuit_breaker_current_backoff_seconds").await, 30.0);
        assert_eq!(running.metric("dlq_size").await, 0.0);
        2
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_429_is_waited_out_and_no_failure() {
    let interval = Duration::from_secs(2);
    let retry_after = Duration::from_secs(1);
    let site = SiteScript::new("strict.test").strict_limiter(interval, Some(retry_after));
    let urls = ["http://strict.test/1", "http://strict.test/2"];
    let variables = [
        AT_ONCE,
        // One failure would open the circuit.
        ("PAGE_FETCHER_CIRCUIT_BREAKER_FAILURE_THRESHOLD", "1"),
        // The second request must not be on its way before the first one is answered.
        ("FETCHWELL_MAX_IN_FLIGHT", "1"),
    ];
    let row = Row { sites: vec![site], urls: &urls, variables: &variables };
    row.check(async |_, origin, running| {
        running.until("pages_fetched_total", |fetched| fetched == 2.0).await;
        let hits: Vec<_> =
            origin.hits().into_iter().filter(|hit| hit.kind == HitKind::Page).collect();
        assert!(hits.iter().any(|hit| hit.status == Some(429)), "{hits:?}");
        for pair in hits.windows(2).filter(|pair| pair[0].status == Some(429)) {
            assert!(pair[1].at - pair[0].at >= retry_after, "{pair:?}");
        }
        assert_eq!(running.metric("circuit_breaker_opened_total").await, 0.0);
        assert_eq!(running.metric("pages_requeued_total").await, 0.0);
        0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_500_after_the_other_opens_the_circuit() {
    let site = SiteScript::new("ill.test").status("/*", 500);
    let urls: Vec<String> = (1..=8).map(|page| format!("http://ill.test/{page}")).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    // Slow enough that the next page is not under way when a failure comes, even on a busy machine.
    let variables = [("PAGE_FETCHER_RATE_LIMIT_PER_SECOND", "0.5")];
    let row = Row { sites: vec![site], urls: &urls, variables: &variables };
    row.check(async |_, origin, running| {
        running.until("circuit_breaker_opened_total", |opened| opened == 1.0).await;
        running.until("retries_total", |retries| retries == 5.0).await;
        assert_eq!(origin.page_hits(), 5, "while it is open nothing goes there");
        assert_eq!(running.metric("dlq_size").await, 0.0);
        8
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_robots_txt_disallows_is_skipped() {
    let site = SiteScript::new("a.test").robots("User-agent: OttoBot\nDisallow: /");
    let row = Row { sites: vec![site], urls: &["http://a.test/1"], variables: &[] };
    row.check(async |door, origin, running| {
        running.until("pages_skipped_robots_total", |skipped| skipped == 1.0).await;
        assert_eq!((origin.page_hits(), door.ledger().await.skipped), (0, 1));
        let said = door.says("skipped", "http://a.test/1", "robots.txt disallows it");
        assert!(said, "{}", door.log());
        0
    })
    .await;
}

/// Pages of a site whose robots.txt can't be read, by what the setting says.
async fn robots_unreachable(
    setting: &[(&str, &str)],
    check: impl AsyncFn(&TestWeb, &Running<'_>) -> u64,
) {
    let sites =
        vec![SiteScript::new("mute.test").robots_status(503), SiteScript::new("other.test")];
    let row = Row { sites, urls: &["http://mute.test/1"], variables: setting };
    row.check(async |door, origin, running| {
        eventually("a look at robots.txt", async || !origin.hits().is_empty()).await;
        door.add(&["http://other.test/1"]).await;
        running.until("pages_fetched_total", |fetched| fetched >= 1.0).await;
        let left = check(origin, running).await;
        let text = running.ask("/metrics").await;
        let sample = "\nfetchwell_robots_unreachable_total{door=\"pages\"} ";
        // Once, and again whenever the file is tried again meanwhile.
        let unreachable = text.split_once(sample).and_then(|(_, rest)| rest.lines().next());
        assert!(unreachable.is_some_and(|count| count != "0"), "{text}");
        assert!(door.log().contains("robots.txt is unreachable"), "{}", door.log());
        left
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_readable_robots_txt_pages_are_fetched_unless_a_setting_says_otherwise() {
    robots_unreachable(&[], async |_, running| {
        running.until("pages_fetched_total", |fetched| fetched == 2.0).await;
        0
    })
    .await;
    let setting = "FETCHWELL_ROBOTS__UNREACHABLE";
    robots_unreachable(&[(setting, "disallow")], async |origin, running| {
        running.until("pages_skipped_robots_total", |skipped| skipped == 1.0).await;
        assert_eq!(asked(origin, "/1"), 1, "that of the other site");
        0
    })
    .await;
    robots_unreachable(&[(setting, "defer")], async |origin, running| {
        running.until("input_queue_size", |waiting| waiting == 1.0).await;
        assert_eq!(asked(origin, "/1"), 1, "that of the other site");
        1
    })
    .await;
}
