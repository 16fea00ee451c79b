//! The JSON form of a script.

use std::time::Duration;

use fetchwell_simweb::{OutageKind, SiteScript, Truncation, mixed_sites};

#[test]
fn a_script_with_everything_in_it_reads_as_the_builder_makes_it() {
    let json = r#"{
        "name": "shop.test",
        "robots": {"crawl_delay_s": 1},
        "strict_limiter": {"min_interval_s": 0.5, "retry_after_s": 2},
        "outages": [
            {"from_s": 5, "to_s": 9.5, "failure": {"status_503": {"retry_after_s": 3}}},
            {"from_s": 20, "to_s": 21, "failure": "refuse"}
        ],
        "flapping": {"up_for_s": 10, "down_for_s": 2, "failure": "stall"},
        "first_byte_after_s": 0.25,
        "body_over_s": 1.5,
        "page_bytes": 2048,
        "content_type": "text/html",
        "paths": [
            {"path": "/old", "redirect": "http://new.test/"},
            {"path": "/moved", "moved": "http://new.test/"},
            {"path": "/missing*", "status": 404},
            {"path": "/busy", "busy": {"status": 503, "retry_after_s": 90}},
            {"path": "/atom", "tagged": {"content_type": "text/xml", "text": "<feed/>", "etag": "v1"}},
            {"path": "/flaky/*", "fails_first": {"times": 2, "status": 503}},
            {"path": "/feed", "text": {"content_type": "application/rss+xml", "text": "<rss/>"}},
            {"path": "/map.gz", "gzip": {"content_type": "application/gzip", "text": "<urlset/>"}},
            {"path": "/logo", "binary": {"content_type": "image/png", "size_bytes": 64}},
            {"path": "/half", "manner": {"cut_mid_body": {"after_bytes": 100}}},
            {"path": "/head", "manner": "cut_after_head"}
        ]
    }"#;
    let s = Duration::from_secs_f64;
    let script = SiteScript::new("shop.test")
        .crawl_delay(s(1.0))
        .strict_limiter(s(0.5), Some(s(2.0)))
        .outage(s(5.0)..s(9.5), OutageKind::Status503 { retry_after: Some(s(3.0)) })
        .outage(s(20.0)..s(21.0), OutageKind::Refuse)
        .flapping(s(10.0), s(2.0), OutageKind::Stall)
        .slow(s(0.25))
        .trickling(s(1.5))
        .page_bytes(2_048)
        .content_type("text/html")
        .redirect("/old", "http://new.test/")
        .moved("/moved", "http://new.test/")
        .status("/missing*", 404)
        .busy("/busy", 503, Duration::from_secs(90))
        .tagged("/atom", "text/xml", "<feed/>", "v1")
        .fails_first("/flaky/*", 2, 503)
        .text("/feed", "application/rss+xml", "<rss/>")
        .gzip("/map.gz", "application/gzip", "<urlset/>")
        .binary("/logo", "image/png", 64)
        .manner("/half", Truncation::CutMidBody { after_bytes: 100 })
        .manner("/head", Truncation::CutAfterHead);
    assert_eq!(serde_json::from_str::<SiteScript>(json).unwrap(), script);
}

#[test]
fn a_name_is_enough() {
    let script: SiteScript = serde_json::from_str(r#"{"name": "shop.test"}"#).unwrap();
    assert_eq!(script, SiteScript::new("shop.test"));
}

#[test]
fn robots_take_each_of_their_forms() {
    let robots = |json: &str| {
        let json = format!(r#"{{"name": "shop.test", "robots": {json}}}"#);
        serde_json::from_str::<SiteScript>(&json).unwrap()
    };
    let shop = || SiteScript::new("shop.test");
    assert_eq!(robots(r#""missing""#), shop());
    assert_eq!(robots(r#"{"text": "User-agent: *\n"}"#), shop().robots("User-agent: *\n"));
    assert_eq!(robots(r#"{"status": 503}"#), shop().robots_status(503));
    assert_eq!(robots(r#"{"redirect": "/r"}"#), shop().robots_redirect("/r"));
}

#[test]
fn a_mistake_is_an_error() {
    for json in [
        r#"{"robots": "missing"}"#,
        r#"{"name": "shop.test", "crawl_delay": 1}"#,
        r#"{"name": "shop.test", "body_over_s": -1}"#,
        r#"{"name": "shop.test", "paths": [{"path": "/", "stattus": 404}]}"#,
    ] {
        assert!(serde_json::from_str::<SiteScript>(json).is_err(), "{json}");
    }
}

#[test]
fn generated_scripts_survive_the_way_to_a_file_and_back() {
    let sites = mixed_sites(200, 5);
    let json = serde_json::to_vec(&sites).unwrap();
    assert_eq!(serde_json::from_slice::<Vec<SiteScript>>(&json).unwrap(), sites);
}
