//! Doors with a dashboard, on a simulated web.

use std::fs::File;
use std::net::SocketAddr;
use std::time::Duration;

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::crash::{Program, Service, TestWeb};
use fetchwell_testkit::eventually::eventually_ok;
use fetchwell_testkit::plain_http::ask;
use serde_json::{Value, json};
use tokio::process::Child;

/// Every page of the dashboard that needs nothing to be there.
pub(crate) const PAGES: [&str; 8] = [
    "/",
    "/dashboard/sites",
    "/dashboard/messages",
    "/dashboard/dead-letters",
    "/dashboard/articles",
    "/dashboard/common-crawl",
    "/dashboard/callers",
    "/dashboard/system",
];

pub(crate) fn web() -> TestWeb {
    let page = "<title>A page</title><article><p>The quick brown fox jumps over the lazy dog, and then \
                it does so again, for a page needs some words.</p></article>";
    let feed = "<rss version=\"2.0\"><channel><title>News</title>\
                <item><title>Foxes</title><link>http://news.test/foxes</link></item>\
                <item><title>Gone</title><link>http://news.test/gone</link></item></channel></rss>";
    let words = "Foxes are small to medium-sized animals, and they are seen in the city more often than \
                 before. ";
    let story = format!(
        "<html lang=\"en\"><title>Foxes in the city</title><body><article><h1>Foxes in the city</h1>\
         <p>{}</p><h2>What they eat</h2><p>{} See <a href=\"https://example.org/foxes\">a page about \
         foxes</a>.</p><ul><li>Berries</li><li>Mice</li></ul></article></body></html>",
        words.repeat(4),
        words.repeat(3)
    );
    TestWeb::start([
        SiteScript::new("shop.test").text("/page*", "text/html", page).status("/missing*", 404),
        SiteScript::new("slow.test").crawl_delay(Duration::from_secs(5)),
        SiteScript::new("private.test").robots("User-agent: *\nDisallow: /\n"),
        SiteScript::new("down.test").status("/shelf/*", 503),
        SiteScript::new("busy.test").busy("/now", 429, Duration::from_secs(600)),
        SiteScript::new("news.test")
            .text("/feed.xml", "application/rss+xml", feed)
            .text("/foxes", "text/html", &story)
            .status("/gone", 404),
    ])
}

pub(crate) fn program(origin: &TestWeb) -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
        .on(origin)
        .flags(["--rate", "20", "--no-color"])
        .variable("FETCHWELL_BREAKER__INITIAL_BACKOFF", "300s")
        .variable("FETCHWELL_BREAKER__JITTER", "0")
}

pub(crate) async fn serve(origin: &TestWeb) -> Service {
    Service::start(program(origin)).await
}

/// Sends a message and returns its id; `wait`: until it has its result.
pub(crate) async fn send(service: &Service, url: &str, correlation_id: &str, wait: bool) -> String {
    let body = json!({"url": url, "retailer": "admhr", "correlation_id": correlation_id});
    let prefer: &[(&str, &str)] = if wait { &[("prefer", "wait=30")] } else { &[] };
    let body = body.to_string();
    let asked = ask(service.address, &service.token, "POST /fetch", prefer, &body).await;
    let answer = asked.unwrap();
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    let answer = answer.json();
    let id = answer.get("message_id").or(answer.get("id")).and_then(Value::as_str);
    id.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// A `fetchwell pages --dashboard`. Dropping it kills it.
pub(crate) struct Pages {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    pub(crate) program: Program,
    _child: Child,
}

impl Pages {
    pub(crate) async fn start(program: Program, urls: &[&str]) -> Pages {
        if !urls.is_empty() {
            program.run(&[&["pages", "add"], urls].concat()).await.expect_code(0);
        }
        let file = |name: &str| File::create(program.file(name)).unwrap();
        let arguments = ["pages", "--metrics-listen", "", "--dashboard=127.0.0.1:0"];
        let mut command = program.command(&arguments);
        let mut child = command.stdout(file("said.txt")).stderr(file("log.txt")).spawn().unwrap();
        let read = |name: &str| std::fs::read_to_string(program.file(name)).unwrap();
        let address = eventually_ok("the dashboard", async || {
            let runs = matches!(child.try_wait(), Ok(None));
            let log = read("log.txt");
            let address = log.split_once("the dashboard is at http://");
            assert!(runs || address.is_some(), "it does not come up:\n{log}");
            let address = address.and_then(|(_, rest)| rest.split('/').next()?.parse().ok());
            address.ok_or(log)
        })
        .await;
        let said = read("said.txt");
        let token = said.split_whitespace().find(|word| word.starts_with("fw_"));
        let token = token.unwrap_or_default().to_owned();
        Pages { address, token, program, _child: child }
    }
}
