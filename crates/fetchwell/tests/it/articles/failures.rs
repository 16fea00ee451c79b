//! Every failure code, by a page that earns it; and what counts as an attempt.

use fetchwell_simweb::{OutageKind, SiteScript, Truncation};
use std::time::Duration;

use super::door::Door;

fn site() -> SiteScript {
    let page =
        |body: &str| format!("<html><head><title>T</title></head><body>{body}</body></html>");
    let silent = page(&format!("<script>{}</script>", "x".repeat(300)));
    let noise = page(&"a\0\0".repeat(200));
    SiteScript::new("a.test")
        .robots("User-agent: *\nDisallow: /private")
        .text("/short", "text/html", &page("<p>Too short.</p>"))
        .text("/words", "text/plain", &"words ".repeat(100))
        .binary("/photo", "image/jpeg", 5_000)
        .text("/silent", "text/html", &silent)
        .text("/noise", "text/html", &noise)
        .status("/gone", 404)
        .status("/broken", 500)
        .status("/busy", 429)
        .fails_first("/hurried", 1, 429)
        .manner("/stalls", Truncation::Stall)
        .redirect("/1", "/2")
        .redirect("/2", "/3")
        .redirect("/3", "/4")
}

/// A link, its code (`None`: an article), and how often its page is asked for.
const LINKS: [(&str, Option<&str>, usize); 15] = [
    ("http://a.test/fine", None, 1),
    ("http://a.test/hurried", None, 2),
    ("http://a.test/short", Some("FAIL_BAD_HTML"), 1),
    ("http://a.test/words", Some("FAIL_BAD_HTML"), 1),
    ("http://a.test/photo", Some("FAIL_BAD_HTML"), 1),
    ("http://a.test/silent", Some("FAIL_EMPTY"), 1),
    ("http://a.test/noise", Some("FAIL_PARSE"), 1),
    ("http://a.test/gone", Some("FAIL_HTTP"), 1),
    ("http://a.test/broken", Some("FAIL_HTTP"), 1),
    ("http://a.test/busy", Some("FAIL_HTTP"), 3),
    ("http://a.test/1", Some("FAIL_HTTP"), 1),
    ("http://a.test/stalls", Some("FAIL_TIMEOUT"), 1),
    ("http://a.test/private/x", Some("FAIL_ROBOTS"), 0),
    ("http://10.0.0.1/", Some("FAIL_REFUSED"), 0),
    ("ftp://a.test/file", Some("FAIL_REFUSED"), 0),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_code_is_earned() {
    for door in Door::on_each_store(&[site()]).await {
        let door = door
            .variable("FETCHWELL_ARTICLES__REQUEST_TIMEOUT", "5s")
            .variable("FETCHWELL_HTTP__MAX_REDIRECTS", "2");
        door.add("news", &LINKS.map(|(url, ..)| url)).await;
        let said = door.run().await.stderr;
        let asked = door.asked();
        for (url, code, times) in LINKS {
            let fields = door.find(url).await.unwrap();
            let status = if code.is_some() { "failure" } else { "success" };
            assert_eq!(fields["status"], status, "{url}");
            assert_eq!(fields.get("reason").map(String::as_str), code, "{url}");
            assert_eq!(asked.get(url).copied().unwrap_or(0), times, "{url}");
            if code.is_some() {
                let names: Vec<&String> = fields.keys().collect();
                let expected = ["category", "fetched_ts", "reason", "status", "uid", "url"];
                assert_eq!(names, expected, "{url}");
            }
        }
        assert!(said.contains("[canon] ⚠️ Bad HTML → skip"), "{said}");
        let failures = [
            ("FAIL_BAD_HTML", 3),
            ("FAIL_EMPTY", 1),
            ("FAIL_HTTP", 4),
            ("FAIL_PARSE", 1),
            ("FAIL_REFUSED", 2),
            ("FAIL_ROBOTS", 1),
            ("FAIL_TIMEOUT", 1),
        ];
        let counts = door.counts().await;
        assert_eq!(counts.failures, failures.map(|(code, n)| (code.to_owned(), n)).into());
        // All but the one whose site did not answer.
        assert_eq!((counts.articles, counts.attempted), (2, 14));
        let ledger = door.ledger().await;
        assert_eq!((ledger.accepted, ledger.done + ledger.skipped), (15, 15), "{ledger:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_of_the_site_is_an_attempt_after_three_runs() {
    let down = OutageKind::Refuse;
    let sites = [
        SiteScript::new("b.test").status("/down", 503),
        SiteScript::new("dead.test").outage(Duration::ZERO..Duration::from_secs(3_600), down),
    ];
    for door in Door::on_each_store(&sites).await {
        let links = ["http://b.test/down", "http://dead.test/"];
        door.add("news", &links).await;
        for run in 1..=3 {
            door.run().await;
            assert_eq!(door.asked()[links[0]], run, "once a run");
            assert_eq!(door.counts().await.attempted, if run < 3 { 0 } else { 2 }, "run {run}");
        }
        assert_eq!(door.find(links[0]).await.unwrap()["reason"], "FAIL_HTTP");
        assert_eq!(door.find(links[1]).await.unwrap()["reason"], "FAIL_TIMEOUT");
        let before = door.scene.origin.hits().len();
        door.run().await;
        assert_eq!(door.scene.origin.hits().len(), before, "it is left alone now");
    }
}
