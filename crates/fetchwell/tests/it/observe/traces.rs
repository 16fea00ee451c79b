//! Traces by OTLP, as a collector gets them.

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::crash::TestWeb;

use super::collector::{Collector, Span};
use super::program;

const CLIENT: i64 = 3;

fn shop() -> TestWeb {
    TestWeb::start([SiteScript::new("shop.test")
        .robots("User-agent: *\nDisallow: /private\n")
        .redirect("/old", "/new?token=hush&q=1")
        .status("/gone", 404)])
}

fn the<'a>(spans: &'a [Span], what: &str, is: impl Fn(&Span) -> bool) -> &'a Span {
    let found: Vec<&Span> = spans.iter().filter(|span| is(span)).collect();
    assert_eq!(found.len(), 1, "{what} among {spans:#?}");
    found[0]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_url_is_a_trace_with_its_requests() {
    let origin = shop();
    let collector = Collector::start().await;
    let endpoint = format!("http://{}", collector.address);
    let program = program().on(&origin).variable("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint);
    let old = "http://shop.test/old";
    let gone = "http://shop.test/gone";
    program.run(&["fetch", old, gone, "--rate", "20"]).await.expect_code(4);
    let spans = collector.spans();
    assert!(collector.services().iter().all(|service| service == "fetchwell"));

    let is = |span: &Span, name: &str, value: &str| {
        span.attributes.get(name).is_some_and(|found| found == value)
    };
    let lease = the(&spans, "the URL that moved", |span| {
        span.name == "fetchwell fetch" && is(span, "url.full", old)
    });
    assert_eq!((lease.parent.as_ref(), lease.failed), (None, false));
    assert!(is(lease, "fetchwell.outcome", "done") && is(lease, "fetchwell.attempt", "1"));

    let children: Vec<&Span> =
        spans.iter().filter(|span| span.parent.as_ref() == Some(&lease.id)).collect();
    assert!(children.iter().all(|child| child.trace == lease.trace), "{children:#?}");
    assert!(children.iter().all(|child| child.ended_ns >= child.began_ns));
    let requests: Vec<&&Span> = children.iter().filter(|child| child.kind == CLIENT).collect();
    let statuses: Vec<&str> = requests
        .iter()
        .map(|request| request.attributes["http.response.status_code"].as_str())
        .collect();
    assert_eq!(statuses, ["302", "200"], "the redirect and its page");
    assert!(is(requests[1], "url.full", "http://shop.test/new?token=REDACTED&q=1"));
    for request in &requests {
        assert_eq!(request.name, "GET");
        for (name, value) in [
            ("http.request.method", "GET"),
            ("server.address", "shop.test"),
            ("server.port", "80"),
            ("network.protocol.version", "1.1"),
            ("network.peer.address", "127.0.0.1"),
        ] {
            assert!(is(request, name, value), "{name}: {request:#?}");
        }
    }
    let names: Vec<&str> = children.iter().map(|child| child.name.as_str()).collect();
    assert!(names.contains(&"robots") && names.contains(&"slot wait"), "{names:?}");

    let failed = the(&spans, "the page that is gone", |span| {
        span.kind == CLIENT && is(span, "url.full", gone)
    });
    assert!(failed.failed && is(failed, "error.type", "404"), "{failed:#?}");
    let robots = the(&spans, "the robots.txt", |span| is(span, "fetchwell.purpose", "robots"));
    assert_eq!(robots.parent, None, "it is for all URLs of its site");
    let text = format!("{spans:?}");
    assert!(!text.contains("hush"), "a secret in {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_is_one_warning_and_holds_up_nothing() {
    let origin = shop();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let program = program()
        .on(&origin)
        .variable("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{nobody}"))
        .variable("FETCHWELL_RATE", "0");
    let urls: Vec<String> = (0..200).map(|n| format!("http://shop.test/page/{n}")).collect();
    std::fs::write(program.file("list"), urls.join("\n")).unwrap();
    let ended = program.run(&["fetch", "@list", "--output", "rows.jsonl"]).await.expect_code(0);
    assert_eq!(origin.page_hits(), 200);
    let warnings = ended.stderr.matches("traces are lost").count();
    assert_eq!(warnings, 1, "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_traced_unless_a_collector_is_named() {
    let origin = shop();
    let collector = Collector::start().await;
    let program = program().on(&origin);
    program.run(&["fetch", "http://shop.test/1"]).await.expect_code(0);
    assert!(collector.spans().is_empty());
    let nonsense = program.start_with(
        &["fetch", "http://shop.test/1"],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4317")],
    );
    let ended = nonsense.wait(DEADLINE).await.expect_code(2);
    assert!(ended.stderr.contains("write http://HOST:4318"), "{}", ended.stderr);
}
